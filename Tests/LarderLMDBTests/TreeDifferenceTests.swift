import Foundation
import LarderTestSupport
import Testing

@testable import LarderLMDB

@Suite("Differences between snapshots", .timeLimit(.minutes(10)))
struct TreeDifferenceTests {
    /// A table's contents as a snapshot has them.
    private func contents(
        of table: Table, in transaction: borrowing ReadTransaction
    ) throws -> [[UInt8]: [UInt8]] {
        var found: [[UInt8]: [UInt8]] = [:]
        var cursor = try transaction.cursor(in: table)
        var entry = try cursor.first()
        while let current = entry {
            found[current.key.copied] = current.value.copied
            entry = try cursor.next()
        }
        return found
    }

    @Test("Applied to the earlier snapshot, the keys that may differ give the later one")
    func random() async throws {
        let seed = TestSeed.of("tree differences")
        var random = SeededNumbers(seed: seed)
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            try environment.write { transaction in
                for number in 0..<3_000 as Range<UInt64> {
                    try transaction.put(number, bytes("record \(number)").rawSpan, in: records)
                    try transaction.put(bytes("Key:\(number)").rawSpan, bytes("\(number)").rawSpan, in: keys)
                }
            }
            for round in 0..<40 {
                let earlier = try environment.beginRead()
                for _ in 0..<random.next() % 4 {
                    try environment.write { transaction in
                        for _ in 0..<random.next() % 20 {
                            let number = random.next() % 4_000
                            let key = bytes("Key:\(number)")
                            switch random.next() % 4 {
                            case 0:
                                try transaction.delete(number, in: records)
                                try transaction.delete(key.rawSpan, in: keys)
                            case 1:
                                // A value with pages of its own.
                                let value = [UInt8](repeating: UInt8(round), count: Int(random.next() % 20_000))
                                try transaction.put(number, value.rawSpan, in: records)
                            default:
                                try transaction.put(number, bytes("\(round)").rawSpan, in: records)
                                try transaction.put(key.rawSpan, bytes("\(round)").rawSpan, in: keys)
                            }
                        }
                    }
                }
                if round == 20 { try environment.write { try $0.clear(records) } }
                let later = try environment.beginRead()
                for table in [records, keys] {
                    let found = try environment.differences(in: table, from: earlier, to: later)
                    let (before, after) = (try contents(of: table, in: earlier), try contents(of: table, in: later))
                    var built = before
                    for key in found.earlier { built[key] = nil }
                    for key in found.later { built[key] = after[key] }
                    #expect(built == after, "seed \(seed), round \(round)")
                    #expect(found.later.allSatisfy { after[$0] != nil }, "seed \(seed), round \(round)")
                    #expect(found.earlier.allSatisfy { before[$0] != nil }, "seed \(seed), round \(round)")
                }
            }
        }
    }

    @Test("A commit of one entry names no more keys than lie on a page")
    func few() async throws {
        try await withEnvironment { environment in
            let keys = try environment.keys
            try environment.write { transaction in
                for number in 0..<20_000 {
                    try transaction.put(bytes("Key:\(number)").rawSpan, bytes("\(number)").rawSpan, in: keys)
                }
            }
            let earlier = try environment.beginRead()
            try environment.write { try $0.put(bytes("Key:7").rawSpan, bytes("new").rawSpan, in: keys) }
            let later = try environment.beginRead()
            let found = try environment.differences(in: keys, from: earlier, to: later)
            #expect(found.later.contains(bytes("Key:7")))
            #expect(found.later.count < pageSize / 16)
            #expect(found.earlier.count < pageSize / 16)
        }
    }

    @Test("A write transaction that has changed nothing counts as what was committed last")
    func writing() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("old").rawSpan, in: records) }
            let earlier = try environment.beginRead()
            try environment.write { try $0.put(2, bytes("new").rawSpan, in: records) }
            let transaction = try environment.beginWrite(deadline: .now + .seconds(20))
            let found = try environment.differences(in: records, from: earlier, to: transaction)
            #expect(found.later.count == 2)
            #expect(found.earlier.count == 1)
            let same = try environment.differences(in: records, from: transaction, to: transaction)
            #expect(same == DifferingKeys())
        }
    }

    @Test("A damaged page of a tree is an error, and never followed")
    func damaged() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let records = try environment.records
            try environment.write { transaction in
                for number in 0..<3_000 as Range<UInt64> {
                    try transaction.put(number, bytes("record \(number)").rawSpan, in: records)
                }
            }
            let earlier = try environment.beginRead()
            try environment.write { try $0.put(5_000, bytes("new").rawSpan, in: records) }
            let later = try environment.beginRead()
            let file = try FileHandle(forUpdating: folder.appending(path: "data.mdb"))
            let size = try file.seekToEnd()
            for page in 2..<Int(size) / pageSize {
                // The number that the page calls itself.
                try file.seek(toOffset: UInt64(page * pageSize))
                try file.write(contentsOf: [0xFF, 0xFF])
            }
            expectFailure(.damaged) { _ = try environment.differences(in: records, from: earlier, to: later) }
        }
    }

    @Test("The pages of a snapshot are walked while others write")
    func walked() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { transaction in
                for number in 0..<500 as Range<UInt64> {
                    try transaction.put(number, bytes("record \(number)").rawSpan, in: records)
                }
            }
            let snapshot = try environment.beginRead()
            #expect(try environment.walk(snapshot)?.entries["records"] == 500)
            try environment.write { try $0.put(1_000, bytes("new").rawSpan, in: records) }
            // Its meta page is no longer the newest.
            #expect(try environment.walk(snapshot) == nil)
            let newer = try environment.beginRead()
            #expect(try environment.walk(newer)?.entries["records"] == 501)
        }
    }
}
