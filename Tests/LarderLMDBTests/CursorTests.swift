import LarderTestSupport
import Testing

@testable import LarderLMDB

@Suite("Cursors", .timeLimit(.minutes(10)))
struct CursorTests {
    private func filled(_ body: (Environment, Table, Table) throws -> Void) async throws {
        try await withEnvironment { environment in
            let (records, keys) = (try environment.records, try environment.keys)
            try environment.write { transaction in
                for id in stride(from: 10 as UInt64, through: 10_000, by: 10) {
                    try transaction.put(id, bytes("\(id)").rawSpan, in: records, append: true)
                    try transaction.put(bytes("k\(id)").rawSpan, bytes("\(id)").rawSpan, in: keys)
                }
            }
            try body(environment, records, keys)
        }
    }

    @Test("Entries come in order, forwards and backwards")
    func order() async throws {
        try await filled { environment, records, keys in
            let transaction = try environment.beginRead()
            var cursor = try transaction.cursor(in: records)
            var seen: [UInt64] = []
            while let entry = try cursor.next() {
                #expect(entry.value.copied == bytes("\(entry.integerKey)"))
                seen.append(entry.integerKey)
            }
            #expect(seen == Array(stride(from: 10, through: 10_000, by: 10)))
            var backwards = try transaction.cursor(in: records)
            var reversed: [UInt64] = []
            while let entry = try backwards.previous() { reversed.append(entry.integerKey) }
            #expect(reversed == seen.reversed())
            var names: [[UInt8]] = []
            var named = try transaction.cursor(in: keys)
            while let entry = try named.next() { names.append(entry.key.copied) }
            #expect(names == seen.map { bytes("k\($0)") }.sorted { $0.lexicographicallyPrecedes($1) })
        }
    }

    @Test("First, last and the smallest key from a bound on")
    func seek() async throws {
        try await filled { environment, records, keys in
            let transaction = try environment.beginRead()
            var cursor = try transaction.cursor(in: records)
            #expect(try cursor.first()?.integerKey == 10)
            #expect(try cursor.last()?.integerKey == 10_000)
            #expect(try cursor.seek(atLeast: 0)?.integerKey == 10)
            #expect(try cursor.seek(atLeast: 15)?.integerKey == 20)
            #expect(try cursor.seek(atLeast: 20)?.integerKey == 20)
            #expect(try cursor.next()?.integerKey == 30)
            for id in [500, 10_000] as [UInt64] {
                #expect(try cursor.value(at: id).copied == bytes("\(id)"))
                #expect(try cursor.seek(atLeast: 10_001)?.integerKey == nil)
                #expect(try cursor.value(at: id).copied == bytes("\(id)"), "after a search that found nothing")
            }
            var named = try transaction.cursor(in: keys)
            #expect(try named.seek(atLeast: bytes("k999").rawSpan)?.key.copied == bytes("k9990"))
            #expect(try named.value(at: bytes("k500").rawSpan).copied == bytes("500"))
            #expect(try named.value(at: bytes("k501").rawSpan).copied == nil)
        }
    }

    @Test(
        "Exact reads through one cursor agree with reads by key, in any order of asking",
        arguments: 1...20 as ClosedRange<UInt64>
    )
    func exact(seed: UInt64) async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            var numbers = SeededNumbers(seed: seed)
            try environment.write { transaction in
                for _ in 0..<600 {
                    let id = numbers.next() % 2_000
                    try transaction.put(id, bytes("\(id)").rawSpan, in: records)
                }
            }
            let transaction = try environment.beginRead()
            var cursor = try transaction.cursor(in: records)
            var id = 0 as UInt64
            for _ in 0..<3_000 {
                switch numbers.next() % 9 {
                case 0: id = numbers.next() % 2_100
                case 5: id = id &+ 2
                case 1: break
                case 2: id = numbers.next() % 4 == 0 ? .max : id &- 1
                case 3: id = (try cursor.next()?.integerKey) ?? 0
                case 4: id = (try cursor.previous()?.integerKey) ?? 0
                default: id = id &+ 1
                }
                let expected = try transaction.get(id, in: records).copied
                #expect(try cursor.value(at: id).copied == expected, "seed \(seed), id \(id)")
            }
        }
    }

    @Test("Two cursors on one table do not disturb each other, and serve later transactions")
    func reuse() async throws {
        try await filled { environment, records, _ in
            for _ in 0..<3 {
                let transaction = try environment.beginRead()
                var one = try transaction.cursor(in: records)
                var other = try transaction.cursor(in: records)
                #expect(try one.first()?.integerKey == 10)
                #expect(try other.last()?.integerKey == 10_000)
                #expect(try one.next()?.integerKey == 20)
                #expect(try other.previous()?.integerKey == 9_990)
            }
        }
    }

    @Test("A kept cursor sees the new snapshot")
    func renewed() async throws {
        try await filled { environment, records, _ in
            func firstKey() throws -> UInt64? {
                let transaction = try environment.beginRead()
                var cursor = try transaction.cursor(in: records)
                return try cursor.first()?.integerKey
            }
            #expect(try firstKey() == 10)
            try environment.write { try $0.put(5, bytes("5").rawSpan, in: records) }
            #expect(try firstKey() == 5)
        }
    }

    @Test("An empty key, and a key of the other kind, are refused as they are by transactions")
    func refusedKeys() async throws {
        try await filled { environment, records, keys in
            let transaction = try environment.beginRead()
            let (empty, name) = ([] as [UInt8], bytes("k10"))
            var named = try transaction.cursor(in: keys)
            expectFailure(.keyEmpty) { _ = try named.value(at: empty.rawSpan).copied }
            expectFailure(.keyEmpty) { _ = try named.seek(atLeast: empty.rawSpan)?.integerKey }
            expectFailure(.keyKindMismatch) { _ = try named.seek(atLeast: 10)?.integerKey }
            var numbered = try transaction.cursor(in: records)
            expectFailure(.keyKindMismatch) { _ = try numbered.value(at: name.rawSpan).copied }
            expectFailure(.keyKindMismatch) { _ = try numbered.seek(atLeast: name.rawSpan)?.integerKey }
            #expect(try named.value(at: name.rawSpan).copied == bytes("10"))
            #expect(try numbered.value(at: 10).copied == bytes("10"))
        }
    }

    @Test("An empty table has no entries")
    func empty() async throws {
        try await withEnvironment { environment in
            let transaction = try environment.beginRead()
            var cursor = try transaction.cursor(in: try environment.records)
            #expect(try cursor.first()?.integerKey == nil)
            #expect(try cursor.last()?.integerKey == nil)
            #expect(try cursor.next()?.integerKey == nil)
            #expect(try cursor.value(at: 0).copied == nil)
            #expect(try cursor.value(at: 1).copied == nil)
        }
    }
}
