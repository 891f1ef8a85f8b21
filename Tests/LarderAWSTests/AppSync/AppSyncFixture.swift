import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport

/// An AppSync API of `Tests/Server`, and a store whose user may be signed in.
struct AppSyncFixture: Sendable {
    static let credentials = Credentials.CloudCredentials(
        identityID: "eu-west-1:1", accessKeyID: "AKIDEXAMPLE", secretAccessKey: "secret+/=", sessionToken: "SESSION",
        expires: nil)
    static let schema = """
        type Query { name: String forbidden: String }
        type Mutation { rename(id: ID!): String }
        type Subscription { renamed: Star }
        type Star { id: ID! name: String owner: String }
        """

    let url: URL
    let client: HTTPClient
    let store: Store
    let app: Partition
    let provider: InMemoryIdentityProvider

    static func run(_ body: (AppSyncFixture) async throws -> Void) async throws {
        let start = """
            {"apiKey": "da2-key", "tokens": ["opaque"], "region": "eu-west-1",
             "credentials": {"key": "AKIDEXAMPLE", "secret": "secret+/=", "token": "SESSION"}}
            """
        let server = try await ServerProcess.start("appsync.py", [start])
        try await withStarted(server, stop: { await $0.stop() }) { server in
            try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                let provider = InMemoryIdentityProvider()
                try await withNewStore(of: provider) { store, _ in
                    let fixture = AppSyncFixture(
                        url: URL(filePath: "/").httpURL(port: server.words[0]), client: client, store: store,
                        app: try store.partition(), provider: provider)
                    try await body(fixture)
                }
            }
        }
    }

    var endpoint: URL { url.appending(path: "graphql") }

    func environment(_ authorization: BackendEnvironment.Authorization? = nil) -> BackendEnvironment {
        BackendEnvironment(
            name: "movies", api: .init(url: endpoint, region: "eu-west-1"), apiKey: "da2-key",
            authorization: authorization)
    }

    func transport(_ authorization: AppSyncAuthorization) -> AppSyncTransport {
        AppSyncTransport(endpoint: endpoint, authorization: authorization, client: client)
    }

    /// What the API has answered, oldest first.
    struct Seen: Decodable, Sendable {
        var status: Int
        var authorization: String?
    }

    /// What the API's real-time endpoint has seen.
    struct RealTime: Decodable, Sendable {
        struct Start: Decodable, Sendable { var status: Int }

        /// How the handshakes were answered, oldest first.
        var connects: [Int]
        var starts: [Start]
        var subscriptions: Int
    }

    func realTime() async throws -> RealTime { try await post("real-time", "{}") }

    /// Sends an event to all subscriptions.
    func push(_ item: String) async throws { try await control(#"{"push": {"data": {"renamed": \#(item)}}}"#) }

    /// Changes what the API takes, and tells what it has seen.
    @discardableResult
    func control(_ json: String = "{}") async throws -> [Seen] { try await post("control", json) }

    private func post<Answer: Decodable>(_ path: String, _ json: String) async throws -> Answer {
        var request = HTTPClientRequest(url: url.appending(path: path).absoluteString)
        request.method = .POST
        request.body = .bytes(Array(json.utf8))
        let body = try await client.execute(request, timeout: .seconds(60)).body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode(Answer.self, from: Data(body.readableBytesView))
    }

    /// Lets the API take these tokens alone.
    func accept(_ tokens: String?...) async throws {
        let tokens = tokens.compactMap(\.self).map { "\"\($0)\"" }.joined(separator: ",")
        try await control(#"{"tokens": [\#(tokens)]}"#)
    }
}

/// Runs `body` with a new store whose sessions are the provider's, and with the folder in which the store lies.
func withNewStore(
    of provider: any IdentityProvider, schema: String = AppSyncFixture.schema,
    _ change: (inout Store.Options) -> Void = { _ in }, _ body: (Store, URL) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        var options = Store.Options()
        options.keys = InMemoryKeyProvider()
        options.identityProvider = { _ in provider }
        change(&options)
        let store = try Store.open(
            at: folder.appending(path: "store"), schema: try Schema(parsing: schema), options: options)
        try await body(store, folder)
        try store.close()
    }
}

extension URL {
    fileprivate func httpURL(port: String) -> URL { URL(string: "http://127.0.0.1:\(port)") ?? self }
}

extension Subscription {
    /// Reads until a state has an error.
    func firstError() async -> LarderError? {
        for await event in self { if case .state(let state) = event, let error = state.error { return error } }
        return nil
    }

    /// Whether data comes before the subscription ends.
    func hasData() async -> Bool {
        for await event in self { if case .data = event { return true } }
        return false
    }
}

extension GraphQLRequest {
    static func appSync(_ document: String, kind: OperationKind = .query) -> GraphQLRequest {
        GraphQLRequest(
            kind: kind, operationName: nil, document: document, documentHash: String(repeating: "0", count: 64),
            variables: Array("{}".utf8))
    }
}

/// Longer than any test lasts.
let ample = Duration.seconds(120)
