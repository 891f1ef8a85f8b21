import Foundation
import LarderLMDB
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("The record format as its article describes it", .timeLimit(.minutes(1)))
struct RecordFormatTests {
    /// The sums are those of a script that follows the article. Of so many bytes the first is 1, and each is 7 more than
    /// the one before.
    @Test(
        "The checksum of bytes and a seed is the documented one",
        arguments: [
            (0, 0, 0x0000_0000), (0, 0x1_0000_0005, 0xa3bf_72ec), (1, 0, 0x1758_a31d), (1, 0x1_0000_0005, 0x69e5_d61c),
            (8, 0, 0xd716_cde5), (8, 0x1_0000_0005, 0x88ab_0ba9), (31, 0, 0x1ecd_80d5),
            (31, 0x1_0000_0005, 0x2d20_d28b), (32, 0, 0xf574_aacf), (32, 0x1_0000_0005, 0x79ae_3585),
            (63, 0, 0xdb96_e7a5), (63, 0x1_0000_0005, 0xd413_7758), (64, 0, 0xd44b_b00b),
            (64, 0x1_0000_0005, 0xa35b_e43a), (100, 0, 0xa1a6_146a), (100, 0x1_0000_0005, 0x0522_04d6),
        ] as [(Int, UInt64, UInt32)])
    func checksums(count: Int, seed: UInt64, expected: UInt32) {
        let bytes = (0..<count).map { UInt8(truncatingIfNeeded: $0 * 7 + 1) }
        let sum = bytes.withUnsafeBytes { checksum($0, seed: seed) }
        #expect(sum == expected)
    }

    @Test("The counters have a 1 in bytes 4 to 7 where their generation is superseded, and otherwise a 0")
    func superseded() throws {
        var state = GenerationState.fresh()
        #expect(Array(state.encoded[..<8]) == [1, 0, 0, 0, 0, 0, 0, 0])
        var mark = try GenerationMark(state.encoded)
        mark.supersede()
        #expect(Array(mark.bytes[..<8]) == [1, 0, 0, 0, 1, 0, 0, 0])
        state.isSuperseded = true
        #expect(state.encoded == mark.bytes)
    }

    private func littleEndian<Number: FixedWidthInteger>(_ number: Number) -> [UInt8] {
        withUnsafeBytes(of: number.littleEndian) { Array($0) }
    }

    private func sum(_ bytes: [UInt8], _ seed: UInt64) -> [UInt8] {
        littleEndian(bytes.withUnsafeBytes { checksum($0, seed: seed) })
    }

    @Test("The counters have eight bytes each, in the documented order, and then their checksum")
    func counters() {
        var state = GenerationState(epoch: 0x1122, numbering: 7)
        (state.nextRecord, state.nextField, state.lastChange, state.firstChange) = (3, 4, 6, 5)
        let bytes = state.encoded
        let words: [UInt64] = [0x1122, 3, 4, 6, 5, 7]
        #expect(Array(bytes[8..<56]) == words.flatMap { littleEndian($0) })
        #expect(Array(bytes[56...]) == sum(Array(bytes[..<56]), 0))
    }

    @Test("The first record, and the first name, have the number 1")
    func firstNumbers() {
        let state = GenerationState.fresh()
        #expect(state.nextRecord == 1)
        #expect(state.nextField == 1)
    }

    @Test("The stamp is a checksum and the name of the partition")
    func stamp() async throws {
        try await withSampleCache("type Query { a: Int }") { sample in
            let key = Array("stamp".utf8)
            let bytes = try sample.cache.generations.withSnapshot { (generation, transaction) throws -> [UInt8]? in
                try transaction.get(key.rawSpan, in: generation.tables.meta)?.withUnsafeBytes { Array($0) }
            }
            let name = Array("sample".utf8)
            #expect(bytes == sum(name, 0) + name)
        }
    }

    @Test(
        "A name or a key leads to a number of four or eight bytes, and the key's checksum",
        arguments: [7, 1 << 32 - 1, 1 << 32] as [UInt64])
    func storedNumber(number: UInt64) {
        let key = Array("A:1".utf8)
        let bytes = key.withUnsafeBytes { StoredNumber.with(number, under: $0) { Array($0) } }
        let digits = Array(littleEndian(number).prefix(number > UInt64(UInt32.max) ? 8 : 4))
        #expect(bytes == digits + sum(key, number))
    }

    @Test("A change set is its format, a byte for everything, and the record's step and the number of each field")
    func changeSet() {
        var changes = ChangeSet()
        changes.fields = [
            RecordField(record: 1, field: 2), RecordField(record: 1, field: 300), RecordField(record: 300, field: 0),
        ]
        #expect(changes.encoded == [1, 0, 1, 2, 0, 0xAC, 0x02, 0xAB, 0x02, 0])
        #expect(ChangeSet.everything.encoded == [1, 1])
    }

    @Test("An entity is its header, its fields, its key and what the fields refer to")
    func entity() throws {
        var encoder = RecordEncoder()
        let key = Array("A:1".utf8)
        let range = try key.withUnsafeBytes { key in
            try encoder.encode(
                7, [.entity], type: 3, identity: .entity(key: key),
                entries: [RecordEncoder.Entry(field: 5, source: .references([9, 0]))], nil)
        }
        let bytes = Array(encoder.bytes[range])
        let fields: [UInt8] = [3, 0, 0, 0, 3, 0, 0, 0, 5, 0, 0, 0, 27, 0, 0, 0x90]
        let payload: [UInt8] = [2, 9, 0, 0, 0xA0, 0, 0, 0, 0]
        #expect(Array(bytes[..<4]) == [1, 1, 1, 0])
        #expect(Array(bytes[8...]) == fields + key + payload)
        #expect(Array(bytes[4..<8]) == sum(Array(bytes[8...]), 0x0001_0101 << 32 ^ 7))
    }

    /// The value of the only field of the root of all queries, and the payload behind its key `QUERY_ROOT`.
    private func root(_ sample: SampleCache) throws -> (word: [UInt8], payload: [UInt8]) {
        let bytes = try sample.cache.generations.withSnapshot { (generation, transaction) throws -> [UInt8] in
            var bytes: [UInt8] = []
            var cursor = try transaction.cursor(in: generation.tables.records)
            var entry = try cursor.first()
            while let found = entry {
                bytes += found.value.withUnsafeBytes { Array($0) }
                entry = try cursor.next()
            }
            return bytes
        }
        try #require(bytes.count >= 34)
        return (Array(bytes[20..<24]), Array(bytes[34...]))
    }

    @Test(
        "A value is a tag with its content, or with the place of its bytes",
        arguments: [
            ("Boolean", "null", [0, 0, 0, 0], []), ("Boolean", "false", [0, 0, 0, 0x10], []),
            ("Boolean", "true", [0, 0, 0, 0x20], []), ("Int", "5", [5, 0, 0, 0x30], []),
            ("Int", "-1", [0xFF, 0xFF, 0xFF, 0x3F], []),
            ("Int", "2000000000", [34, 0, 0, 0x40], [0x00, 0x94, 0x35, 0x77, 0, 0, 0, 0]),
            ("Float", "1.5", [34, 0, 0, 0x50], [0, 0, 0, 0, 0, 0, 0xF8, 0x3F]),
            ("String", #""ab""#, [34, 0, 0, 0x70], [2, 0x61, 0x62]),
            ("JSON", "{}", [34, 0, 0, 0x80], [2, 0x7B, 0x7D]),
        ] as [(String, String, [UInt8], [UInt8])])
    func value(type: String, json: String, word: [UInt8], payload: [UInt8]) async throws {
        try await withSampleCache("type Query { a: \(type) } scalar JSON") { sample in
            try await sample.write("{ a }", data: "{\"a\":\(json)}")
            let stored = try root(sample)
            #expect(stored.word == word)
            #expect(stored.payload == payload)
        }
    }

    @Test("A text in the heap is its segment, its place in the segment and its length, in four bytes each")
    func farText() async throws {
        try await withSampleCache("type Query { a: String }") { sample in
            try await sample.write("{ a }", data: #"{"a":"\#(String(repeating: "x", count: 300))"}"#)
            _ = try await sample.cache.compact()
            let stored = try root(sample)
            #expect(stored.word == [34, 0, 0, 0xE0])
            #expect(stored.payload == [0, 0, 0, 0, 4, 0, 0, 0, 0x2C, 0x01, 0, 0])
        }
    }

    @Test("A tombstone has the flag 2, and a split record the flag 4", arguments: [2, 4] as [UInt8])
    func flags(flag: UInt8) throws {
        var encoder = RecordEncoder()
        let range = try Array("A:1".utf8).withUnsafeBytes { key in
            try encoder.encode(
                7, [.entity, flag == 2 ? .tombstone : .split], type: 3, identity: .entity(key: key),
                entries: [RecordEncoder.Entry](), nil)
        }
        let bytes = Array(encoder.bytes[range])
        #expect(Array(bytes[..<4]) == [1, 1 | flag, 0, 0])
    }

    @Test(
        "A part names the field that holds it, and the record that holds it in four or eight bytes",
        arguments: [9, 1 << 32] as [UInt64])
    func part(owner: UInt64) throws {
        var encoder = RecordEncoder()
        let range = try encoder.encode(
            7, [], type: 3, identity: .part(owner: owner, field: 4), entries: [RecordEncoder.Entry](), nil)
        let bytes = Array(encoder.bytes[range])
        let isWide = owner > UInt64(UInt32.max)
        #expect(Array(bytes[..<4]) == [1, isWide ? 8 : 0, 0, 0])
        #expect(Array(bytes[8..<16]) == [3, 0, 0, 0, 4, 0, 0, 0])
        #expect(Array(bytes[16...]) == (isWide ? littleEndian(owner) : [9, 0, 0, 0]))
    }

    @Test("A field of a split record is its checksum, its value and the value's references, under a big-endian key")
    func splitField() throws {
        let key = SplitFieldKey(record: 0x0102, field: 3)
        #expect(key.bytes == [0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 3])
        var encoder = RecordEncoder()
        let range = try encoder.encodeSplitField(key, .references([9]), nil)
        let bytes = Array(encoder.bytes[range])
        #expect(Array(bytes[4...]) == [8, 0, 0, 0x90, 1, 9, 0, 0, 0xA0])
        #expect(Array(bytes[..<4]) == sum(Array(bytes[4...]), 3 << 32 ^ 0x0102))
    }

    @Test(
        "Compacting moves strings and JSON of more than 256 bytes into segments, whose keys begin at 2^32",
        arguments: [256, 257], [false, true])
    func textHeap(count: Int, isJSON: Bool) async throws {
        try await withSampleCache("type Query { text: String json: JSON } scalar JSON") { sample in
            let (field, begin, end) = isJSON ? ("json", #"{"a":""#, #""}"#) : ("text", "", "")
            let text = begin + String(repeating: "x", count: count - begin.utf8.count - end.utf8.count) + end
            let value = isJSON ? text : "\"\(text)\""
            let data = "{\"\(field)\":\(value)}"
            try await sample.write("{ \(field) }", data: data)
            _ = try await sample.cache.compact()
            typealias Segments = [UInt64: [UInt8]]
            let segments = try sample.cache.generations.withSnapshot { (generation, transaction) throws -> Segments in
                var cursor = try transaction.cursor(in: generation.tables.texts)
                var segments: Segments = [:]
                var entry = try cursor.first()
                while let found = entry {
                    // Names have small numbers.
                    if found.integerKey > 1_000 {
                        segments[found.integerKey] = found.value.withUnsafeBytes { Array($0) }
                    }
                    entry = try cursor.next()
                }
                return segments
            }
            let segment = sum(Array(text.utf8), 1 << 32) + Array(text.utf8)
            #expect(segments == (count > 256 ? [1 << 32: segment] : [:]))
            #expect(try sample.json("{ \(field) }") == data)
        }
    }

    @Test(
        "Records whose numbers need more than 28 bits, or 32, are found like all others",
        arguments: [1 << 28, 1 << 32] as [UInt64])
    func largeNumbers(first: UInt64) async throws {
        let schema = """
            type Query { node: Node nodes: [Node] }
            type Node { id: ID! next: Node part: Part }
            type Part { x: Int }
            """
        try await withSampleCache(schema) { sample in
            let generation = sample.cache.generations.current
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            var state = try GenerationState.stored(transaction, generation.tables)
            state.nextRecord = first
            try state.store(&transaction, generation.tables)
            try transaction.commit()
            let query = "{ node { id next { id } part { x } } nodes { id } }"
            let data = #"{"node":{"id":"1","next":{"id":"2"},"part":{"x":1}},"nodes":[{"id":"2"},{"id":"3"}]}"#
            try await sample.write(query, data: data)
            #expect(try sample.number(of: "Node:1") >= first)
            #expect(try sample.json(query) == data)
            #expect(try sample.cache.check(.everything).problems == [])
            try await sample.cache.compact()
            #expect(try sample.json(query) == data)
            #expect(try sample.cache.check(.everything).problems == [])
        }
    }

    @Test(
        "Texts and lists are read as they were stored, also where their length takes one byte more",
        arguments: [127, 128, 129, 256])
    func lengths(count: Int) async throws {
        try await withSampleCache("type Query { text: String list: [Int!] }") { sample in
            let list = Array(repeating: "1", count: count).joined(separator: ",")
            let data = #"{"text":"\#(String(repeating: "x", count: count))","list":[\#(list)]}"#
            try await sample.write("{ text list }", data: data)
            #expect(try sample.json("{ text list }") == data)
        }
    }

    @Test(
        "The length of a text, or of a list, has seven bits a byte, the lowest first, and a bit where another follows",
        arguments: ["String", "[Int]"])
    func lengthBytes(type: String) async throws {
        try await withSampleCache("type Query { a: \(type) }") { sample in
            let ones = Array(repeating: "1", count: 300)
            let json = type == "String" ? "\"\(ones.joined())\"" : "[\(ones.joined(separator: ","))]"
            try await sample.write("{ a }", data: "{\"a\":\(json)}")
            let stored = try root(sample)
            #expect(Array(stored.payload.prefix(2)) == [0xAC, 0x02])
        }
    }

    // MARK: Other tables

    /// The entries of a table, in the order of their keys.
    private func entries(
        _ sample: SampleCache, _ chosen: (Tables) -> Table?
    ) throws -> [(key: [UInt8], value: [UInt8])] {
        typealias Entries = [(key: [UInt8], value: [UInt8])]
        return try sample.cache.generations.withSnapshot { (generation, transaction) throws -> Entries in
            let table = try #require(chosen(generation.tables))
            var found: Entries = []
            var cursor = try transaction.cursor(in: table)
            var entry = try cursor.first()
            while let next = entry {
                let (key, value) = (next.key.withUnsafeBytes { Array($0) }, next.value.withUnsafeBytes { Array($0) })
                found.append((key, value))
                entry = try cursor.next()
            }
            return found
        }
    }

    @Test("The names in full and the change sets have a checksum of themselves and of their number")
    func sealedRows() async throws {
        try await withSampleCache("type Query { a: Int }") { sample in
            try await sample.write("{ a }", data: #"{"a":1}"#)
            try await sample.write("{ a }", data: #"{"a":2}"#)
            let rows = try entries(sample, { $0.texts }) + entries(sample, { $0.changes })
            #expect(rows.count >= 3)
            for (key, value) in rows {
                let number = key.reversed().reduce(0 as UInt64) { $0 << 8 | UInt64($1) }
                #expect(Array(value.prefix(4)) == sum(Array(value.dropFirst(4)), number), "\(number)")
            }
        }
    }

    @Test(
        "The note of a mutation is a checksum, 1 or 2, its time, and its key only where that is shortened",
        arguments: [("k", false), ("k", true), (String(repeating: "x", count: 600), false)])
    func appliedNote(text: String, isRejected: Bool) {
        let entry = AppliedEntry(key: text, kind: isRejected ? .rejected : .applied, time: 0x0102)
        let bytes = StoredKey.bytes(Array(text.utf8)).withUnsafeBytes { entry.encoded(under: $0) }
        let kind: [UInt8] = isRejected ? [2] : [1]
        let full: [UInt8] = text.utf8.count > 504 ? Array(text.utf8) : []
        #expect(Array(bytes.dropFirst(4)) == kind + littleEndian(0x0102 as Int64) + full)
    }

    @Test("When records came is whole seconds since 2020 for each of 32 records, or once where all are the same")
    func receivedBlock() {
        let time = ReceivedTime(milliseconds: 1_577_836_805_999)
        let same = Array(repeating: ReceivedSlot(time, hasRows: false), count: 32)
        #expect(Array(ReceivedBlock.encoded(same, number: 7).dropFirst(4)) == [5, 0, 0, 0])
        var slots = ReceivedBlock.empty
        slots[1] = ReceivedSlot(time, hasRows: true)
        let bytes = ReceivedBlock.encoded(slots, number: 7)
        #expect(bytes.count == 4 + 32 * 4)
        #expect(Array(bytes[4..<12]) == [0, 0, 0, 0, 5, 0, 0, 0x80])
        #expect(ReceivedBlock.number(of: 0x0102 * 32 + 31) == 0x0102)
        let key = ReceivedBlock.withKey(0x0102) { Array($0) }
        #expect(key == [0, 0, 0, 0, 0, 0, 1, 2])
    }

    @Test("When a field came is a row under its record and its number: its time, and then its maximum age")
    func receivedRow() async throws {
        var options = RecordCache.Options.patient
        options.now = { 1_577_836_805_999 }
        try await withSampleCache("type Query { a: Int }", options) { sample in
            try await sample.write("{ a }", data: #"{"a":1}"#)
            let rows = try entries(sample, { $0.received }).filter { $0.key.count == 12 }
            try #require(rows.count == 1)
            #expect(Array(rows[0].key[..<8]) == [0, 0, 0, 0, 0, 0, 0, 1])
            #expect(Array(rows[0].value.dropFirst(4)) == [5, 0, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF])
        }
    }

    @Test("When fields came that the last answer left out is a row under their record and 0: each field and its time")
    func leftFields() async throws {
        try await AgedCache.with("type Query { node: Node } type Node { id: ID! a: Int b: Int }") { aged in
            let sample = aged.sample
            try await sample.write("{ node { id a b } }", data: #"{"node":{"id":"1","a":1,"b":2}}"#)
            aged.now = 5
            try await sample.write("{ node { id a } }", data: #"{"node":{"id":"1","a":1}}"#)
            let node = Array(littleEndian(try sample.number(of: "Node:1")).reversed())
            let rows = try entries(sample, { $0.received }).filter { $0.key.count == 12 && Array($0.key[..<8]) == node }
            let field = try sample.cache.generations.withSnapshot { (generation, transaction) throws -> FieldID? in
                try generation.names.number(of: "b", transaction, generation.tables)
            }
            try #require(rows.count == 1)
            #expect(Array(rows[0].key[8...]) == [0, 0, 0, 0])
            let number = littleEndian(try #require(field))
            let time = littleEndian(ReceivedTime(milliseconds: 1_800_000_000_000).seconds)
            #expect(Array(rows[0].value.dropFirst(4)) == number + time)
        }
    }

    @Test("The keys of a walk's page stand under the synchronization's key, a slash and the page's number")
    func markKey() async throws {
        try await withSampleCache("type Query { todos: [Todo] } type Todo { id: ID! }") { sample in
            let operation = try sample.operation("{ todos { id } }")
            let page = try ParsedResponse.parse(
                Array(#"{"data":{"todos":[{"id":"1"}]}}"#.utf8), along: operation.layout)
            let position = SyncPosition(name: "todos", types: ["Todo"])
            let end = SyncPage(key: "ab", position: position, after: nil, number: 1, mark: SyncMark(page))
            for outcome in try await sample.cache.write([(parsed: page, operation: operation, end: end)]) {
                _ = try outcome.get()
            }
            let keys = try entries(sample, { $0.positions }).map { String(decoding: $0.key, as: UTF8.self) }
            #expect(keys == ["ab", "ab/00000001"])
        }
    }

    @Test("How far a subscription has come stands under its key, behind the word subscription and a colon")
    func subscriptionKey() async throws {
        try await withSampleCache("type Query { a: Int }") { sample in
            try await sample.cache.note(["a1": .init(name: "S.a", time: 1)])
            let keys = try entries(sample, { $0.positions }).map { $0.key }
            #expect(keys == [Array("subscription:a1".utf8)])
        }
    }

    @Test("A compaction leaves out the text that another has replaced since the last one")
    func replacedText() async throws {
        try await withSampleCache("type Query { text: String }") { sample in
            for letter in ["x", "y"] {
                let text = String(repeating: letter, count: 300)
                try await sample.write("{ text }", data: #"{"text":"\#(text)"}"#)
                _ = try await sample.cache.compact()
                let segments = try entries(sample, { $0.texts }).map { $0.value }.filter { $0.count > 300 }
                #expect(segments.map { Array($0.dropFirst(4)) } == [Array(text.utf8)])
            }
        }
    }

    @Test("A compaction that leaves a name behind gives its number to no other")
    func unusedNumbers() async throws {
        try await withSampleCache("type Query { a: Int b: Int }") { sample in
            try await sample.write("{ a }", data: #"{"a":1}"#)
            try await sample.write("{ a b }", data: #"{"a":1,"b":2}"#)
            _ = try await sample.cache.remove(field: "b", of: "QUERY_ROOT")
            let names = try entries(sample, { $0.names }).count
            let next = try sample.cache.inspect.statistics().nextField
            try await sample.cache.compact()
            #expect(try entries(sample, { $0.names }).count == names - 1)
            #expect(try sample.cache.inspect.statistics().nextField == next)
        }
    }

    @Test("A compaction gives the number of a record that is gone to no other")
    func unusedRecord() async throws {
        try await withSampleCache("type Query { a: Int nodes: [Node] } type Node { id: ID! }") { sample in
            // The root is first, so that the last records are those that go.
            try await sample.write("{ a }", data: #"{"a":1}"#)
            try await sample.write("{ nodes { id } }", data: #"{"nodes":[{"id":"1"},{"id":"2"}]}"#)
            let next = try sample.cache.inspect.statistics().nextRecord
            _ = try await sample.cache.remove(keys: ["Node:1", "Node:2"], as: .evicted)
            try await sample.cache.compact()
            #expect(try sample.cache.inspect.statistics().nextRecord == next)
        }
    }

    @Test(
        "A cache without a table that came later is read without it, and gets it when it is opened for writing",
        arguments: ["applied", "received", "positions"])
    func laterTables(name: String) async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "records").path
            let definitions = Tables.definitions.filter { $0.name != name }
            let environment = try Environment(folder: path + "/1", tables: definitions)
            let whole = GenerationFolder(path: path, stamp: "s", options: .init())
            try environment.write(deadline: .now + .seconds(300)) { transaction in
                var tables: Tables? { Tables(environment) }
                try whole.store(.fresh(), &transaction, try #require(tables))
            }
            try environment.close()
            for (round, isReadOnly) in [true, false, true].enumerated() {
                var options = RecordCache.Options()
                options.isReadOnly = isReadOnly
                let cache = try RecordCache(folder: path, stamp: "s", options: options)
                let tables = cache.generations.current.tables
                let missing = [tables.applied, tables.received, tables.positions].count { $0 == nil }
                #expect(missing == (round == 0 ? 1 : 0))
                #expect(try cache.check().problems == [])
                try cache.close()
            }
        }
    }
}
