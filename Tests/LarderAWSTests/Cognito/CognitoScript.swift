import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import NIOHTTP1
import Synchronization
import Testing

/// A Cognito that answers each operation as a test says, and notes what it was asked.
struct CognitoScript: Sendable {
    static let poolID = "eu-west-1_AbC123xyz"

    private final class Answers: Sendable {
        let replies: Mutex<[String: Reply]>

        init(_ replies: [String: Reply]) { self.replies = Mutex(replies) }
    }

    let server: ScriptedStorage
    let client: HTTPClient
    private let answers: Answers

    /// - Parameter answers: The body of each operation's answer; `{}` for the others.
    static func run(
        _ answers: [String: String] = [:], _ body: (CognitoScript) async throws -> Void
    ) async throws {
        let answers = Answers(answers.mapValues { reply($0) })
        try await ScriptedStorage.run { received in
            let operation = received.headers.first(name: "x-amz-target")?.split(separator: ".").last.map(String.init)
            return answers.replies.withLock { $0[operation ?? ""] } ?? reply("{}")
        } _: { server, _ in
            try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                try await body(CognitoScript(server: server, client: client, answers: answers))
            }
        }
    }

    private static func reply(_ body: String, status: Int = 200, _ headers: [(String, String)] = []) -> Reply {
        Reply(
            status: HTTPResponseStatus(statusCode: status),
            headers: .init([("Content-Type", "application/x-amz-json-1.1")] + headers), body: Array(body.utf8))
    }

    func set(_ operation: String, _ body: String, status: Int = 200, headers: [(String, String)] = []) {
        answers.replies.withLock { $0[operation] = Self.reply(body, status: status, headers) }
    }

    func set(_ operation: String, _ reply: Reply) { answers.replies.withLock { $0[operation] = reply } }

    /// Makes an operation end with an error of Cognito's.
    func fail(_ operation: String, _ code: String, _ message: String = "m") {
        set(operation, #"{"__type": "com.amazonaws#\#(code)", "message": "\#(message)"}"#, status: 400)
    }

    /// The operations that were asked for.
    var operations: [String] {
        server.requests.map { request in
            request.headers.first(name: "x-amz-target")?.split(separator: ".").last.map(String.init) ?? ""
        }
    }

    /// The members of the newest request's JSON.
    func members() throws -> [String: Any] {
        let body = try #require(server.requests.last).body
        return try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
    }

    /// The newest request's JSON, with its keys in order.
    func text() throws -> String {
        let data = try JSONSerialization.data(withJSONObject: try members(), options: .sortedKeys)
        return String(decoding: data, as: UTF8.self)
    }

    func pool(
        secret: String? = nil, _ change: (inout CognitoUserPool.Options) -> Void = { _ in }
    ) -> CognitoUserPool {
        var options = CognitoUserPool.Options()
        options.endpoint = server.url
        options.wallClock = { Date(timeIntervalSince1970: 2_000_000_000) }
        change(&options)
        return CognitoUserPool(
            .init(id: Self.poolID, clientID: "client", region: "eu-west-1"), clientSecret: secret, client: client,
            options: options)
    }

    func identityPool(_ change: (inout CognitoIdentityPool.Options) -> Void = { _ in }) -> CognitoIdentityPool {
        var options = CognitoIdentityPool.Options()
        options.endpoint = server.url
        options.wallClock = { Date(timeIntervalSince1970: 2_000_000_000) }
        change(&options)
        return CognitoIdentityPool(
            .init(id: "eu-west-1:1", region: "eu-west-1"), client: client, options: options)
    }

    func environment(hasUsers: Bool = true, hasIdentities: Bool = true) -> BackendEnvironment {
        BackendEnvironment(
            name: "movies", api: .init(url: server.url, region: "eu-west-1"),
            userPool: hasUsers ? .init(id: Self.poolID, clientID: "client", region: "eu-west-1") : nil,
            identityPool: hasIdentities ? .init(id: "eu-west-1:1", region: "eu-west-1") : nil)
    }

    func provider(
        hasUsers: Bool = true, hasIdentities: Bool = true, timeout: Duration = .seconds(30),
        otherLogins: CognitoIdentityProvider.LoginSource? = nil
    ) -> CognitoIdentityProvider {
        var (users, identities) = (CognitoUserPool.Options(), CognitoIdentityPool.Options())
        (users.endpoint, identities.endpoint) = (server.url, server.url)
        (users.timeout, identities.timeout) = (timeout, timeout)
        return CognitoIdentityProvider(
            environment: environment(hasUsers: hasUsers, hasIdentities: hasIdentities), client: client,
            userPool: users, identityPool: identities, otherLogins: otherLogins)
    }

    /// The pool's own pages, whose answers are those of the operation without a name.
    func pages() throws -> BackendEnvironment.HostedSignIn {
        BackendEnvironment.HostedSignIn(
            domain: "127.0.0.1:\(try #require(server.url.port))", signInRedirects: ["movies://in"],
            signOutRedirects: ["movies://out"])
    }

    /// A token of the pool, unsigned.
    static func token(_ use: String, _ change: (inout [String: Any]) -> Void = { _ in }) throws -> String {
        var claims: [String: Any] = [
            "iss": "https://cognito-idp.eu-west-1.amazonaws.com/\(poolID)", "token_use": use, "sub": "sub-ann",
            "iat": 1_000, "exp": 4_600,
        ]
        claims[use == "id" ? "aud" : "client_id"] = "client"
        change(&claims)
        let text = try JSONSerialization.data(withJSONObject: claims, options: .sortedKeys).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return "e30.\(text).e30"
    }

    static func tokens(refresh: String? = "R", device: String? = nil) throws -> Credentials.UserPoolTokens {
        Credentials.UserPoolTokens(
            idToken: try token("id"), accessToken: try token("access"), refreshToken: refresh, deviceKey: device,
            expires: nil)
    }

    /// What a sign-in or a refresh ends with.
    static func result(
        id: String? = nil, access: String? = nil, more: String = #", "ExpiresIn": 3600"#
    ) throws -> String {
        """
        {"AuthenticationResult": {"IdToken": "\(try id ?? token("id"))",
         "AccessToken": "\(try access ?? token("access"))"\(more)}}
        """
    }

    static func challenge(_ name: String, _ parameters: [String: String] = [:], more: String = "") throws -> String {
        let text = String(decoding: try JSONEncoder().encode(parameters), as: UTF8.self)
        return #"{"ChallengeName": "\#(name)", "Session": "s1", "ChallengeParameters": \#(text)\#(more)}"#
    }
}
