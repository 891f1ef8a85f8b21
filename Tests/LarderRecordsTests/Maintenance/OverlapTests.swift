import Foundation
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Testing

@testable import LarderRecords

/// Files that somebody made on purpose: every checksum is right, and lists lie in each other's bytes.
@Suite("Lists that overlap", .timeLimit(.minutes(10)))
struct OverlapTests {
    private static let schema = """
        type Query { box: Box }
        type Box { id: ID! deep: [[[[[Int]]]]] items: [Item] }
        type Item { n: Int }
        """

    /// Runs `body` with a cache whose one object `Box:1` has this value in `deep`.
    ///
    /// - Parameter payload: Makes the value's word and bytes, which will stand at an offset.
    private func withCrafted(
        _ payload: (_ offset: Int) -> (word: ValueWord, bytes: [UInt8]),
        _ body: (SampleCache) async throws -> Void
    ) async throws {
        let schema = try SchemaIndex(parsing: Self.schema)
        try await withTemporaryFolder { folder in
            var options = RecordCache.Options()
            options.maximumAnswerSize = 8 << 20
            let sample = try SampleCache(schema, path: folder.appending(path: "records").path, options: options)
            try await sample.write("{ box { id deep } }", data: #"{"box":{"id":"1","deep":null}}"#)
            let generation = sample.cache.generations.current
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            let id = try #require(try generation.tables.record(of: "Box:1", transaction))
            var bytes = try transaction.get(id, in: generation.tables.records)?.withUnsafeBytes { Array($0) } ?? []
            let number = try #require(try generation.names.lookUp("deep", transaction, generation.tables))
            let wanted = withUnsafeBytes(of: number.littleEndian, Array.init)
            let (word, added) = payload(bytes.count)
            let count = Int(bytes[2]) + Int(bytes[3]) << 8
            for index in 0..<count {
                let entry = RecordFormat.entityHeader + index * RecordFormat.entrySize
                guard bytes[entry..<(entry + 4)].elementsEqual(wanted) else { continue }
                bytes.replaceSubrange((entry + 4)..<(entry + 8), with: word.bytes)
            }
            bytes += added
            let sum = bytes.withUnsafeBytes { RecordView.checksum($0, of: id) }
            bytes.replaceSubrange(4..<8, with: withUnsafeBytes(of: sum.littleEndian, Array.init))
            try transaction.put(id, bytes.rawSpan, in: generation.tables.records)
            try transaction.commit()
            try await body(sample)
            try sample.cache.close()
        }
    }

    /// Lists one in the other, each with many items that all are the next.
    private static func multiplying(levels: Int, items: Int) -> (Int) -> (word: ValueWord, bytes: [UInt8]) {
        { offset in
            var bytes: [UInt8] = []
            for level in 1...levels {
                let next = offset + level * (2 + items * 4)
                let item = level < levels ? ValueWord(.list, UInt32(next)) : ValueWord(.smallInt, 7)
                // The count in two bytes of seven bits.
                bytes += [UInt8(items & 0x7F) | 0x80, UInt8(items >> 7)]
                for _ in 0..<items { bytes += item.bytes }
            }
            return (ValueWord(.list, UInt32(offset)), bytes)
        }
    }

    /// A list in which the list itself stands many times.
    private static func containingItself(items: Int) -> (Int) -> (word: ValueWord, bytes: [UInt8]) {
        { offset in
            let word = ValueWord(.list, UInt32(offset))
            return (word, [UInt8(items)] + (0..<items).flatMap { _ in word.bytes })
        }
    }

    @Test("Lists that multiply are read up to what an answer may hold, and then are too large")
    func multiplied() async throws {
        try await withCrafted(Self.multiplying(levels: 5, items: 200)) { sample in
            let operation = try sample.operation("{ box { deep } }")
            let error = #expect(throws: RecordError.self) { try sample.cache.read(operation) }
            #expect(error?.code == .tooLarge)
            #expect(throws: RecordError.self) { try sample.cache.read(operation) }
        }
    }

    @Test("A list in itself is no list of the field's type, or too large")
    func itself() async throws {
        try await withCrafted(Self.containingItself(items: 120)) { sample in
            let operation = try sample.operation("{ box { deep } }")
            let error = #expect(throws: RecordError.self) { try sample.cache.read(operation) }
            #expect([.tooLarge, .schemaMismatch].contains(error?.code))
        }
    }

    @Test("The check reports lists that overlap, in no more work than the record has bytes", arguments: 0..<3)
    func checked(_ index: Int) async throws {
        let payloads = [
            Self.multiplying(levels: 5, items: 200), Self.containingItself(items: 120),
            Self.multiplying(levels: 2, items: 130),
        ]
        try await withCrafted(payloads[index]) { sample in
            let report = try sample.cache.check()
            #expect(report.problems.contains { $0.what == "its lists overlap" })
        }
    }

    @Test("Two lists of one record that share bytes are reported though each is small")
    func sharing() async throws {
        let payload: (Int) -> (word: ValueWord, bytes: [UInt8]) = { offset in
            let shared = ValueWord(.list, UInt32(offset + 9))
            // Two items, both the list of one item behind them, and bytes to spare.
            let bytes = [2] + shared.bytes + shared.bytes + [1] + ValueWord(.smallInt, 7).bytes
            return (ValueWord(.list, UInt32(offset)), bytes + [UInt8](repeating: 0, count: 64))
        }
        try await withCrafted(payload) { sample in
            let problems = try sample.cache.check().problems.map(\.what)
            #expect(problems == ["its lists overlap"])
        }
    }

    @Test("Compacting, removing and looking at a record whose lists multiply end in an error, and change nothing")
    func maintained() async throws {
        try await withCrafted(Self.multiplying(levels: 5, items: 200)) { sample in
            let cache = sample.cache
            await expectDamaged { try await cache.compact() }
            await expectDamaged { try await cache.remove(keys: ["Box:1"], as: .evicted) }
            await expectDamaged { try cache.inspect.record(key: "Box:1") }
            #expect(try cache.check().problemCount > 0)
            _ = try await cache.clear()
            try expectSound(cache)
        }
    }

    private func expectDamaged(
        _ location: SourceLocation = #_sourceLocation, _ body: () async throws -> Any?
    ) async {
        let error = await #expect(throws: RecordError.self, sourceLocation: location) { _ = try await body() }
        #expect(error?.code == .damaged, sourceLocation: location)
    }

    @Test("A sound cache with nested lists and lists of parts overlaps nowhere")
    func sound() async throws {
        try await withSampleCache(Self.schema) { sample in
            try await sample.write(
                "{ box { id deep items { n } } }",
                data: """
                    {"box":{"id":"1","deep":[[[[[1,2],[]],[[3]]]],[],[[[[4]]]]],"items":[{"n":1},null,{"n":2}]}}
                    """)
            try expectSound(sample.cache)
            try await sample.cache.compact()
            try expectSound(sample.cache)
        }
    }
}

extension ValueWord {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: bits.littleEndian, Array.init) }
}
