import Larder
import LarderTesting
import Testing

struct OneRecipe: TypedOperation {
    struct Data: Codable, Sendable, Equatable { var recipe: Recipe? }
    struct Recipe: Codable, Sendable, Equatable {
        var __typename = "Recipe"
        var id: String
        var title: String
        var rating: Double?
    }
    var id: String
    var operation: GraphQLOperation {
        GraphQLOperation(
            "query One($id: ID!) { recipe(id: $id) { __typename id title rating } }", variables: ["id": .string(id)])
    }
}

struct RateRecipe: TypedOperation {
    struct Data: Codable, Sendable { var rate: OneRecipe.Recipe }
    var id: String
    var rating: Double
    var operation: GraphQLOperation {
        GraphQLOperation(
            "mutation Rate($id: ID!, $rating: Float!) { rate(id: $id, rating: $rating) { __typename id title rating } }",
            variables: ["id": .string(id), "rating": .float(rating)])
    }
}

@Suite("The testing guide", .timeLimit(.minutes(5)))
struct TestingGuideExample {
    @Test("A screen shows what the cache has while the network is away")
    func offline() async throws {
        try await withTemporaryStore(schemaText: [kitchenSchema]) { store in
            let server = ScriptedServer(schema: store.schema, values: ["Recipe.title": "Soup"])
            let app = try store.partition(transport: server)
            _ = try await app.fetch(OneRecipe(id: "7"), policy: .networkOnly)

            server.isReachable = false
            let answer = try await app.fetch(OneRecipe(id: "7"), policy: .networkFirst)
            #expect(answer.recipe?.title == "Soup")
        }
    }

    @Test("A rating that was given offline is shown at once, and sent when the server is back")
    func queued() async throws {
        try await withTemporaryStore(schemaText: [kitchenSchema]) { store in
            let server = ScriptedServer(schema: store.schema)
            let app = try store.partition(transport: server)
            let service = Task { try await app.run() }
            defer { service.cancel() }
            var recipe = try #require(try await app.fetch(OneRecipe(id: "7"), policy: .networkOnly).recipe)

            server.isReachable = false
            recipe.rating = 5
            let receipt = try await app.enqueue(
                RateRecipe(id: "7", rating: 5), optimistic: RateRecipe.Data(rate: recipe))
            #expect(try app.read(OneRecipe(id: "7")).recipe?.rating == 5)

            server.isReachable = true
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
            let sent = server.requests.last { $0.operationName == "Rate" }
            #expect(sent?.variables == Array(#"{"id":"7","rating":5.0}"#.utf8))
        }
    }
}
