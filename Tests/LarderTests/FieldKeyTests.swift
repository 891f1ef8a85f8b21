import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Field keys", .timeLimit(.minutes(5)))
struct FieldKeyTests {
    private static let schema = """
        type Query { search(text: String, near: Place, ids: [ID!], least: Float): [Dish!]! }
        input Place { x: Int y: Int }
        type Dish { id: ID! name: String }
        """
    private static let operation = GraphQLOperation(
        """
        query Search($text: String) {
          search(text: $text, near: { y: 2, x: 1 }, ids: 7, least: 1) { id name }
        }
        """, variables: ["text": "so\"up\" \u{1F372} ({"])

    private func withAnswer(_ body: (Partition) async throws -> Void) async throws {
        try await withStoreFixture(schema: Self.schema) { app in
            try await app.write(Self.operation, ["search": [["__typename": "Dish", "id": "1", "name": "Soup"]]])
            _ = try app.read(Self.operation)
            try await body(app)
        }
    }

    @Test("A key that is made of the arguments' values removes the field that was fetched with them")
    func removes() async throws {
        try await withAnswer { app in
            let key = FieldKey(
                "search",
                arguments: [
                    "least": 1.0, "ids": ["7"], "near": ["x": 1, "y": 2], "text": "so\"up\" \u{1F372} ({",
                ])
            try await app.remove(field: key)
            #expect(throws: LarderError.self) { try app.read(Self.operation) }
        }
    }

    @Test("A key with other arguments removes nothing")
    func others() async throws {
        try await withAnswer { app in
            try await app.remove(field: FieldKey("search", arguments: ["text": "soup"]))
            try await app.remove(field: FieldKey("sear"))
            _ = try app.read(Self.operation)
        }
    }

    @Test("A key that the schema makes of values of other kinds removes the field that was fetched with them")
    func bySchema() async throws {
        try await withAnswer { app in
            let schema = try Schema(parsing: Self.schema)
            let key = try schema.fieldKey(
                "search", of: "Query",
                arguments: ["least": 1, "ids": 7, "near": ["x": 1, "y": 2], "text": "so\"up\" \u{1F372} ({"])
            try await app.remove(field: key)
            #expect(throws: LarderError.self) { try app.read(Self.operation) }
        }
    }

    @Test("The schema refuses a type, a field and an argument that it does not know, and leaves pages out")
    func refusedBySchema() throws {
        let schema = try Schema(
            parsing: """
                type Query @fieldPolicy(forField: "dishes", paginationArgs: ["limit", "nextToken"]) {
                  dishes(of: ID, limit: Int, nextToken: String): Dishes
                }
                type Dishes { items: [Dish] nextToken: String }
                type Dish { id: ID! }
                """)
        for (field, type, argument) in [("search", "Query", "text"), ("id", "Nothing", "x"), ("dishes", "Query", "x")] {
            let error = #expect(throws: LarderError.self) {
                try schema.fieldKey(field, of: type, arguments: [argument: 1])
            }
            #expect(error?.code == .schema)
        }
        let key = try schema.fieldKey("dishes", of: "Query", arguments: ["of": 7, "limit": 10, "nextToken": "x"])
        #expect(key == FieldKey("dishes", arguments: ["of": "7"]))
        #expect(try schema.fieldKey("id", of: "Dish") == "id")
    }

    @Test("A key without arguments is the name, and equals its literal")
    func names() {
        #expect(FieldKey("search", arguments: [:]) == "search")
    }

    @Test("Field keys are in the order of their texts, and are encoded as them")
    func texts() throws {
        let keys: [FieldKey] = ["recipes", "cook", FieldKey("recipe", arguments: ["id": "7"])]
        #expect(keys.sorted().map(\.text) == ["cook", #"recipe({"id":"7"})"#, "recipes"])
        #expect(try JSONEncoder().encode(["cook"] as [FieldKey]) == Data(#"["cook"]"#.utf8))
    }

    @Test("A watched object's changes are told by keys that equal those made of arguments")
    func changes() async throws {
        try await withAnswer { app in
            var states = app.watch(.queryRoot).makeAsyncIterator()
            _ = await states.next()
            try await app.write(Self.operation, ["search": []])
            let changed = try #require(await states.next()).changedFields
            #expect(
                changed == [
                    FieldKey(
                        "search",
                        arguments: [
                            "text": "so\"up\" \u{1F372} ({", "near": ["y": 2, "x": 1], "ids": ["7"], "least": 1.0,
                        ])
                ])
        }
    }

    @Test("Of a list in pages, the key has the arguments that the program names for it, and no others")
    func pagedList() throws {
        var schema = try Schema(
            parsing: """
                type Query { dishes(kind: String, note: String, limit: Int, nextToken: String): Dishes }
                type Dishes { items: [Dish!]! nextToken: String }
                type Dish { id: ID! }
                """)
        try schema.setPagination(
            ["limit", "nextToken"], keyArguments: ["kind"], forField: "dishes", of: "Query")
        let key = try schema.fieldKey("dishes", of: "Query", arguments: ["kind": "a", "note": "x"])
        #expect(try schema.fieldKey("dishes", of: "Query", arguments: ["kind": "a", "note": "y"]) == key)
        #expect(try schema.fieldKey("dishes", of: "Query", arguments: ["kind": "b", "note": "x"]) != key)
    }

    @Test("An argument that is null is in a field's key, and one that is left out is not")
    func nulls() throws {
        let schema = try Schema(parsing: Self.schema)
        let arguments: [String: Value] = ["text": .null, "least": 1.0]
        for key in [
            FieldKey("search", arguments: arguments),
            try schema.fieldKey("search", of: "Query", arguments: arguments),
        ] {
            #expect(key.text == #"search({"least":1.0,"text":null})"#)
        }
        #expect(FieldKey("search", arguments: ["least": 1.0]).text == #"search({"least":1.0})"#)
    }
}
