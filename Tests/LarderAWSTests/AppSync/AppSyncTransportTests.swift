import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import Synchronization
import Testing

@Suite(
    "AppSync over HTTP", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct AppSyncTransportTests {
    private func name(_ transport: AppSyncTransport) async throws -> String {
        let answer = try await transport.send(.appSync("{ name }"), within: ample)
        return String(decoding: answer.body, as: UTF8.self)
    }

    private func transportCode(_ body: () async throws -> some Sendable) async throws -> TransportError {
        try #require(await #expect(throws: TransportError.self) { _ = try await body() })
    }

    @Test("All five proofs are taken, signatures by botocore's computation")
    func fiveModes() async throws {
        try await AppSyncFixture.run { (fixture) async throws in
            let token: AppSyncAuthorization.Source<String> = { _, _ in "opaque" }
            for authorization in [
                AppSyncAuthorization.apiKey("da2-key"), .userPool(token), .openIDConnect(token), .lambda(token),
                .iam(region: "eu-west-1") { _, _ in AppSyncFixture.credentials },
            ] {
                #expect(try await name(fixture.transport(authorization)) == #"{"data": {"name": "Vega"}}"#)
            }
            #expect(try await fixture.control().map(\.status) == [200, 200, 200, 200, 200])
        }
    }

    @Test("A wrong key, a wrong secret and another region's signature are refused")
    func refused() async throws {
        try await AppSyncFixture.run { fixture in
            let wrong = Credentials.CloudCredentials(
                accessKeyID: "AKIDEXAMPLE", secretAccessKey: "wrong", sessionToken: "SESSION", expires: nil)
            for (authorization, status) in [
                (AppSyncAuthorization.apiKey("wrong"), 401), (.iam(region: "eu-west-1") { _, _ in wrong }, 403),
                (.iam(region: "eu-west-2") { _, _ in AppSyncFixture.credentials }, 403),
            ] {
                let answer = try await fixture.transport(authorization).send(.appSync("{ name }"), within: ample)
                #expect(answer.status == status)
            }
        }
    }

    @Test("Signatures hold for bodies with every kind of character")
    func signedBodies() async throws {
        try await AppSyncFixture.run { fixture in
            let transport = fixture.transport(.iam(region: "eu-west-1") { _, _ in AppSyncFixture.credentials })
            for text in ["é", "日本語", "🍣", #"\"\\"#, String(repeating: "x", count: 100_000)] {
                let answer = try await transport.send(.appSync("{ name(text: \"\(text)\") }"), within: ample)
                #expect(answer.status == 200)
            }
        }
    }

    @Test("The environment of a configuration file and a session are enough")
    func fromConfiguration() async throws {
        try await AppSyncFixture.run { fixture in
            let json = """
                {"AppSync": {"Default": {"ApiUrl": "\(fixture.endpoint.absoluteString)", "Region": "eu-west-1",
                 "AuthMode": "AMAZON_COGNITO_USER_POOLS"}},
                 "CognitoUserPool": {"Default": {"PoolId": "eu-west-1_a", "AppClientId": "c", "Region": "eu-west-1"}}}
                """
            let environment = try ConfigurationFile(json: Array(json.utf8), origin: "awsconfiguration.json")
                .environment(named: "movies")
            let app = fixture.app
            let transport = try AppSyncTransport(
                environment: environment, session: try app.session, client: fixture.client)
            let user = fixture.provider.signIn("ada")
            try await app.session.signIn(user, within: ample)
            try await fixture.accept(user.userPool?.accessToken)
            let answer = try await app.with(server: transport).fetch(
                GraphQLOperation("{ name }"), policy: .networkOnly)
            #expect(answer.data?["name"]?.string == "Vega")
        }
    }

    @Test(
        "The program's tokens prove who asks where the environment says so, or the program does",
        arguments: [.openIDConnect, .lambda] as [BackendEnvironment.Authorization], [true, false])
    func tokens(_ mode: BackendEnvironment.Authorization, isOfEnvironment: Bool) async throws {
        try await AppSyncFixture.run { fixture in
            let app = fixture.app
            var environment = fixture.environment(isOfEnvironment ? mode : .apiKey)
            environment.apiKey = "wrong"
            let transport = try AppSyncTransport(
                environment: environment, session: try app.session, authorization: isOfEnvironment ? nil : mode,
                tokens: { _, _ in "opaque" }, client: fixture.client)
            #expect(try await name(transport) == #"{"data": {"name": "Vega"}}"#)
        }
    }

    @Test("Making a transport says what is missing for its way to authorize")
    func missing() async throws {
        try await AppSyncFixture.run { fixture in
            let app = fixture.app
            var environment = fixture.environment()
            environment.apiKey = nil
            environment.api = .init(url: fixture.endpoint)
            for mode in [BackendEnvironment.Authorization.apiKey, .iam, .openIDConnect, .lambda, nil] {
                let error = #expect(throws: LarderError.self) {
                    try AppSyncTransport(
                        environment: environment, session: try app.session, authorization: mode, client: fixture.client)
                }
                #expect(error?.code == .environment)
            }
        }
    }

    @Test("A request never waits for a sign-in: it ends at once, and nothing is sent")
    func notSignedIn() async throws {
        try await AppSyncFixture.run { fixture in
            let app = fixture.app
            for authorization in [
                AppSyncAuthorization.userPool(try app.session), .iam(region: "eu-west-1", try app.session),
            ] {
                // Who waits for a sign-in hears of the deadline instead.
                let error = try await transportCode {
                    try await fixture.transport(authorization).send(
                        .appSync("mutation { rename }", kind: .mutation), within: .seconds(20))
                }
                #expect(error.code == .notSignedIn)
                #expect(error.phase == .beforeSending)
                #expect((error.cause as? LarderError)?.code == .notSignedIn)
            }
            #expect(try await fixture.control().isEmpty)
        }
    }

    @Test("A token that the API refuses is refreshed once for all who ask, and each request is sent once more")
    func refreshedOnce() async throws {
        try await AppSyncFixture.run { fixture in
            let app = fixture.app
            let old = fixture.provider.signIn("ada")
            try await app.session.signIn(old, within: ample)
            // What the provider will give next.
            try await fixture.accept("access-ada-2")
            let transport = fixture.transport(.userPool(try app.session))
            try await withThrowingTaskGroup(of: Int?.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        try await transport.send(
                            .appSync("mutation M\(number) { set }", kind: .mutation), within: ample
                        ).status
                    }
                }
                for try await status in group { #expect(status == 200) }
            }
            #expect(fixture.provider.refreshes == 1)
            let seen = try await fixture.control()
            #expect(seen.count { $0.status == 200 } == 20)
            #expect(seen.count { $0.status == 401 } <= 20)
        }
    }

    @Test("The id token is sent where the program says so, also once it was refused")
    func idTokenRefused() async throws {
        try await AppSyncFixture.run { fixture in
            let app = fixture.app
            try await app.session.signIn(fixture.provider.signIn("ada"), within: ample)
            try await fixture.accept("id-ada-2")
            let transport = fixture.transport(.userPool(try app.session, token: .id))
            #expect(try await transport.send(.appSync("{ name }"), within: ample).status == 200)
            #expect(try await fixture.control().map(\.authorization) == ["id-ada-1", "id-ada-2"])
        }
    }

    /// Runs `body` with a user who has signed in, and whose tokens the API does not take.
    private func withRefusedUser(_ body: (AppSyncFixture, AppSyncTransport) async throws -> Void) async throws {
        try await AppSyncFixture.run { fixture in
            let session = try fixture.app.session
            try await session.signIn(fixture.provider.signIn("ada"), within: ample)
            try await fixture.accept()
            try await body(fixture, fixture.transport(.userPool(session)))
        }
    }

    @Test("A token that is refused again is the API's answer, and not a loop")
    func refusedAgain() async throws {
        try await withRefusedUser { fixture, transport in
            let answer = try await transport.send(.appSync("{ name }"), within: ample)
            #expect(answer.status == 401)
            #expect(fixture.provider.refreshes == 1)
            #expect(try await fixture.control().count == 2)
        }
    }

    @Test("Where the pool refuses the refresh as well, the session says so and later requests are not sent")
    func poolRefuses() async throws {
        try await withRefusedUser { fixture, transport in
            fixture.provider.behaviour = .refusingUserPool
            #expect(try await transport.send(.appSync("{ name }"), within: ample).status == 401)
            #expect(try fixture.app.session.state == .userPoolTokensInvalid)
            let error = try await transportCode { try await transport.send(.appSync("{ name }"), within: ample) }
            #expect(error.code == .notSignedIn)
            #expect(try await fixture.control().count == 1)
        }
    }

    @Test("A pool that is away keeps a refused token's user signed in, and the request can be tried again")
    func poolAway() async throws {
        try await withRefusedUser { fixture, transport in
            fixture.provider.behaviour = .unreachable
            let error = try await transportCode { try await transport.send(.appSync("{ name }"), within: ample) }
            #expect(error.code == .notPrepared)
            #expect(error.phase == .beforeSending)
            #expect(try fixture.app.session.state == .signedIn)
        }
    }

    @Test("A rule that forbids something leads to no refresh")
    func forbidden() async throws {
        try await AppSyncFixture.run { fixture in
            let app = fixture.app
            let user = fixture.provider.signIn("ada")
            try await app.session.signIn(user, within: ample)
            try await fixture.accept(user.userPool?.accessToken)
            let transport = fixture.transport(.userPool(try app.session))
            let error = try #require(
                await #expect(throws: LarderError.self) {
                    _ = try await app.with(server: transport).fetch(
                        GraphQLOperation("{ forbidden }"), policy: .networkOnly)
                })
            #expect(error.errors.first.map { AppSyncErrorType.unauthorized ~= $0 } == true)
            #expect(fixture.provider.refreshes == 0)
        }
    }

    @Test("An error keeps its kind, what the resolver says and the server's item")
    func conflict() async throws {
        try await AppSyncFixture.run { fixture in
            let online = fixture.app.with(server: fixture.transport(.apiKey("da2-key")))
            let error = try #require(
                await #expect(throws: LarderError.self) {
                    _ = try await online.send(
                        GraphQLOperation(#"mutation { rename(id: "1") }"#), within: .seconds(60))
                })
            let first = try #require(error.errors.first)
            #expect(AppSyncErrorType.conflictUnhandled ~= first)
            #expect(first.errorInfo == ["hint": "fetch"])
            #expect(first.data == ["id": "1", "name": "theirs", "_version": 7])
        }
    }

    @Test("Signed requests of expired credentials are sent once more with new ones")
    func expiredCredentials() async throws {
        try await AppSyncFixture.run { (fixture) async throws in
            let asked = Mutex<[String?]>([])
            let transport = fixture.transport(
                .iam(region: "eu-west-1") { refused, _ in
                    asked.withLock { $0.append(refused?.accessKeyID) }
                    var keys = AppSyncFixture.credentials
                    if refused == nil { (keys.accessKeyID, keys.sessionToken) = ("OLD", "ENDED") }
                    return keys
                })
            #expect(try await transport.send(.appSync("{ name }"), within: ample).status == 200)
            #expect(asked.withLock { $0 } == [nil, "OLD"])
        }
    }

    @Test("Credentials of a session that the API refuses are refreshed once, and the request signed with the new ones")
    func refreshedCredentials() async throws {
        try await AppSyncFixture.run { fixture in
            let app = fixture.app
            try await app.session.signIn(fixture.provider.signIn("ada"), within: ample)
            // What the provider will give next.
            try await fixture.control(
                """
                {"credentials": {"key": "AK2", "secret": "secret-identity-ada-2", "token": "session-identity-ada-2"}}
                """)
            let transport = fixture.transport(.iam(region: "eu-west-1", try app.session))
            #expect(try await transport.send(.appSync("{ name }"), within: ample).status == 200)
            #expect(fixture.provider.refreshes == 1)
            #expect(try await fixture.control().map(\.status) == [403, 200])
        }
    }

    @Test(
        "A clock that is two hours off signs by the API's time, once that has refused it", arguments: [-7_200.0, 7_200])
    func clockOff(by seconds: Double) async throws {
        try await AppSyncFixture.run { fixture in
            var options = HTTPTransport.Options()
            options.wallClock = { Date().addingTimeInterval(seconds) }
            let asked = Mutex<[String?]>([])
            let transport = AppSyncTransport(
                endpoint: fixture.endpoint,
                authorization: .iam(region: "eu-west-1") { refused, _ in
                    asked.withLock { $0.append(refused?.accessKeyID) }
                    return AppSyncFixture.credentials
                }, client: fixture.client, options: options)
            for _ in 0..<2 {
                let answer = try await transport.send(.appSync("mutation { rename }", kind: .mutation), within: ample)
                #expect(answer.status == 200)
            }
            #expect(try await fixture.control().map(\.status) == [403, 200, 200])
            // The credentials are good: no others are asked for.
            #expect(asked.withLock { $0 } == [nil, nil])
        }
    }

    @Test("A signature that is wrong for another reason is refused, whatever the clock shows, and is no loop")
    func wrongSecret() async throws {
        try await AppSyncFixture.run { fixture in
            var wrong = AppSyncFixture.credentials
            wrong.secretAccessKey = "wrong"
            for (seconds, statuses) in [(0, [403]), (7_200.0, [403, 403])] {
                var options = HTTPTransport.Options()
                options.wallClock = { Date().addingTimeInterval(seconds) }
                let transport = AppSyncTransport(
                    endpoint: fixture.endpoint, authorization: .iam(region: "eu-west-1") { [wrong] _, _ in wrong },
                    client: fixture.client, options: options)
                let before = try await fixture.control().count
                #expect(try await transport.send(.appSync("{ name }"), within: ample).status == 403)
                #expect(try await fixture.control().dropFirst(before).map(\.status) == statuses)
            }
        }
    }

    @Test("A source that never answers ends at the deadline, of which nothing was sent")
    func slowSource() async throws {
        try await AppSyncFixture.run { fixture in
            let transport = fixture.transport(
                .openIDConnect { _, _ in
                    try? await Task.sleep(for: .seconds(3600))
                    return ""
                })
            let error = try await transportCode {
                try await transport.send(.appSync("{ name }"), within: .milliseconds(50))
            }
            #expect(error.code == .timedOut)
            #expect(error.phase == .beforeSending)
        }
    }

    @Test("Secrets are in no error: a token with a line break, a token that is too long")
    func secrets() async throws {
        try await AppSyncFixture.run { fixture in
            let long = String(repeating: "s3cret", count: 400)
            for authorization in [
                AppSyncAuthorization.openIDConnect { _, _ in "s3cret\r\nx: y" }, .lambda { _, _ in long },
            ] {
                let error = try await transportCode {
                    try await fixture.transport(authorization).send(.appSync("{ name }"), within: ample)
                }
                #expect(!"\(error)".contains("s3cret"))
                #expect(error.phase == .beforeSending)
            }
        }
    }
}
