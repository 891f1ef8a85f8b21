import Foundation
import LarderTestSupport
import Testing

@testable import LarderLMDB

@Suite("The page walk", .timeLimit(.minutes(10)))
struct PageWalkTests {
    /// Writes a file with every kind of page: branches, leaves, overflow runs, free pages. Returns its bytes.
    private func sampleFile(seed: UInt64, in folder: URL) throws -> [UInt8] {
        var numbers = SeededNumbers(seed: seed)
        let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
        let (records, keys) = (try environment.records, try environment.keys)
        for _ in 0..<8 {
            try environment.write { transaction in
                for _ in 0..<120 {
                    let id = numbers.next() % 800
                    let size = numbers.next() % 40 == 0 ? 9_000 : Int(numbers.next() % 150)
                    try transaction.put(id, [UInt8](repeating: UInt8(id & 0xFF), count: size).rawSpan, in: records)
                    let name = bytes("Type:\(numbers.next() % 500)")
                    try transaction.put(name.rawSpan, bytes("\(id)").rawSpan, in: keys)
                    try transaction.delete(numbers.next() % 800, in: records)
                }
            }
        }
        try environment.close()
        return Array(try Data(contentsOf: folder.appending(path: "data.mdb")))
    }

    /// Opens the environment in a folder with a walk, reads everything, and writes; typed errors are an answer.
    private func openAndUse(_ folder: URL) throws {
        var options = Environment.Options.fast
        options.verification = .always
        options.mapSize = 1 << 30
        let environment = try Environment(folder: folder.path, tables: sampleTables, options: options)
        for table in [try environment.records, try environment.keys] {
            let transaction = try environment.beginRead()
            var cursor = try transaction.cursor(in: table)
            var count = 0
            while let entry = try cursor.next() { count += entry.key.byteCount + entry.value.copied.count }
            #expect(count >= 0)
        }
        try environment.write { transaction in
            for id in 0..<50 as Range<UInt64> {
                try transaction.put(id * 16, [UInt8](repeating: 1, count: 300).rawSpan, in: try environment.records)
                try transaction.delete(id * 16 + 1, in: try environment.records)
            }
            try transaction.clear(try environment.keys)
        }
        try environment.close()
    }

    @Test("A sound file counts what it holds")
    func sound() async throws {
        try await withTemporaryFolder { folder in
            _ = try sampleFile(seed: 1, in: folder)
            let summary = try requireSound(folder)
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let statistics = try environment.statistics()
            for (name, tree) in statistics.tables { #expect(summary.entries[name] == UInt64(tree.entries)) }
            #expect(summary.transaction == statistics.transaction)
            #expect(summary.lastPage == statistics.lastPage)
            #expect(summary.overflowPages > 0)
            #expect(summary.freePages > 0)
            #expect(summary.unusedPages == 0)
        }
    }

    @Test("A page that two claim, in use or free, is told; so is one past the end of the file that is free twice")
    func claimedTwice() {
        var pages = PageMap(lastPage: 200, heldPages: 100)
        let first = [pages.use(70), pages.use(71), pages.free(72), pages.free(150), pages.free(160)]
        #expect(first == Array(repeating: .claimed, count: 5))
        let repeated = [pages.use(70), pages.free(71), pages.free(72), pages.use(72)]
        #expect(repeated == Array(repeating: .claimedTwice, count: 4))
        let none = pages.repeatedBeyond()
        _ = pages.free(150)
        let twice = pages.repeatedBeyond()
        #expect(none == nil && twice == 150)
        let outside = [pages.use(1), pages.free(201), pages.use(150)]
        #expect(outside == [.outOfRange, .outOfRange, .beyondFile])
    }

    @Test("Random work leaves sound files, page for page accounted for", arguments: 1...12 as ClosedRange<UInt64>)
    func randomWork(seed: UInt64) async throws {
        try await withTemporaryFolder { folder in
            var numbers = SeededNumbers(seed: seed)
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let (records, keys) = (try environment.records, try environment.keys)
            for round in 0..<25 {
                try environment.write { transaction in
                    let range = 1 + numbers.next() % 3_000
                    for _ in 0..<numbers.next() % 600 {
                        let size = numbers.next() % 30 == 0 ? Int(numbers.next() % 30_000) : Int(numbers.next() % 400)
                        let value = [UInt8](repeating: 3, count: size)
                        let prefix = String(repeating: "n", count: Int(numbers.next() % 300))
                        let name = bytes(prefix + "\(numbers.next() % range)")
                        switch numbers.next() % 6 {
                        case 0, 1: try transaction.put(numbers.next() % range, value.rawSpan, in: records)
                        case 2, 3: try transaction.put(name.rawSpan, value.rawSpan, in: keys)
                        case 4: try transaction.delete(numbers.next() % range, in: records)
                        default: try transaction.delete(name.rawSpan, in: keys)
                        }
                    }
                    if numbers.next() % 12 == 0 { try transaction.clear(records) }
                }
                let summary = try requireSound(folder)
                #expect(summary.unusedPages == 0, "seed \(seed), round \(round)")
            }
        }
    }

    @Test("Flipped bits end in an answer or a typed error, never in a signal", arguments: 1...20 as ClosedRange<UInt64>)
    func bitFlips(seed: UInt64) async throws {
        try await withTemporaryFolder { folder in
            let sound = try sampleFile(seed: seed, in: folder)
            let file = folder.appending(path: "data.mdb")
            var numbers = SeededNumbers(seed: seed &* 7_919)
            var refused = 0
            for variant in 0..<150 {
                var damaged = sound
                // Half of the flips go where they hurt most: the headers and offsets at the start of pages.
                for _ in 0..<(1 << (numbers.next() % 7)) {
                    var place = Int(numbers.next() % UInt64(sound.count))
                    if numbers.next() % 2 == 0 { place = place & ~4095 | Int(numbers.next() % 160) }
                    damaged[min(place, sound.count - 1)] ^= 1 << UInt8(numbers.next() % 8)
                }
                try Data(damaged).write(to: file)
                do {
                    try openAndUse(folder)
                } catch let error as LMDBError {
                    refused += 1
                    let known: [LMDBError.Code] = [
                        .damaged, .truncated, .foreign, .futureVersion, .mapFull, .tableMismatch, .tableMissing,
                        .outOfMemory,
                    ]
                    #expect(known.contains(error.code), "seed \(seed), variant \(variant): \(error)")
                }
            }
            #expect(refused > 0)
        }
    }

    @Test("A file cut at any page, or anywhere, is refused or whole enough")
    func truncation() async throws {
        try await withTemporaryFolder { folder in
            let sound = try sampleFile(seed: 5, in: folder)
            let file = folder.appending(path: "data.mdb")
            var numbers = SeededNumbers(seed: 99)
            let cuts =
                Array(stride(from: pageSize, to: sound.count, by: pageSize))
                + (0..<100).map { _ in 1 + Int(numbers.next() % UInt64(sound.count - 1)) }
            var refused = 0
            for cut in cuts {
                try Data(sound[..<cut]).write(to: file)
                do {
                    try openAndUse(folder)
                } catch let error as LMDBError {
                    refused += 1
                    #expect([.truncated, .foreign].contains(error.code), "cut at \(cut): \(error)")
                    #expect(error.path == file.path)
                }
            }
            #expect(refused > cuts.count / 2)
        }
    }

    @Test("A truncated file is refused with its page")
    func truncatedPage() async throws {
        try await withTemporaryFolder { folder in
            let sound = try sampleFile(seed: 6, in: folder)
            try Data(sound[..<(3 * pageSize)]).write(to: folder.appending(path: "data.mdb"))
            let error = try failure { try requireSound(folder) }
            #expect(error?.code == .truncated)
            #expect((error?.page ?? 0) >= 3)
        }
    }

    @Test("A file shorter than its last page is sound while only free pages are missing")
    func shortFile() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let records = try environment.records
            try environment.write { transaction in
                for id in 0..<2_000 as Range<UInt64> {
                    try transaction.put(id, [UInt8](repeating: 1, count: 200).rawSpan, in: records)
                }
            }
            try environment.write { try $0.clear(records) }
            // Twice more, so that the trees move to the pages that the clear freed.
            for _ in 0..<3 { try environment.write { try $0.put(1, bytes("one").rawSpan, in: records) } }
            try environment.close()
            let file = folder.appending(path: "data.mdb")
            let whole = try requireSound(folder)
            let content = try Data(contentsOf: file)
            // Pages that only the free list names go, from the end, until one in use would.
            var length = content.count
            while length > 2 * whole.pageSize {
                try content[..<(length - whole.pageSize)].write(to: file)
                if try failure(of: { _ = try requireSound(folder) }) != nil { break }
                length -= whole.pageSize
            }
            try content[..<length].write(to: file)
            #expect(length < content.count)
            let again = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            try again.write { try $0.put(1, bytes("one").rawSpan, in: try again.records) }
            try again.close()
            let size = try Data(contentsOf: file).count
            let after = try requireSound(folder)
            #expect(size == Int(after.lastPage + 1) * after.pageSize)
        }
    }

    @Test(
        "Files of other programs are foreign",
        arguments: [
            "SQLite format 3\0", "x", "{\"json\": true}", String(repeating: "\0", count: 20_000),
            String(repeating: "LMDB", count: 5_000),
        ])
    func foreign(content: String) async throws {
        try await withTemporaryFolder { folder in
            try Data(content.utf8).write(to: folder.appending(path: "data.mdb"))
            expectFailure(.foreign) { _ = try Environment(folder: folder.path, tables: sampleTables, options: .fast) }
        }
    }

    @Test(
        "A file of LMDB's whose first page is damaged is damaged, not foreign, whatever the size of its pages",
        arguments: [4_096, 8_192, 16_384, 32_768])
    func damagedFirstPage(pageSize: Int) async throws {
        try await withTemporaryFolder { folder in
            var file = [UInt8](repeating: 0, count: 2 * pageSize)
            file.replaceSubrange(pageSize + 16..<pageSize + 20, with: [0xDE, 0xC0, 0xEF, 0xBE])
            try Data(file).write(to: folder.appending(path: "data.mdb"))
            expectFailure(.damaged) { _ = try Environment(folder: folder.path, tables: sampleTables, options: .fast) }
        }
    }

    @Test("A file of a later format is a future version")
    func futureVersion() async throws {
        try await withTemporaryFolder { folder in
            var file = try sampleFile(seed: 2, in: folder)
            for page in 0...1 { file[page * pageSize + 20] = 2 }
            try Data(file).write(to: folder.appending(path: "data.mdb"))
            expectFailure(.futureVersion) { try requireSound(folder) }
            expectFailure(.futureVersion) {
                _ = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            }
        }
    }

    @Test(
        "A second meta page that has no magic number, or does not call itself one, is damage", arguments: [16, 0, 10])
    func damagedSecondPage(place: Int) async throws {
        try await withTemporaryFolder { folder in
            var content = try sampleFile(seed: 1, in: folder)
            content[pageSize + place] ^= 0xFF
            try Data(content).write(to: folder.appending(path: "data.mdb"))
            let error = #expect(throws: LMDBError.self) { try requireSound(folder) }
            #expect(error?.code == .damaged)
            #expect(error?.page == 1)
        }
    }

    @Test("A transaction whose number belongs on the other meta page is damage")
    func misplacedTransaction() async throws {
        try await withTemporaryFolder { folder in
            var content = try sampleFile(seed: 1, in: folder)
            let newest = try requireSound(folder).transaction
            let (place, page) = (144, Int(newest & 1) * pageSize)
            try #require(content[page + place] == UInt8(truncatingIfNeeded: newest))
            content[page + place] += 1
            try Data(content).write(to: folder.appending(path: "data.mdb"))
            let error = #expect(throws: LMDBError.self) { try openAndUse(folder) }
            #expect(error?.code == .damaged)
            #expect(error?.page == newest & 1)
        }
    }

    @Test("A page past the end of the file that two lists of free pages name is damage, and one that one names is not")
    func freeTwice() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: try environment.records) }
            try environment.close()
            let file = folder.appending(path: "data.mdb")
            let sound = try Data(contentsOf: file)
            let leaf = UInt64(sound.count / pageSize)
            func write(freeing pages: [UInt64]) throws {
                var content = sound + Data(count: pageSize)
                func put<Number: FixedWidthInteger>(_ number: Number, _ place: Int) {
                    withUnsafeBytes(of: number.littleEndian) {
                        content.replaceSubrange(place..<place + $0.count, with: $0)
                    }
                }
                // A leaf with a node for each page: the transaction that freed it, and a list of that page alone.
                let start = Int(leaf) * pageSize
                put(leaf, start)
                put(UInt16(2), start + 10)
                put(UInt16(16 + 2 * pages.count), start + 12)
                put(UInt16(pageSize - 32 * pages.count), start + 14)
                for (index, page) in pages.enumerated() {
                    let node = pageSize - 32 * (index + 1)
                    put(UInt16(node), start + 16 + 2 * index)
                    put(UInt16(16), start + node)
                    put(UInt16(8), start + node + 6)
                    put(UInt64(index + 1), start + node + 8)
                    put(UInt64(1), start + node + 16)
                    put(page, start + node + 24)
                }
                for meta in [0, pageSize] {
                    // The free tree's depth, its leaves, its entries and its root; and the last page of the file.
                    put(UInt16(1), meta + 46)
                    for (index, number) in [0, 1, 0, UInt64(pages.count), leaf].enumerated() {
                        put(number, meta + 48 + 8 * index)
                    }
                    put(leaf + 2, meta + 136)
                    // Lists of pages that were freed by earlier transactions than the newest.
                    put(UInt64(meta == 0 ? 10 : 11), meta + 144)
                    content.replaceSubrange(meta + 88..<meta + 136, with: sound[pageSize + 88..<pageSize + 136])
                }
                try content.write(to: file)
            }
            try write(freeing: [leaf + 1, leaf + 2])
            #expect(try requireSound(folder).freePages == 2)
            try write(freeing: [leaf + 2, leaf + 2])
            let error = try failure { try requireSound(folder) }
            #expect(error?.code == .damaged)
            #expect(error?.page == leaf + 2)
        }
    }

    @Test("A file of no bytes is a new environment, as LMDB has it")
    func emptyFile() async throws {
        try await withTemporaryFolder { folder in
            try Data().write(to: folder.appending(path: "data.mdb"))
            #expect(try requireSound(folder).pageSize == 0)
            try openAndUse(folder)
            try requireSound(folder)
        }
    }

    private func openToRead(_ folder: URL) throws -> Environment {
        var options = Environment.Options.fast
        options.isReadOnly = true
        return try Environment(folder: folder.path, tables: sampleTables, options: options)
    }

    @Test("A folder in the file's place is foreign or refused, not read")
    func folderInPlace() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "data.mdb")
            try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
            #expect(try failure { try requireSound(folder) }?.code == .foreign)
            let error = #expect(throws: LMDBError.self) { try openToRead(folder) }
            #expect(error?.code == .foreign)
            #expect(error?.path == place.path)
        }
    }
}
