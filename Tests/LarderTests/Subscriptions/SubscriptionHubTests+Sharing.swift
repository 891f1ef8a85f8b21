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

    @Test("Subscriptions with different variables are started separately at the server")
    func variablesApart() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let first = try await app.subscribe(Self.choosing(true))
            let (connection, _) = try await transport.started()
            let other = try await app.subscribe(Self.choosing(false))
            // Commands arrive in order: if this start is the next one, the other one was not sent.
            let last = try await app.subscribe(Self.ids)
            for await case .start(_, let request) in connection.commands {
                #expect(request.variables == Array(#"{"all":false}"#.utf8))
                break
            }
            withExtendedLifetime([first, other, last]) {}
        }
    }

    @Test("A subscription's completeness is stored for each set of variables", arguments: [true, false])
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
            // Gives the hub time to notice that one reader has gone.
            try await Task.sleep(for: .milliseconds(20))
            // Commands arrive in order: if this start is the next one, nothing was stopped.
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
            // The hub ends them in one turn, and answers this call only after that turn.
            await subscriptions[0].noteCaughtUp(since: subscriptions[0].state)
            for subscription in subscriptions {
                #expect(subscription.state.phase == .ended)
                #expect(subscription.state.error?.code == .transportUnusableRequest)
            }
        }
    }
}
