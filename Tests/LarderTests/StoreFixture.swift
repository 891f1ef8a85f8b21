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

/// A server that answers with `recipeListAnswer`, and with an error while the flag is set.
func listServer(failing isFailing: Flag, _ error: TransportError = .away) -> ScriptedServer {
    ScriptedServer { _ in
        if isFailing.isSet { throw error }
        return recipeListAnswer
    }
}

/// A server that answers with `recipeListAnswer` once the flag is set.
func listServer(waitingFor isFree: Flag) -> ScriptedServer {
    ScriptedServer { _ in
        await isFree.wait()
        return recipeListAnswer
    }
}

/// A server that answers no request for a minute, and notes that one was cancelled.
func listServer(noting isCancelled: Flag, isAsked: Flag = Flag()) -> ScriptedServer {
    ScriptedServer { _ in
        isAsked.set()
        do { try await Task.sleep(for: .seconds(60)) } catch {
            isCancelled.set()
            throw error
        }
        return recipeListAnswer
    }
}

/// A server that hangs at the first mutation, which fails when its exchange is broken off, and carries out the others.
func hangingFirst(_ idempotency: Idempotency? = nil) -> ScriptedServer {
    ScriptedServer(idempotency) { number, request in
        if number == 0 {
            do { try await Task.sleep(for: .seconds(600)) } catch {
                return .failure(TransportError(.cancelled, "The exchange was broken off"))
            }
        }
        return ScriptedServer.done(request)
    }
}

extension Partition {
    /// The title of the first recipe in each answer that a policy gives.
    func fetchedTitles(_ policy: FetchPolicy) async throws -> [String?] {
        var titles: [String?] = []
        for try await answer in fetches(recipeList, policy: policy) {
            titles.append(answer["recipes"]?[0]?["title"]?.string)
        }
        return titles
    }
}

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
