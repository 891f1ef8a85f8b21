import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite(
    "Signing in on the pool's own pages", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct HostedSignInTests {
    private static func pages(_ fixture: CognitoFixture) throws -> BackendEnvironment.HostedSignIn {
        .init(
            domain: "127.0.0.1:\(try #require(fixture.url.port))", scopes: ["openid", "email"],
            signInRedirects: ["movies://in"], signOutRedirects: ["movies://out"])
    }

    /// Where the page leads that a browser would show.
    private static func follow(_ url: URL) async throws -> URL {
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        return try await HTTPClient.withHTTPClient(configuration: configuration) { browser in
            let answer = try await browser.execute(HTTPClientRequest(url: url.absoluteString), timeout: .seconds(60))
            return try #require(answer.headers.first(name: "Location").flatMap { URL(string: $0) })
        }
    }

    @Test("The page's URL has the client, the scopes and a challenge, and nothing secret")
    func url() async throws {
        try await CognitoFixture.run(secret: "sss") { fixture in
            let attempt = try fixture.pool().beginHostedSignIn(
                on: try Self.pages(fixture), provider: "Google", language: "ja")
            let items = try #require(URLComponents(url: attempt.url, resolvingAgainstBaseURL: false)?.queryItems)
            let query = Dictionary(items.map { ($0.name, $0.value) }) { $1 }
            #expect(query["client_id"] == "client" && query["scope"] == "openid email")
            #expect(query["code_challenge_method"] == "S256" && query["identity_provider"] == "Google")
            #expect(query["lang"] == "ja" && query["redirect_uri"] == "movies://in")
            #expect(!attempt.url.absoluteString.contains("sss") && !"\(attempt)".contains("code"))
        }
    }

    @Test("The page's URL names no provider and no language where the program names none")
    func unnamed() async throws {
        try await CognitoScript.run { (script) async throws in
            let attempt = try script.pool().beginHostedSignIn(on: try script.pages())
            let items = try #require(URLComponents(url: attempt.url, resolvingAgainstBaseURL: false)?.queryItems)
            #expect(!items.contains { $0.name == "identity_provider" || $0.name == "lang" })
        }
    }

    @Test("A dump of a hosted sign-in has nothing secret")
    func dumped() async throws {
        try await CognitoScript.run { (script) async throws in
            let pool = script.pool { $0.random = { Array(repeating: 7, count: $0) } }
            let attempt = try pool.beginHostedSignIn(on: try script.pages())
            var text = ""
            dump(attempt, to: &text)
            #expect(!text.contains("Bwc"))
        }
    }

    @Test("A hosted sign-in is described by the host of its page, without the page's URL, which has the state in it")
    func described() async throws {
        try await CognitoScript.run { (script) async throws in
            let pool = script.pool { $0.random = { Array(repeating: 7, count: $0) } }
            let attempt = try pool.beginHostedSignIn(on: try script.pages())
            #expect(attempt.url.absoluteString.contains("Bwc"))
            #expect("\(attempt)" == "sign-in on \(attempt.url.host() ?? "none")")
        }
    }

    @Test(
        "An answer of the pages that cannot be used is an error of its kind, whatever its status",
        arguments: [
            (429, "<html>", CognitoError.Code.throttled), (503, "<html>", .unreachable),
            (200, "<html>", .unusableAnswer),
            (404, "<html>", .unusableAnswer), (200, "{}", .unusableAnswer), (200, "[]", .unusableAnswer),
            (400, #"{"error": "invalid_grant"}"#, .signInAgain), (200, #"{"error": "invalid_grant"}"#, .signInAgain),
            (401, #"{"error": "invalid_client"}"#, .clientSecret), (400, #"{"error": "RETINA"}"#, .rejected),
            (200, #"{"id_token": "a", "access_token": "b", "expires_in": 60}"#, .foreignToken),
            (302, "{}", .unusableAnswer), (200, String(repeating: " ", count: 1 << 20) + "{}", .unusableAnswer),
        ])
    func unusable(_ status: Int, _ body: String, _ code: CognitoError.Code) async throws {
        try await CognitoScript.run { (script) async throws in
            script.set("", body, status: status)
            let pages = BackendEnvironment.HostedSignIn(
                domain: "127.0.0.1:\(try #require(script.server.url.port))", scopes: ["openid"],
                signInRedirects: ["movies://in"], signOutRedirects: [])
            let pool = script.pool()
            let attempt = try pool.beginHostedSignIn(on: pages)
            let items = URLComponents(url: attempt.url, resolvingAgainstBaseURL: false)?.queryItems
            let state = try #require(items?.first { $0.name == "state" }?.value)
            let callback = try #require(URL(string: "movies://in?code=c&state=\(state)"))
            let found = try await cognitoCode {
                _ = try await pool.finishHostedSignIn(attempt, on: pages, callback: callback, within: ample)
            }
            #expect(found == code)
        }
    }

    @Test("A user who signs in on the page has tokens, which are refreshed and revoked there", arguments: [nil, "sss"])
    func whole(secret: String?) async throws {
        try await CognitoFixture.run(secret: secret) { fixture in
            let pages = try Self.pages(fixture)
            let pool = try fixture.pool { $0.refreshesOn = pages }
            let attempt = try pool.beginHostedSignIn(on: pages)
            // A program that was ended meanwhile goes on with what it had kept.
            let kept = try JSONDecoder().decode(HostedSignIn.self, from: JSONEncoder().encode(attempt))
            let tokens = try await pool.finishHostedSignIn(
                kept, on: pages, callback: try await Self.follow(attempt.url), within: ample)
            let new = try await pool.refresh(tokens, within: ample)
            #expect(new.subject == tokens.subject && new.refreshToken == tokens.refreshToken)
            #expect(new.accessToken != tokens.accessToken)
            try await pool.revoke(new, within: ample)
            #expect(try await cognitoCode { try await pool.refresh(new, within: ample) } == .signInAgain)
            #expect(try await fixture.control().allSatisfy { $0.hasPrefix("/oauth2/") })
        }
    }

    @Test("The code verifier of a hosted sign-in is not in the page's URL, and is different each time")
    func verifier() async throws {
        try await CognitoScript.run { (script) async throws in
            let (pool, pages) = (script.pool(), try script.pages())
            var verifiers: Set<Substring> = []
            for _ in 0..<2 {
                let attempt = try pool.beginHostedSignIn(on: pages)
                let items = URLComponents(url: attempt.url, resolvingAgainstBaseURL: false)?.queryItems
                let state = try #require(items?.first { $0.name == "state" }?.value)
                let callback = try #require(URL(string: "movies://in?code=c&state=\(state)"))
                _ = try? await pool.finishHostedSignIn(attempt, on: pages, callback: callback, within: ample)
                let body = String(decoding: try #require(script.server.requests.last).body, as: UTF8.self)
                let field = try #require(body.split(separator: "&").first { $0.hasPrefix("code_verifier=") })
                let verifier = field.dropFirst("code_verifier=".count)
                #expect(!verifier.isEmpty && !attempt.url.absoluteString.contains(verifier))
                verifiers.insert(verifier)
            }
            #expect(verifiers.count == 2)
        }
    }

    @Test("A code is exchanged once, and only by the program that asked for it")
    func code() async throws {
        try await CognitoFixture.run { fixture in
            let (pool, pages) = (try fixture.pool(), try Self.pages(fixture))
            let (mine, others) = (try pool.beginHostedSignIn(on: pages), try pool.beginHostedSignIn(on: pages))
            let callback = try await Self.follow(mine.url)
            let code = try await cognitoCode {
                try await pool.finishHostedSignIn(others, on: pages, callback: callback, within: ample)
            }
            #expect(code == .invalidInput)
            _ = try await pool.finishHostedSignIn(mine, on: pages, callback: callback, within: ample)
            let again = try await cognitoCode {
                try await pool.finishHostedSignIn(mine, on: pages, callback: callback, within: ample)
            }
            #expect(again == .signInAgain)
        }
    }

    @Test("A user who gives up on the page has cancelled, and another URL is no answer")
    func givenUp() async throws {
        try await CognitoFixture.run { fixture in
            let (pool, pages) = (try fixture.pool(), try Self.pages(fixture))
            try await fixture.control(#"{"gaveUp": true}"#)
            let attempt = try pool.beginHostedSignIn(on: pages)
            let callback = try await Self.follow(attempt.url)
            let code = try await cognitoCode {
                try await pool.finishHostedSignIn(attempt, on: pages, callback: callback, within: ample)
            }
            #expect(code == .cancelled)
            let foreign = try #require(URL(string: "other://in?" + (callback.query() ?? "")))
            let other = try await cognitoCode {
                try await pool.finishHostedSignIn(attempt, on: pages, callback: foreign, within: ample)
            }
            #expect(other == .invalidInput)
        }
    }

    @Test("The sign-out page ends the browser's session and leads back to the program")
    func signingOut() async throws {
        try await CognitoFixture.run { fixture in
            let url = try fixture.pool().hostedSignOutURL(on: try Self.pages(fixture))
            #expect(url.path() == "/logout" && url.query() == "client_id=client&logout_uri=movies%3A%2F%2Fout")
        }
    }

    @Test("Pages of another host than this machine are asked over TLS")
    func secure() async throws {
        try await CognitoFixture.run { fixture in
            let pages = BackendEnvironment.HostedSignIn(
                domain: "movies.auth.us-east-1.amazoncognito.com", signInRedirects: ["movies://in"])
            let attempt = try fixture.pool().beginHostedSignIn(on: pages)
            #expect(attempt.url.absoluteString.hasPrefix("https://movies.auth.us-east-1.amazoncognito.com/oauth2/"))
        }
    }
}

@Suite(
    "Devices that a pool remembers", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct RememberedDeviceTests {
    private typealias User = CognitoFixture.User

    @Test("A sign-in on a remembered device proves it, and asks for no second factor")
    func proven() async throws {
        try await CognitoFixture.run(users: ["ann": User(steps: ["SMS_MFA"])]) { fixture in
            try await fixture.control(#"{"devices": true}"#)
            let pool = try fixture.pool()
            let first = try await pool.signIn("ann", password: "right password", flow: .password, within: ample)
            guard case .challenge(let challenge) = first else {
                Issue.record("no code was asked for")
                return
            }
            let tokens = try await pool.answer(challenge, .code("123456"), within: ample).tokens
            let device = try #require(try await pool.rememberDevice(of: tokens, named: "a phone", within: ample))
            #expect(device.key == tokens.deviceKey)
            #expect(try await pool.rememberDevice(of: tokens, within: ample) == nil, "it is no new one any more")
            let again = try await pool.signIn(
                "ann", password: "right password", device: device, within: ample
            ).tokens
            #expect(again.deviceKey == device.key)
            let asked = try await fixture.control()
            #expect(asked.contains("ConfirmDevice") && asked.contains("UpdateDeviceStatus"))
        }
    }

    @Test("A clock that is two hours slow proves a remembered device by Cognito's time")
    func wrongClock() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.control(#"{"devices": true}"#)
            let pool = try fixture.pool { $0.wallClock = { Date().addingTimeInterval(-7_200) } }
            let tokens = try await pool.signIn("ann", password: "right password", within: ample).tokens
            let device = try #require(try await pool.rememberDevice(of: tokens, within: ample))
            let again = try await pool.signIn(
                "ann", password: "right password", device: device, within: ample
            ).tokens
            #expect(again.deviceKey == device.key)
        }
    }

    @Test("A device that the pool has forgotten is a new one: the sign-in goes on as on any")
    func forgotten() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.control(#"{"devices": true}"#)
            let pool = try fixture.pool()
            let tokens = try await fixture.tokens(flow: .passwordProof)
            #expect(try await pool.rememberDevice(of: tokens, within: ample) == nil, "another sign-in's device")
            let mine = try await pool.signIn("ann", password: "right password", within: ample).tokens
            let device = try #require(try await pool.rememberDevice(of: mine, within: ample))
            try await pool.forgetDevice(device, of: mine, within: ample)
            let again = try await pool.signIn(
                "ann", password: "right password", device: device, within: ample
            ).tokens
            #expect(again.deviceKey != device.key)
        }
    }

    @Test("A device is forgotten by its own key, be the tokens another device's")
    func forgottenElsewhere() async throws {
        let kept = Data(#"{"key": "k", "group": "g", "password": "p"}"#.utf8)
        let device = try JSONDecoder().decode(RememberedDevice.self, from: kept)
        try await CognitoScript.run { (script) async throws in
            try await script.pool().forgetDevice(device, of: CognitoScript.tokens(device: "D"), within: ample)
            #expect(script.operations == ["ForgetDevice"])
            #expect(try script.members()["DeviceKey"] as? String == "k")
        }
    }

    @Test("A device is forgotten within the time that the caller says, and otherwise within that of the pool's options")
    func forgottenInTime() async throws {
        let kept = Data(#"{"key": "k", "group": "g", "password": "p"}"#.utf8)
        let device = try JSONDecoder().decode(RememberedDevice.self, from: kept)
        try await CognitoScript.run { (script) async throws in
            let (pool, tokens) = (script.pool { $0.timeout = .zero }, try CognitoScript.tokens())
            let late = try await cognitoCode { try await pool.forgetDevice(device, of: tokens) }
            #expect(late == .unreachable && script.operations.isEmpty)
            try await pool.forgetDevice(device, of: tokens, within: ample)
            #expect(script.operations == ["ForgetDevice"])
        }
    }

    @Test("A device is remembered within the time that the caller says, whatever the pool's options say")
    func rememberedInTime() async throws {
        let named = #", "ExpiresIn": 3600, "NewDeviceMetadata": {"DeviceKey": "D", "DeviceGroupKey": "G"}"#
        try await CognitoScript.run(["InitiateAuth": try CognitoScript.result(more: named)]) {
            (script) async throws in
            let pool = script.pool { $0.timeout = .zero }
            let tokens = try await pool.signIn("ann", password: "word", flow: .password, within: ample).tokens
            let device = try await pool.rememberDevice(of: tokens, within: ample)
            #expect(device?.key == "D")
        }
    }

    @Test("No description has a device's secret")
    func printing() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.control(#"{"devices": true}"#)
            let pool = try fixture.pool { $0.random = { Array(repeating: 7, count: $0) } }
            let tokens = try await pool.signIn("ann", password: "right password", within: ample).tokens
            let device = try #require(try await pool.rememberDevice(of: tokens, within: ample))
            var dumped = ""
            dump(device, to: &dumped)
            dumped += "\(device) \(String(reflecting: device))"
            #expect(!dumped.contains("Bwc"))
        }
    }
}
