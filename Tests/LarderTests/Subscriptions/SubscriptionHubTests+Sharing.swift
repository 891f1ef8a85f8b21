import Foundation
import Larder
import LarderTestSupport
import Testing

/// What subscriptions of one connection share, and what they do not.
extension SubscriptionHubTests {
    private static let ids = GraphQLOperation("subscription { changed { id } }")

    private static func choosing(_ all: Bool) -> GraphQLOperation {
        GraphQLOperation(
            "subscription($all: Boolean!) { changed { id text @include(if: $all) } }",
            variables: ["all": .boolean(all)])
    }

    @Test("Subscriptions with other variables share none at the server")
    func variablesApart() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let first = try await app.subscribe(Self.choosing(true))
            let (connection, _) = try await transport.started()
            let other = try await app.subscribe(Self.choosing(false))
            // Commands come in their order: where this start is the next, the other was not asked for.
            let last = try await app.subscribe(Self.ids)
            for await case .start(_, let request) in connection.commands {
                #expect(request.variables == Array(#"{"all":false}"#.utf8))
                break
            }
            withExtendedLifetime([first, other, last]) {}
        }
    }

    @Test("Up to when everything has come with some variables says nothing of others", arguments: [true, false])
    func knowsVariablesApart(all: Bool) async throws {
        try await withTemporaryFolder { folder in
            let first = Date(timeIntervalSince1970: 1_000_000)
            for (now, isAll) in [(first, true), (first + 100, all)] {
                var options = Store.Options()
                options.now = { now }
                let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema), options: options)
                let transport = ScriptedLine()
                let app = try store.partition(server: transport)
                let subscription = try await app.subscribe(
                    Self.choosing(isAll), options: SubscriptionOptions(catchUp: Self.items))
                #expect(subscription.state.staleSince == (isAll ? first : now))
                if now == first {
                    _ = try await transport.started()
                    try await eventually { try app.subscriptions().first?.completeUntil == now }
                }
                try store.close()
            }
        }
    }

    @Test("A subscription that several readers share is not stopped while one of them is left")
    func keptByOtherReader() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let kept = try await app.subscribe(Self.changed)
            let (connection, _) = try await transport.started()
            var other: Subscription? = try await app.subscribe(Self.changed)
            #expect(other?.state.phase != nil)
            other = nil
            // By then the hub knows that one has gone.
            try await Task.sleep(for: .milliseconds(20))
            // Commands come in their order: where this start is the next, nothing was stopped.
            let last = try await app.subscribe(Self.ids)
            for await command in connection.commands {
                let isStart = if case .start = command { true } else { false }
                #expect(isStart, "\(command)")
                break
            }
            withExtendedLifetime([kept, last]) {}
        }
    }

    @Test("A refusal of the protocol ends all subscriptions of its connection")
    func endsAll() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let subscriptions = [try await app.subscribe(Self.changed), try await app.subscribe(Self.ids)]
            let connection = try #require(await transport.next())
            connection.end(TransportError(.unusableRequest, "wrong"))
            try await eventually { subscriptions.contains { $0.state.phase == .ended } }
            // They end in one turn of the hub, which answers after it.
            await subscriptions[0].noteCaughtUp(since: subscriptions[0].state)
            for subscription in subscriptions {
                #expect(subscription.state.phase == .ended)
                #expect(subscription.state.error?.code == .transportUnusableRequest)
            }
        }
    }
}
