import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Deleted and evicted objects", .timeLimit(.minutes(10)))
struct RemovalTests {
    private static let query = """
        { top { id } movie(id: 1) { director { name } } strict { id }
          node(id: 5) { ... on Movie { required { name } } } }
        """
    private static let data = #"""
        {"top":[{"__typename":"Movie","id":"2"},null,{"__typename":"Movie","id":"3"}],
        "movie":{"__typename":"Movie","id":"1","director":{"__typename":"User","id":"7","name":"N"}},
        "strict":[{"__typename":"Movie","id":"2"}],
        "node":{"__typename":"Movie","id":"5","required":{"__typename":"User","id":"7","name":"N"}}}
        """#

    private func withRemoved(
        _ removal: RecordCache.Removal, _ keys: [String], _ body: (SampleCache) async throws -> Void
    ) async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(Self.query, data: Self.data)
            try await sample.changing { try await $0.remove(keys: keys, as: removal) }
            try sample.reopen()
            try await body(sample)
        }
    }

    @Test("Lists go without the deleted, nullable references read null, and non-null ones pass it up")
    func deleted() async throws {
        try await withRemoved(.deleted, ["Movie:2", "User:7"]) { sample in
            #expect(
                try sample.json(Self.query)
                    == #"{"top":[null,{"id":"3"}],"movie":{"director":null},"strict":[],"node":null}"#)
            #expect(try sample.missing(Self.query) == [])
            let answer = try sample.cache.read(
                sample.fragment("fragment F on Movie { id }"), from: .object(key: "Movie:2"))
            #expect(answer.isDeleted && answer.response.data?.isNull == true)
        }
    }

    @Test("The evicted are missing until they come back")
    func evicted() async throws {
        try await withRemoved(.evicted, ["Movie:2", "User:7"]) { sample in
            #expect(
                try sample.missing(Self.query).sorted() == ["movie.director", "node.required", "strict[0]", "top[0]"])
            try await sample.write(Self.query, data: Self.data)
            #expect(try sample.missing(Self.query) == [])
        }
    }

    @Test("A deleted object lives again when the server says so, and is reported as created")
    func resurrection() async throws {
        try await withRemoved(.deleted, ["Movie:2"]) { sample in
            let commit = try await sample.write(
                "{ movie(id: 2) { id } }", data: #"{"movie":{"__typename":"Movie","id":"2"}}"#)
            #expect(Array(commit.changes.createdKeys) == ["Movie:2"])
            #expect(try sample.json("{ top { id } }") == #"{"top":[{"id":"2"},null,{"id":"3"}]}"#)
        }
    }

    @Test("Deleting twice changes nothing, evicting what was deleted does, and unknown keys are passed over")
    func twice() async throws {
        try await withRemoved(.deleted, ["Movie:2"]) { sample in
            let again = try await sample.changing {
                try await $0.remove(keys: ["Movie:2", "Movie:99", ""], as: .deleted)
            }
            #expect(again.changes.isEmpty)
            try await sample.changing { try await $0.remove(keys: ["Movie:2", "Movie:2"], as: .evicted) }
            #expect(try sample.missing("{ top { id } }") == ["top[0]"])
        }
    }

    @Test(
        "The root of all queries is emptied when it is deleted or evicted, and is not known to be no more",
        arguments: [RecordCache.Removal.deleted, .evicted])
    func queryRoot(removal: RecordCache.Removal) async throws {
        try await withRemoved(removal, [CacheKey.queryRoot.text]) { sample in
            let answer = try sample.cache.read(sample.operation(Self.query))
            #expect(!answer.isDeleted)
            // The arguments of `movie` are the key of an object that is still there.
            #expect(try sample.missing(Self.query).sorted() == ["node", "strict", "top"])
            let dump = try CacheDump(sample.cache)
            #expect(!dump.records.values.contains { $0.isTombstone })
        }
    }

    @Test("A type is removed without the types whose names begin alike")
    func byType() async throws {
        let sdl = "type Query { all: [Any] } union Any = Movie | MovieX type Movie { id: ID } type MovieX { id: ID }"
        try await withSampleCache(sdl) { sample in
            try await sample.write(
                "{ all { __typename } }",
                data: #"""
                    {"all":[{"__typename":"Movie","id":"1"},{"__typename":"MovieX","id":"1"},
                    {"__typename":"Movie","id":""}]}
                    """#)
            try await sample.changing { try await $0.remove(type: "Movie", as: .evicted) }
            #expect(
                try CacheDump(sample.cache).records.values.compactMap(\.key).sorted() == ["MovieX:1", "QUERY_ROOT"])
        }
    }

    @Test(
        "The roots of mutations and subscriptions are not stored, their entities are",
        arguments: [
            ("mutation { rate(id: 1, stars: 5) { stars movie { title } point { x } } }", "rate"),
            ("subscription { rated { stars movie { title } point { x movie { id } } } }", "rated"),
        ])
    func otherRoots(text: String, field: String) async throws {
        try await withSampleCache(movieSchema) { sample in
            let data = #"{"stars":5,"movie":{"__typename":"Movie","id":"1","title":"A"},"point":{"x":1,"movie":null}}"#
            let operation = try sample.operation(text)
            try await sample.write(operation, response: #"{"data":{"\#(field)":\#(data)}}"#)
            #expect(try CacheDump(sample.cache).records.values.map(\.key) == ["Movie:1"])
        }
    }

    @Test("The same entity many times in one response has the fields of all")
    func manyTimes() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query =
                "{ a: movie(id: 1) { id title } b: movie(id: 2) { id year } top { id done } node(id: 1) { id } }"
            try await sample.write(
                query,
                data: #"""
                    {"a":{"__typename":"Movie","id":"1","title":"T"},"b":{"__typename":"Movie","id":1,"year":2},
                    "top":[{"__typename":"Movie","id":"1","done":true},{"__typename":"Movie","id":"1","done":true}],
                    "node":{"__typename":"Movie","id":"1"}}
                    """#)
            #expect(
                try sample.json("{ movie(id: 1) { title year done } }")
                    == #"{"movie":{"title":"T","year":2,"done":true}}"#)
        }
    }

    @Test("A change set names exactly what became different")
    func exactChanges() async throws {
        try await withRemoved(.evicted, []) { sample in
            let again = try await sample.write(Self.query, data: Self.data)
            #expect(again.changes.isEmpty)
            let before = try CacheDump(sample.cache)
            let commit = try await sample.write(
                Self.query,
                data: Self.data.replacing(#""name":"N""#, with: #""name":"M""#)
                    .replacing(#""strict":[{"__typename":"Movie","id":"2"}]"#, with: #""strict":[]"#))
            #expect(before.named(commit.changes) == ["QUERY_ROOT.strict", "User:7.name"])
        }
    }
}
