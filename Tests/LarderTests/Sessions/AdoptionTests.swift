import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Coming from another library, and reinstalling", .timeLimit(.minutes(10)))
struct AdoptionTests {
    private static func token(_ claims: String) -> String {
        "e30.\(Data(claims.utf8).base64ForURLs).signature"
    }

    private static func id(pool: String = "eu-west-1_AbCdEf", client: String = "client", user: String = "7a") -> String
    {
        token(
            """
            {"iss":"https://cognito-idp.eu-west-1.amazonaws.com/\(pool)","aud":"\(client)","sub":"\(user)",
             "token_use":"id","iat":1,"exp":2000000000}
            """)
    }

    private static func access(pool: String = "eu-west-1_AbCdEf", client: String = "client") -> String {
        token(
            """
            {"iss":"https://cognito-idp.eu-west-1.amazonaws.com/\(pool)","client_id":"\(client)","sub":"7a",
             "token_use":"access","iat":1,"exp":1900000000}
            """)
    }

    static func legacy(_ id: String = id()) -> LegacyTokens {
        LegacyTokens(idToken: id, accessToken: access(), refreshToken: "refresh")
    }

    @Test("Tokens are read as AWSMobileClient has left them in the Keychain")
    func mobileClient() throws {
        let items = [
            "client.currentUser": "ann", "client.ann.idToken": Self.id(), "client.ann.accessToken": Self.access(),
            "client.ann.refreshToken": "refresh", "client.ann.device.id": "device",
            "client.ann.tokenExpiration": "2030-01-01T00:00:00Z", "other.currentUser": "bob",
        ].mapValues { Data($0.utf8) }
        let found = try #require(LegacyTokens(mobileClient: items, clientID: "client"))
        #expect(found.tokens.idToken == Self.id() && found.tokens.refreshToken == "refresh")
        #expect(found.tokens.deviceKey == "device")
        #expect(found.tokens.expires == Date(timeIntervalSince1970: 1_900_000_000))
        #expect(LegacyTokens(mobileClient: items, clientID: "other") == nil)
        for account in ["client.currentUser", "client.ann.idToken", "client.ann.accessToken"] {
            let emptied = items.merging([account: Data()]) { $1 }
            #expect(LegacyTokens(mobileClient: emptied, clientID: "client") == nil, "\(account)")
        }
    }

    @Test("Tokens of which one does not say when it ends are refreshed before they are used")
    func endless() {
        let endless = Self.token(#"{"sub":"7a","token_use":"access"}"#)
        for (id, access) in [(Self.id(), endless), (endless, Self.access()), (endless, endless), ("x", "y")] {
            let found = LegacyTokens(idToken: id, accessToken: access, refreshToken: "refresh")
            #expect(found.tokens.expires == Date(timeIntervalSince1970: 0))
        }
    }

    @Test(
        "Tokens are read as Amplify has left them in the Keychain",
        arguments: ["userPoolOnly", "userPoolAndIdentityPool"])
    func amplify(kind: String) throws {
        let session = """
            {"\(kind)":{"signedInData":{"signedInDate":1,"signInMethod":{"apiBased":{"_0":"userSRP"}},
              "deviceMetadata":{"noData":{}},"cognitoUserPoolTokens":{"idToken":"\(Self.id())",
              "accessToken":"\(Self.access())","refreshToken":"refresh","expiration":721692000}},
              "identityID":"eu-west-1:1","credentials":{"accessKeyId":"A"}}}
            """
        let found = try #require(LegacyTokens(amplify: Data(session.utf8)))
        #expect(found == Self.legacy())
        // No item is larger than a mebibyte.
        let largest = session + String(repeating: " ", count: (1 << 20) - session.utf8.count)
        #expect(LegacyTokens(amplify: Data(largest.utf8)) == Self.legacy())
        #expect(LegacyTokens(amplify: Data((largest + " ").utf8)) == nil)
    }

    @Test(
        "What is no session of Amplify's is none",
        arguments: ["", "{}", #"{"noCredentials":{}}"#, #"{"identityPoolOnly":{"identityID":"x"}}"#, "[1]", "\u{0}"])
    func amplifyNoise(text: String) { #expect(LegacyTokens(amplify: Data(text.utf8)) == nil) }

    @Test("Nothing that prints tokens of another library prints a secret")
    func printing() {
        var dumped = ""
        dump(Self.legacy(), to: &dumped)
        dumped += "\(Self.legacy()) \(String(reflecting: Self.legacy()))"
        #expect(!dumped.contains("e30") && !dumped.contains("refresh"))
    }

    @Test("Tokens of the same pool and client sign the user in, once")
    func adopted() async throws {
        try await withSessions { bench in
            let (session, environment) = (bench.session(), try WrittenConfiguration.environment("staging"))
            #expect(try await session.adopt(Self.legacy(), of: environment, within: soon) == .adopted)
            #expect(session.state == .signedIn)
            let reading = try await session.storedCredentials(within: soon)
            #expect(reading == .present(Credentials(userPool: Self.legacy().tokens)))
            try await session.signOut(within: soon)
            #expect(try await session.adopt(Self.legacy(), of: environment, within: soon) == .late)
            #expect(session.state == .signedOut)
            // No key is needed to find that out.
            let locked = bench.session(keys: InMemoryKeyProvider(behaviour: .locked))
            #expect(try await locked.adopt(Self.legacy(), of: environment, within: soon) == .late)
        }
    }

    @Test(
        "Readers of a session see that its tokens were taken over, or put into quarantine",
        arguments: [(id(), SessionState.signedIn), (id(pool: "eu-west-1_Other"), SessionState.signedOut)])
    func told(idToken: String, state: SessionState) async throws {
        try await withSessions { bench in
            let (session, environment) = (bench.session(), try WrittenConfiguration.environment("staging"))
            var standings = session.standings.makeAsyncIterator()
            #expect(try await next(&standings) == SessionStanding(state: .signedOut))
            _ = try await session.adopt(Self.legacy(idToken), of: environment, within: soon)
            let standing = try #require(try await next(&standings, within: .seconds(20)))
            #expect(standing.state == state && standing.since == bench.clock.now)
        }
    }

    @Test(
        "Foreign tokens go to the quarantine, which the program lists and empties",
        arguments: [id(pool: "eu-west-1_Other"), id(client: "another"), id(user: "another"), "no token"])
    func foreign(idToken: String) async throws {
        try await withSessions { bench in
            let (session, environment) = (bench.session(), try WrittenConfiguration.environment("staging"))
            let outcome = try await session.adopt(Self.legacy(idToken), of: environment, within: soon)
            #expect(outcome == .quarantined && session.state == .signedOut)
            #expect(try await session.storedCredentials(within: soon) == .absent)
            #expect(try session.standing().reason?.contains("another pool") == true)
            let held = try session.status().quarantined
            #expect(held.map(\.reason) == [.otherEnvironment] && held.map(\.part) == [.userPool])
            #expect(held.map(\.reasonName) == ["otherEnvironment"])
            #expect(try await session.adopt(Self.legacy(), of: environment, within: soon) == .late)
            #expect(try await session.emptyQuarantine() == 1)
            #expect(try session.status().quarantined.isEmpty)
        }
    }

    @Test(
        "Tokens of which the access token alone is another pool's or client's go to the quarantine",
        arguments: [access(pool: "eu-west-1_Other"), access(client: "another")])
    func foreignAccess(accessToken: String) async throws {
        try await withSessions { bench in
            let (session, environment) = (bench.session(), try WrittenConfiguration.environment("staging"))
            let legacy = LegacyTokens(idToken: Self.id(), accessToken: accessToken, refreshToken: "refresh")
            #expect(try await session.adopt(legacy, of: environment, within: soon) == .quarantined)
            #expect(session.state == .signedOut)
        }
    }

    @Test("A session that another process begins while the key is waited for stays: the adoption is late")
    func late() async throws {
        try await withSessions { bench in
            let keys = InMemoryKeyProvider(behaviour: .hanging)
            let (session, environment) = (bench.session(keys: keys), try WrittenConfiguration.environment("staging"))
            let adopting = Task { try await session.adopt(Self.legacy(), of: environment, within: soon) }
            try await eventually { keys.reads == 1 }
            let now = bench.clock.now
            _ = try await bench.database.credentials.changeSession(of: "main") { _ in
                StoredSession(state: SessionState.signedOut.rawValue, changed: now)
            }
            keys.behaviour = .ready
            #expect(try await adopting.value == .late)
            #expect(session.state == .signedOut)
        }
    }

    @Test("Adopting tokens fails for an environment without a user pool, and stores no session")
    func withoutPool() async throws {
        try await withSessions { (bench) async throws in
            let session = bench.session()
            await expectCode(.noUserPool) {
                _ = try await session.adopt(Self.legacy(), of: backend("a"), within: soon)
            }
            #expect(try session.standing().since == nil)
        }
    }

    @Test("An adoption that says no time waits for the key provider as long as the options say")
    func defaultWait() async throws {
        try await withSessions { bench in
            let keys = InMemoryKeyProvider(behaviour: .hanging)
            let session = bench.session(keys: keys) {
                ($0.refreshTimeout, $0.keyTimeout) = (.seconds(60), .milliseconds(500))
            }
            let environment = try WrittenConfiguration.environment("staging")
            let begun = SuspendingClock.now
            await expectCode(.keysTimedOut) { _ = try await session.adopt(Self.legacy(), of: environment) }
            try requireNear(begun)
            keys.behaviour = .ready
        }
    }

    @Test("A session that is over takes no tokens over")
    func over() async throws {
        try await withSessions { bench in
            let (session, environment) = (bench.session(), try WrittenConfiguration.environment("staging"))
            session.close()
            await expectCode(.parked) { _ = try await session.adopt(Self.legacy(), of: environment, within: soon) }
            #expect(bench.session().state == .signedOut)
        }
    }

    @Test("An item that is larger than any token is none")
    func hugeItem() {
        let items = ["client.currentUser": "ann", "client.ann.idToken": Self.id()].mapValues { Data($0.utf8) }
        for size in [1 << 20, 1 << 20 + 1] {
            let all = items.merging(["client.ann.accessToken": Data(repeating: 0x78, count: size)]) { $1 }
            #expect((LegacyTokens(mobileClient: all, clientID: "client") != nil) == (size == 1 << 20))
        }
    }

    @Test("A store that has lost its key keeps the user signed in, and credentials unavailable until it is back")
    func staySignedIn() async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let session = bench.session(keys: InMemoryKeyProvider())
            guard case .unavailable(let error) = try await session.storedCredentials(within: soon) else {
                Issue.record("they are not unavailable")
                return
            }
            #expect(error.code == .missing && session.state == .signedIn)
        }
    }

    @Test(
        "A store that has lost its key starts anew where the program says so, whether or not there is another key",
        arguments: [nil, MasterKeys(current: MasterKey())])
    func startAnew(keys: MasterKeys?) async throws {
        try await withSessions { bench in
            try await bench.session().signIn(bench.provider.signIn("ada"), within: soon)
            let session = bench.session(keys: InMemoryKeyProvider(keys)) { $0.missingKey = .startAnew }
            #expect(try await session.storedCredentials(within: soon) == .absent)
            #expect(session.state == .signedOut)
            #expect(try session.standing().reason?.contains("quarantine") == true)
            #expect(Set(try session.status().quarantined.map(\.reasonName)) == ["keyGone"])
        }
    }

    @Test("A key that is only locked gives nothing up, whatever the program says of one that is gone")
    func locked() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            let session = bench.session { $0.missingKey = .startAnew }
            bench.keys.behaviour = .locked
            _ = try await session.storedCredentials(within: soon)
            bench.keys.behaviour = .ready
            #expect(try await session.storedCredentials(within: soon) == .present(mine))
        }
    }

    @Test("A key that does not come in time is not taken for one that is gone, and gives nothing up")
    func unanswered() async throws {
        try await withSessions { bench in
            let mine = bench.provider.signIn("ada")
            try await bench.session().signIn(mine, within: soon)
            let session = bench.session { $0.missingKey = .startAnew }
            bench.keys.behaviour = .hanging
            _ = try await session.storedCredentials(within: .milliseconds(50))
            bench.keys.behaviour = .ready
            #expect(session.state == .signedIn)
            #expect(try await session.storedCredentials(within: soon) == .present(mine))
        }
    }

    @Test("A key that has outlived its store opens nothing of a new one, and seals what a user is given there")
    func keyWithoutStore() async throws {
        let keys = InMemoryKeyProvider()
        try await withSessions { bench in
            try await bench.session(keys: keys).signIn(bench.provider.signIn("ada"), within: soon)
        }
        try await withSessions { bench in
            let session = bench.session(keys: keys)
            #expect(try await session.storedCredentials(within: soon) == .absent && session.state == .signedOut)
            let mine = bench.provider.signIn("bob")
            try await session.signIn(mine, within: soon)
            #expect(try await session.storedCredentials(within: soon) == .present(mine))
        }
    }
}
