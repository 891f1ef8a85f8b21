import Foundation
import Larder
import LarderTesting
import Testing

@Suite("A clock for tests", .timeLimit(.minutes(5)))
struct TestClockTests {
    private let one = GraphQLOperation(#"query One { recipe(id: "7") { title } }"#)

    @Test("It stands still, and moves on and back as a test says")
    func moved() {
        let clock = TestClock()
        let start = clock.now
        #expect(start == TestClock().now && clock.now == start)
        clock.advance(by: .milliseconds(1500))
        #expect(clock.now == start + 1.5)
        clock.advance(by: .seconds(-2))
        #expect(clock.now == start - 0.5)
        clock.now = start
        #expect(clock.now == start)
    }

    @Test("By a store's clock cached answers become older, and a queued mutation is set aside after its time")
    func ofStore() async throws {
        let clock = TestClock()
        var options = Store.Options()
        options.now = { clock.now }
        try await withTemporaryStore(schemaText: [kitchenSchema], options: options) { store in
            let server = ScriptedServer(schema: store.schema)
            let app = try store.partition(server: server)
            let hour = FetchOptions(maxAge: .seconds(3600))
            _ = try await app.fetch(one, options: hour)
            clock.advance(by: .seconds(3599))
            #expect(try await app.fetch(one, options: hour).age == .seconds(3599))
            #expect(server.requests.count == 1)
            clock.advance(by: .seconds(1))
            #expect(try await app.fetch(one, options: hour).age == .zero)
            #expect(server.requests.count == 2)

            let receipt = try await app.enqueue(
                RateRecipe(id: "7", rating: 4), options: MutationOptions(expires: clock.now + 60))
            clock.advance(by: .seconds(61))
            let service = Task { try await app.run() }
            guard case .setAside(let failure) = try await receipt.outcome(within: .seconds(60)) else {
                Issue.record("it was sent")
                return
            }
            #expect(failure?.kind == .expired)
            service.cancel()
        }
    }

    @Test("By a store's clock a server that asks to be left alone is left alone by all that is queued")
    func leftAlone() async throws {
        let clock = TestClock()
        var options = Store.Options()
        options.now = { clock.now }
        try await withTemporaryStore(schemaText: [kitchenSchema], options: options) { store in
            let server = ScriptedServer { _ in
                throw TransportError(.status, "slow down", status: 429, retryAfter: .seconds(3600))
            }
            let app = try store.partition(server: server)
            let service = Task { try await app.run() }
            defer { service.cancel() }
            let first = try await app.enqueue(RateRecipe(id: "7", rating: 4))
            let deadline = SuspendingClock.now + .seconds(60)
            while try first.status()?.failure == nil {
                try #require(SuspendingClock.now < deadline)
                try await Task.sleep(for: .milliseconds(5))
            }
            let second = try await app.enqueue(
                RateRecipe(id: "8", rating: 4), options: MutationOptions(lane: "second"))
            // The runner has looked at the queue when these are set aside, whose time is over.
            for lane in ["third", "fourth"] {
                let late = try await app.enqueue(
                    RateRecipe(id: "9", rating: 4),
                    options: MutationOptions(lane: MutationLane(lane), expires: clock.now + 1))
                clock.advance(by: .seconds(2))
                guard case .setAside = try await late.outcome(within: .seconds(60)) else {
                    Issue.record("it was sent")
                    return
                }
            }
            #expect(try second.status()?.state == .pending)
            #expect(server.requests.filter { $0.operationName == "Rate" }.count == 1)
        }
    }
}
