import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Subscriptions of a store that is suspended", .timeLimit(.minutes(5)))
struct SuspendedSubscriptionTests {
    private static let schema = """
        type Query { items: [Item!]! }
        type Subscription { changed: Item }
        type Item { id: ID! text: String }
        """

    @Test(
        "P17, P396, R24, A702: after the background the socket never returns. After resume, the subscription catches up"
    )
    func suspended() async throws {
        let transport = ScriptedLine { _ in #"{"data":{"items":[{"id":"1","text":"fetched"}]}}"# }
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: transport)
            let subscription = try await app.subscribe(
                GraphQLOperation("subscription { changed { id text } }"),
                options: SubscriptionOptions(catchUp: GraphQLOperation("query { items { id text } }")))
            var events = subscription.makeAsyncIterator()
            let first = try #require(await transport.next())
            try await begin(first)
            while subscription.state.phase != .live { _ = await events.next() }
            let line = Task {
                // As transports do.
                for await _ in first.commands {}
                first.end(nil)
            }
            try await store.suspend(within: .seconds(300))
            await line.value
            while subscription.state.phase != .connecting { _ = await events.next() }
            #expect(subscription.state.staleSince != nil)
            #expect(transport.attemptCount == 1)
            try store.resume()
            try await begin(try #require(await transport.next()))
            while subscription.state.phase != .live { _ = await events.next() }
            #expect(subscription.state.staleSince == nil)
            #expect(transport.attemptCount == 2)
            let fragment = GraphQLFragment("fragment F on Item { text }")
            #expect(try app.read("Item:1", fragment)["text"]?.string == "fetched")
            try store.close()
        }
    }

    @Test("A connection that is being opened is broken off by a suspension, and another is opened after it")
    func suspendedWhileOpening() async throws {
        let transport = ScriptedLine()
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: transport)
            let subscription = try await app.subscribe(GraphQLOperation("subscription { changed { id text } }"))
            #expect(await transport.next() != nil)
            try await store.suspend(within: .seconds(300))
            #expect(transport.attemptCount == 1)
            try store.resume()
            try await eventually { transport.attemptCount == 2 }
            try await begin(try #require(await transport.next()))
            try await eventually { subscription.state.phase == .live }
            try store.close()
        }
    }

    @Test("Suspending a store ends a connection and the one that is to replace it")
    func suspendedWhileReplacing() async throws {
        let transport = ScriptedLine()
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: transport)
            let subscription = try await app.subscribe(GraphQLOperation("subscription { changed { id text } }"))
            let first = try #require(await transport.next())
            try await begin(first)
            await first.line.take(.expiring(after: .zero))
            let second = try #require(await transport.next())
            await second.line.take(.opened)
            let lines = [first, second].map { connection in
                Task {
                    // Transports end once they get no more commands.
                    for await _ in connection.commands {}
                    connection.end(nil)
                }
            }
            try await store.suspend(within: .seconds(300))
            for line in lines { await line.value }
            try await eventually { subscription.state.phase == .connecting }
            #expect(transport.attemptCount == 2)
            try store.resume()
            try await begin(try #require(await transport.next()))
            try await eventually { subscription.state.phase == .live }
            try store.close()
        }
    }

    @Test("Suspending a store ends the connection of each transport, and the subscriptions on it are stale")
    func suspendedOnEachTransport() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            var subscriptions: [Subscription] = []
            for transport in [ScriptedLine(), ScriptedLine()] {
                let app = try store.partition(server: transport)
                let subscription = try await app.subscribe(GraphQLOperation("subscription { changed { id text } }"))
                let connection = try #require(await transport.next())
                try await begin(connection)
                try await eventually { subscription.state.phase == .live }
                subscriptions.append(subscription)
                Task {
                    // Transports end once they get no more commands.
                    for await _ in connection.commands {}
                    connection.end(nil)
                }
            }
            try await store.suspend(within: .seconds(300))
            try await eventually { subscriptions.allSatisfy { $0.state.phase == .connecting } }
            #expect(subscriptions.allSatisfy { $0.state.staleSince != nil })
            try store.resume()
            try store.close()
        }
    }

    private func begin(_ connection: ScriptedLine.Opened) async throws {
        await connection.line.take(.opened)
        let id = try #require(await connection.nextStart())
        await connection.line.take(.started(id: id))
    }
}
