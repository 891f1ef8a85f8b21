import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite(
    "Tokens and accounts of Cognito", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct TokenTests {
    @Test("A pool without rotation keeps the refresh token, by both ways to refresh")
    func unrotated() async throws {
        try await CognitoFixture.run { fixture in
            let old = try await fixture.tokens()
            for byFlow in [false, true] {
                let new = try await fixture.pool { $0.refreshesByFlow = byFlow }.refresh(old, within: ample)
                #expect(new.refreshToken == old.refreshToken)
                #expect(new.accessToken != old.accessToken)
            }
        }
    }

    @Test("A pool with rotation gives the next refresh token, and refuses the used one")
    func rotated() async throws {
        try await CognitoFixture.run(rotates: true) { fixture in
            let pool = try fixture.pool()
            let first = try await fixture.tokens()
            let second = try await pool.refresh(first, within: ample)
            #expect(second.refreshToken != first.refreshToken)
            _ = try await pool.refresh(second, within: ample)
            let error = try #require(
                await #expect(throws: CognitoError.self) { _ = try await pool.refresh(first, within: ample) })
            #expect(error.code == .signInAgain)
            #expect(error.serverCode == "RefreshTokenReuseException")
        }
    }

    @Test("An answer that is lost within the grace period signs nobody out")
    func graceAfterLoss() async throws {
        try await CognitoFixture.run(rotates: true) { fixture in
            try await fixture.control(#"{"grace": 60}"#)
            let pool = try fixture.pool()
            let tokens = try await fixture.tokens()
            try await fixture.fail("GetTokensFromRefreshToken", #"{"after": true}"#)
            #expect(try await cognitoCode { try await pool.refresh(tokens, within: ample) } == .unreachable)
            try await fixture.fail("GetTokensFromRefreshToken", nil)
            _ = try await pool.refresh(tokens, within: ample)
        }
    }

    @Test("Many callers refresh at once with rotation on: one request, one new token, all signed in")
    func single() async throws {
        try await CognitoFixture.run(rotates: true) { fixture in
            try await fixture.withStore { _, app in
                let tokens = try await fixture.tokens()
                try await app.session.signIn(Credentials(userPool: tokens), within: ample)
                let session = try app.session
                let before = try await fixture.control().count
                let given = try await withThrowingTaskGroup(of: String.self) { group in
                    for _ in 0..<50 {
                        group.addTask { try await session.userPoolTokens(within: ample, refused: tokens).accessToken }
                    }
                    return try await group.reduce(into: Set()) { $0.insert($1) }
                }
                #expect(given.count == 1)
                #expect(try await fixture.control().dropFirst(before) == ["GetTokensFromRefreshToken"])
                #expect(session.state == .signedIn)
            }
        }
    }

    @Test(
        "Only what says so ends a session",
        arguments: [
            ("NotAuthorizedException", "Invalid Refresh Token", SessionState.userPoolTokensInvalid),
            ("RefreshTokenReuseException", "used", .userPoolTokensInvalid),
            ("UserNotFoundException", "gone", .userPoolTokensInvalid),
            ("UserNotConfirmedException", "no", .userPoolTokensInvalid),
            ("PasswordResetRequiredException", "reset", .userPoolTokensInvalid),
            ("NotAuthorizedException", "Client secret is wrong", .signedIn),
            ("TooManyRequestsException", "slow down", .signedIn), ("InternalErrorException", "oops", .signedIn),
            ("ForbiddenException", "WAF", .signedIn), ("ResourceNotFoundException", "no client", .signedIn),
            ("InvalidParameterException", "what", .signedIn), ("Unheard", "new", .signedIn),
        ])
    func endings(_ type: String, _ message: String, _ state: SessionState) async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.withStore { _, app in
                let tokens = try await fixture.tokens()
                try await app.session.signIn(Credentials(userPool: tokens), within: ample)
                try await fixture.fail(
                    "GetTokensFromRefreshToken", #"{"type": "\#(type)", "message": "\#(message)"}"#)
                let session = try app.session
                await #expect(throws: LarderError.self) {
                    _ = try await session.userPoolTokens(within: ample, refused: tokens)
                }
                #expect(session.state == state)
                // They are good by their time still.
                if state == .signedIn {
                    #expect(try await session.userPoolTokens(within: ample) == tokens)
                }
            }
        }
    }

    @Test("Signing out revokes the refresh token, and without a network it signs out here")
    func signOut() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.withStore { _, app in
                let tokens = try await fixture.tokens()
                try await app.session.signIn(Credentials(userPool: tokens), within: ample)
                #expect(try await app.session.signOut(within: ample).isServerTold == true)
                #expect(
                    try await cognitoCode { try await fixture.pool().refresh(tokens, within: ample) } == .signInAgain)
                try await app.session.signIn(Credentials(userPool: try await fixture.tokens()), within: ample)
                try await fixture.fail("RevokeToken", #"{"type": "InternalErrorException"}"#)
                let left = try await app.session.signOut(within: ample)
                #expect(left.isServerTold == false)
                #expect(try app.session.state == .signedOut)
            }
        }
    }

    @Test("Signing out everywhere ends the other devices' tokens")
    func everywhere() async throws {
        try await CognitoFixture.run { fixture in
            let (here, there) = (try await fixture.tokens(), try await fixture.tokens())
            let pool = try fixture.pool()
            try await pool.signOutEverywhere(here, within: ample)
            #expect(try await cognitoCode { try await pool.refresh(there, within: ample) } == .signInAgain)
            #expect(try await cognitoCode { try await pool.attributes(there, within: ample) } == .signInAgain)
        }
    }

    @Test("An account is made, confirmed, used, changed and deleted")
    func account() async throws {
        try await CognitoFixture.run { fixture in
            let pool = try fixture.pool()
            let made = try await pool.signUp(
                "bob", password: "a long password", attributes: ["email": "bob@example.com"], within: ample)
            #expect(!made.isConfirmed)
            #expect(made.delivery.destination == "a***@e***")
            #expect(
                try await cognitoCode {
                    try await pool.signUp("bob", password: "a long password", within: ample)
                } == .userExists)
            #expect(
                try await cognitoCode { try await pool.signUp("eve", password: "short", within: ample) }
                    == .weakPassword)
            #expect(try await cognitoCode { try await fixture.tokens("bob", "a long password") } == .userNotConfirmed)
            #expect(
                try await cognitoCode { try await pool.confirmSignUp("bob", code: "000000", within: ample) }
                    == .codeMismatch)
            #expect(try await pool.resendConfirmation(of: "bob", within: ample).medium == "EMAIL")
            try await pool.confirmSignUp("bob", code: "123456", within: ample)
            let tokens = try await fixture.tokens("bob", "a long password")
            try await pool.changeAttributes(["nickname": "B"], tokens, within: ample)
            #expect(
                try await pool.attributes(tokens, within: ample)
                    == ["sub": "sub-bob", "email": "bob@example.com", "nickname": "B"])
            try await pool.changePassword(from: "a long password", to: "another one", tokens, within: ample)
            _ = try await fixture.tokens("bob", "another one")
            #expect(try await pool.forgotPassword(of: "bob", within: ample).attribute == "email")
            #expect(
                try await cognitoCode {
                    try await pool.setForgottenPassword(
                        of: "bob", to: "a third one", code: "999999", within: ample)
                } == .codeExpired)
            try await pool.setForgottenPassword(of: "bob", to: "a third one", code: "123456", within: ample)
            _ = try await fixture.tokens("bob", "a third one")
            try await pool.deleteUser(tokens, within: ample)
            #expect(try await cognitoCode { try await fixture.tokens("bob", "a third one") } == .userNotFound)
        }
    }
}
