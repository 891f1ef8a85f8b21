import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport
import Synchronization
import Testing

/// What users of other libraries have complained of: sign-in, sessions and tokens.
@Suite(
    "Complaints about sessions and tokens", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct SignInComplaintTests {
    private static let question = GraphQLOperation("{ name }")

    /// A session whose user's tokens have expired.
    private func withExpired(
        _ fixture: CognitoFixture, at url: URL, _ body: (Partition, Credentials.UserPoolTokens) async throws -> Void
    ) async throws {
        let provider = fixture.provider { $0.endpoint = url }
        try await fixture.withStore(nil, { $0.identityProvider = { _ in provider } }) { _, app in
            try await fixture.control(#"{"lifetime": 1}"#)
            let tokens = try await fixture.tokens()
            try await fixture.control(#"{"lifetime": 3600}"#)
            try await app.session.signIn(Credentials(userPool: tokens), within: ample)
            let end = try #require(tokens.expires)
            while Date() <= end { try await Task.sleep(for: .milliseconds(20)) }
            try await body(app, tokens)
        }
    }

    @Test("Launched offline, then unauthorized: an expired token is refreshed when the network comes, and taken")
    func launchedOffline() async throws {
        try await CognitoFixture.run { fixture in
            try await AppSyncFixture.run { appSync in
                try await CutNetwork.run(to: [fixture.url]) { network in
                    try await network.cut()
                    try await withExpired(fixture, at: network.urls[0]) { app, old in
                        try await appSync.control(#"{"tokens": [], "pool": "\#(CognitoFixture.poolID)"}"#)
                        let session = try app.session
                        let online = app.with(
                            server: AppSyncTransport(
                                endpoint: appSync.endpoint, authorization: .userPool(session), client: fixture.client))
                        let error = try #require(
                            await #expect(throws: LarderError.self) {
                                _ = try await online.fetch(Self.question, policy: .networkOnly)
                            })
                        #expect(error.code != .transportNotSignedIn, "\(error)")
                        #expect(session.state == .signedIn)
                        // Nothing was sent with the expired token.
                        #expect(try await appSync.control().isEmpty)

                        try await network.mend()
                        let answer = try await online.fetch(Self.question, policy: .networkOnly)
                        #expect(answer.data?["name"]?.string == "Vega")
                        let seen = try await appSync.control()
                        #expect(seen.map(\.status) == [200] && seen[0].authorization != old.accessToken)
                    }
                }
            }
        }
    }

    @Test("An expired token and endless reconnecting: a refused token is refreshed once, and then the attempts end")
    func endlessReconnecting() async throws {
        try await AppSyncFixture.run { fixture in
            let source: AppSyncAuthorization.Source<String> = { refused, _ in
                refused == nil ? "expired" : "expired as well"
            }
            let transport = AppSyncTransport(
                endpoint: fixture.endpoint, authorization: .userPool(source), client: fixture.client)
            let subscription = try await fixture.app.with(server: transport)
                .subscribe(GraphQLOperation("subscription { renamed { id name owner } }"))
            #expect(await subscription.firstError()?.code == .transportNotSignedIn)
            #expect(try await fixture.realTime().connects == [401, 401])
        }
    }

    @Test("A token that expires on a live connection: the subscription goes on with another")
    func expiresWhileLive() async throws {
        try await AppSyncFixture.run { fixture in
            try await fixture.accept("first")
            let refusals = Mutex<[String]>([])
            let source: AppSyncAuthorization.Source<String> = { refused, _ in
                refusals.withLock { refusals in
                    if let refused { refusals.append(refused) }
                    return refusals.isEmpty ? "first" : "second"
                }
            }
            var options = HTTPTransport.Options()
            options.subscriptions.pacing.backoff = Backoff(first: .milliseconds(5), cap: .milliseconds(50))
            let transport = AppSyncTransport(
                endpoint: fixture.endpoint, authorization: .userPool(source), client: fixture.client, options: options)
            let subscription = try await fixture.app.with(server: transport)
                .subscribe(GraphQLOperation("subscription { renamed { id name owner } }"))
            var events = subscription.makeAsyncIterator()
            func live() async { while let event = await events.next(), !event.isLive {} }
            await live()
            try await fixture.accept("second")
            try await fixture.control(#"{"cut": true}"#)
            try await eventually { try await fixture.realTime().starts.count >= 2 }
            try await fixture.push(#"{"id": "1", "name": "Deneb", "owner": "a"}"#)
            var name: String?
            while name == nil, let event = await events.next() { name = event.name }
            #expect(name == "Deneb")
            #expect(refusals.withLock { $0 } == ["first"])
            #expect(try await fixture.realTime().connects == [200, 401, 200])
        }
    }

    @Test("Signed in, and no tokens: who is signed in to a user pool has some after each restart and refresh")
    func signedInHasTokens() async throws {
        try await CognitoFixture.run(rotates: true) { fixture in
            try await withTemporaryFolder { folder in
                let provider = fixture.provider()
                var options = Store.Options()
                options.keys = InMemoryKeyProvider()
                options.identityProvider = { _ in provider }
                for round in 0..<3 {
                    let store = try Store.open(
                        at: folder.appending(path: "store"), schema: try Schema(parsing: AppSyncFixture.schema),
                        options: options)
                    let session = try store.partition(of: fixture.environment()).session
                    if round == 0 {
                        try await session.signIn(Credentials(userPool: try await fixture.tokens()), within: ample)
                    }
                    #expect(session.state == .signedIn)
                    let tokens = try await session.userPoolTokens(within: ample)
                    let next = try await session.userPoolTokens(within: ample, refused: tokens)
                    #expect(next.refreshToken != nil && next.refreshToken != tokens.refreshToken)
                    #expect(session.state == .signedIn)
                    try store.close()
                }
            }
        }
    }

    @Test("Revoked, and the state unknown: tokens that another device has revoked end in the state that says so")
    func revoked() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.withStore { _, app in
                let tokens = try await fixture.tokens()
                let session = try app.session
                try await session.signIn(Credentials(userPool: tokens), within: ample)
                try await fixture.pool().signOutEverywhere(try await fixture.tokens(), within: ample)
                let error = try #require(
                    await #expect(throws: LarderError.self) {
                        _ = try await session.userPoolTokens(within: ample, refused: tokens)
                    })
                #expect(error.code.rawValue == "identity.userPoolRefused" || error.code == .notSignedIn, "\(error)")
                let standing = try session.standing()
                #expect(standing.state == .userPoolTokensInvalid)
                #expect(standing.reason?.isEmpty == false)
                // A sign-in leads on from there.
                try await session.signIn(Credentials(userPool: try await fixture.tokens()), within: ample)
                #expect(session.state == .signedIn)
            }
        }
    }

    @Test(
        "An error of the refresh service logs out: nothing that it answers by mistake does",
        arguments: [
            #"{"type": "InternalErrorException"}"#, #"{"raw": "<html>Bad Gateway</html>", "status": 502}"#,
            #"{"raw": "<html>sign in to the Wi-Fi</html>"}"#, #"{"raw": ""}"#, #"{"raw": "", "status": 400}"#,
            #"{"raw": "{}", "status": 400}"#, #"{"raw": "null"}"#, #"{"raw": "{\"AuthenticationResult\": {}}"}"#,
            #"{"raw": "{\"__type\": 5}", "status": 400}"#, #"{"after": true}"#,
        ])
    func serviceError(_ fault: String) async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.withStore { _, app in
                let tokens = try await fixture.tokens()
                let session = try app.session
                try await session.signIn(Credentials(userPool: tokens), within: ample)
                try await fixture.fail("GetTokensFromRefreshToken", fault)
                await #expect(throws: LarderError.self) {
                    _ = try await session.userPoolTokens(within: ample, refused: tokens)
                }
                #expect(session.state == .signedIn)
                try await fixture.fail("GetTokensFromRefreshToken", nil)
                let next = try await session.userPoolTokens(within: ample, refused: tokens)
                #expect(next.accessToken != tokens.accessToken)
            }
        }
    }

    @Test("Expiry cannot be simulated: a program's test lets credentials end without a wait, and without a server")
    func simulatedExpiry() async throws {
        let provider = InMemoryIdentityProvider()
        try await withNewStore(of: provider) { store, _ in
            let session = try store.partition().session
            provider.lifetime = .seconds(1)
            try await session.signIn(provider.signIn("ann"), within: ample)
            provider.lifetime = .seconds(3_600)
            _ = try await session.userPoolTokens(within: ample)
            #expect(provider.refreshes == 1)
            _ = try await session.userPoolTokens(within: ample)
            #expect(provider.refreshes == 1)
        }
    }
}

extension SubscriptionEvent {
    fileprivate var isLive: Bool {
        if case .state(let state) = self { state.phase == .live } else { false }
    }

    fileprivate var name: String? {
        if case .data(let response) = self { response["renamed"]?["name"]?.string } else { nil }
    }
}
