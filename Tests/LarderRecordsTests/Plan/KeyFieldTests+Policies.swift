import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// Arguments of a field that identify the object it returns.
extension KeyFieldTests {
    @Test("The argument that lists what a field returns may stand behind others, which hold for each element")
    func listBehindOthers() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "seats", keyArgs: ["row", "numbers"]) {
              seats(row: Int!, numbers: [Int!]!): [Seat] all: [Seat]
            }
            type Seat @typePolicy(keyFields: ["row", "number"]) { row: Int! number: Int! label: String }
            """
        try await withSampleCache(schema) { sample in
            try await sample.write(
                "{ all { label } }",
                data: """
                    {"all":[{"__typename":"Seat","row":1,"number":1,"label":"a"},
                    {"__typename":"Seat","row":1,"number":2,"label":"b"},
                    {"__typename":"Seat","row":2,"number":1,"label":"c"}]}
                    """)
            #expect(
                try sample.json("{ seats(row: 1, numbers: [2, 1]) { label } }")
                    == #"{"seats":[{"label":"b"},{"label":"a"}]}"#)
            #expect(try sample.missing("{ seats(row: 2, numbers: [1, 2]) { label } }") == ["seats"])
        }
    }

    @Test("Each element of a list that arguments name may be of a type of its own")
    func listOfSeveralTypes() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "nodes", keyArgs: "ids") { nodes(ids: [ID!]!): [Node] all: [Node] }
            interface Node { id: ID! }
            type Movie implements Node { id: ID! title: String }
            type User implements Node { id: ID! name: String }
            """
        try await withSampleCache(schema) { sample in
            try await sample.write(
                "{ all { ... on Movie { title } ... on User { name } } }",
                data: """
                    {"all":[{"__typename":"Movie","id":"1","title":"A"},{"__typename":"User","id":"2","name":"B"}]}
                    """)
            #expect(
                try sample.json("{ nodes(ids: [2, 1]) { ... on Movie { title } ... on User { name } } }")
                    == #"{"nodes":[{"name":"B"},{"title":"A"}]}"#)
        }
    }

    @Test("The arguments of a field of any type may name the object that it returns")
    func policyOfObject() async throws {
        let schema = """
            type Query { author: Author all: [Book] }
            type Author @fieldPolicy(forField: "book", keyArgs: "isbn") { id: ID! book(isbn: ID!): Book }
            type Book @typePolicy(keyFields: "isbn") { isbn: ID! title: String }
            """
        try await withSampleCache(schema) { sample in
            try await sample.write(
                "{ author { id } all { title } }",
                data: """
                    {"author":{"__typename":"Author","id":"1"},
                    "all":[{"__typename":"Book","isbn":"x","title":"A"}]}
                    """)
            #expect(
                try sample.json(#"{ author { book(isbn: "x") { title } } }"#)
                    == #"{"author":{"book":{"title":"A"}}}"#)
        }
    }
}
