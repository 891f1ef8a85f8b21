import Foundation
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("The cache's notes of mutations", .timeLimit(.minutes(10)))
struct AppliedTests {
    private static let rate = #"mutation { rate(id: 1, stars: 3) { stars movie { id title } } }"#

    private static func answer(_ title: String) -> String {
        #"{"data":{"rate":{"stars":3,"movie":{"id":"1","title":"\#(title)"}}}}"#
    }

    private func apply(
        _ key: AppliedKey, _ title: String, in sample: SampleCache, synchronizing: Bool = true
    ) async throws -> Commit {
        let operation = try sample.operation(Self.rate)
        let parsed = try ParsedResponse.parse(Array(Self.answer(title).utf8), along: operation.layout)
        return try await sample.changing {
            try await $0.write(parsed, of: operation, applying: key, synchronizing: synchronizing)
        }
    }

    private func title(in sample: SampleCache) throws -> String {
        try sample.json(sample.fragment("fragment F on Movie { title }"), from: .object(key: "Movie:1"))
    }

    @Test("An answer is applied once, and a repetition over newer data changes nothing and says so")
    func once() async throws {
        try await withSampleCache(movieSchema) { sample in
            let key = try #require(AppliedKey("mutation-1"))
            #expect(try await apply(key, "Old", in: sample).earlier == nil)
            #expect(try sample.cache.isApplied(key))
            try await sample.write(
                "{ movie(id: 1) { id title } }", data: #"{"movie":{"__typename":"Movie","id":"1","title":"New"}}"#)
            let position = try sample.cache.position
            let again = try await apply(key, "Old", in: sample)
            #expect(again.earlier?.kind == .applied)
            #expect(again.changes.isEmpty)
            #expect(try sample.cache.position == position)
            #expect(try title(in: sample) == #"{"title":"New"}"#)
        }
    }

    @Test("A rejection is kept, and nothing is applied under its key any more")
    func rejected() async throws {
        try await withSampleCache(movieSchema) { sample in
            let key = try #require(AppliedKey("k"))
            #expect(try await sample.cache.noteRejected(key).earlier == nil)
            #expect(try sample.cache.applied(key)?.kind == .rejected)
            #expect(try await apply(key, "Late", in: sample).earlier?.kind == .rejected)
            #expect(try sample.cache.isAbsent("Movie:1"))
            #expect(try await sample.cache.noteRejected(key).earlier?.kind == .rejected)
        }
    }

    @Test("Keys are told apart by their bytes, empty ones are none, and long ones are kept in full")
    func keys() async throws {
        try await withSampleCache(movieSchema) { sample in
            #expect(AppliedKey("") == nil)
            let long = String(repeating: "x", count: 600)
            let texts = ["a", "A", "e\u{301}", "\u{E9}", long + "1", long + "2"]
            for text in texts { try await sample.cache.noteRejected(try #require(AppliedKey(text))) }
            let known = try sample.cache.applied().map { Array($0.key.utf8) }
            #expect(Set(known) == Set(texts.map { Array($0.utf8) }))
            #expect(try !sample.cache.isApplied(try #require(AppliedKey(long))))
            #expect(try sample.cache.check().problems == [])
            #expect(try sample.cache.check().counts.applied == 6)
        }
    }

    @Test("The time of a note is the clock's that the options give")
    func time() async throws {
        try await withTemporaryFolder { folder in
            var options = RecordCache.Options()
            options.now = { -5 }
            let cache = try RecordCache(folder: folder.path + "/records", stamp: "s", options: options)
            let key = try #require(AppliedKey("k"))
            try await cache.noteRejected(key)
            #expect(try cache.applied(key) == AppliedEntry(key: "k", kind: .rejected, time: -5))
            try cache.close()
        }
    }

    @Test("Notes outlive closing, compaction and clearing, and go when they are forgotten")
    func lifetime() async throws {
        try await withSampleCache(movieSchema) { sample in
            let (first, second) = (try #require(AppliedKey("1")), try #require(AppliedKey("2")))
            _ = try await apply(first, "T", in: sample)
            try await sample.cache.noteRejected(second)
            try sample.reopen()
            try await sample.cache.compact()
            #expect(try sample.cache.applied().map(\.kind) == [.applied, .rejected])
            try await sample.cache.clear()
            #expect(try sample.cache.applied().map(\.kind) == [.applied, .rejected])
            #expect(try sample.cache.isAbsent("Movie:1"))
            try await sample.cache.forgetApplied([first, first])
            #expect(try sample.cache.applied().map(\.key) == ["2"])
            #expect(try sample.cache.check().problems == [])
            #expect(try await apply(first, "T", in: sample).earlier == nil)
        }
    }

    @Test("A note with another checksum is found, and read as damage")
    func damaged() async throws {
        try await withSampleCache(movieSchema) { sample in
            let (good, bad) = (try #require(AppliedKey("good")), try #require(AppliedKey("bad")))
            try await sample.cache.noteRejected(good)
            let generation = sample.cache.generations.current
            let table = try #require(generation.tables.applied)
            try generation.environment.write(deadline: .now + .seconds(300)) { transaction in
                let (from, to) = (Array("good".utf8), Array("bad".utf8))
                let value = try transaction.get(from.rawSpan, in: table)?.withUnsafeBytes(Array.init) ?? []
                try transaction.put(to.rawSpan, value.rawSpan, in: table)
            }
            #expect(try sample.cache.isApplied(good))
            #expect(throws: RecordError.self) { try sample.cache.isApplied(bad) }
            #expect(try sample.cache.check(.checksums).problems.map(\.place) == [.applied("bad")])
        }
    }

    @Test("A generation without the table is read without it, and gets it when it is opened for writing")
    func older() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "records").path
            let generation = path + "/1"
            // As it was made before mutations were noted.
            let definitions = Tables.definitions.filter { $0.name != "applied" }
            let environment = try Environment(folder: generation, tables: definitions)
            let whole = GenerationFolder(path: path, stamp: "s", options: .init())
            try environment.write(deadline: .now + .seconds(300)) { transaction in
                var tables: Tables? { Tables(environment) }
                try whole.store(.fresh(), &transaction, try #require(tables))
            }
            try environment.close()
            var options = RecordCache.Options()
            options.isReadOnly = true
            let key = try #require(AppliedKey("k"))
            let reader = try RecordCache(folder: path, stamp: "s", options: options)
            #expect(try !reader.isApplied(key))
            #expect(try reader.applied() == [])
            #expect(try reader.check().problems == [])
            try reader.close()
            let writer = try RecordCache(folder: path, stamp: "s")
            #expect(try !writer.isApplied(key))
            try await writer.noteRejected(key)
            #expect(try writer.isApplied(key))
            #expect(try writer.check().problems == [])
            try writer.close()
            let again = try RecordCache(folder: path, stamp: "s", options: options)
            #expect(try again.isApplied(key))
            try again.close()
        }
    }
}

extension RecordCache {
    fileprivate func isAbsent(_ key: String) throws -> Bool { try presence(of: key).presence == .absent }
}
