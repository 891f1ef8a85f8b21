import Foundation
import Larder
import LarderTestSupport
import Testing

/// A small schema with what the tests need: entities, parts, an interface, a list, a custom scalar, policies.
let fixtureSchema = """
    scalar Note
    interface Contribution { id: ID! author: Cook }
    type Cook @typePolicy(keyFields: "id") { id: ID! name: String! specialty: String }
    type Recipe implements Contribution {
      id: ID! title: String! rating: Float author: Cook steps: [Step!]! timing: Timing note: Note comments: [Comment!]
    }
    type Comment implements Contribution { id: ID! author: Cook text: String! }
    type Step { text: String! minutes: Int }
    type Timing { prepare: Int cook: Int }
    input Rating { recipe: ID! stars: Int! key: ID }
    type Query @fieldPolicy(forField: "recipe", keyArgs: ["id"])
      @fieldPolicy(forField: "recipesByID", keyArgs: ["ids"]) {
      recipe(id: ID!): Recipe
      recipesByID(ids: [ID!]!): [Recipe]
      recipes(first: Int = 10): [Recipe!]!
      latest: [Contribution!]!
      cook(id: ID!): Cook
    }
    type Mutation { rate(input: Rating!): Recipe! }
    """

/// Runs `body` in a new store, which is closed and looked through afterwards.
func withStoreFixture(
    _ transport: (any GraphQLTransport)? = nil, schema: String = fixtureSchema,
    _ body: (Partition) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
        try await body(try store.partition(server: transport))
        try store.close()
        try expectSound(folder)
    }
}

/// Looks through both stores of a closed store: a test that wrote leaves neither damaged.
func expectSound(_ store: URL, sourceLocation: SourceLocation = #_sourceLocation) throws {
    #expect(try StoreRepair(of: store).steps == [], sourceLocation: sourceLocation)
}

let recipeList = GraphQLOperation("query List { recipes(first: 2) { title author { name } } }")
let recipeListAnswer = """
    {"data":{"recipes":[
      {"__typename":"Recipe","id":"1","title":"Soup","author":{"__typename":"Cook","id":"a","name":"Ada"}},
      {"__typename":"Recipe","id":"2","title":"Bread","author":{"__typename":"Cook","id":"a","name":"Ada"}}]}}
    """

func recipe(_ id: Int) -> GraphQLOperation {
    GraphQLOperation(
        "query One($id: ID!) { recipe(id: $id) { title author { name } } }", variables: ["id": .int(Int64(id))])
}

/// The next element, or an error when none comes in time: a stream that stays silent must not hang the tests.
func next<Iterator: AsyncIteratorProtocol & SendableMetatype>(
    _ iterator: inout Iterator, within time: Duration = .seconds(300)
) async throws -> Iterator.Element? where Iterator.Element: Sendable {
    // The iterator is handed to one child at a time.
    nonisolated(unsafe) var moved = iterator
    let element = try await withThrowingTaskGroup(of: Iterator.Element?.self) { group in
        group.addTask { try await moved.next() }
        group.addTask {
            try await Task.sleep(for: time)
            throw Silence()
        }
        defer { group.cancelAll() }
        return try await group.next() ?? nil
    }
    iterator = moved
    return element
}

struct Silence: Error {}
