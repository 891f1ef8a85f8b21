import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import Testing

@Suite("A client that a program gives to pools and transports", .timeLimit(.minutes(5)))
struct GivenClientTests {
    @Test("Pools send their requests with the client that they are given, and make no client of their own")
    func asked() async throws {
        try await CognitoScript.run { (script) async throws in
            // A client that is shut down sends nothing: a request that arrives would come from another client.
            let client = HTTPClient(configuration: HTTPTransport.clientConfiguration())
            try await client.shutdown()
            var (users, identities) = (CognitoUserPool.Options(), CognitoIdentityPool.Options())
            (users.endpoint, identities.endpoint) = (script.server.url, script.server.url)
            let environment = script.environment()
            let provider = CognitoIdentityProvider(
                environment: environment, client: client, userPool: users, identityPool: identities)
            let userPools = [
                try #require(provider.userPool),
                CognitoUserPool(try #require(environment.userPool), client: client, options: users),
            ]
            for pool in userPools {
                let code = try await cognitoCode { try await pool.forgotPassword(of: "ann", within: ample) }
                #expect(code == .unreachable)
            }
            let identityPools = [
                try #require(provider.identityPool),
                CognitoIdentityPool(try #require(environment.identityPool), client: client, options: identities),
            ]
            for pool in identityPools {
                let code = try await cognitoCode {
                    try await pool.credentials(identityID: "i", logins: [:], within: ample)
                }
                #expect(code == .unreachable)
            }
            #expect(script.operations.isEmpty)
        }
    }

    private struct NoSession: Error {}

    @Test("AppSync transports send their requests with the client that they are given, and make none of their own")
    func askedByAppSync() async throws {
        try await ScriptedStorage.run { _ in
            Reply(headers: ["Content-Type": "application/json"], body: Array(#"{"data":{"name":"Vega"}}"#.utf8))
        } _: { server, _ in
            let client = HTTPClient(configuration: HTTPTransport.clientConfiguration())
            try await client.shutdown()
            let environment = BackendEnvironment(name: "movies", api: .init(url: server.url), apiKey: "da2-key")
            let transports = [
                AppSyncTransport(endpoint: server.url, authorization: .apiKey("da2-key"), client: client),
                try AppSyncTransport(environment: environment, session: try { throw NoSession() }(), client: client),
            ]
            for transport in transports {
                await #expect(throws: TransportError.self) {
                    _ = try await transport.send(.appSync("{ name }"), within: ample)
                }
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test("The storage of an environment is asked with the client that its transport is given, and with no other")
    func askedByStorage() async throws {
        let provider = InMemoryIdentityProvider()
        try await withNewStore(of: provider) { store, _ in
            let app = try store.partition()
            try await app.session.signIn(provider.signIn("ada"), within: ample)
            try await ScriptedStorage.run { _ in
                .stored()
            } _: { server, _ in
                let client = HTTPClient(configuration: S3Transport.clientConfiguration)
                try await client.shutdown()
                var options = S3Transport.Options()
                options.endpoint = server.url
                let environment = BackendEnvironment(
                    name: "movies", api: .init(url: server.url), bucket: .init(name: "photos", region: "eu-west-1"))
                let transport = try S3Transport(
                    environment: environment, session: try app.session, options: options, client: client)
                _ = try await objectError { () async throws(ObjectError) in
                    try await transport.object(at: .somewhere, within: ample)
                }
                #expect(server.requests.isEmpty)
            }
        }
    }
}
