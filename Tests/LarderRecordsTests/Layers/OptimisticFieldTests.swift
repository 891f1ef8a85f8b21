import LarderGraphQL
import Testing

@testable import LarderRecords

@Suite("What of an answer is optimistic", .timeLimit(.minutes(10)))
struct OptimisticFieldTests {
    @Test("A field is not optimistic because a layer adds another, nor where the object has so many that it is split")
    func split() async throws {
        let stored = (1..<RecordFormat.splitThreshold).map { "f\($0)" }
        let fields = (stored + ["added", "later"]).map { "\($0): Int" }.joined(separator: " ")
        try await withSampleCache("type Query { wide: Wide other: Wide } type Wide { id: ID! \(fields) }") { sample in
            func data(_ field: String, of id: String, _ members: [String]) -> String {
                let members = members.map { #","\#($0)":1"# }.joined()
                return #"{"\#(field)":{"__typename":"Wide","id":"\#(id)"\#(members)}}"#
            }
            func isOptimistic(_ field: String) throws -> Bool {
                let fragment = try sample.fragment("fragment F on Wide { \(field) }")
                return try sample.cache.read(fragment, from: .object(key: "Wide:1")).isOptimistic
            }
            try await sample.write("{ other { id added } }", data: data("other", of: "2", ["added"]))
            try await sample.write(
                "{ wide { id \(stored.joined(separator: " ")) } }", data: data("wide", of: "1", stored))
            let layer = try sample.layer("k", "{ wide { id added } }", data: data("wide", of: "1", ["added"]))
            try sample.cache.setLayers([layer])
            #expect(try !isOptimistic("f1"))
            #expect(try isOptimistic("added"))
            // The object is split below the layer, too.
            try await sample.write("{ wide { id later } }", data: data("wide", of: "1", ["later"]))
            #expect(try !isOptimistic("f1") && !isOptimistic("later"))
            #expect(try isOptimistic("added"))
            try sample.cache.setLayers([])
            #expect(try !isOptimistic("added"))
        }
    }

    @Test("A field that was never fetched is answered by the object of its key also where a layer alone has that")
    func keyInLayer() async throws {
        try await withSampleCache(movieSchema) { sample in
            let top = #"{"top":[{"__typename":"Movie","id":"1","title":"A"}]}"#
            try sample.cache.setLayers([sample.layer("k", "{ top { id title } }", data: top)])
            #expect(try sample.json("{ movie(id: 1) { title } }") == #"{"movie":{"title":"A"}}"#)
        }
    }

    @Test("A field that was never fetched is null where a layer deletes the object of its key")
    func deletedInLayer() async throws {
        try await withSampleCache(movieSchema) { sample in
            try await sample.write(
                "{ top { id title } }", data: #"{"top":[{"__typename":"Movie","id":"1","title":"A"}]}"#)
            let gone = OptimisticLayer(key: try #require(AppliedKey("k")), removals: ["Movie:1"])
            try sample.cache.setLayers([gone])
            #expect(try sample.json("{ movie(id: 1) { title } }") == #"{"movie":null}"#)
        }
    }
}
