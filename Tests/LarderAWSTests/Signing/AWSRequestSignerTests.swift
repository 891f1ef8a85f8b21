import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Synchronization
import Testing

@Suite("Requests that a program signs itself", .timeLimit(.minutes(5)))
struct AWSRequestSignerTests {
    private static let environment = BackendEnvironment(
        name: "movies", api: .init(url: URL(string: "https://example.com/graphql")!, region: "us-east-1"))

    private func withSession(_ body: (Session) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.keys = InMemoryKeyProvider()
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: "type Query { a: Int }"),
                options: options)
            try await body(try store.partition(of: Self.environment).session)
            try store.close()
        }
    }

    /// The example of "Create a signed AWS API request" in the guide to IAM.
    @Test(
        "A request is signed with the session's credentials as AWS documents it; an empty token is none",
        arguments: [nil, ""])
    func documented(token: String?) async throws {
        try await withSession { session in
            let keys = Credentials.CloudCredentials(
                accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                sessionToken: token, expires: Date.now.addingTimeInterval(3600))
            try await session.signIn(Credentials(cloud: keys), within: ample)
            let signer = AWSRequestSigner(
                service: "iam", region: "us-east-1", session: { session },
                wallClock: { Date(timeIntervalSince1970: 1_440_938_160) })
            let url = try #require(URL(string: "https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08"))
            let type = GraphQLRequest.Header(
                name: "Content-Type", value: "application/x-www-form-urlencoded; charset=utf-8")
            let headers = try await signer.headers(to: url, headers: [type], within: .seconds(60))
            #expect(headers.map(\.name) == ["x-amz-date", "authorization"])
            #expect(headers[0].value == "20150830T123600Z")
            #expect(
                headers[1].value
                    == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/iam/aws4_request, "
                    + "SignedHeaders=content-type;host;x-amz-date, "
                    + "Signature=5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7")
            let put = try await signer.headers(to: url, method: "PUT", headers: [type], within: .seconds(60))
            #expect(put[1].value != headers[1].value)
            let body = try await signer.headers(to: url, headers: [type], body: [1], within: .seconds(60))
            #expect(body[1].value != headers[1].value)
        }
    }

    @Test("The signature covers the session's token, the host's port and the path, which is encoded once more")
    func covered() async throws {
        try await withSession { session in
            let keys = Credentials.CloudCredentials(
                accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
                sessionToken: "TOKEN", expires: Date.now.addingTimeInterval(3600))
            try await session.signIn(Credentials(cloud: keys), within: ample)
            let signer = AWSRequestSigner(
                service: "execute-api", region: "eu-west-1", session: { session },
                wallClock: { Date(timeIntervalSince1970: 1_440_938_160) })
            let url = try #require(URL(string: "https://example.com:8443/my%20items/1?b=2&a=x%20y"))
            let headers = try await signer.headers(to: url, within: .seconds(60))
            #expect(headers.map(\.name) == ["x-amz-date", "x-amz-security-token", "authorization"])
            #expect(headers[1].value == "TOKEN")
            // As botocore signs it.
            #expect(
                headers[2].value
                    == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/eu-west-1/execute-api/aws4_request, "
                    + "SignedHeaders=host;x-amz-date;x-amz-security-token, "
                    + "Signature=838ab59ad00561553c22b3dec53224b3b9d55fb82fdf1e55a7e35be4ff822d68")
        }
    }

    @Test(
        "A signature covers the URL as it is sent: no default port, a path, and an empty value for a bare name",
        arguments: [
            ("https://example.com:443/items", "https://example.com/items"),
            ("http://example.com:80/items", "http://example.com/items"),
            ("https://example.com?a=1", "https://example.com/?a=1"),
            ("https://example.com/items?flag&a=1", "https://example.com/items?flag=&a=1"),
        ])
    func sameRequest(_ short: String, _ whole: String) async throws {
        try await withSession { session in
            try await session.signIn(Credentials(cloud: AppSyncFixture.credentials), within: ample)
            let signer = AWSRequestSigner(
                service: "execute-api", region: "eu-west-1", session: { session },
                wallClock: { Date(timeIntervalSince1970: 1_440_938_160) })
            let signed = try await signer.headers(to: try #require(URL(string: short)), within: .seconds(60))
            let expected = try await signer.headers(to: try #require(URL(string: whole)), within: .seconds(60))
            #expect(signed == expected)
        }
    }

    @Test("A signer waits for the credentials no longer than the program says")
    func time() async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("GetId", Reply(ending: .hang, isSilent: true))
            try await withNewStore(of: script.provider()) { store, _ in
                let session = try store.partition(of: script.environment()).session
                var tokens = try CognitoScript.tokens()
                tokens.expires = Date.now.addingTimeInterval(3600)
                try await session.signIn(Credentials(userPool: tokens), within: ample)
                let signer = AWSRequestSigner(service: "execute-api", region: "eu-west-1", session: session)
                let url = try #require(URL(string: "https://example.com/items"))
                let begun = SuspendingClock.now
                await #expect(throws: LarderError.self) {
                    try await signer.headers(to: url, within: .milliseconds(300))
                }
                try requireNear(begun + .milliseconds(300))
            }
        }
    }

    @Test("The session is asked for with each request, since one may be over")
    func eachRequest() async throws {
        try await withSession { session in
            try await session.signIn(Credentials(cloud: AppSyncFixture.credentials), within: ample)
            let asked = Mutex(0)
            let current: @Sendable () -> Session = {
                asked.withLock { $0 += 1 }
                return session
            }
            let signer = AWSRequestSigner(service: "execute-api", region: "us-east-1", session: current())
            let url = try #require(URL(string: "https://example.com/items"))
            for count in 1...2 {
                _ = try await signer.headers(to: url, within: .seconds(60))
                #expect(asked.withLock(\.self) == count)
            }
        }
    }

    @Test("Without a user the request is not signed, and the program is told at once")
    func signedOut() async throws {
        try await withSession { session in
            let signer = AWSRequestSigner(service: "execute-api", region: "us-east-1", session: session)
            let url = try #require(URL(string: "https://example.com/items"))
            let error = await #expect(throws: LarderError.self) {
                try await signer.headers(to: url, within: .seconds(60))
            }
            #expect(error?.code == .notSignedIn)
        }
    }
}
