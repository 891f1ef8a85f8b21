import Larder
import LarderTesting
import Testing

@Suite("Made-up data", .timeLimit(.minutes(5)))
struct MadeUpDataTests {
    private func withApp(
        values: [String: Value] = [:], _ body: (Partition, ScriptedServer) async throws -> Void
    ) async throws {
        try await withTemporaryStore(schemaText: [kitchenSchema]) { store in
            let server = ScriptedServer(schema: store.schema, values: values)
            try await body(try store.partition(server: server), server)
        }
    }

    private let list = GraphQLOperation("query Page { recipes(limit: 2) { nextToken items { id title } } }")

    private func one(_ id: String, _ fields: String) -> GraphQLOperation {
        GraphQLOperation("query One($id: ID!) { recipe(id: $id) { \(fields) } }", variables: ["id": .string(id)])
    }

    @Test("An answer has every field that was asked for, of the type that the schema says")
    func complete() async throws {
        try await withApp { app, server in
            let fields = "id title rating minutes isVegan course createdAt cook { id name } steps { text }"
            let response = try await app.fetch(
                GraphQLOperation("query Page { recipes { nextToken items { \(fields) } } node { __typename id } }"),
                policy: .networkOnly)
            #expect(response.isComplete)
            let recipes = try #require(response["recipes"]?["items"])
            #expect(recipes.count == 3)
            for recipe in recipes.elements {
                #expect(recipe["title"]?.string?.isEmpty == false)
                #expect(recipe["rating"]?.double != nil && recipe["minutes"]?.int != nil)
                #expect(recipe["isVegan"]?.boolean != nil)
                #expect(["STARTER", "MAIN", "DESSERT"].contains(recipe["course"]?.string))
                #expect(recipe["createdAt"]?.string?.hasSuffix("Z") == true)
                #expect(recipe["steps"]?.count == 3)
            }
            #expect(Set(recipes.elements.compactMap { $0["id"]?.string }).count == 3)
            #expect(response["recipes"]?["nextToken"]?.isNull == true)
            #expect(["Cook", "Recipe"].contains(response["node"]?["__typename"]?.string))
            #expect(server.requests.map(\.operationName) == ["Page"])
        }
    }

    @Test("An object has the same fields wherever it is asked for, and in every run")
    func same() async throws {
        var titles: [[String?]] = []
        for _ in 0..<2 {
            try await withApp { app, _ in
                let recipes = try #require(try await app.fetch(list, policy: .networkOnly)["recipes"]?["items"])
                #expect(recipes.count == 2)
                for recipe in recipes.elements {
                    let id = try #require(recipe["id"]?.string)
                    let again = try await app.fetch(one(id, "title"), policy: .networkOnly)
                    #expect(again["recipe"]?["title"]?.string == recipe["title"]?.string)
                }
                titles.append(recipes.elements.map { $0["title"]?.string })
            }
        }
        #expect(titles[0] == titles[1])
        try await withApp { app, _ in
            // Of FNV-1a. Swift's own hash of a text would be another in each run.
            let title = try await app.fetch(one("7", "title"), policy: .networkOnly)["recipe"]?["title"]
            #expect(title?.string == "title 668")
        }
    }

    @Test("The arguments of a list of keys say which objects come")
    func keys() async throws {
        try await withApp { app, _ in
            let response = try await app.fetch(
                GraphQLOperation(#"{ recipesByID(ids: ["7", "9"]) { id title } }"#), policy: .networkOnly)
            let recipes = try #require(response["recipesByID"])
            #expect(recipes.elements.map { $0["id"]?.string } == ["7", "9"])
            let alone = try await app.fetch(one("9", "title"), policy: .networkOnly)
            #expect(alone["recipe"]?["title"]?.string == recipes[1]?["title"]?.string)
        }
    }

    @Test("What a mutation says of an object stays said")
    func said() async throws {
        try await withApp { app, _ in
            let before = try await app.fetch(one("7", "title minutes"), policy: .networkOnly)
            let rate = GraphQLOperation(#"mutation { rate(id: "7", rating: 4.5) { id rating } }"#)
            #expect(try await app.send(rate)["rate"]?["rating"]?.double == 4.5)
            let after = try await app.fetch(one("7", "title minutes rating"), policy: .networkOnly)
            #expect(after["recipe"]?["rating"]?.double == 4.5)
            #expect(after["recipe"]?["title"]?.string == before["recipe"]?["title"]?.string)

            let add = GraphQLOperation(#"mutation { add(input: {title: "Soup", minutes: 9}) { id title minutes } }"#)
            let added = try await app.send(add)
            #expect(added["add"]?["title"]?.string == "Soup")
            let id = try #require(added["add"]?["id"]?.string)
            let again = try await app.fetch(one(id, "title minutes"), policy: .networkOnly)
            #expect(again["recipe"]?["title"]?.string == "Soup" && again["recipe"]?["minutes"]?.int == 9)
            let second = try await app.send(add)
            #expect(second["add"]?["id"]?.string != id)
        }
    }

    @Test("What a mutation says of an object is said of no other object")
    func saidOfOne() async throws {
        try await withApp { app, _ in
            let before = try await app.fetch(one("9", "rating"), policy: .networkOnly)["recipe"]?["rating"]?.double
            _ = try await app.send(GraphQLOperation(#"mutation { rate(id: "7", rating: 123.5) { id rating } }"#))
            let after = try await app.fetch(one("9", "rating"), policy: .networkOnly)["recipe"]?["rating"]?.double
            #expect(before != nil && after == before && after != 123.5)
        }
    }

    @Test("What a query asks for by an argument is not said of the object")
    func asked() async throws {
        let schema = "type Query { recipe(id: ID!, title: String): Recipe } type Recipe { id: ID! title: String! }"
        try await withTemporaryStore(schemaText: [schema]) { store in
            let app = try store.partition(server: ScriptedServer(schema: store.schema))
            let asking = GraphQLOperation(#"{ recipe(id: "7", title: "Soup") { id title } }"#)
            let found = try await app.fetch(asking, policy: .networkOnly)["recipe"]
            #expect(found?["id"]?.string == "7" && found?["title"]?.string != "Soup")
        }
    }

    @Test("A value that the test gives stands in place of one that is made up")
    func given() async throws {
        try await withApp(values: ["Recipe.title": "Bread", "Recipe.course": .null]) { app, _ in
            let response = try await app.fetch(one("1", "title course"), policy: .networkOnly)
            #expect(response["recipe"]?["title"]?.string == "Bread")
            #expect(response["recipe"]?["course"]?.isNull == true)
        }
    }

    @Test("Fields under @skip and @include, aliases and fragments come as the operation selects them")
    func selected() async throws {
        try await withApp { app, _ in
            let response = try await app.fetch(
                GraphQLOperation(
                    """
                    query One($with: Boolean!) {
                      a: recipe(id: "1") { ...Named minutes @skip(if: $with) }
                      b: recipe(id: "2") { ... on Node { id } rating @include(if: $with) ... on Recipe { title } }
                    }
                    fragment Named on Recipe { name: title }
                    """, variables: ["with": true]), policy: .networkOnly)
            #expect(response.isComplete)
            #expect(response["a"]?.names == ["name"])
            #expect(response["b"]?["id"]?.string == "2" && response["b"]?["rating"]?.double != nil)
        }
    }

    @Test("An operation that does not fit the server's schema gets an error, as a server would send it")
    func refused() async throws {
        let newer = kitchenSchema + " extend type Recipe { calories: Int }"
        try await withTemporaryStore(schemaText: [newer]) { store in
            let app = try store.partition(server: ScriptedServer(schema: try Schema(parsing: kitchenSchema)))
            let error = await #expect(throws: LarderError.self) {
                try await app.fetch(one("1", "calories"), policy: .networkOnly)
            }
            #expect(error?.code == .serverErrors)
            #expect(error?.errors.first?.message.contains("calories") == true)
        }
    }
}
