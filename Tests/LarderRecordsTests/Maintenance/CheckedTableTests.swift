import Foundation
import LarderFiles
import LarderLMDB
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("What a check says of each table", .timeLimit(.minutes(10)))
struct CheckedTableTests {
    /// Runs `change` in a transaction of a cache of four books that is never committed. It changes tables past the
    /// cache's rules, and answers what the check must say of that.
    private func expectProblems(
        _ level: CheckReport.Level = .everything, sourceLocation: SourceLocation = #_sourceLocation,
        _ change: (Tables, NameTable, inout WriteTransaction) throws -> [String]
    ) async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(4)
            let generation = library.cache.generations.current
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            let expected = try change(generation.tables, generation.names, &transaction)
            let report = try generation.check(level, transaction)
            #expect(report.problems.map(\.description) == expected, sourceLocation: sourceLocation)
            #expect(report.problemCount == expected.count, sourceLocation: sourceLocation)
        }
    }

    private func bytes(_ bytes: UInt8...) -> [UInt8] { bytes }

    private func put(
        _ number: UInt64, under key: String, _ table: Table, _ transaction: inout WriteTransaction
    ) throws {
        let key = Array(key.utf8)
        let bytes = key.withUnsafeBytes { StoredNumber.with(number, under: $0) { Array($0) } }
        try transaction.put(key.rawSpan, bytes.rawSpan, in: table)
    }

    /// Changes a book's bytes, and makes their checksum right.
    private func rewrite(
        _ key: String, _ tables: Tables, _ transaction: inout WriteTransaction, _ change: (inout [UInt8]) -> Void
    ) throws -> RecordID {
        let id = try #require(try tables.record(of: key, transaction))
        var bytes = try #require(try transaction.get(id, in: tables.records)?.withUnsafeBytes { Array($0) })
        change(&bytes)
        let sum = bytes.withUnsafeBytes { RecordView.checksum($0, of: id) }
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: sum.littleEndian, toByteOffset: 4, as: UInt32.self) }
        try transaction.put(id, bytes.rawSpan, in: tables.records)
        return id
    }

    @Test("Counters that are missing, or damaged, are one problem")
    func counters() async throws {
        try await expectProblems { tables, _, transaction in
            let key = GenerationState.key
            try transaction.delete(key.rawSpan, in: tables.meta)
            return ["counters: there are none"]
        }
        try await expectProblems { tables, _, transaction in
            let key = GenerationState.key
            var bytes = try GenerationState.stored(transaction, tables).encoded
            bytes[20] ^= 1
            try transaction.put(key.rawSpan, bytes.rawSpan, in: tables.meta)
            return ["counters: \(RecordError.damagedState.message)"]
        }
    }

    @Test("A name is one of a number that was given, and each leads to the other")
    func names() async throws {
        for isFirst in [true, false] {
            try await expectProblems { tables, _, transaction in
                let next = UInt64(try GenerationState.stored(transaction, tables).nextField)
                let number = isFirst ? 0 : next
                let sealed = SealedText.encoded(Array("ghost".utf8), seed: number)
                try transaction.put(number, sealed.rawSpan, in: tables.texts)
                return [
                    "number \(number): it was never given to a name; the next is \(next)",
                    "number \(number): its name ghost does not lead back to it",
                ]
            }
        }
        try await expectProblems { tables, names, transaction in
            let title = UInt64(try #require(try names.number(of: "title", transaction, tables)))
            try put(title, under: "ghost", tables.names, &transaction)
            return ["name ghost: its number \(title) is that of another name"]
        }
        try await expectProblems(.checksums) { tables, names, transaction in
            let title = try #require(try names.number(of: "title", transaction, tables))
            let sealed = SealedText.encoded(Array("title".utf8), seed: 0)
            try transaction.put(UInt64(title), sealed.rawSpan, in: tables.texts)
            try transaction.put(Array("id".utf8).rawSpan, [UInt8](repeating: 0, count: 8).rawSpan, in: tables.names)
            return ["number \(title): its text has another checksum", "name id: its number has another checksum"]
        }
    }

    @Test("A cache key leads to a record whose number was given, and which no other leads to")
    func keys() async throws {
        try await expectProblems { tables, _, transaction in
            let next = try GenerationState.stored(transaction, tables).nextRecord
            try put(next, under: "Ghost:1", tables.keys, &transaction)
            return ["key Ghost:1: record \(next) was never given; the next is \(next)"]
        }
        try await expectProblems { tables, _, transaction in
            let book = try #require(try tables.record(of: "Book:3", transaction))
            try put(book, under: "Ghost:1", tables.keys, &transaction)
            return [
                "key Ghost:1: another key leads to record \(book) as well", "key Ghost:1: record \(book) has Book:3",
            ]
        }
        try await expectProblems(.checksums) { tables, _, transaction in
            try transaction.put(Array("Ghost:1".utf8).rawSpan, bytes(1, 2, 3).rawSpan, in: tables.keys)
            return ["key Ghost:1: its number has another checksum"]
        }
    }

    @Test("A tombstone has no fields, and neither has the record itself whose fields are entries of their own")
    func flags() async throws {
        try await expectProblems { tables, _, transaction in
            let book = try rewrite("Book:3", tables, &transaction) { $0[1] |= RecordFlags.tombstone.rawValue }
            return ["record \(book): a tombstone holds more than a version"]
        }
        try await expectProblems { tables, _, transaction in
            let book = try rewrite("Book:3", tables, &transaction) { $0[1] |= RecordFlags.split.rawValue }
            return ["record \(book): it is split and has fields of its own"]
        }
    }

    @Test("A record has a number that was given")
    func recordNumbers() async throws {
        try await expectProblems { tables, names, transaction in
            let next = try GenerationState.stored(transaction, tables).nextRecord
            let type = try #require(try names.number(of: "Book", transaction, tables))
            var encoder = RecordEncoder()
            let key = Array("Ghost:1".utf8)
            let range = try key.withUnsafeBytes { key in
                try encoder.encode(
                    next, [.entity], type: type, identity: .entity(key: key), entries: [RecordEncoder.Entry](), nil)
            }
            let bytes = Array(encoder.bytes[range])
            try transaction.put(next, bytes.rawSpan, in: tables.records)
            try put(next, under: "Ghost:1", tables.keys, &transaction)
            return [
                "key Ghost:1: record \(next) was never given; the next is \(next)",
                "record \(next): its number was never given; the next is \(next)",
            ]
        }
    }

    @Test("A field of its own belongs to a record that is split, and has a key and a checksum")
    func splitFields() async throws {
        func field(_ tables: Tables, _ names: NameTable, _ transaction: inout WriteTransaction) throws -> SplitFieldKey
        {
            try SplitFieldKey(
                record: #require(try tables.record(of: "Book:3", transaction)),
                field: #require(try names.number(of: "title", transaction, tables)))
        }
        try await expectProblems(.checksums) { tables, _, transaction in
            try transaction.put(bytes(1, 2, 3).rawSpan, bytes(4).rawSpan, in: tables.fields)
            return ["page ?: the table of split fields has a key of 3 bytes"]
        }
        try await expectProblems { tables, names, transaction in
            let key = try field(tables, names, &transaction)
            var encoder = RecordEncoder()
            let range = try encoder.encodeSplitField(key, .references([]), nil)
            let bytes = Array(encoder.bytes[range])
            try transaction.put(key.bytes.rawSpan, bytes.rawSpan, in: tables.fields)
            return ["record \(key.record), field \(key.field): it belongs to no split record"]
        }
        try await expectProblems(.checksums) { tables, names, transaction in
            let key = try field(tables, names, &transaction)
            try transaction.put(key.bytes.rawSpan, [UInt8](repeating: 1, count: 12).rawSpan, in: tables.fields)
            return ["record \(key.record), field \(key.field): it has another checksum"]
        }
    }

    @Test("The log of changes has no gap, and ends where the counters say")
    func changes() async throws {
        try await expectProblems { tables, _, transaction in
            var state = try GenerationState.stored(transaction, tables)
            state.lastChange += 1
            try state.store(&transaction, tables)
            return ["counters: the log ends with 1 instead of 2"]
        }
        try await expectProblems { tables, _, transaction in
            let bytes = try #require(
                try transaction.get(1 as UInt64, in: tables.changes)?.withUnsafeBytes { Array($0) })
            let sealed = SealedText.encoded(Array(bytes.dropFirst(4)), seed: 3)
            try transaction.put(3 as UInt64, sealed.rawSpan, in: tables.changes)
            return ["change 3: it follows 1", "counters: the log ends with 3 instead of 1"]
        }
        try await expectProblems(.checksums) { tables, _, transaction in
            try transaction.put(1 as UInt64, bytes(1, 2, 3).rawSpan, in: tables.changes)
            return ["change 1: it has another checksum"]
        }
    }

    @Test("The note of a mutation stands under its own key")
    func applied() async throws {
        try await expectProblems { tables, _, transaction in
            let (key, other) = (Array("short".utf8), String(repeating: "long", count: 200))
            let bytes = key.withUnsafeBytes { AppliedEntry(key: other, kind: .applied, time: 1).encoded(under: $0) }
            try transaction.put(key.rawSpan, bytes.rawSpan, in: #require(tables.applied))
            return ["applied short: it is the note of another key"]
        }
        try await expectProblems(.checksums) { tables, _, transaction in
            try transaction.put(Array("short".utf8).rawSpan, bytes(1, 2).rawSpan, in: #require(tables.applied))
            return ["applied short: it has another checksum"]
        }
    }

    @Test("How far a synchronization has come is one of its positions, or a mark, with its checksum")
    func positions() async throws {
        for (key, content, isSound) in [("abc", "{}", false), ("abc/1", "{}", true)] {
            try await expectProblems(.checksums) { tables, _, transaction in
                let row = Array(key.utf8)
                let sealed = SealedText.encoded(Array(content.utf8), seed: Tables.seed(row))
                try transaction.put(row.rawSpan, sealed.rawSpan, in: #require(tables.positions))
                return isSound ? [] : ["position \(key): it has another checksum"]
            }
        }
        try await expectProblems(.checksums) { tables, _, transaction in
            try transaction.put(
                Array("abc/1".utf8).rawSpan, bytes(1, 2, 3, 4, 5).rawSpan, in: #require(tables.positions))
            return ["position abc/1: it has another checksum"]
        }
    }

    @Test("When records came stands in blocks of one size, and when fields came in rows")
    func times() async throws {
        try await expectProblems(.checksums) { tables, _, transaction in
            try transaction.put(bytes(1, 2, 3).rawSpan, bytes(4).rawSpan, in: #require(tables.received))
            return ["page ?: the table received has a key of 3 bytes"]
        }
        for (number, first) in [(9, 288), (1 << 40, 1 << 45), ((1 << 40) + 1, 0)] as [(UInt64, UInt64)] {
            try await expectProblems(.checksums) { tables, _, transaction in
                // The checksum is right, and the size is none.
                let sealed = SealedText.encoded(Array(repeating: 0, count: 8), seed: number)
                let key = ReceivedBlock.withKey(number) { Array($0) }
                try transaction.put(key.rawSpan, sealed.rawSpan, in: #require(tables.received))
                return ["record \(first): when it and the records after it came has another checksum"]
            }
        }
        try await expectProblems(.checksums) { tables, _, transaction in
            let key = SplitFieldKey(record: 7, field: 3)
            try transaction.put(
                key.bytes.rawSpan, [UInt8](repeating: 1, count: 12).rawSpan, in: #require(tables.received))
            return ["record 7, field 3: when it came has another checksum"]
        }
    }

    enum Moved: CaseIterable {
        case note, position, block, row
    }

    @Test("A value under the key of another row of its table has a wrong checksum", arguments: Moved.allCases)
    func moved(_ value: Moved) async throws {
        try await expectProblems(.checksums) { tables, _, transaction in
            switch value {
            case .note:
                let bytes = Array("a".utf8).withUnsafeBytes {
                    AppliedEntry(key: "a", kind: .applied, time: 1).encoded(under: $0)
                }
                try transaction.put(Array("b".utf8).rawSpan, bytes.rawSpan, in: #require(tables.applied))
                return ["applied b: it has another checksum"]
            case .position:
                let sealed = SealedText.encoded(Array("{}".utf8), seed: Tables.seed(Array("abc/1".utf8)))
                try transaction.put(Array("abc/2".utf8).rawSpan, sealed.rawSpan, in: #require(tables.positions))
                return ["position abc/2: it has another checksum"]
            case .block:
                let bytes = ReceivedBlock.encoded(ReceivedBlock.empty, number: 8)
                let key = ReceivedBlock.withKey(9) { Array($0) }
                try transaction.put(key.rawSpan, bytes.rawSpan, in: #require(tables.received))
                return ["record 288: when it and the records after it came has another checksum"]
            case .row:
                let bytes = ReceivedRow.encoded([(5, 6)], under: SplitFieldKey(record: 7, field: 3))
                let key = SplitFieldKey(record: 7, field: 4).bytes
                try transaction.put(key.rawSpan, bytes.rawSpan, in: #require(tables.received))
                return ["record 7, field 4: when it came has another checksum"]
            }
        }
    }

    enum Unrecorded: CaseIterable {
        case field, change, mutation, time, position
    }

    @Test(
        "A cache that was not closed cleanly is refused where a value in a table beside the records is damaged",
        arguments: Unrecorded.allCases)
    func opening(_ value: Unrecorded) async throws {
        try await withTemporaryFolder { base in
            let (folder, copy) = (base.appending(path: "cache"), base.appending(path: "crashed"))
            let library = try LibraryCache(folder)
            try await library.fill(4)
            let generation = library.cache.generations.current
            let tables = generation.tables
            let damaged = [UInt8](repeating: 1, count: 12)
            let (field, text) = (SplitFieldKey(record: 7, field: 3).bytes, Array("abc/1".utf8))
            try generation.environment.write(deadline: .now + .seconds(300)) { transaction in
                switch value {
                case .field: try transaction.put(field.rawSpan, damaged.rawSpan, in: tables.fields)
                case .change: try transaction.put(1 as UInt64, damaged.rawSpan, in: tables.changes)
                case .mutation: try transaction.put(text.rawSpan, damaged.rawSpan, in: #require(tables.applied))
                case .time: try transaction.put(field.rawSpan, damaged.rawSpan, in: #require(tables.received))
                case .position: try transaction.put(text.rawSpan, damaged.rawSpan, in: #require(tables.positions))
                }
            }
            try crashCopy(of: folder, to: copy)
            let error = #expect(throws: RecordError.self) { try LibraryCache(copy) }
            #expect(error?.code == .damaged)
            try library.cache.close()
        }
    }

    @Test("A page that is damaged while the cache is open is a problem with its place, and nothing else is looked at")
    func pages() async throws {
        try await withTemporaryFolder { folder in
            let library = try LibraryCache(folder)
            try await library.fill(40)
            let size = UInt64(min(sysconf(Int32(_SC_PAGESIZE)), 32_768))
            let handle = try FileHandle(forUpdating: dataFile(in: folder))
            defer { try? handle.close() }
            // Every page but the two first calls itself another.
            let count = try handle.seekToEnd() / size
            var originals: [Data] = []
            for page in 2..<count {
                try handle.seek(toOffset: page * size)
                originals.append(try handle.read(upToCount: 8) ?? Data())
                try handle.seek(toOffset: page * size)
                try handle.write(contentsOf: [255, 255, 255])
            }
            let report = try library.cache.check()
            #expect(report.problemCount == 1)
            #expect(report.problems.first?.description.contains("it calls itself") == true)
            if case .page(let page?) = report.problems.first?.place {
                #expect((2..<count).contains(page))
                #expect(report.problems.first?.description.hasPrefix("page \(page): ") == true)
            } else {
                Issue.record("\(report.problems)")
            }
            for page in 2..<count {
                try handle.seek(toOffset: page * size)
                try handle.write(contentsOf: originals[Int(page) - 2])
            }
            try expectSound(library.cache)
        }
    }

    @Test("A report keeps its first thousand problems, and the number of all, its own and another's that it joins")
    func limit() {
        func report(_ count: Int, _ name: String) -> CheckReport {
            var report = CheckReport()
            for number in 0..<count { report.add(.record(UInt64(number)), name) }
            return report
        }
        let many = report(CheckReport.limit + 2, "a")
        #expect((many.problems.count, many.problemCount) == (CheckReport.limit, CheckReport.limit + 2))
        #expect(many.problems.last?.place == .record(UInt64(CheckReport.limit - 1)))
        var joined = report(CheckReport.limit - 1, "a")
        joined.join(report(5, "b"))
        #expect((joined.problems.count, joined.problemCount) == (CheckReport.limit, CheckReport.limit + 4))
        #expect(joined.problems.last?.description == "record 0: b")
    }

    @Test("Counters of any other length are no counters, and those of a later format may have any")
    func marks() throws {
        let bytes = GenerationState.fresh().encoded
        #expect(try GenerationMark(bytes).format == CacheFormat.current)
        for wrong in [bytes + [0], Array(bytes.dropLast()), Array(bytes.prefix(8)), Array(bytes.prefix(7)), []] {
            #expect(throws: RecordError.self) { try GenerationMark(wrong) }
        }
        #expect(try GenerationMark([9, 0, 0, 0, 1, 0, 0, 0]).isSuperseded)
        #expect(throws: RecordError.self) { try GenerationMark([9, 0, 0, 0, 1, 0, 0]) }
    }

    @Test("Records of every number are kept in mind, and handed over in ascending order, once")
    func numbers() {
        var records = CheckedRecords()
        for id in [1 << 40, 7, (1 << 32) + 5, 1 << 32, (1 << 32) - 1, 3] as [RecordID] {
            #expect(!records.contains(id))
            let isNew = [records.insert(id), records.insert(id)]
            #expect(isNew == [true, false])
            #expect(records.contains(id))
        }
        for expected in [[3, 7, (1 << 32) - 1, 1 << 32, (1 << 32) + 5, 1 << 40], []] as [[RecordID]] {
            var found: [RecordID] = []
            records.drain { found.append($0) }
            #expect(found == expected)
        }
    }
}
