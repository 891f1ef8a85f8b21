import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Synchronization
import Testing

@Suite(
    "Sign-in flows", .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"),
    .timeLimit(.minutes(10)))
@MainActor
struct SignInFlowTests {
    typealias User = CognitoFixture.User

    private static let right = ["name": "ann", "password": "right password"]

    private nonisolated func withFlow(
        _ user: User = User(), _ change: @Sendable (inout SignInFlow.Options) -> Void = { _ in },
        _ body: @MainActor @Sendable (SignInFlow, Session, CognitoFixture) async throws -> Void
    ) async throws {
        var options = SignInFlow.Options()
        options.programName = "Movies"
        // A proof of the password takes long, unoptimized.
        (options.flow, options.timeout) = (.password, .seconds(300))
        change(&options)
        try await CognitoFixture.run(users: ["ann": user]) { [options] fixture in
            try await fixture.withStore { _, app in
                let session = try app.session
                let flow = await SignInFlow(try fixture.pool(), session: session, options: options)
                try await body(flow, session, fixture)
            }
        }
    }

    private func code(_ flow: SignInFlow) -> String? { flow.state.failure?.code.rawValue }

    @Test("Name and password lead to a session; a wrong password can be put right where it was entered")
    func password() async throws {
        try await withFlow(User(), { $0.flow = .passwordProof }) { flow, session, _ in
            #expect(flow.state.fields.map(\.id) == ["name", "password"])
            #expect(flow.state.actions == [.submit, .forgotPassword, .signUp, .cancel])
            await flow.perform(.submit, ["name": "ann", "password": "wrong password"])
            #expect(code(flow) == "cognito.wrongCredentials" && flow.state.step == .signIn)
            #expect(!flow.state.isWorking && session.state != .signedIn)
            await flow.perform(.submit, Self.right)
            #expect(flow.state.step == .done && flow.state.failure == nil)
            #expect(session.state == .signedIn)
            let user = try await session.credentials(within: ample).userPool
            #expect(user != nil)
        }
    }

    @Test("An empty field is refused before anything is sent, and named")
    func empty() async throws {
        try await withFlow { flow, _, fixture in
            await flow.perform(.submit, ["name": "ann"])
            #expect(flow.state.refusedFields == ["password"] && code(flow) == "cognito.emptyField")
            let asked = try await fixture.control()
            #expect(asked.isEmpty)
        }
    }

    @Test("A code is asked for, and a wrong one can be put right")
    func codeStep() async throws {
        try await withFlow(User(steps: ["SMS_MFA"])) { flow, session, _ in
            await flow.perform(.submit, Self.right)
            guard case .code(.secondMessageCode, _) = flow.state.step else {
                Issue.record("\(flow.state.step)")
                return
            }
            #expect(flow.state.fields == [SignInField("code", .code)])
            await flow.perform(.submit, ["code": "000000"])
            #expect(code(flow) == "cognito.codeMismatch")
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A challenge that is too old leads back to name and password, with the reason")
    func tooOld() async throws {
        try await withFlow(User(steps: ["SMS_MFA"])) { flow, _, fixture in
            await flow.perform(.submit, Self.right)
            try await fixture.fail(
                "RespondToAuthChallenge",
                #"{"type": "NotAuthorizedException", "message": "Invalid session for the user, session is expired."}"#
            )
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .signIn && code(flow) == "cognito.signInAgain")
            #expect(flow.state.fields.first?.value == "ann")
        }
    }

    @Test("An account that was never confirmed is confirmed by a new code, and then signed in")
    func unconfirmed() async throws {
        try await withFlow(User(confirmed: false)) { flow, session, fixture in
            await flow.perform(.submit, Self.right)
            guard case .confirmAccount = flow.state.step else {
                Issue.record("\(flow.state.step)")
                return
            }
            let asked = try await fixture.control()
            #expect(asked.contains("ResendConfirmationCode"))
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A new account is made, confirmed and signed in")
    func signUp() async throws {
        try await withFlow { flow, session, _ in
            await flow.perform(.signUp)
            #expect(flow.state.fields.map(\.kind) == [.name, .newPassword, .attribute("email")])
            let account = ["name": "bea", "newPassword": "long enough", "attribute.email": "bea@example.com"]
            await flow.perform(.submit, account)
            guard case .confirmAccount = flow.state.step else {
                Issue.record("\(flow.state.step), \(code(flow) ?? "")")
                return
            }
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("An attribute that is called as a field of the screen is no such field")
    func attributeNames() async throws {
        try await withFlow(User(), { $0.signUpAttributes = ["name", "newPassword"] }) { flow, session, fixture in
            await flow.perform(.signUp)
            #expect(Set(flow.state.fields.map(\.id)).count == 4)
            #expect(flow.state.fields.map(\.isSecret) == [false, true, false, false])
            await flow.perform(
                .submit,
                [
                    "name": "bea", "newPassword": "long enough", "attribute.name": "Bea", "attribute.newPassword": "no",
                ])
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done, "\(flow.state.failure?.message ?? "")")
            let attributes = try await fixture.pool().attributes(session.userPoolTokens(), within: ample)
            #expect(attributes["name"] == "Bea" && attributes["newPassword"] == "no")
        }
    }

    @Test("A forgotten password, and one that must be reset, are set anew by a code", arguments: [false, true])
    func forgotten(mustReset: Bool) async throws {
        try await withFlow(User(reset: mustReset)) { flow, session, _ in
            if mustReset {
                await flow.perform(.submit, Self.right)
            } else {
                await flow.perform(.forgotPassword, ["name": "ann", "password": ""])
                #expect(flow.state.fields.map(\.value) == ["ann"])
                await flow.perform(.submit)
            }
            guard case .resetPassword = flow.state.step else {
                Issue.record("\(flow.state.step), \(code(flow) ?? "")")
                return
            }
            await flow.perform(.submit, ["code": "123456", "newPassword": "another password"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A code can be sent once more, but not before the pause is over")
    func resent() async throws {
        let clock = TestClock(Date(timeIntervalSince1970: 1000))
        try await withFlow(User(confirmed: false), { $0.now = { clock.now } }) { flow, _, fixture in
            await flow.perform(.submit, Self.right)
            #expect(flow.state.resendTime == Date(timeIntervalSince1970: 1030))
            await flow.perform(.resendCode)
            let once = try await fixture.control()
            #expect(once.count { $0 == "ResendConfirmationCode" } == 1)
            clock.advance(by: .seconds(31))
            await flow.perform(.resendCode)
            let twice = try await fixture.control()
            #expect(twice.count { $0 == "ResendConfirmationCode" } == 2)
            #expect(flow.state.resendTime == Date(timeIntervalSince1970: 1061))
        }
    }

    @Test("An authenticator app is set up with its key, and a new password with what the pool wants")
    func setUp() async throws {
        try await withFlow(User(steps: ["MFA_SETUP"])) { flow, session, _ in
            await flow.perform(.submit, Self.right)
            guard case .setUpAuthenticator(let secret, let uri) = flow.state.step else {
                Issue.record("\(flow.state.step)")
                return
            }
            #expect(secret == "JBSWY3DPEHPK3PXP" && uri.hasPrefix("otpauth://totp/Movies:ann?"))
            await flow.perform(.submit, ["code": "123456"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A new password is held to the program's rules before it is sent")
    func newPassword() async throws {
        try await withFlow(
            User(steps: ["NEW_PASSWORD_REQUIRED"]),
            { $0.passwordRules = PasswordRules(minimumLength: 10, refused: [.noDigit]) }
        ) { flow, session, _ in
            await flow.perform(.submit, Self.right)
            #expect(flow.state.step == .newPassword)
            #expect(flow.state.fields.map(\.id) == ["newPassword", "attribute.nickname"])
            await flow.perform(.submit, ["newPassword": "without digits", "attribute.nickname": "a"])
            #expect(flow.state.refusedFields == ["newPassword"] && code(flow) == "cognito.weakPassword")
            await flow.perform(.submit, ["newPassword": "with 1 digit", "attribute.nickname": "a"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A factor is chosen; the password is asked for only where it is not known yet")
    func chosen() async throws {
        try await withFlow(User(), { $0.flow = .choice() }) { flow, session, _ in
            #expect(flow.state.fields.map(\.id) == ["name"])
            await flow.perform(.submit, ["name": "ann"])
            // Two ways to give the password would be one to a user.
            #expect(flow.state.step == .chooseFactor([.passwordProof, .emailCode]))
            #expect(flow.state.fields.map(\.id) == ["password"])
            await flow.perform(.choose(.passwordProof))
            #expect(flow.state.refusedFields == ["password"])
            await flow.perform(.choose(.emailCode))
            #expect(flow.state.fields.map(\.id) == ["code"])
            await flow.perform(.back)
            await flow.perform(.submit, ["name": "ann"])
            await flow.perform(.choose(.passwordProof), ["password": "right password"])
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A user who gives up while the server is asked is not signed in by its answer")
    func cancelled() async throws {
        try await withFlow { flow, session, _ in
            let working = Task { await flow.perform(.submit, Self.right) }
            while !flow.state.isWorking, !flow.state.hasEnded { await Task.yield() }
            await flow.perform(.submit, ["name": "bea", "password": "other"])
            await flow.perform(.cancel)
            await working.value
            #expect(flow.state.step == .cancelled && session.state != .signedIn)
            await flow.perform(.back)
            #expect(flow.state.step == .cancelled)
        }
    }

    @Test("A user who gives up while the server is asked is told nothing of its refusal")
    func cancelledRefusal() async throws {
        try await withFlow { flow, _, _ in
            let working = Task { await flow.perform(.submit, ["name": "ann", "password": "wrong password"]) }
            while !flow.state.isWorking, !flow.state.hasEnded { await Task.yield() }
            await flow.perform(.cancel)
            await working.value
            #expect(flow.state.step == .cancelled && code(flow) == nil)
        }
    }

    @Test("A failure is told until the user does something else", arguments: [SignInAction.signUp, .forgotPassword])
    func failureOfLastAction(action: SignInAction) async throws {
        try await withFlow { flow, _, _ in
            await flow.perform(.submit, ["name": "ann", "password": "wrong password"])
            #expect(code(flow) == "cognito.wrongCredentials")
            await flow.perform(action)
            #expect(flow.state.step != .signIn && code(flow) == nil)
        }
    }

    @Test("No state offers to cancel while the session stores what signs the user in")
    func storing() async throws {
        try await withFlow { flow, session, _ in
            let working = Task { await flow.perform(.submit, Self.right) }
            while !flow.state.hasEnded {
                // The user presses the button in the moment between the session's state and the flow's.
                if session.state == .signedIn { await flow.perform(.cancel) }
                await Task.yield()
            }
            await working.value
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("The states are a sequence that ends with the flow, and no description has what was entered")
    func sequence() async throws {
        try await withFlow { flow, _, _ in
            var states = flow.states.makeAsyncIterator()
            #expect(await states.next()?.step == .signIn)
            await flow.perform(.submit, Self.right)
            #expect(await states.next()?.step == .done)
            #expect(await states.next()?.step == nil)
            var late = flow.states.makeAsyncIterator()
            #expect(await late.next()?.step == .done)
            #expect(await late.next()?.step == nil)
        }
        try await withFlow(User(steps: ["SMS_MFA"])) { flow, _, _ in
            await flow.perform(.submit, Self.right)
            var text = "\(flow) \(flow.state)"
            dump(flow, to: &text)
            #expect(!text.contains("right password"))
        }
    }
}

@Suite("The texts of a sign-in")
struct SignInTextsTests {
    private static let languages = [SignInTexts.english, SignInTexts.japanese]
    private static let delivery = CodeDelivery(medium: "EMAIL", destination: "a***@e***")

    @Test("Each key has a text in both languages, and no two languages have the same text")
    func keys() {
        let (english, japanese) = (SignInTexts.english, SignInTexts.japanese)
        #expect(english.keys == japanese.keys)
        for key in english.keys {
            #expect(english[key]?.isEmpty == false && english[key] != japanese[key], "\(key)")
            #expect(english[key]?.contains("%@") == japanese[key]?.contains("%@"), "\(key)")
        }
    }

    @Test("Each step, field, action and rule has a text", arguments: [0, 1])
    func complete(language: Int) {
        let texts = Self.languages[language]
        let steps: [SignInState.Step] = [
            .signIn, .code(.emailCode, Self.delivery), .chooseFactor([]), .setUpAuthenticator(secret: "", uri: ""),
            .newPassword, .question([:]), .passkey(options: ""), .signUp, .confirmAccount(Self.delivery),
            .forgotPassword, .resetPassword(Self.delivery), .done, .cancelled,
        ]
        for step in steps { #expect(!texts.title(of: step).isEmpty, "\(step)") }
        #expect(texts.explanation(of: steps[1])?.contains("a***@e***") == true)
        let kinds: [SignInField.Kind] = [
            .name, .password, .newPassword, .code, .text, .credential, .attribute("email"),
        ]
        for kind in kinds { #expect(!texts.label(of: SignInField("a", kind)).isEmpty, "\(kind)") }
        #expect(texts.label(of: SignInField("x", .attribute("custom:tier"))) == "tier")
        #expect(texts.explanation(of: .question(["question": "Which word?"])) == "Which word?")
        #expect(texts.explanation(of: .question(["b": "2", "a": "1"])) == "a: 1\nb: 2")
        #expect(texts.explanation(of: .question([:]))?.isEmpty == false)
        let factors: [SignInFactor] = [
            .password, .passwordProof, .emailCode, .messageCode, .secondMessageCode, .authenticator, .passkey,
        ]
        let actions: [SignInAction] =
            [.submit, .resendCode, .forgotPassword, .signUp, .back, .cancel] + factors.map(SignInAction.choose)
        for action in actions { #expect(!texts.label(of: action, at: .signIn).isEmpty, "\(action)") }
        let rules = PasswordRules(minimumLength: 11)
        for violation in PasswordRules.Violation.allCases {
            #expect(!texts.text(for: violation, of: rules).isEmpty, "\(violation)")
        }
        #expect(texts.text(for: .tooShort, of: rules).contains("11"))
    }

    @Test("A program's own text takes the place of the library's, and its language that of the system's list")
    func replaced() {
        var texts = SignInTexts(languages: ["fr-FR", "ja-JP", "en"])
        #expect(texts.title(of: .signIn) == "サインイン")
        texts["title.signIn"] = "ようこそ"
        #expect(texts.title(of: .signIn) == "ようこそ")
        #expect(SignInTexts(languages: ["fr"]).title(of: .signIn) == "Sign in")
        #expect(SignInTexts(languages: ["ja_JP"]).title(of: .signIn) == "サインイン")
    }

    @Test("The keys are in ascending order, and a program can add the text of an attribute of its own")
    func ownKeys() {
        var texts = SignInTexts.english
        #expect(texts.keys == texts.keys.sorted())
        texts["attribute.custom:tier"] = "Membership"
        #expect(texts.label(of: SignInField("x", .attribute("custom:tier"))) == "Membership")
    }

    @Test("A screen explains what its heading does not say, and nothing else")
    func explanations() {
        let texts = SignInTexts.english
        let silent: [SignInState.Step] = [
            .signIn, .chooseFactor([]), .passkey(options: ""), .signUp, .done, .cancelled,
        ]
        for step in silent { #expect(texts.explanation(of: step) == nil, "\(step)") }
        #expect(texts.explanation(of: .code(.authenticator, Self.delivery)) == texts["explanation.authenticator"])
        let unsaid = CodeDelivery(medium: nil, destination: nil)
        let sent: [SignInState.Step] = [.code(.emailCode, unsaid), .confirmAccount(unsaid), .resetPassword(unsaid)]
        for step in sent { #expect(texts.explanation(of: step) == texts["explanation.codeSent"], "\(step)") }
        #expect(texts.resendPause(5) == "The code can be sent again in 5 s.")
    }

    @Test("A button says that it signs in only where it does, and names a factor that the library does not know")
    func buttons() {
        let texts = SignInTexts.english
        #expect(texts.label(of: .submit, at: .signIn) == texts["action.signIn"])
        #expect(texts.label(of: .submit, at: .signUp) == texts["action.continue"])
        #expect(texts.label(of: .choose(.other("NEW")), at: .chooseFactor([])) == "NEW")
    }

    @Test("A screen has the heading and the explanation of its own step")
    func headings() {
        let texts = SignInTexts.english
        let titles: [(SignInState.Step, String)] = [
            (.signIn, "Sign in"), (.code(.emailCode, Self.delivery), "Enter the code"),
            (.chooseFactor([]), "How do you want to sign in?"),
            (.setUpAuthenticator(secret: "", uri: ""), "Set up an authenticator app"),
            (.newPassword, "Choose a new password"), (.question([:]), "One more question"),
            (.passkey(options: ""), "Use your passkey"), (.signUp, "Create an account"),
            (.confirmAccount(Self.delivery), "Confirm your account"), (.forgotPassword, "Forgot your password?"),
            (.resetPassword(Self.delivery), "Set a new password"), (.done, "You are signed in"),
            (.cancelled, "Sign-in cancelled"),
        ]
        for (step, title) in titles { #expect(texts.title(of: step) == title, "\(step)") }
        #expect(texts.explanation(of: .forgotPassword)?.hasPrefix("We will send you a code") == true)
        #expect(texts.explanation(of: .newPassword)?.contains("works once") == true)
    }

    @Test("Each field, button and rule is called by its own text")
    func ownTexts() {
        let texts = SignInTexts.english
        let fields: [(SignInField.Kind, String)] = [
            (.name, "User name"), (.password, "Password"), (.newPassword, "New password"), (.code, "Code"),
            (.text, "Answer"), (.credential, "Passkey"), (.attribute("given_name"), "First name"),
            (.attribute("family_name"), "Last name"),
        ]
        for (kind, text) in fields { #expect(texts.label(of: SignInField("x", kind)) == text, "\(kind)") }
        let actions: [(SignInAction, String)] = [
            (.resendCode, "Send the code again"), (.forgotPassword, "Forgot your password?"),
            (.signUp, "Create an account"), (.back, "Back"), (.cancel, "Cancel"),
            (.choose(.password), "With your password"), (.choose(.passwordProof), "With your password"),
            (.choose(.emailCode), "With a code by e-mail"), (.choose(.messageCode), "With a code by text message"),
            (.choose(.secondMessageCode), "With a code by text message"),
            (.choose(.authenticator), "With an authenticator app"), (.choose(.passkey), "With a passkey"),
        ]
        for (action, text) in actions { #expect(texts.label(of: action, at: .signIn) == text, "\(action)") }
        let rules: [(PasswordRules.Violation, String)] = [
            (.tooShort, "8 characters"), (.noLowercaseLetter, "lowercase letter"),
            (.noUppercaseLetter, "uppercase letter"), (.noDigit, "digit"), (.noSymbol, "symbol"),
        ]
        for (rule, words) in rules {
            #expect(texts.text(for: rule, of: PasswordRules()).contains(words), "\(rule)")
        }
    }

    @Test("Each of Cognito's symbols is one in a password, and no other sign is")
    func symbols() {
        for symbol in #"^$*.[]{}()?-"!@#%&/\,><':;|_~`+= "# {
            #expect(PasswordRules().violations(of: "Abcdefg1\(symbol)") == [], "\(symbol)")
        }
        for sign in ["§", "é", "\t", "！"] {
            #expect(PasswordRules().violations(of: "Abcdefg1\(sign)") == [.noSymbol], "\(sign)")
        }
    }

    @Test("The length of a password is counted in characters")
    func length() {
        #expect(PasswordRules().violations(of: "Ab1!ééé") == [.tooShort])
        #expect(PasswordRules().violations(of: "Ab1!éééé") == [])
    }

    @Test("The rules that a password breaks are named")
    func rules() {
        #expect(PasswordRules().violations(of: "Abcdef1!") == [])
        #expect(PasswordRules().violations(of: "abc") == [.tooShort, .noUppercaseLetter, .noDigit, .noSymbol])
        #expect(PasswordRules(minimumLength: 2, refused: []).violations(of: "ab") == [])
    }
}
