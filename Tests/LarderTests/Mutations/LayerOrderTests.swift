import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

private let stars = GraphQLFragment("fragment F on Recipe { stars }")

@Suite("The order in which queued mutations are shown", .timeLimit(.minutes(10)))
struct LayerOrderTests {
    private let schema = """
        type Recipe { id: ID! stars: Int }
        type Query { recipes: [Recipe!] }
        type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
        """

    private func withPartition(_ body: (Partition, MutationQueue) async throws -> Void) async throws {
        try await withOpenStore(schema: schema) { _, _, app in
            try await app.write("Recipe:1", stars, ["stars": 1])
            try await body(app, try app.core.operationsStore.database().mutations)
        }
    }

    /// Queued without being shown yet.
    private func queue(_ number: Int, _ app: Partition, _ queue: MutationQueue) async throws -> Mutation {
        try await queue.enqueue(
            MutationDraft(
                partition: app.core.name, lane: "",
                content: MutationContent(
                    document: "mutation { rate(recipe: 1, stars: \(number)) { id stars } }",
                    variables: Array("{}".utf8),
                    optimisticResponse: Array(
                        #"{"rate":{"__typename":"Recipe","id":"1","stars":\#(number)}}"#.utf8)),
                created: Date()))
    }

    @Test("Of two that were queued at once the later stays on top, whichever is shown first")
    func order() async throws {
        try await withPartition { app, mutations in
            let removals = app.core.layers.removals
            let first = try await queue(2, app, mutations)
            let second = try await queue(3, app, mutations)
            app.core.layers.put([second], after: removals, mutations)
            app.core.layers.put([first], after: removals, mutations)
            #expect(try app.read("Recipe:1", stars)["stars"]?.int == 3)
        }
    }

    @Test("A mutation set aside before it could be shown is not shown")
    func setAside() async throws {
        try await withPartition { app, mutations in
            let removals = app.core.layers.removals
            let mutation = try await queue(2, app, mutations)
            let failure = MutationFailure(.rejected, message: "no", time: Date())
            try await mutations.setAside(mutation.id, expecting: .pending, failure, now: Date())
            app.core.layers.remove([mutation.id])
            app.core.layers.put([mutation], after: removals, mutations)
            #expect(try app.read("Recipe:1", stars)["stars"]?.int == 1)
        }
    }

    @Test("Clearing a partition keeps its named watchers, which do not come from the server")
    func cleared() async throws {
        try await withPartition { app, _ in
            _ = try await app.watch(named: "inbox", GraphQLOperation("{ recipes { id stars } }"))
            try await app.clear()
            #expect(try app.watcherNames() == ["inbox"])
        }
    }

    @Test("Erasing a partition forgets its named watchers")
    func erased() async throws {
        try await withPartition { app, _ in
            _ = try await app.watch(named: "inbox", GraphQLOperation("{ recipes { id stars } }"))
            #expect(try app.watcherNames() == ["inbox"])
            try await app.erase()
            #expect(try app.watcherNames() == [])
        }
    }
}
