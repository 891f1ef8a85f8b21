import Foundation
import Larder
import LarderTestSupport
import Testing

/// What many of the tests begin with, and how they read a subscription.
extension SubscriptionHubTests {
    func withApp(
        _ transport: ScriptedLine = ScriptedLine(), options: Store.Options = Store.Options(), clock: TestClock? = nil,
        _ body: (Partition, ScriptedLine) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            var options = options
            if let clock { options.now = { clock.now } }
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema), options: options)
            try await body(try store.partition(server: transport), transport)
            try store.close()
        }
    }

    func text(_ app: Partition, _ id: String = "1") -> String? {
        try? app.read("Item:\(id)", GraphQLFragment("fragment F on Item { text }"))["text"]?.string
    }

    /// A subscription that has begun, its connection and its id there.
    func begin(
        _ app: Partition, _ transport: ScriptedLine, of operation: GraphQLOperation = Self.changed,
        _ options: SubscriptionOptions = SubscriptionOptions(), sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> (Subscription, ScriptedLine.Opened, id: String) {
        let subscription = try await app.subscribe(operation, options: options)
        let (connection, id) = try await transport.started(sourceLocation: sourceLocation)
        return (subscription, connection, id)
    }

    /// Like `begin`, and waits until the subscription is live.
    func beginLive(
        _ app: Partition, _ transport: ScriptedLine, of operation: GraphQLOperation = Self.changed,
        _ options: SubscriptionOptions = SubscriptionOptions(), sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> (Subscription, ScriptedLine.Opened, id: String) {
        let begun = try await begin(app, transport, of: operation, options, sourceLocation: sourceLocation)
        #expect(await state(begun.0) { $0.phase == .live } != nil, sourceLocation: sourceLocation)
        return begun
    }

    /// Reads until a state is as asked.
    func state(
        _ subscription: Subscription, _ isSought: (SubscriptionState) -> Bool
    ) async -> SubscriptionState? {
        for await event in subscription {
            if case .state(let state) = event, isSought(state) { return state }
        }
        return nil
    }

    /// Reads until the subscription has delivered so many events with data. False where it ended before.
    @discardableResult
    func readEvents(_ count: Int = 1, of subscription: Subscription) async -> Bool {
        var told = 0
        for await event in subscription {
            if case .data = event { told += 1 }
            if told == count { return true }
        }
        return false
    }

    /// Opens the store at a time, subscribes, and returns since when the subscription is stale. Where it `begins`, the
    /// server acknowledges it, and the call waits until the store has noted that everything has come until `now`.
    func staleSince(
        opening folder: URL, at now: Date, _ operation: GraphQLOperation = Self.changed, server: String? = nil,
        begins: Bool
    ) async throws -> Date? {
        var options = Store.Options()
        options.now = { now }
        let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema), options: options)
        let transport = ScriptedLine(server: server)
        let app = try store.partition(server: transport)
        let subscription = try await app.subscribe(operation, options: Self.catchingUp)
        let staleSince = subscription.state.staleSince
        if begins {
            _ = try await transport.started()
            try await eventually { try app.subscriptions().first?.completeUntil == now }
        }
        withExtendedLifetime(subscription) {}
        try store.close()
        return staleSince
    }

    /// Sends a mutation whose answer says that neither an event nor a delta will tell of the change.
    func changeUntold(_ app: Partition, sourceLocation: SourceLocation = #_sourceLocation) async {
        let failing = ScriptedServer { (_: GraphQLRequest) in
            #"{"data":{"update":null},"errors":[{"message":"m","errorType":"DeltaSyncWriteError","path":["update"]}]}"#
        }
        let update = GraphQLOperation(
            "mutation Update($input: UpdateInput!) { update(input: $input) { id title } }",
            variables: ["input": ["id": "a", "title": "mine"]])
        await #expect(throws: LarderError.self, sourceLocation: sourceLocation) {
            _ = try await app.with(server: failing).send(update)
        }
    }
}
