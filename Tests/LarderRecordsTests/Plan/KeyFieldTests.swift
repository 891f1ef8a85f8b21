import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Key fields and narrowed types")
struct KeyFieldTests {
    @Test("An alias in another operation of the document does not hide the key field")
    func aliasElsewhere() async throws {
        try await withSampleCache(movieSchema) { sample in
            let text = "query A { movie(id: 1) { title } } query B { movie(id: 1) { id: title } }"
            let compiled = try CompiledOperation(operation: "A", in: Document(parsing: text), sample.schema)
            #expect(compiled.sentText.contains("id"))
            let operation = try compiled.bound()
            try await sample.write(
                operation, response: #"{"data":{"movie":{"title":"A","__typename":"Movie","id":"1"}}}"#)
            #expect(try CacheDump(sample.cache).records.values.compactMap(\.key).sorted() == ["Movie:1", "QUERY_ROOT"])
        }
    }

    @Test("Types that narrow an interface's field are each read by their own definition")
    func covariantFields() async throws {
        try await withSampleCache(movieSchema) { sample in
            let query = "{ animals { name owner { id } home { x } } }"
            try await sample.write(
                query,
                data: """
                    {"animals":[{"__typename":"Dog","name":"Rex","owner":{"__typename":"User","id":"1"},"home":{"x":1}},
                    {"__typename":"Cat","name":null,"owner":{"__typename":"Movie","id":"1"},"home":null}]}
                    """)
            #expect(
                try sample.json(query) == #"{"animals":[{"name":"Rex","owner":{"id":"1"},"home":{"x":1}},"#
                    + #"{"name":null,"owner":{"id":"1"},"home":null}]}"#)
            let keys = try CacheDump(sample.cache).records.values.compactMap(\.key).sorted()
            #expect(keys == ["Movie:1", "QUERY_ROOT", "User:1"])
        }
    }
}
