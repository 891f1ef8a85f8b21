import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Mutations whose time is over", .timeLimit(.minutes(10)))
struct ExpiryTests {
    /// Queues one that is of use for ten seconds, and lets 20 seconds pass after the first attempt.
    ///
    /// - Parameter troubles: How the attempts end.
    private func status(after troubles: [(error: TransportError, afterEffect: Bool)]) async throws -> MutationStatus? {
        let clock = TestClock()
        let server = ScriptedServer.rating { number in
            if number == troubles.count - 1 { clock.advance(by: .seconds(20)) }
            return number < troubles.count ? troubles[number] : nil
        }
        var status: MutationStatus?
        try await withClock(server, clock) { app, _ in
            let operation = GraphQLOperation(
                "mutation { rate(input: {recipe: 1, stars: 5}) { id rating } }")
            let receipt = try await app.enqueue(operation, options: .init(expires: clock.now + 10))
            var running = MutationRunner.Options()
            running.backoff = Backoff(first: .zero, cap: .zero)
            try await MutationRunner(app, options: running).drain()
            #expect(server.requests.count == troubles.count)
            status = try receipt.status()
        }
        return status
    }

    @Test("A mutation set aside before it is seen to be queued leaves nothing of its expected change")
    func setAsideAtOnce() async throws {
        try await withStoreFixture(ScriptedServer.rating()) { (app) throws in
            let runner = MutationRunner(app)
            let running = Task { try await runner.run() }
            for number in 0..<60 {
                let receipt = try await app.enqueue(
                    GraphQLOperation("mutation { rate(input: {recipe: \(number), stars: 5}) { id rating } }"),
                    options: .init(
                        optimisticResponse: [
                            "rate": ["__typename": "Recipe", "id": .string("\(number)"), "rating": 5]
                        ], expires: Date(timeIntervalSince1970: 1_000_000)))
                #expect(try await receipt.outcome(within: .seconds(20)).failure?.kind == .expired)
                let rating = GraphQLFragment("fragment F on Recipe { rating }")
                // The runner takes the layer out after the mutation is set aside.
                var triesLeft = 1000
                while try app.read("Recipe:\(number)", rating, allowsPartial: true)["rating"] != nil, triesLeft > 0 {
                    triesLeft -= 1
                    try await Task.sleep(for: .milliseconds(1))
                }
                #expect(triesLeft > 0, "\(number)")
            }
            running.cancel()
            try await running.value
        }
    }

    @Test("A mutation that was never sent is set aside as expired")
    func expired() async throws {
        let status = try await status(after: [(.away, false)])
        #expect(status?.state == .deadLetter)
        #expect(status?.failure?.kind == .expired)
    }

    @Test("A mutation whose answer was lost is not reported as expired, for it may have taken effect")
    func inDoubt() async throws {
        let status = try await status(after: [(TransportError(.timedOut, "late"), true)])
        #expect(status?.state == .deadLetter)
        #expect(status?.failure?.kind == .outcomeUnknown)
    }

    @Test("That the server was away afterwards does not make certain what was not")
    func inDoubtStill() async throws {
        let status = try await status(after: [
            (TransportError(.status, "fault", status: 500), true), (.away, false),
            (TransportError(.status, "busy", status: 503), false),
        ])
        #expect(status?.state == .deadLetter)
        #expect(status?.failure?.kind == .outcomeUnknown)
    }
}

@Suite("A runner whose store is closed", .timeLimit(.minutes(10)))
struct ClosedRunnerTests {
    @Test(
        "A runner that works, and one that drains, end with the error of a store that was closed",
        arguments: [true, false])
    func parked(untilEmpty: Bool) async throws {
        try await withTemporaryFolder { (folder) throws in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let server = ScriptedServer.rating { _ in
                try store.close()
                return (.away, false)
            }
            let app = try store.partition(server: server)
            try await app.enqueue(
                GraphQLOperation("mutation { rate(input: {recipe: 1, stars: 5}) { id rating } }"), options: .init())
            let error = await #expect(throws: LarderError.self) {
                let runner = MutationRunner(app)
                try await untilEmpty ? runner.drain() : runner.run()
            }
            #expect(error?.code == .parked)
        }
    }
}
