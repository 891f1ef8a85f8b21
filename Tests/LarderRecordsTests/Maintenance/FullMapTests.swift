import Foundation
import LarderGraphQL
import LarderLMDB
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("A full map", .timeLimit(.minutes(10)))
struct FullMapTests {
    enum Change: CaseIterable {
        case write, update, removeKeys, removeType, removeField, compact, clear

        func make(_ sample: SampleCache) async throws {
            let cache = sample.cache
            let operation = try sample.operation("{ boxes { id text } }")
            let changed = try ParsedResponse.parse(
                Array(#"{"data":{"boxes":[{"id":"0","text":"changed"}]}}"#.utf8), along: operation.layout)
            switch self {
            case .write: _ = try await cache.write(changed, of: operation)
            case .update: _ = try await cache.update(operation) { _ in changed }
            case .removeKeys: _ = try await cache.remove(keys: ["Box:0", "Box:1"], as: .evicted)
            case .removeType: _ = try await cache.remove(type: "Box", as: .deleted)
            case .removeField: _ = try await cache.remove(field: "boxes", of: CacheKey.queryRoot.text)
            case .compact: _ = try await cache.compact()
            case .clear: _ = try await cache.clear()
            }
        }
    }

    /// Uses all room up: what was replaced is kept for whoever reads.
    private func exhaust(_ generation: Generation) throws {
        var failure: LMDBError?
        while failure == nil {
            var transaction = try generation.environment.beginWrite(deadline: .now + .seconds(300))
            do {
                let state = try GenerationState.stored(transaction, generation.tables)
                try state.store(&transaction, generation.tables)
                try transaction.commit()
            } catch let error as LMDBError { failure = error }
        }
        try #require(failure?.code == .mapFull)
    }

    /// As many pages more or fewer are taken at first, so that room ends at different steps of a change.
    @Test(
        "Whatever needs room on it is refused whole, and made when there is room again",
        arguments: Change.allCases, 0..<4)
    func refuses(_ change: Change, pages: Int) async throws {
        let schema = try SchemaIndex(parsing: "type Query { boxes: [Box!] } type Box { id: ID! text: String }")
        try await withTemporaryFolder { folder in
            var options = RecordCache.Options()
            options.maximumSize = 1 << 20
            let sample = try SampleCache(schema, path: folder.path, options: options)
            let boxes = (0..<40).map { number in
                let text = String(repeating: "x", count: number == 0 ? pages * 4_096 : 300)
                return #"{"id":"\#(number)","text":"\#(text)"}"#
            }
            try await sample.write("{ boxes { id text } }", data: #"{"boxes":[\#(boxes.joined(separator: ","))]}"#)
            let answer = try sample.json("{ boxes { id text } }")
            let dump = try CacheDump(sample.cache)

            let reading = try sample.cache.generations.current.environment.beginRead()
            try exhaust(sample.cache.generations.current)
            for _ in 0..<3 {
                let error = await #expect(throws: RecordError.self) { try await change.make(sample) }
                #expect(error?.code == .full && error?.cause != nil)
            }
            #expect(try sample.json("{ boxes { id text } }") == answer)
            #expect(try CacheDump(sample.cache).difference(from: dump).isEmpty)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["1"], "nothing is left over")
            try expectSound(sample.cache)

            _ = consume reading
            try await change.make(sample)
            #expect(try !CacheDump(sample.cache).difference(from: dump).isEmpty || change == .compact)
            try expectSound(sample.cache)
            try sample.reopen()
            #expect((try? sample.json("{ boxes { id text } }")) == answer || change != .compact)
            try expectSound(sample.cache)
            try sample.cache.close()
        }
    }

    @Test("Answers that come one after the other stop at a failure of the cache, and not at one of an answer's content")
    func chain() {
        var chain = WriteChain()
        for code in RecordError.Code.ofContent { chain.noteFailure(RecordError(code, "one alone")) }
        #expect(chain.isBroken == nil)
        chain.noteFailure(RecordError(.full, "the first"))
        chain.noteFailure(RecordError(.storage, "a later one"))
        #expect(chain.isBroken?.code == .full)
    }

    @Test("Where there is no room for an answer, none that came after it is stored, however small")
    func answersInOrder() async throws {
        let schema = try SchemaIndex(
            parsing: """
                type Query { box: Box } type Mutation { fill(text: String): Box } type Box { id: ID! text: String }
                """)
        try await withTemporaryFolder { folder in
            var options = RecordCache.Options()
            options.maximumSize = 1 << 20
            let sample = try SampleCache(schema, path: folder.path, options: options)
            let operation = try sample.operation("mutation { fill { id text } }")
            let keys = try ["large", "small"].map { try #require(AppliedKey($0)) }
            let answers = try zip(keys, [2 << 20, 1]).map { key, size in
                let text = String(repeating: "x", count: size)
                let body = #"{"data":{"fill":{"__typename":"Box","id":"1","text":"\#(text)"}}}"#
                let parsed = try ParsedResponse.parse(Array(body.utf8), along: operation.layout)
                return MutationAnswer(parsed, of: operation, key: key, edits: [])
            }
            let outcomes = try await sample.cache.write(answers)
            #expect(outcomes.count == 2)
            for outcome in outcomes {
                let error = #expect(throws: RecordError.self) { try outcome.get() }
                #expect(error?.code == .full)
            }
            for key in keys { #expect(try !sample.cache.isApplied(key)) }
            let later = try await sample.cache.write([answers[1]])
            #expect(try later.first?.get().earlier == nil)
            #expect(try sample.cache.isApplied(keys[1]))
            try expectSound(sample.cache)
            try sample.cache.close()
        }
    }
}
