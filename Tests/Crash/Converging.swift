import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport

/// Follows a server by a subscription until it is killed, and says when it is live.
struct Converging {
    enum Kind: String {
        /// AppSync's protocol, and what was missed by delta queries. Its tokens end after moments.
        case appSync = "appsync"
        /// `graphql-transport-ws`, and what was missed by a query. Its connections are replaced after moments.
        case webSocket = "websocket"
    }

    let folder: URL
    let endpoint: URL
    let kind: Kind
    /// A file with what introduces the program to the server, which changes.
    let token: URL?

    static let appSyncSchema = """
        scalar AWSTimestamp
        type Query {
          todos: [Todo]
          syncTodos(limit: Int, nextToken: String, lastSync: AWSTimestamp): TodoConnection
        }
        type Subscription { changed: Todo }
        type TodoConnection { items: [Todo]! nextToken: String startedAt: AWSTimestamp }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        """
    static let webSocketSchema = """
        type Query { items: [Item!]! }
        type Subscription { changed: Item! }
        type Item { id: ID! text: String version: Int! }
        """

    func run() async throws {
        let isAppSync = kind == .appSync
        let schema = isAppSync ? Self.appSyncSchema : Self.webSocketSchema
        let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
        let app = try store.partition()
        var options = HTTPTransport.Options()
        options.subscriptions.pacing.backoff = Backoff(first: .milliseconds(2), cap: .milliseconds(50))
        if isAppSync {
            try await AppSyncTransport.withTransport(
                to: endpoint, authorization: .userPool { _, _ in Self.token(for: 1.5) }, options: options
            ) { try await follow(app.with(server: $0)) }
        } else {
            options.subscriptions.lifetime = .milliseconds(700)
            if let token {
                options.subscriptions.payload = {
                    ["token": .string(try String(contentsOf: token, encoding: .utf8))]
                }
            }
            try await HTTPTransport.withTransport(to: endpoint, options: options) {
                try await follow(app.with(server: $0))
            }
        }
        try store.close()
    }

    private func follow(_ app: Partition) async throws {
        let subscription: Subscription
        switch kind {
        case .appSync:
            var sync = Synchronization(
                GraphQLOperation(
                    """
                    query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
                      syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                        items { id title } nextToken startedAt
                      }
                    }
                    """))
            (sync.pageSize, sync.deltaLifetime) = (3, .seconds(4))
            subscription = try await app.subscribe(
                GraphQLOperation("subscription { changed { id title } }"), options: SubscriptionOptions(sync: sync))
        case .webSocket:
            subscription = try await app.subscribe(
                GraphQLOperation("subscription { changed { id text version } }"),
                options: SubscriptionOptions(catchUp: GraphQLOperation("query { items { id text version } }")))
        }
        for await event in subscription {
            switch event {
            case .state(let state):
                say("\(state.phase) \(state.staleSince.map { "\($0.timeIntervalSince1970)" } ?? "-")")
            case .data, .missed: break
            }
        }
    }

    /// A token of the user pool `pool` that ends after so many seconds, which nobody has signed.
    private static func token(for seconds: Double) -> String {
        let claims = #"{"iss":"https://idp/pool","exp":\#(Int((Date().timeIntervalSince1970 + seconds).rounded(.up)))}"#
        let text = Data(claims.utf8).base64EncodedString().replacing("+", with: "-").replacing("/", with: "_")
            .replacing("=", with: "")
        return "e30.\(text).x"
    }
}
