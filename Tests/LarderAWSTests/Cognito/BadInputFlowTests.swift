import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

/// What a user, a pool's owner or a broken server can do wrong in a sign-in, each with what the user sees of it.
@Suite(
    "Bad input in sign-in flows", .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"),
    .timeLimit(.minutes(10)))
@MainActor
struct BadInputFlowTests {
    typealias User = CognitoFixture.User

    private static let right = ["name": "ann", "password": "right password"]

    private nonisolated func withFlow(
        _ user: User = User(), _ flow: CognitoUserPool.Flow = .password, secret: String? = nil,
        _ body: @MainActor @Sendable (SignInFlow, Session, CognitoFixture) async throws -> Void
    ) async throws {
        var options = SignInFlow.Options()
        (options.flow, options.timeout) = (flow, .seconds(300))
        try await CognitoFixture.run(users: ["ann": user], secret: secret) { [options] fixture in
            // The pool has a secret that the program was not given.
            var environment = fixture.environment()
            environment.clientSecret = nil
            let provider = fixture.provider(environment)
            let pool = try #require(provider.userPool)
            try await fixture.withStore(environment, { $0.identityProvider = { _ in provider } }) { _, app in
                let session = try app.session
                try await body(await SignInFlow(pool, session: session, options: options), session, fixture)
            }
        }
    }

    /// Expects a failure with texts in both languages, and a state from which the user can go on.
    private func expectFailure(
        _ flow: SignInFlow, _ session: Session, _ code: CognitoError.Code,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let failure = try #require(flow.state.failure, "\(flow.state.step)", sourceLocation: sourceLocation)
        #expect(failure.code.rawValue == code.rawValue, sourceLocation: sourceLocation)
        let (english, japanese) = (ErrorTexts(languages: ["en"]), ErrorTexts(languages: ["ja"]))
        let texts = [english.text(for: failure), japanese.text(for: failure)]
        #expect(texts.allSatisfy { !$0.isEmpty } && texts[0] != texts[1], sourceLocation: sourceLocation)
        let state = flow.state
        #expect(!state.isWorking && state.actions.contains(.submit), sourceLocation: sourceLocation)
        #expect(session.state == .signedOut, sourceLocation: sourceLocation)
    }

    @Test(
        "A user who cannot sign in, and a pool that cannot, are told, and the user can go on where it stands",
        arguments: [
            (
                #"{"fail": {"InitiateAuth": {"type": "NotAuthorizedException", "message": "User is disabled."}}}"#,
                CognitoError.Code.userDisabled
            ),
            (#"{"fail": {"InitiateAuth": {"type": "UserNotFoundException"}}}"#, .userNotFound),
            (#"{"fail": {"InitiateAuth": {"type": "TooManyRequestsException"}}}"#, .throttled),
            (#"{"fail": {"InitiateAuth": {"type": "LimitExceededException"}}}"#, .throttled),
            (#"{"fail": {"InitiateAuth": {"type": "TooManyFailedAttemptsException"}}}"#, .tooManyAttempts),
            (#"{"fail": {"InitiateAuth": {"type": "UserLambdaValidationException"}}}"#, .refusedByFunction),
            (#"{"fail": {"InitiateAuth": {"type": "ResourceNotFoundException"}}}"#, .configuration),
            (#"{"flowsOff": ["USER_PASSWORD_AUTH"]}"#, .flowNotEnabled),
            (#"{"issuer": "us-east-1_Other"}"#, .foreignToken),
            (#"{"fail": {"InitiateAuth": {"raw": "{}"}}}"#, .unusableAnswer),
            (#"{"fail": {"InitiateAuth": {"raw": "<html>"}}}"#, .unusableAnswer),
            (#"{"fail": {"InitiateAuth": {"raw": "", "status": 503}}}"#, .unreachable),
            (
                #"{"fail": {"InitiateAuth": {"raw": "{\"ChallengeName\": \"NEWER\", \"Session\": \"s\"}"}}}"#,
                .unknownChallenge
            ),
        ])
    func beginning(_ control: String, _ code: CognitoError.Code) async throws {
        try await withFlow { flow, session, fixture in
            try await fixture.control(control)
            await flow.perform(.submit, Self.right)
            try expectFailure(flow, session, code)
            #expect(flow.state.step == .signIn)
            try await fixture.control(#"{"fail": {}, "flowsOff": [], "issuer": "\#(CognitoFixture.poolID)"}"#)
            await flow.perform(.submit, Self.right)
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A huge answer is told, and the user can go on")
    func huge() async throws {
        try await withFlow { flow, session, fixture in
            let text = String(repeating: "x", count: 2 << 20)
            try await fixture.fail("InitiateAuth", #"{"raw": "\#(text)"}"#)
            await flow.perform(.submit, Self.right)
            try expectFailure(flow, session, .unusableAnswer)
        }
    }

    @Test("A client's secret that was not given is told")
    func withoutSecret() async throws {
        try await withFlow(secret: "sss") { flow, session, _ in
            await flow.perform(.submit, Self.right)
            try expectFailure(flow, session, .clientSecret)
        }
    }

    @Test(
        "A wrong code and an expired one are told, and another code signs in",
        arguments: [("000000", CognitoError.Code.codeMismatch), ("999999", .codeExpired)])
    func codes(_ wrong: String, _ code: CognitoError.Code) async throws {
        try await withFlow(User(steps: ["EMAIL_OTP"])) { flow, session, _ in
            await flow.perform(.submit, Self.right)
            await flow.perform(.submit, ["code": wrong])
            try expectFailure(flow, session, code)
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    private func account(_ name: String, _ password: String) -> [String: String] {
        ["name": name, "newPassword": password, "attribute.email": "\(name)@example.com"]
    }

    @Test("A weak password of a new account is told, and another makes the account")
    func weakPassword() async throws {
        try await withFlow { flow, session, _ in
            await flow.perform(.signUp)
            await flow.perform(.submit, account("bob", "weak"))
            try expectFailure(flow, session, .weakPassword)
            await flow.perform(.submit, account("ann", "long enough"))
            try expectFailure(flow, session, .userExists)
            await flow.perform(.submit, account("bob", "long enough"))
            guard case .confirmAccount = flow.state.step else {
                Issue.record("\(flow.state.step)")
                return
            }
        }
    }

    @Test("A configuration without a user pool gives a provider without one, and its tokens are refused by name")
    nonisolated func withoutPool() async throws {
        try await CognitoFixture.run { fixture in
            var environment = fixture.environment()
            environment.userPool = nil
            let provider = fixture.provider(environment)
            #expect(provider.userPool == nil)
            try await fixture.withStore(environment, { $0.identityProvider = { _ in provider } }) { _, app in
                let session = try app.session
                try await session.signIn(
                    Credentials(cloud: .init(accessKeyID: "A", secretAccessKey: "s", expires: nil)), within: ample)
                let error = try #require(
                    await #expect(throws: LarderError.self) { _ = try await session.userPoolTokens(within: ample) })
                #expect(error.code == .noUserPool || error.code == .notInUserPool, "\(error)")
                #expect(session.state == .signedIn)
            }
        }
    }
}
