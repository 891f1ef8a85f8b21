import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import Testing

@Suite("A client that a program gives to pools", .timeLimit(.minutes(5)))
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
}
