import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Mutations that were settled long ago", .timeLimit(.minutes(10)))
struct ForgottenKeyTests {
    private func open(_ folder: URL, _ options: Store.Options) throws -> (Store, Partition) {
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
        return (store, try store.partition(server: ScriptedServer.rating()))
    }

    @Test("An expected change does not come back when its mutation is forgotten while the network is away")
    func layerStaysAway() async throws {
        try await withTemporaryFolder { folder in
            let clock = TestClock()
            var options = Store.Options()
            options.now = { clock.now }
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            let (store, app) = try open(folder, options)
            // The server answers something else than what is expected.
            let receipt = try await app.enqueue(
                GraphQLOperation(
                    "mutation Rate($recipe: ID!, $stars: Int!) "
                        + "{ rate(input: {recipe: $recipe, stars: $stars}) { id rating } }",
                    variables: ["recipe": "1", "stars": 3]),
                options: .init(optimisticResponse: ["rate": ["__typename": "Recipe", "id": "1", "rating": 5]]))
            var dying = MutationRunner.Options()
            dying.reached = { if $0 == .stored { try? store.close() } }
            await #expect(throws: LarderError.self) { try await MutationRunner(app, options: dying).drain() }

            clock.advance(by: .seconds(40 * 86_400))
            let (again, later) = try open(folder, options)
            #expect(try later.mutation(receipt.id).status()?.state == .acknowledged)
            #expect(try later.read("Recipe:1", rating)["rating"]?.double == 3)
            var away = MutationRunner.Options()
            away.connectivity = NoConnectivity()
            let runner = MutationRunner(later, options: away)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .offline }
            #expect(try later.mutation(receipt.id).status()?.state == .applied)
            #expect(try later.records.applied().isEmpty)
            #expect(try later.read("Recipe:1", rating)["rating"]?.double == 3)
            running.cancel()
            try await running.value
            try again.close()
        }
    }

    @Test("The cache knows the key of an applied mutation for a day, and then forgets it")
    func remembered() async throws {
        try await withClock(ScriptedServer.rating()) { app, clock in
            try await app.enqueue(giveStars("1", 5))
            try await quickRunner(app).drain()
            for (hours, count) in [(23, 1), (2, 0)] {
                clock.advance(by: .seconds(hours * 3_600))
                try await quickRunner(app).drain()
                #expect(try app.records.applied().count == count, "\(hours)")
            }
        }
    }

    @Test("The key of a mutation that was set aside is not forgotten before that is settled, however old it is")
    func unsettled() async throws {
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        try await withClock(server) { app, clock in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(idempotencyKey: "one"))
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .deadLetter)
            // As where a backup brings back a mutation whose answer the cache has.
            try await app.records.noteRejected(try #require(AppliedKey("one")))
            clock.advance(by: .seconds(48 * 3_600))
            try await quickRunner(app).drain()
            #expect(try app.records.applied().map(\.key) == ["one"])
            try await app.discardMutation(receipt.id, dependents: .release)
            try await quickRunner(app).drain()
            #expect(try app.records.applied().isEmpty)
        }
    }

    @Test("A runner that goes on forgets old keys by itself, once it is time to")
    func whileRunning() async throws {
        try await withClock(ScriptedServer.rating()) { app, clock in
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            #expect(try await app.enqueue(giveStars("1", 5)).outcome(within: soon).isApplied)
            clock.advance(by: .seconds(25 * 3_600))
            #expect(try app.records.applied().count == 1)
            runner.progress.withLock { $0.nextPruning = .now }
            #expect(try await app.enqueue(giveStars("1", 4)).outcome(within: soon).isApplied)
            try await eventually { try app.records.applied().count == 1 }
            running.cancel()
            try await running.value
        }
    }
}

/// A network that is away.
private struct NoConnectivity: Connectivity {
    var isConnected: Bool { false }
    func observe(_ change: @escaping @Sendable (Bool) -> Void) -> ConnectivityObservation {
        ConnectivityObservation(stop: {})
    }
}
