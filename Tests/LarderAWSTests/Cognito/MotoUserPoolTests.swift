import AsyncHTTPClient
import BigInt
import Crypto
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import Testing

/// moto's Cognito, which takes any proof of a password and any code: its own operations are looked at, and not these.
@Suite(
    "A user pool that is not ours", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct MotoUserPoolTests {
    private struct Pool {
        let pool: CognitoUserPool
        let client: HTTPClient
        let url: URL

        func tokens(_ user: String, _ password: String) async throws -> Credentials.UserPoolTokens {
            try await pool.signIn(user, password: password, flow: .password, within: ample).tokens
        }
    }

    private func withPool(_ body: (Pool) async throws -> Void) async throws {
        let server = try await ServerProcess.start("user_pool.py", within: .seconds(120))
        try await withStarted(server, stop: { await $0.stop() }) { server in
            let url = try #require(URL(string: "http://127.0.0.1:\(server.words[0])/"))
            try await HTTPClient.withHTTPClient(configuration: HTTPTransport.clientConfiguration()) { client in
                var options = CognitoUserPool.Options()
                options.endpoint = url
                // moto has no GetTokensFromRefreshToken.
                options.refreshesByFlow = true
                let pool = CognitoUserPool(
                    .init(id: server.words[1], clientID: server.words[2], region: "us-east-1"), client: client,
                    options: options)
                try await body(Pool(pool: pool, client: client, url: url))
            }
        }
    }

    @Test("An account is made, is not signed in before it is confirmed, and is signed in, refreshed and signed out")
    func account() async throws {
        try await withPool { moto in
            let (pool, password) = (moto.pool, "A-passw0rd")
            let made = try await pool.signUp(
                "ann", password: password, attributes: ["email": "ann@example.com"], within: ample)
            #expect(!made.isConfirmed)
            #expect(try await cognitoCode { try await moto.tokens("ann", password) } == .userNotConfirmed)
            #expect(
                try await cognitoCode { try await pool.signUp("ann", password: password, within: ample) }
                    == .userExists)
            try await pool.confirmSignUp("ann", code: "123456", within: ample)
            #expect(try await cognitoCode { try await moto.tokens("ann", "Another-passw0rd") } == .wrongCredentials)
            let tokens = try await moto.tokens("ann", password)
            #expect(try await pool.attributes(tokens, within: ample)["email"] == "ann@example.com")
            let new = try await pool.refresh(tokens, within: ample)
            #expect(new.refreshToken == tokens.refreshToken && new.subject == tokens.subject)
            try await pool.signOutEverywhere(new, within: ample)
            #expect(try await cognitoCode { try await pool.refresh(new, within: ample) } == .signInAgain)
        }
    }

    @Test("A user whom an administrator has made is asked for a new password, which is good from then on")
    func newPassword() async throws {
        try await withPool { moto in
            let challenge = try await moto.pool.signIn(
                "new", password: "First-passw0rd", flow: .password, within: ample
            ).challenge
            guard case .newPassword = challenge.kind else {
                Issue.record("\(challenge.kind)")
                return
            }
            _ = try await moto.pool.answer(challenge, .newPassword("Second-passw0rd"), within: ample).tokens
            _ = try await moto.tokens("new", "Second-passw0rd")
            #expect(try await cognitoCode { try await moto.tokens("new", "First-passw0rd") } == .wrongCredentials)
        }
    }

    @Test("The tokens are signed with the keys that the pool publishes")
    func keys() async throws {
        struct Keys: Decodable {
            struct Key: Decodable { var kid, n, e: String }
            var keys: [Key]
        }
        func bytes(_ text: some StringProtocol) throws -> Data {
            let plain = text.replacingOccurrences(of: "-", with: "+").replacingOccurrences(of: "_", with: "/")
            let padding = String(repeating: "=", count: (4 - plain.count % 4) % 4)
            guard let data = Data(base64Encoded: plain + padding) else { throw CocoaError(.coderReadCorrupt) }
            return data
        }
        try await withPool { moto in
            _ = try await moto.pool.signUp("ann", password: "A-passw0rd", within: ample)
            try await moto.pool.confirmSignUp("ann", code: "123456", within: ample)
            let tokens = try await moto.tokens("ann", "A-passw0rd")
            let place = moto.url.appending(path: "\(moto.pool.pool.id)/.well-known/jwks.json").absoluteString
            let body = try await moto.client.execute(HTTPClientRequest(url: place), timeout: .seconds(60)).body
                .collect(upTo: 1 << 20)
            let keys = try JSONDecoder().decode(Keys.self, from: Data(body.readableBytesView)).keys
            for token in [tokens.idToken, tokens.accessToken] {
                let parts = token.split(separator: ".")
                let header = try JSONDecoder().decode([String: String].self, from: try bytes(parts[0]))
                let key = try #require(keys.first { $0.kid == header["kid"] })
                let number = BigUInt(try bytes(parts[2])).power(
                    BigUInt(try bytes(key.e)), modulus: BigUInt(try bytes(key.n)))
                let digest = SHA256.hash(data: Data("\(parts[0]).\(parts[1])".utf8))
                #expect(Data(number.serialize().suffix(32)) == Data(digest))
            }
        }
    }
}
