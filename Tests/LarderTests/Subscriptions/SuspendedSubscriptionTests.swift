import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Subscriptions of a store that is suspended", .timeLimit(.minutes(5)))
struct SuspendedSubscriptionTests {
    private typealias Hub = SubscriptionHubTests

    private func withStore(_ body: (Store) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Hub.schema))
            try await body(store)
            try store.close()
        }
    }

    @Test(
        "P17, P396, R24, A702: after the background the socket never returns. After resume, the subscription catches up"
    )
    func suspended() async throws {
        let transport = ScriptedLine { _ in #"{"data":{"items":[{"id":"1","text":"fetched"}]}}"# }
        try await withStore { store in
            let app = try store.partition(server: transport)
            let subscription = try await app.subscribe(Hub.changed, options: Hub.catchingUp)
            var events = subscription.makeAsyncIterator()
            let (first, _) = try await transport.started()
            while subscription.state.phase != .live { _ = await events.next() }
            let line = first.endAfterCommands()
            try await store.suspend(within: .seconds(300))
            _ = await line.value
            while subscription.state.phase != .connecting { _ = await events.next() }
            #expect(subscription.state.staleSince != nil)
            #expect(transport.attemptCount == 1)
            try store.resume()
            _ = try await transport.started()
            while subscription.state.phase != .live { _ = await events.next() }
            #expect(subscription.state.staleSince == nil)
            #expect(transport.attemptCount == 2)
            let fragment = GraphQLFragment("fragment F on Item { text }")
            #expect(try app.read("Item:1", fragment)["text"]?.string == "fetched")
        }
    }

    @Test("A connection that is being opened is broken off by a suspension, and another is opened after it")
    func suspendedWhileOpening() async throws {
        let transport = ScriptedLine()
        try await withStore { store in
            let app = try store.partition(server: transport)
            let subscription = try await app.subscribe(Hub.changed)
            #expect(await transport.next() != nil)
            try await store.suspend(within: .seconds(300))
            #expect(transport.attemptCount == 1)
            try store.resume()
            try await eventually { transport.attemptCount == 2 }
            _ = try await transport.started()
            try await eventually { subscription.state.phase == .live }
        }
    }

    @Test("Suspending a store ends a connection and the one that is to replace it")
    func suspendedWhileReplacing() async throws {
        let transport = ScriptedLine()
        try await withStore { store in
            let app = try store.partition(server: transport)
            let subscription = try await app.subscribe(Hub.changed)
            let (first, _) = try await transport.started()
            await first.line.take(.expiring(after: .zero))
            let second = try #require(await transport.next())
            await second.line.take(.opened)
            let lines = [first.endAfterCommands(), second.endAfterCommands()]
            try await store.suspend(within: .seconds(300))
            for line in lines { _ = await line.value }
            try await eventually { subscription.state.phase == .connecting }
            #expect(transport.attemptCount == 2)
            try store.resume()
            _ = try await transport.started()
            try await eventually { subscription.state.phase == .live }
        }
    }

    @Test("Suspending a store ends the connection of each transport, and the subscriptions on it are stale")
    func suspendedOnEachTransport() async throws {
        try await withStore { store in
            var subscriptions: [Subscription] = []
            for transport in [ScriptedLine(), ScriptedLine()] {
                let app = try store.partition(server: transport)
                let subscription = try await app.subscribe(Hub.changed)
                let (connection, _) = try await transport.started()
                try await eventually { subscription.state.phase == .live }
                subscriptions.append(subscription)
                connection.endAfterCommands()
            }
            try await store.suspend(within: .seconds(300))
            try await eventually { subscriptions.allSatisfy { $0.state.phase == .connecting } }
            #expect(subscriptions.allSatisfy { $0.state.staleSince != nil })
            try store.resume()
        }
    }
}
