import Foundation
import LarderTestSupport
import RecipeServer
import Testing

@Suite("Options of the verbs that ask a server", .timeLimit(.minutes(10)))
struct RequestOptionTests {
    private static let schema = """
        directive @fieldPolicy(forField: String!, paginationArgs: [String!]) repeatable on OBJECT
        scalar AWSTimestamp
        type Query @fieldPolicy(forField: "listOrders", paginationArgs: ["limit", "nextToken"]) {
          listOrders(limit: Int, nextToken: String): OrderList
          syncTodos(limit: Int, nextToken: String, lastSync: AWSTimestamp): TodoConnection
        }
        type Mutation { count: Int }
        type OrderList { items: [Order] nextToken: String }
        type Order { id: ID! sku: String! }
        type TodoConnection { items: [Todo]! nextToken: String startedAt: AWSTimestamp }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        """

    @Test(
        "A verb gives a silent server up after the time that --timeout says, and not after the usual half minute",
        arguments: [
            ("fetch", "query Fetch { listOrders(limit: 1) { items { sku } } }"), ("send", "mutation Send { count }"),
            (
                "pages",
                """
                query Pages($limit: Int, $nextToken: String) {
                  listOrders(limit: $limit, nextToken: $nextToken) { items { sku } nextToken }
                }
                """
            ),
            (
                "sync",
                """
                query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
                  syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                    items { id title } nextToken startedAt
                  }
                }
                """
            ),
        ])
    func timeout(verb: String, document: String) async throws {
        try await withTemporaryFolder { folder in
            let fixture = CommandFixture(folder: folder)
            let server = try SilentListener()
            let start = SuspendingClock.now
            let outcome = try await fixture.larder([
                verb, "--timeout", "0.3", "--endpoint", "http://127.0.0.1:\(server.port)/", "--json", "--schema",
                fixture.write(Self.schema, to: "lists.graphqls"), "--operation",
                fixture.write(document, to: "operation.graphql"),
            ])
            #expect(outcome.status == 1 && outcome.errors.contains("transport.timedOut"), "\(outcome.errors)")
            #expect(server.isAsked && start.duration(to: .now) < .seconds(20))
        }
    }

    @Test(
        "What a server reports beside its data fails the verb; the data is stored and printed where --error-policy says so",
        arguments: [
            ("fetch", "Recipe:25", "query Q { recipe(id: 25) { __typename id nutrition { kilocalories } } }"),
            (
                "send", "Recipe:2",
                """
                mutation M {
                  a: rateRecipe(id: 2, stars: 4) { __typename id } b: rateRecipe(id: "none", stars: 4) { __typename id }
                }
                """
            ),
        ])
    func errorPolicy(verb: String, key: String, document: String) async throws {
        try await CommandFixture.withRecipes { fixture, server in
            let arguments = try [
                verb, "--endpoint", server.url.absoluteString, "--schema", fixture.path("recipes.graphqls"),
                "--operation", fixture.write(document, to: "operation.graphql"),
            ]
            let failed = try await fixture.larder(arguments)
            let taken = try await fixture.larder(arguments + ["--error-policy", "partial"])
            #expect(failed.status == 1 && failed.output == "", "\(failed)")
            #expect(taken.status == 0, "\(taken.errors)")
            let stored = try await fixture.larder("get", key)
            #expect(stored.status == 0, "\(stored.errors)")
            #expect(taken.output.hasPrefix(#"{"data":{"#), "\(taken.output)")
            #expect(taken.output.contains(#""errors":[{"message":"#), "\(taken.output)")
        }
    }
}
