import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import Testing

/// The Cognito of `Tests/Server`: a user pool with real SRP, and an identity pool.
struct CognitoFixture: Sendable {
    static let poolID = "us-east-1_AbC123xyz"
    static let identityPoolID = "us-east-1:00000000-1111-2222-3333-444444444444"

    /// A user of the pool.
    struct User: Encodable {
        var password = "right password"
        var steps: [String] = []
        var confirmed = true
        var enabled = true
        var reset = false
    }

    private struct Setup: Encodable {
        var pool = CognitoFixture.poolID
        var client = "client"
        var secret: String?
        var identityPool = CognitoFixture.identityPoolID
        var users: [String: User]
        var rotates = false
    }

    let url: URL
    let client: HTTPClient
    private let secret: String?

    static func run(
        users: [String: User] = ["ann": User()], secret: String? = nil, rotates: Bool = false,
        _ body: (CognitoFixture) async throws -> Void
    ) async throws {
        let setup = try JSONEncoder().encode(Setup(secret: secret, users: users, rotates: rotates))
        let server = try await ServerProcess.start("cognito.py", [String(decoding: setup, as: UTF8.self)])
        try await withStarted(server, stop: { await $0.stop() }) { server in
            let url = try #require(URL(string: "http://127.0.0.1:\(server.words[0])/"))
            try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                try await body(CognitoFixture(url: url, client: client, secret: secret))
            }
        }
    }

    func environment(api: URL? = nil) -> BackendEnvironment {
        BackendEnvironment(
            name: "movies", api: .init(url: api ?? url, region: "us-east-1"),
            userPool: .init(id: Self.poolID, clientID: "client", region: "us-east-1"),
            identityPool: .init(id: Self.identityPoolID, region: "us-east-1"), clientSecret: secret)
    }

    func provider(
        _ environment: BackendEnvironment? = nil, _ change: (inout CognitoUserPool.Options) -> Void = { _ in }
    ) -> CognitoIdentityProvider {
        var (userPool, identityPool) = (CognitoUserPool.Options(), CognitoIdentityPool.Options())
        (userPool.endpoint, identityPool.endpoint) = (url, url)
        change(&userPool)
        return CognitoIdentityProvider(
            environment: environment ?? self.environment(), client: client, userPool: userPool,
            identityPool: identityPool)
    }

    func pool(_ change: (inout CognitoUserPool.Options) -> Void = { _ in }) throws -> CognitoUserPool {
        try #require(provider(nil, change).userPool)
    }

    /// Tokens of a user who has signed in.
    ///
    /// - Parameter flow: A proof of the password takes seconds, unoptimized: only tests of proofs ask for one.
    func tokens(
        _ user: String = "ann", _ password: String = "right password", flow: CognitoUserPool.Flow = .password
    ) async throws -> Credentials.UserPoolTokens {
        try await pool().signIn(user, password: password, flow: flow, within: ample).tokens
    }

    /// Changes how Cognito behaves.
    ///
    /// - Returns: The operations that were asked for, oldest first.
    @discardableResult
    func control(_ json: String = "{}") async throws -> [String] {
        var request = HTTPClientRequest(url: url.appending(path: "control").absoluteString)
        request.method = .POST
        request.body = .bytes(Array(json.utf8))
        let body = try await client.execute(request, timeout: .seconds(60)).body.collect(upTo: 1 << 20)
        return try JSONDecoder().decode([String].self, from: Data(body.readableBytesView))
    }

    /// Makes an operation end with an error, or with a body; nil for as it should.
    func fail(_ operation: String, _ json: String?) async throws {
        try await control(#"{"fail": {\#(json.map { "\"\(operation)\": \($0)" } ?? "")}}"#)
    }

    /// Runs `body` with a store whose sessions are this Cognito's.
    func withStore(
        _ environment: BackendEnvironment? = nil, schema: String = AppSyncFixture.schema,
        _ change: (inout Store.Options) -> Void = { _ in }, _ body: (Store, Partition) async throws -> Void
    ) async throws {
        try await withNewStore(of: provider(environment), schema: schema, change) { store, _ in
            try await body(store, try store.partition(of: environment ?? self.environment()))
        }
    }
}

extension SignInStep {
    /// The tokens; fails the test where there are none.
    var tokens: Credentials.UserPoolTokens {
        get throws {
            guard case .signedIn(let tokens) = self else { throw NotThere(description: "\(self)") }
            return tokens
        }
    }

    /// The challenge; fails the test where there is none.
    var challenge: SignInChallenge {
        get throws {
            guard case .challenge(let challenge) = self else { throw NotThere(description: "tokens") }
            return challenge
        }
    }

    private struct NotThere: Error, CustomStringConvertible { var description: String }
}

/// The error that `body` throws; a test failure if it throws none.
func cognitoCode(
    sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> some Sendable
) async throws -> CognitoError.Code {
    let error = await #expect(throws: CognitoError.self, sourceLocation: sourceLocation) { _ = try await body() }
    return try #require(error, sourceLocation: sourceLocation).code
}
