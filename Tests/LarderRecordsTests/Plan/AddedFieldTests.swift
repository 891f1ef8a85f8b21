import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Fields that are added to what is asked", .timeLimit(.minutes(10)))
struct AddedFieldTests {
    @Test("A selection on an interface asks for its key field, and for the key fields of types that have others")
    func ofInterface() async throws {
        let schema = """
            type Query { nodes: [Node!] }
            interface Node { id: ID! title: String }
            type Movie implements Node @typePolicy(keyFields: "code") { id: ID! code: String! title: String }
            type Person implements Node { id: ID! title: String }
            """
        try await withSampleCache(schema) { sample in
            let movie = #"{"__typename":"Movie","id":"1","code":"c","title":"Up"}"#
            let person = #"{"__typename":"Person","id":"1","title":"Ada"}"#
            try await sample.write("{ nodes { title } }", data: #"{"nodes":[\#(movie),\#(person)]}"#)
            for key in ["Movie:c", "Person:1"] {
                let type = key.prefix { $0 != ":" }
                let fragment = try sample.fragment("fragment F on \(type) { title }")
                #expect(try sample.json(fragment, from: .object(key: key)).contains("title"), "\(key)")
            }
            let document = try Document(parsing: "{ nodes { title } }")
            let sent = try CompiledOperation(operation: nil, in: document, try SchemaIndex(parsing: schema)).sentText
            let words = sent.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words == "{ nodes { title __typename id ... on Movie { code } } }", "\(words)")
        }
    }

    @Test("A key field that is asked with arguments is asked under an alias as well, which identifies the object")
    func withArguments() async throws {
        let schema = "type Query { movie: Movie } type Movie { id(short: Boolean): ID! title: String }"
        let text = "{ movie { id(short: true) title } }"
        try await withSampleCache(schema) { sample in
            let document = try Document(parsing: text)
            let sent = try CompiledOperation(operation: nil, in: document, sample.schema).sentText
            let words = sent.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            #expect(words == "{ movie { id(short: true) title __typename larder_id: id } }", "\(words)")
            try await sample.write(
                text, data: #"{"movie":{"id":"s","title":"Up","__typename":"Movie","larder_id":"long"}}"#)
            #expect(try sample.cache.inspect.keys() == ["Movie:long", "QUERY_ROOT"])
            #expect(try sample.json(text) == #"{"movie":{"id":"s","title":"Up"}}"#)
        }
    }
}
