import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import NIOCore
import Testing

@Suite("Sign-in flows by scripted answers", .timeLimit(.minutes(5)))
@MainActor
struct ScriptedFlowTests {
    private typealias Script = CognitoScript

    nonisolated func withFlow(
        _ answers: [String: String], keys: InMemoryKeyProvider = InMemoryKeyProvider(),
        _ change: @Sendable (inout SignInFlow.Options) -> Void = { _ in },
        _ body: @MainActor @Sendable (SignInFlow, Session, CognitoScript) async throws -> Void
    ) async throws {
        try await Script.run(answers) { (script) async throws in
            try await withNewStore(of: script.provider(), { $0.keys = keys }) { store, _ in
                let session = try store.partition(of: script.environment()).session
                var options = SignInFlow.Options()
                (options.flow, options.timeout) = (.password, .seconds(120))
                change(&options)
                let flow = await SignInFlow(script.pool(), session: session, options: options)
                try await body(flow, session, script)
            }
        }
    }

    private static let right = ["name": "ann", "password": "word"]

    private func code(_ flow: SignInFlow) -> String? { flow.state.failure?.code.rawValue }

    @Test("Where the program says nothing else, the password is proved, and does not leave the device")
    func proof() async throws {
        try await withFlow([:], { $0.flow = SignInFlow.Options().flow }) { (flow, _, script) async throws in
            #expect(flow.state.fields.map(\.id) == ["name", "password"])
            await flow.perform(.submit, ["name": "ann", "password": "a secret word"])
            let text = try script.text()
            #expect(text.contains(#""AuthFlow":"USER_SRP_AUTH""#) && !text.contains("a secret word"), "\(text)")
        }
    }

    @Test(
        "A flow that was made with a store gives the user a partition, where the program works then",
        arguments: [.carry, .park] as [PendingWork])
    nonisolated func ofStore(_ work: PendingWork) async throws {
        try await Script.run(["InitiateAuth": try Script.result()]) { (script) async throws in
            try await withTemporaryFolder { folder in
                var storeOptions = Store.Options()
                storeOptions.keys = InMemoryKeyProvider()
                let store = try Store.open(
                    at: folder.appending(path: "store"), schema: try Schema(parsing: AppSyncFixture.schema),
                    options: storeOptions)
                let guest = try store.partition(of: script.environment())
                try await guest.enqueue(GraphQLOperation(#"mutation { rename(id: "1") }"#))
                var options = SignInFlow.Options()
                (options.flow, options.timeout) = (.password, .seconds(120))
                let server = ScriptedServer { _ in #"{"data":{"name":"Vega"}}"# }
                let flow = await SignInFlow(
                    script.pool(), store: store, pending: work, server: server, options: options)
                await flow.perform(.submit, ["name": "ann", "password": "word"])
                let change = try #require(await flow.change)
                #expect(change.carried == (work == .carry ? 1 : 0) && change.left?.partition.user == .guest)
                #expect(try store.current()?.user == .user("sub-ann"))
                #expect(try change.partition.session.state == .signedIn)
                let answer = try await change.partition.fetch(GraphQLOperation("{ name }"), policy: .networkOnly)
                #expect(answer["name"]?.string == "Vega")
                try store.close()
            }
        }
    }

    @Test("A question of the pool's own functions is shown, and its answer sent")
    func question() async throws {
        let answers = [
            "InitiateAuth": try Script.challenge("CUSTOM_CHALLENGE", ["q": "?"]),
            "RespondToAuthChallenge": try Script.result(),
        ]
        try await withFlow(answers, { $0.flow = .custom }) { (flow, session, script) async throws in
            #expect(flow.state.fields == [SignInField("name", .name)])
            await flow.perform(.submit, ["name": "ann"])
            #expect(flow.state.step == .question(["q": "?"]) && flow.state.fields == [SignInField("answer", .text)])
            #expect(flow.state.actions == [.submit, .back, .cancel])
            await flow.perform(.submit, ["answer": "word"])
            #expect(flow.state.step == .done && session.state == .signedIn && flow.state.actions.isEmpty)
            #expect(try script.text().contains(#""ANSWER":"word""#))
        }
    }

    @Test("What the pool wants to know with a new password begins with what it knows of the user")
    func knownAttributes() async throws {
        let answers = [
            "InitiateAuth": try Script.challenge(
                "NEW_PASSWORD_REQUIRED",
                ["requiredAttributes": #"["email","nickname"]"#, "userAttributes": #"{"email":"a@example.com"}"#]),
            "RespondToAuthChallenge": try Script.result(),
        ]
        try await withFlow(answers) { (flow, _, script) async throws in
            await flow.perform(.submit, Self.right)
            #expect(flow.state.step == .newPassword)
            #expect(
                flow.state.fields == [
                    SignInField("newPassword", .newPassword),
                    SignInField("attribute.email", .attribute("email"), value: "a@example.com"),
                    SignInField("attribute.nickname", .attribute("nickname")),
                ])
            await flow.perform(.submit, ["newPassword": "new word", "attribute.nickname": "Ann"])
            #expect(flow.state.step == .done)
            let text = try script.text()
            #expect(text.contains(#""userAttributes.email":"a@example.com""#), "\(text)")
            #expect(text.contains(#""userAttributes.nickname":"Ann""#), "\(text)")
        }
    }

    @Test("A passkey's options are shown, and its credential sent")
    func passkey() async throws {
        let answers = [
            "InitiateAuth": try Script.challenge("WEB_AUTHN", ["CREDENTIAL_REQUEST_OPTIONS": "{1}"]),
            "RespondToAuthChallenge": try Script.result(),
        ]
        try await withFlow(answers) { (flow, _, script) async throws in
            await flow.perform(.submit, Self.right)
            #expect(flow.state.step == .passkey(options: "{1}"))
            #expect(flow.state.fields == [SignInField("credential", .credential)])
            await flow.perform(.submit, ["credential": "made"])
            #expect(flow.state.step == .done)
            #expect(try script.text().contains(#""CREDENTIAL":"made""#))
        }
    }

    @Test("A second factor is chosen by an action, and no password is asked for")
    func secondFactor() async throws {
        let answers = [
            "InitiateAuth": try Script.challenge(
                "SELECT_MFA_TYPE", ["MFAS_CAN_CHOOSE": #"["SMS_MFA","SOFTWARE_TOKEN_MFA"]"#]),
            "RespondToAuthChallenge": try Script.challenge("SMS_MFA", ["CODE_DELIVERY_DESTINATION": "+1***"]),
        ]
        try await withFlow(answers) { (flow, _, script) async throws in
            await flow.perform(.submit, Self.right)
            #expect(flow.state.step == .chooseFactor([.secondMessageCode, .authenticator]))
            #expect(flow.state.actions == [.choose(.secondMessageCode), .choose(.authenticator), .back, .cancel])
            #expect(flow.state.fields.isEmpty)
            // What the state does not offer does nothing.
            let asked = script.operations.count
            await flow.perform(.choose(.passkey))
            await flow.perform(.submit)
            #expect(script.operations.count == asked)
            await flow.perform(.choose(.secondMessageCode))
            let delivery = CodeDelivery(medium: nil, destination: "+1***")
            #expect(flow.state.step == .code(.secondMessageCode, delivery))
        }
    }

    @Test("The password that the user has given serves for a factor; going back forgets it")
    func firstFactor() async throws {
        let choice = try Script.challenge("SELECT_CHALLENGE", more: #", "AvailableChallenges": ["PASSWORD"]"#)
        try await withFlow(["InitiateAuth": choice]) { (flow, _, script) async throws in
            script.fail("RespondToAuthChallenge", "NotAuthorizedException", "no")
            await flow.perform(.submit, Self.right)
            #expect(flow.state.fields.isEmpty)
            await flow.perform(.choose(.password))
            #expect(code(flow) == "cognito.wrongCredentials" && !flow.state.isWorking)
            #expect(flow.state.actions == [.choose(.password), .back, .cancel])
            #expect(try script.text().contains(#""PASSWORD":"word""#))
            await flow.perform(.back)
            #expect(flow.state.step == .signIn && flow.state.failure == nil)
            #expect(flow.state.fields.map(\.value) == ["ann", ""])
            // The empty field is refused here, and not sent with the old password.
            await flow.perform(.submit, ["name": "ann"])
            #expect(flow.state.refusedFields == ["password"])
        }
    }

    @Test("Choosing the password factor without a password reports an empty field, and sends nothing")
    func factorWithoutPassword() async throws {
        let choice = try Script.challenge("SELECT_CHALLENGE", more: #", "AvailableChallenges": ["PASSWORD"]"#)
        try await withFlow(["InitiateAuth": choice], { $0.flow = .choice() }) { (flow, _, script) async throws in
            await flow.perform(.submit, ["name": "ann"])
            await flow.perform(.choose(.password))
            #expect(code(flow) == "cognito.emptyField" && flow.state.refusedFields == ["password"])
            #expect(script.operations == ["InitiateAuth"])
        }
    }

    @Test("A challenge that the library does not know is a failure, and the user stays where they are")
    func unknown() async throws {
        try await withFlow(["InitiateAuth": try Script.challenge("RETINA")]) { (flow, session, _) async throws in
            await flow.perform(.submit, Self.right)
            #expect(flow.state.step == .signIn && code(flow) == "cognito.unknownChallenge")
            #expect(flow.state.actions.contains(.submit) && !flow.state.isWorking && session.state != .signedIn)
        }
    }

    @Test("A program in which users make no accounts offers none")
    func noAccounts() async throws {
        try await withFlow([:], { $0.signUpAttributes = nil }) { (flow, _, _) async throws in
            #expect(flow.state.actions == [.submit, .forgotPassword, .cancel])
            await flow.perform(.signUp)
            #expect(flow.state.step == .signIn)
        }
    }

    @Test("An account that needs no code is signed in at once, and the attributes alone are sent as such")
    func signUp() async throws {
        let answers = ["SignUp": #"{"UserConfirmed": true}"#, "InitiateAuth": try Script.result()]
        try await withFlow(answers) { (flow, _, script) async throws in
            await flow.perform(.signUp)
            #expect(flow.state.actions == [.submit, .back, .cancel])
            await flow.perform(.submit, ["name": "bea", "newPassword": "word", "attribute.email": "b@example.com"])
            #expect(flow.state.step == .done)
            #expect(script.operations == ["SignUp", "InitiateAuth"])
            let body = String(decoding: try #require(script.server.requests.first).body, as: UTF8.self)
            #expect(
                body.contains(#"[{"Name":"email","Value":"b@example.com"}]"#)
                    || body.contains(#"[{"Value":"b@example.com","Name":"email"}]"#))
            #expect(try script.text().contains(#""PASSWORD":"word","USERNAME":"bea""#))
        }
    }

    @Test("An account without a password is confirmed, and the user signs in afterwards")
    func confirmedWithoutPassword() async throws {
        try await withFlow([:], { $0.flow = .custom }) { (flow, _, script) async throws in
            script.fail("InitiateAuth", "UserNotConfirmedException")
            await flow.perform(.submit, ["name": "ann"])
            #expect(flow.state.actions == [.submit, .resendCode, .back, .cancel])
            await flow.perform(.submit, ["code": "1"])
            #expect(flow.state.step == .signIn && flow.state.failure == nil)
            #expect(script.operations == ["InitiateAuth", "ResendConfirmationCode", "ConfirmSignUp"])
        }
    }

    @Test("The code of a forgotten password is sent once more after the pause, and no earlier")
    func resent() async throws {
        try await withFlow(
            [:],
            {
                $0.resendPause = .zero
                $0.now = { Date(timeIntervalSince1970: 1_000) }
            }
        ) { (flow, _, script) async throws in
            await flow.perform(.forgotPassword, ["name": "ann"])
            #expect(flow.state.step == .forgotPassword && flow.state.resendTime == nil)
            await flow.perform(.submit)
            #expect(flow.state.fields.map(\.id) == ["code", "newPassword"])
            #expect(flow.state.resendTime == Date(timeIntervalSince1970: 1_000))
            script.set("ForgotPassword", #"{"CodeDeliveryDetails": {"Destination": "c***"}}"#)
            await flow.perform(.resendCode)
            #expect(flow.state.step == .resetPassword(CodeDelivery(medium: nil, destination: "c***")))
            #expect(script.operations == ["ForgotPassword", "ForgotPassword"])
            #expect(try script.members()["Username"] as? String == "ann")
            script.fail("ConfirmForgotPassword", "ExpiredCodeException")
            await flow.perform(.submit, ["code": "1", "newPassword": "new"])
            #expect(code(flow) == "cognito.codeExpired" && flow.state.actions.contains(.resendCode))
        }
    }

    @Test("A server that does not answer ends an action by its time, and the user can go on")
    func silent() async throws {
        try await withFlow([:], { $0.timeout = .milliseconds(100) }) { (flow, _, script) async throws in
            script.set("InitiateAuth", Reply(ending: .hang, isSilent: true))
            await flow.perform(.submit, Self.right)
            #expect(code(flow) == "cognito.unreachable" && flow.state.step == .signIn)
            #expect(flow.state.actions == [.submit, .forgotPassword, .signUp, .cancel] && !flow.state.isWorking)
        }
    }

    @Test("Each reader sees the working state though another has ended, and the next action clears the failure")
    func working() async throws {
        try await withFlow([:]) { (flow, _, script) async throws in
            script.fail("InitiateAuth", "NotAuthorizedException", "no")
            await flow.perform(.submit, Self.right)
            #expect(flow.state.failure != nil)
            script.set("InitiateAuth", Reply(ending: .hang, isSilent: true))
            var readers = [flow.states.makeAsyncIterator(), flow.states.makeAsyncIterator()]
            for index in readers.indices { _ = await readers[index].next(isolation: MainActor.shared) }
            // A reader that ends at once.
            _ = flow.states
            let working = Task { await flow.perform(.submit, Self.right) }
            for index in readers.indices {
                let state = await readers[index].next(isolation: MainActor.shared)
                #expect(state?.isWorking == true && state?.failure == nil)
            }
            await flow.perform(.cancel)
            for index in readers.indices {
                #expect(await readers[index].next(isolation: MainActor.shared)?.step == .cancelled)
                #expect(await readers[index].next(isolation: MainActor.shared) == nil)
            }
            working.cancel()
            await working.value
            #expect(flow.state.step == .cancelled && flow.state.failure == nil)
        }
    }

    @Test("An action that begins while another is under way does nothing")
    func underWay() async throws {
        try await withFlow([:]) { (flow, _, script) async throws in
            script.set("InitiateAuth", Reply(ending: .hang, isSilent: true))
            var states = flow.states.makeAsyncIterator()
            _ = await states.next(isolation: MainActor.shared)
            let working = Task { await flow.perform(.submit, Self.right) }
            #expect(await states.next(isolation: MainActor.shared)?.isWorking == true)
            await flow.perform(.forgotPassword)
            #expect(flow.state.step == .signIn && flow.state.isWorking)
            await flow.perform(.cancel)
            working.cancel()
            await working.value
            #expect(flow.state.step == .cancelled)
        }
    }

    @Test("The new password of an account, and one in place of a forgotten one, is held to the program's rules")
    func rulesEverywhere() async throws {
        let rules = PasswordRules(minimumLength: 10, refused: [])
        try await withFlow([:], { $0.passwordRules = rules }) { (flow, _, script) async throws in
            await flow.perform(.signUp)
            #expect(flow.state.fields.map(\.rules) == [nil, rules, nil])
            await flow.perform(.back)
            await flow.perform(.forgotPassword, ["name": "ann"])
            await flow.perform(.submit)
            #expect(flow.state.fields.map(\.rules) == [nil, rules])
            await flow.perform(.submit, ["code": "1", "newPassword": "too short"])
            #expect(code(flow) == "cognito.weakPassword" && script.operations == ["ForgotPassword"])
        }
    }

    @Test("A user whose account waits for its code is told where the newest code was sent")
    func newDelivery() async throws {
        try await withFlow([:], { $0.resendPause = .zero }) { (flow, _, script) async throws in
            script.fail("InitiateAuth", "UserNotConfirmedException")
            for place in ["a***", "c***"] {
                script.set("ResendConfirmationCode", #"{"CodeDeliveryDetails": {"Destination": "\#(place)"}}"#)
                await flow.perform(place == "a***" ? .submit : .resendCode, Self.right)
                let delivery = CodeDelivery(medium: nil, destination: place)
                #expect(flow.state.step == .confirmAccount(delivery))
            }
        }
    }

    @Test("Each empty field is named as refused, and none once the fields have been sent")
    func refusedFields() async throws {
        try await withFlow([:]) { (flow, _, script) async throws in
            script.fail("InitiateAuth", "NotAuthorizedException", "no")
            await flow.perform(.submit)
            #expect(flow.state.refusedFields == ["name", "password"] && script.operations.isEmpty)
            await flow.perform(.submit, Self.right)
            #expect(code(flow) == "cognito.wrongCredentials" && flow.state.refusedFields.isEmpty)
        }
    }

    @Test("An action has half a minute where the program says nothing else, and so long is the pause before a new code")
    func defaultTime() {
        #expect(SignInFlow.Options().timeout == .seconds(30) && SignInFlow.Options().resendPause == .seconds(30))
    }

    @Test("A session that does not come to store the credentials ends an action by its time")
    func unstoredInTime() async throws {
        let keys = InMemoryKeyProvider(behaviour: .hanging)
        let answers = ["InitiateAuth": try Script.result()]
        try await withFlow(answers, keys: keys, { $0.timeout = .seconds(2) }) { (flow, _, _) async throws in
            let begun = SuspendingClock.now
            await flow.perform(.submit, Self.right)
            #expect(flow.state.failure != nil && flow.state.step == .signIn && keys.reads > 0)
            keys.behaviour = .ready
            try requireNear(begun + .seconds(4))
        }
    }

    @Test("The calls of one action share its time, and the last of them ends by it")
    func keyInTime() async throws {
        let setUp = try Script.challenge("MFA_SETUP", ["MFAS_CAN_SETUP": #"["SOFTWARE_TOKEN_MFA"]"#])
        try await withFlow([:], { $0.timeout = .seconds(20) }) { (flow, _, script) async throws in
            script.set("InitiateAuth", Reply(body: Array(setUp.utf8), bodyDelay: .seconds(10)))
            script.set("AssociateSoftwareToken", Reply(ending: .hang, isSilent: true))
            let begun = SuspendingClock.now
            await flow.perform(.submit, Self.right)
            #expect(code(flow) == "cognito.unreachable" && script.operations.last == "AssociateSoftwareToken")
            try requireNear(begun + .seconds(20), slack: .seconds(8))
        }
    }

    @Test("A user whose credentials are being stored cannot give up any more")
    func stored() async throws {
        let keys = InMemoryKeyProvider(behaviour: .hanging)
        try await withFlow(["InitiateAuth": try Script.result()], keys: keys) { (flow, session, _) async throws in
            let signing = Task { await flow.perform(.submit, Self.right) }
            try await eventually { keys.reads != 0 }
            #expect(flow.state.actions.isEmpty)
            await flow.perform(.cancel)
            keys.behaviour = .ready
            await signing.value
            #expect(flow.state.step == .done && session.state == .signedIn)
        }
    }

    @Test("A user cannot cancel a sign-in while the store stores it")
    nonisolated func storedInPartition() async throws {
        try await Script.run(["InitiateAuth": try Script.result()]) { (script) async throws in
            try await withTemporaryFolder { folder in
                let keys = InMemoryKeyProvider(behaviour: .hanging)
                var storeOptions = Store.Options()
                storeOptions.keys = keys
                let store = try Store.open(
                    at: folder.appending(path: "store"), schema: try Schema(parsing: AppSyncFixture.schema),
                    options: storeOptions)
                _ = try store.partition(of: script.environment())
                var options = SignInFlow.Options()
                (options.flow, options.timeout) = (.password, .seconds(120))
                let flow = await SignInFlow(script.pool(), store: store, pending: .park, options: options)
                let signing = Task { await flow.perform(.submit, ["name": "ann", "password": "word"]) }
                let deadline = SuspendingClock.now + ample
                while keys.reads == 0, .now < deadline { try await Task.sleep(for: .milliseconds(2)) }
                let actions = await flow.state.actions
                #expect(actions.isEmpty)
                await flow.perform(.cancel)
                keys.behaviour = .ready
                await signing.value
                let step = await flow.state.step
                #expect(step == .done)
                #expect(try store.current()?.user == .user("sub-ann"))
                try store.close()
            }
        }
    }

    @Test("A session that cannot store the credentials is a failure, and the user can try again")
    func unstored() async throws {
        try await withFlow(["InitiateAuth": try Script.result()]) { (flow, session, _) async throws in
            session.close()
            await flow.perform(.submit, Self.right)
            #expect(code(flow) == "larder.parked" && flow.state.actions.contains(.submit))
        }
    }

    @Test("A user who gives up while an authenticator's key is asked for is shown none")
    func cancelledKey() async throws {
        let setUp = try Script.challenge("MFA_SETUP", ["MFAS_CAN_SETUP": #"["SOFTWARE_TOKEN_MFA"]"#])
        try await withFlow(["InitiateAuth": setUp]) { (flow, _, script) async throws in
            script.set(
                "AssociateSoftwareToken",
                Reply(
                    headers: ["Content-Type": "application/x-amz-json-1.1"],
                    body: Array(#"{"SecretCode": "ABCDEFGH", "Session": "s2"}"#.utf8), bodyDelay: .milliseconds(300)))
            let asking = Task { await flow.perform(.submit, Self.right) }
            try await eventually { script.operations.last == "AssociateSoftwareToken" }
            await flow.perform(.cancel)
            await asking.value
            #expect(flow.state.step == .cancelled)
        }
    }

    @Test("A user is not signed in to the partition of another", arguments: ["sub-ann", "sub-bea"])
    func expectedUser(expected: String) async throws {
        let answers = ["InitiateAuth": try Script.result()]
        try await withFlow(answers, { $0.expectedUser = expected }) { (flow, session, _) async throws in
            await flow.perform(.submit, Self.right)
            let isExpected = expected == "sub-ann"
            #expect(flow.state.step == (isExpected ? .done : .signIn))
            #expect(code(flow) == (isExpected ? nil : "cognito.foreignToken"))
            #expect((session.state == .signedIn) == isExpected)
        }
    }

    @Test("A screen hides passwords, and nothing else")
    func secret() {
        let kinds: [SignInField.Kind] = [
            .name, .password, .newPassword, .code, .text, .attribute("email"), .credential,
        ]
        #expect(kinds.filter { SignInField("x", $0).isSecret } == [.password, .newPassword])
    }

    @Test("A password that breaks one rule is told by that rule alone", arguments: PasswordRules.Violation.allCases)
    func rules(_ violation: PasswordRules.Violation) {
        let passwords: [PasswordRules.Violation: String] = [
            .tooShort: "Abcde1!", .noLowercaseLetter: "ABCDEFé1!", .noUppercaseLetter: "abcdefÉ1!",
            .noDigit: "Abcdefg٣!", .noSymbol: "Abcdefg1ß",
        ]
        #expect(PasswordRules().violations(of: passwords[violation] ?? "") == [violation])
    }
}
