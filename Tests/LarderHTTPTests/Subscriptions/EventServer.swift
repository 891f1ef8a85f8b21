import AsyncHTTPClient
import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import NIOCore
import Testing

/// A server of `events.py`, a transport to it through its proxy, and a partition over that.
struct EventServer: Sendable {
    static let items = GraphQLOperation("query { items { id text version } }")
    static let changed = GraphQLOperation("subscription { changed { id text version } }")

    let app: Partition
    let store: Store
    private let control: URL

    /// What the server says of itself.
    struct Status: Decodable {
        struct Item: Decodable, Equatable {
            var id: String
            var text: String?
            var version: Int
        }

        var subscriptions: Int
        var begun: Int
        var items: [String: Item]
    }

    static func run<Result>(
        _ kind: String, _ change: (inout HTTPTransport.Options) -> Void = { _ in },
        _ body: (EventServer) async throws -> Result
    ) async throws -> Result {
        let process = try await ServerProcess.start("events.py", [kind])
        return try await withStarted(process, stop: { await $0.stop() }) { process in
            let proxied = try url(process.words[0], "graphql")
            var options = HTTPTransport.Options()
            options.subscriptions.pacing.backoff = Backoff(first: .milliseconds(20), cap: .milliseconds(100))
            change(&options)
            return try await HTTPTransport.withTransport(to: proxied, options: options) { transport in
                try await withTemporaryFolder { folder in
                    let store = try Store.open(
                        at: folder,
                        schema: try Schema(
                            parsing: """
                                type Query { items: [Item!]! }
                                type Mutation { set(id: ID!, text: String): Item! }
                                type Subscription { changed: Item! broken: Item! }
                                type Item { id: ID! text: String version: Int! }
                                """))
                    let server = EventServer(
                        app: try store.partition(server: transport), store: store,
                        control: try url(process.words[1], "control"))
                    let result = try await body(server)
                    try store.close()
                    return result
                }
            }
        }
    }

    private static func url(_ port: String, _ path: String) throws -> URL {
        try #require(URL(string: "http://127.0.0.1:\(port)/\(path)"))
    }

    /// Gives the server an order, as `events.py` has them.
    @discardableResult
    func order(_ json: String = "{}") async throws -> Status {
        var request = HTTPClientRequest(url: control.absoluteString)
        request.method = .POST
        request.body = .bytes(Array(json.utf8))
        let response = try await HTTPClient.shared.execute(request, timeout: .seconds(20))
        let body = try await response.body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode(Status.self, from: Data(body.readableBytesView))
    }

    /// A subscription that is live.
    func subscribed(catchUp: GraphQLOperation? = EventServer.items) async throws -> Subscription {
        let subscription = try await app.subscribe(Self.changed, options: SubscriptionOptions(catchUp: catchUp))
        await subscription.wait(for: .live)
        return subscription
    }

    /// Cuts the connection of a subscription, and gives orders before another connection can be opened.
    func cut(_ subscription: Subscription, missing orders: String...) async throws {
        try await order(#"{"refuse": true, "cut": true}"#)
        await subscription.wait(for: .connecting, isStale: true)
        for text in orders { try await order(text) }
        try await order(#"{"refuse": false}"#)
        await subscription.wait(for: .live, isStale: false)
    }

    /// The text of an item, as the cache has it; nil also where it has none.
    func text(_ id: String) -> String? {
        try? app.read("Item:\(id)", GraphQLFragment("fragment F on Item { text }"))["text"]?.string
    }
}

extension Subscription {
    /// Reads until the subscription is in a phase, and tells what came before.
    @discardableResult
    func wait(for phase: SubscriptionState.Phase, isStale: Bool? = nil) async -> [SubscriptionEvent] {
        var events: [SubscriptionEvent] = []
        for await event in self {
            events.append(event)
            if case .state(let state) = event, state.phase == phase,
                isStale.map({ $0 == (state.staleSince != nil) }) ?? true
            {
                break
            }
        }
        return events
    }

    /// Reads until an event of the server's.
    func nextData() async -> Response? {
        for await event in self { if case .data(let response) = event { return response } }
        return nil
    }
}
