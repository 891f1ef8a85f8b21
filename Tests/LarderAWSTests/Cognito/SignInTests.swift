import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite(
    "Signing in to Cognito", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct SignInTests {
    typealias User = CognitoFixture.User

    @Test("The server of these tests is one that pycognito signs in to, 60 times, and that refuses it 10 times")
    func pycognito() async throws {
        let users = Dictionary(uniqueKeysWithValues: (0..<60).map { ("u\($0)", User(password: "password\($0)")) })
        try await CognitoFixture.run(users: users) { fixture in
            let process = Process()
            process.executableURL = URL(filePath: try #require(ServerProcess.python))
            process.arguments = [
                "-B", ServerProcess.folder.appending(path: "prove_cognito.py").path,
                String(try #require(fixture.url.port)),
            ]
            let output = Pipe.uninherited()
            process.standardOutput = output
            try process.start()
            let said = try output.fileHandleForReading.readToEnd() ?? Data()
            await process.ended()
            #expect(String(decoding: said, as: UTF8.self) == "taken 60 refused 10\n")
        }
    }

    @Test("A proof of the password signs in, and the password is not sent")
    func proof() async throws {
        try await CognitoFixture.run { fixture in
            let before = Date()
            let tokens = try await fixture.tokens(flow: .passwordProof)
            #expect(tokens.refreshToken != nil)
            let expires = try #require(tokens.expires)
            #expect(expires >= before.addingTimeInterval(3_600) && expires <= Date().addingTimeInterval(3_600))
            #expect(try await fixture.control() == ["InitiateAuth", "RespondToAuthChallenge"])
        }
    }

    @Test("A clock that is two hours off proves the password by Cognito's time", arguments: [-7_200, 7_200])
    func wrongClock(seconds: Int) async throws {
        try await CognitoFixture.run { fixture in
            let pool = try fixture.pool { $0.wallClock = { Date().addingTimeInterval(TimeInterval(seconds)) } }
            let tokens = try await pool.signIn("ann", password: "right password", within: ample).tokens
            // They end by this machine's clock.
            let end = try #require(tokens.expires)
            #expect(abs(end.timeIntervalSinceNow - TimeInterval(seconds) - 3_600) < 600)
        }
    }

    @Test("Wrong passwords are refused, by proof and as they are")
    func wrongPassword() async throws {
        try await CognitoFixture.run { fixture in
            let pool = try fixture.pool()
            for flow in [CognitoUserPool.Flow.passwordProof, .password] {
                let code = try await cognitoCode {
                    try await pool.signIn("ann", password: "wrong password", flow: flow, within: ample)
                }
                #expect(code == .wrongCredentials)
            }
        }
    }

    @Test(
        "Passwords with every kind of character are proven",
        arguments: ["pässwörd!", "パスワード1234", "p:a:s:s🍣word", "  spaces  "])
    func characters(_ password: String) async throws {
        try await CognitoFixture.run(users: ["josé": User(password: password)]) { fixture in
            _ = try await fixture.tokens("josé", password, flow: .passwordProof)
        }
    }

    @Test("A client with a secret proves it with each call, and is refused without")
    func clientSecret() async throws {
        try await CognitoFixture.run(secret: "sss") { fixture in
            let tokens = try await fixture.tokens(flow: .passwordProof)
            _ = try await fixture.pool().refresh(tokens, within: ample)
            _ = try await fixture.pool { $0.refreshesByFlow = true }.refresh(tokens, within: ample)
            try await fixture.pool().revoke(tokens, within: ample)
            var environment = fixture.environment()
            environment.clientSecret = nil
            let without = try #require(fixture.provider(environment).userPool)
            #expect(
                try await cognitoCode {
                    try await without.signIn("ann", password: "right password", flow: .password, within: ample)
                } == .clientSecret)
        }
    }

    @Test("A process that was not given the client's secret refreshes and revokes with the one that is sealed")
    func sealedSecret() async throws {
        try await CognitoFixture.run(secret: "sss") { fixture in
            let tokens = try await fixture.tokens()
            #expect(tokens.clientSecret == "sss")
            var environment = fixture.environment()
            environment.clientSecret = nil
            let without = try #require(fixture.provider(environment).userPool)
            let new = try await without.refresh(tokens, within: ample)
            #expect(new.clientSecret == "sss")
            let byFlow = fixture.provider(environment) { $0.refreshesByFlow = true }
            _ = try await #require(byFlow.userPool).refresh(new, within: ample)
            try await without.revoke(new, within: ample)
        }
    }

    @Test(
        "A code is asked for after the password; a wrong one can be put right",
        arguments: [
            ("SMS_MFA", SignInFactor.secondMessageCode), ("SOFTWARE_TOKEN_MFA", .authenticator),
            ("EMAIL_OTP", .emailCode),
        ])
    func code(_ step: String, _ factor: SignInFactor) async throws {
        try await CognitoFixture.run(users: ["ann": User(steps: [step])]) { fixture in
            let pool = try fixture.pool()
            let challenge = try await pool.signIn("ann", password: "right password", flow: .password, within: ample)
                .challenge
            guard case .code(factor, _) = challenge.kind else {
                Issue.record("\(challenge.kind)")
                return
            }
            #expect(
                try await cognitoCode { try await pool.answer(challenge, .code("000000"), within: ample) }
                    == .codeMismatch)
            #expect(
                try await cognitoCode { try await pool.answer(challenge, .code("999999"), within: ample) }
                    == .codeExpired)
            _ = try await pool.answer(challenge, .code("123456"), within: ample).tokens
            // It is good for one answer.
            #expect(
                try await cognitoCode { try await pool.answer(challenge, .code("123456"), within: ample) }
                    == .signInAgain)
        }
    }

    @Test("A new password is asked for with the attributes that the pool wants")
    func newPassword() async throws {
        try await CognitoFixture.run(users: ["ann": User(steps: ["NEW_PASSWORD_REQUIRED"])]) { fixture in
            let pool = try fixture.pool()
            let challenge = try await pool.signIn("ann", password: "right password", flow: .password, within: ample)
                .challenge
            #expect(
                challenge.kind
                    == .newPassword(required: ["nickname"], attributes: ["email": "ann@example.com"]))
            #expect(
                try await cognitoCode {
                    try await pool.answer(
                        challenge, .newPassword("short", attributes: ["nickname": "a"]), within: ample)
                } == .weakPassword)
            #expect(
                try await cognitoCode {
                    try await pool.answer(challenge, .newPassword("a longer one"), within: ample)
                } == .invalidInput)
            _ = try await pool.answer(
                challenge, .newPassword("a longer one", attributes: ["nickname": "a"]), within: ample
            ).tokens
            _ = try await fixture.tokens("ann", "a longer one")
        }
    }

    @Test("A second factor is chosen, and then its code is asked for")
    func chooseSecond() async throws {
        try await CognitoFixture.run(users: ["ann": User(steps: ["SELECT_MFA_TYPE"])]) { fixture in
            let pool = try fixture.pool()
            let choice = try await pool.signIn("ann", password: "right password", flow: .password, within: ample)
                .challenge
            #expect(choice.kind == .chooseSecondFactor([.secondMessageCode, .authenticator]))
            let code = try await pool.answer(choice, .factor(.authenticator), within: ample).challenge
            _ = try await pool.answer(code, .code("123456"), within: ample).tokens
        }
    }

    @Test("A first factor is chosen: a proof of the password, the password, a code")
    func chooseFirst() async throws {
        try await CognitoFixture.run { fixture in
            let pool = try fixture.pool()
            func begin() async throws -> SignInChallenge {
                try await pool.signIn("ann", password: nil, flow: .choice(), within: ample).challenge
            }
            #expect(try await begin().kind == .chooseFirstFactor([.password, .passwordProof, .emailCode]))
            _ = try await pool.answer(begin(), .password("right password"), within: ample).tokens
            _ = try await pool.answer(begin(), .password("right password", asProof: false), within: ample).tokens
            let code = try await pool.answer(begin(), .factor(.emailCode), within: ample).challenge
            _ = try await pool.answer(code, .code("123456"), within: ample).tokens
            _ = try await pool.signIn(
                "ann", password: "right password", flow: .choice(preferred: .passwordProof), within: ample
            ).tokens
        }
    }

    @Test("An authenticator app is set up in the middle of a sign-in")
    func authenticator() async throws {
        try await CognitoFixture.run(users: ["ann": User(steps: ["MFA_SETUP"])]) { fixture in
            let pool = try fixture.pool()
            let challenge = try await pool.signIn("ann", password: "right password", flow: .password, within: ample)
                .challenge
            #expect(challenge.kind == .setUpAuthenticator)
            let key = try await pool.authenticatorKey(for: challenge, within: ample)
            #expect(
                key.uri(issuer: "My Movies")
                    == "otpauth://totp/My%20Movies:ann?secret=JBSWY3DPEHPK3PXP&issuer=My%20Movies")
            #expect(
                try await cognitoCode { try await pool.answer(key.challenge, .code("000000"), within: ample) }
                    == .codeMismatch)
            _ = try await pool.answer(key.challenge, .code("123456"), within: ample).tokens
        }
    }

    @Test("Challenges of the pool's own functions are asked and answered")
    func custom() async throws {
        try await CognitoFixture.run { fixture in
            let pool = try fixture.pool()
            let challenge = try await pool.signIn("ann", password: nil, flow: .custom, within: ample).challenge
            #expect(challenge.kind == .custom(["question": "What is the word?"]))
            _ = try await pool.answer(challenge, .text("sesame"), within: ample).tokens
        }
    }

    @Test("A challenge that is unknown is said to be, and an answer to another kind is refused")
    func unknown() async throws {
        try await CognitoFixture.run(users: ["ann": User(steps: ["RETINA_SCAN"])]) { fixture in
            let pool = try fixture.pool()
            let challenge = try await pool.signIn("ann", password: "right password", flow: .password, within: ample)
                .challenge
            #expect(challenge.kind == .unknown(name: "RETINA_SCAN"))
            #expect(
                try await cognitoCode { try await pool.answer(challenge, .code("1"), within: ample) }
                    == .unknownChallenge)
            let custom = try await pool.signIn("ann", password: nil, flow: .custom, within: ample).challenge
            #expect(
                try await cognitoCode { try await pool.answer(custom, .code("1"), within: ample) } == .invalidInput)
        }
    }

    @Test(
        "Users who cannot sign in are told why",
        arguments: [
            (User(confirmed: false), CognitoError.Code.userNotConfirmed), (User(enabled: false), .userDisabled),
            (User(reset: true), .passwordResetRequired),
        ])
    func unusable(_ user: User, _ code: CognitoError.Code) async throws {
        try await CognitoFixture.run(users: ["ann": user]) { (fixture) async throws in
            #expect(try await cognitoCode { try await fixture.tokens() } == code)
            #expect(try await cognitoCode { try await fixture.tokens("bob") } == .userNotFound)
        }
    }

    @Test("A flow that the client does not allow is said to be")
    func flowOff() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.control(#"{"flowsOff": ["USER_SRP_AUTH"]}"#)
            #expect(try await cognitoCode { try await fixture.tokens(flow: .passwordProof) } == .flowNotEnabled)
        }
    }

    @Test("Tokens of another pool are refused, and so is what is no token")
    func foreignTokens() async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.control(#"{"issuer": "us-east-1_Other"}"#)
            #expect(try await cognitoCode { try await fixture.tokens() } == .foreignToken)
            for token in ["no-token", "a.b.c", "..", "e30.e30.e30"] {
                try await fixture.fail(
                    "InitiateAuth",
                    """
                    {"raw": "{\\"AuthenticationResult\\": {\\"IdToken\\": \\"\(token)\\", \
                    \\"AccessToken\\": \\"\(token)\\", \\"ExpiresIn\\": 60}}"}
                    """)
                #expect(try await cognitoCode { try await fixture.tokens() } == .foreignToken, "\(token)")
            }
        }
    }

    @Test(
        "Answers that are none are typed errors",
        arguments: [
            (#"{"raw": "{}"}"#, CognitoError.Code.unusableAnswer), (#"{"raw": "[]"}"#, .unusableAnswer),
            (#"{"raw": "<html>"}"#, .unusableAnswer), (#"{"raw": ""}"#, .unusableAnswer),
            (#"{"raw": "{\"AuthenticationResult\": {\"IdToken\": 5}}"}"#, .unusableAnswer),
            (#"{"raw": "{\"ChallengeName\": \"PASSWORD_VERIFIER\"}"}"#, .unusableAnswer),
            (#"{"raw": "<html>", "status": 503}"#, .unreachable), (#"{"raw": "", "status": 429}"#, .throttled),
            (#"{"raw": "no", "status": 404}"#, .rejected), (#"{"raw": "x", "status": 302}"#, .unusableAnswer),
            (#"{"type": "TooManyRequestsException"}"#, .throttled), (#"{"type": "Newer"}"#, .rejected),
            (#"{"type": "InternalErrorException"}"#, .unreachable),
            (#"{"type": "ResourceNotFoundException"}"#, .configuration),
        ])
    func unusable(_ fault: String, _ code: CognitoError.Code) async throws {
        try await CognitoFixture.run { fixture in
            try await fixture.fail("InitiateAuth", fault)
            let flow = fault.contains("PASSWORD_VERIFIER") ? CognitoUserPool.Flow.passwordProof : .password
            #expect(try await cognitoCode { try await fixture.tokens(flow: flow) } == code)
        }
    }

    @Test("An answer of more than a megabyte is given up")
    func huge() async throws {
        try await CognitoFixture.run { fixture in
            let text = String(repeating: "x", count: 2 << 20)
            try await fixture.fail("InitiateAuth", #"{"raw": "\#(text)"}"#)
            #expect(try await cognitoCode { try await fixture.tokens() } == .unusableAnswer)
        }
    }

    @Test("No description has a password, a token or what a challenge is answered with")
    func secrets() async throws {
        try await CognitoFixture.run(users: ["ann": User(steps: ["SMS_MFA"])]) { fixture in
            let challenge = try await fixture.pool().signIn(
                "ann", password: "right password", flow: .password, within: ample
            )
            .challenge
            var dumped = ""
            dump(challenge, to: &dumped)
            #expect(!dumped.contains("session") && !"\(challenge)".contains("session"))
            let error = await #expect(throws: CognitoError.self) { _ = try await fixture.tokens("ann", "s3cret word") }
            #expect(error.map { !"\($0)".contains("s3cret") } == true)
        }
    }
}
