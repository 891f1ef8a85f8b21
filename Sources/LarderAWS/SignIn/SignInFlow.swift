package import Foundation
public import Larder
public import Observation

/// A sign-in from the first screen to the session, without an interface of its own: a program draws the state's fields
/// and actions, and hands back what the user does.
///
/// ```swift
/// let flow = SignInFlow(pool, session: try app.session)
/// // On the screen: flow.state.fields and flow.state.actions, with the texts of SignInTexts.
/// await flow.perform(.submit, ["name": "ann", "password": password])
/// ```
///
/// It keeps no password longer than the sign-in takes, and none is in its description. Nothing waits past
/// `Options.timeout`.
@MainActor @Observable
public final class SignInFlow {
    /// How a flow behaves.
    public struct Options: Sendable {
        /// The program's name, as an authenticator app shows it.
        public var programName = ""
        /// How a sign-in begins.
        public var flow = CognitoUserPool.Flow.passwordProof
        /// What a new account is asked for beside name and password, by Cognito's names; nil for a program in which
        /// users make no accounts.
        public var signUpAttributes: [String]? = ["email"]
        /// What the pool wants of new passwords, where the screen should say it first.
        public var passwordRules: PasswordRules?
        /// How long one action may take.
        public var timeout = Duration.seconds(30)
        /// How long a user waits before a code is sent once more.
        public var resendPause = Duration.seconds(30)
        /// The subject of the tokens of the user to whom the session's partition belongs; another user is refused.
        package var expectedUser: String?
        /// The time of day.
        package var now: @Sendable () -> Date = { Date() }

        /// A proof of the password, accounts with an e-mail address, half a minute for each action.
        public init() {}
    }

    /// What the screen shows now.
    public private(set) var state = SignInState()

    private let pool: CognitoUserPool
    /// Where the program works since the user was signed in, of a flow that was made with a store.
    public private(set) var change: EnvironmentSwitch?

    private let place: Place
    private let options: Options
    private var name = ""
    /// To sign in with after an account was confirmed.
    private var password: String?
    private var challenge: SignInChallenge?
    /// Counts what was begun: the answer to what the user has left is dropped.
    private var number = 0
    private var readers: [Int: AsyncStream<SignInState>.Continuation] = [:]
    /// How many have ever read the states: a number is never used again.
    private var readerCount = 0

    /// What the credentials go to.
    private enum Place {
        case session(Session)
        case store(Store, PendingWork, (any GraphQLTransport)?)
    }

    /// Begins with name and password. The user signs in to the partition that is in use.
    ///
    /// - Parameters:
    ///   - pool: The user pool that signs the user in.
    ///   - session: Gets the credentials: `Partition.session`.
    ///   - options: What is different from the defaults.
    public convenience init(_ pool: CognitoUserPool, session: Session, options: Options = Options()) {
        self.init(pool, .session(session), options)
    }

    /// Begins with name and password. The user gets a partition of his or her own, by `Store.signIn`: `change` has it.
    ///
    /// - Parameters:
    ///   - pool: The user pool that signs the user in.
    ///   - store: The store whose current partition changes to the user's.
    ///   - work: What becomes of the guest's queue.
    ///   - server: How the environment's server is reached.
    ///   - options: What is different from the defaults.
    public convenience init(
        _ pool: CognitoUserPool, store: Store, pending work: PendingWork, server: (any GraphQLTransport)? = nil,
        options: Options = Options()
    ) {
        self.init(pool, .store(store, work, server), options)
    }

    private init(_ pool: CognitoUserPool, _ place: Place, _ options: Options) {
        self.pool = pool
        self.place = place
        self.options = options
        show(.signIn)
    }

    /// The state now, and each that follows, until the sign-in has ended. A slow reader gets the newest.
    public var states: AsyncStream<SignInState> {
        let (states, continuation) = AsyncStream.makeStream(of: SignInState.self, bufferingPolicy: .bufferingNewest(1))
        continuation.yield(state)
        guard !state.hasEnded else {
            continuation.finish()
            return states
        }
        readerCount += 1
        let reader = readerCount
        readers[reader] = continuation
        continuation.onTermination = { [weak self] _ in
            Task { @MainActor in _ = self?.readers.removeValue(forKey: reader) }
        }
        return states
    }

    /// Does what the user chose.
    ///
    /// An action that the state does not offer, and one while another is under way, does nothing, unless it is to
    /// cancel. What fails is in the new state, which is one from which the user can go on.
    ///
    /// - Parameters:
    ///   - action: One of the actions of the current state.
    ///   - values: Of the state's fields, by their ids. A field without a value has what it began with.
    public func perform(_ action: SignInAction, _ values: [String: String] = [:]) async {
        guard !state.hasEnded, state.actions.contains(action), !state.isWorking || action == .cancel else { return }
        var given: [String: String] = [:]
        for field in state.fields { given[field.id] = values[field.id] ?? field.value }
        switch action {
        case .cancel:
            number += 1
            forget()
            show(.cancelled)
        case .back:
            forget()
            show(.signIn)
        case .signUp: show(.signUp)
        case .forgotPassword:
            name = given["name"] ?? name
            show(.forgotPassword)
        case .submit:
            guard allows(given) else { return }
            await work { try await self.submit(given) }
        case .choose(let factor):
            await work { try await self.choose(factor, given) }
        case .resendCode:
            if let time = state.resendTime, time > options.now() { return }
            await work { try await self.resend() }
        }
    }

    // MARK: Steps

    /// When the action under way must have ended.
    private var deadline = SuspendingClock.now

    /// What an action has led to.
    private enum Result {
        /// A step, and where something has failed on the way to it that keeps no user from it, that.
        case show(SignInState.Step, CognitoError? = nil)
        case step(SignInStep)
    }

    /// The values of the state's fields that are attributes, by their names.
    private func attributes(in values: [String: String]) -> [String: String] {
        var attributes: [String: String] = [:]
        for field in state.fields {
            if case .attribute(let name) = field.kind { attributes[name] = values[field.id] }
        }
        return attributes
    }

    private func submit(_ values: [String: String]) async throws -> Result {
        let code = values["code"] ?? ""
        switch state.step {
        case .signIn:
            name = values["name"] ?? ""
            password = values["password"]
            return try await signIn()
        case .code, .setUpAuthenticator: return try await answer(.code(code))
        case .newPassword:
            return try await answer(.newPassword(values["newPassword"] ?? "", attributes: attributes(in: values)))
        case .question: return try await answer(.text(values["answer"] ?? ""))
        case .passkey: return try await answer(.credential(values["credential"] ?? ""))
        case .signUp:
            let (name, password) = (values["name"] ?? "", values["newPassword"] ?? "")
            let account = try await pool.signUp(
                name, password: password, attributes: attributes(in: values), within: .until(deadline))
            (self.name, self.password) = (name, password)
            return account.isConfirmed ? try await signIn() : .show(.confirmAccount(account.delivery))
        case .confirmAccount:
            do throws(CognitoError) {
                try await pool.confirmSignUp(name, code: code, within: .until(deadline))
            } catch {
                guard error.isOfConfirmedAccount else { throw error }
            }
            return try await signInWhenConfirmed()
        case .forgotPassword:
            name = values["name"] ?? ""
            return .show(.resetPassword(try await pool.forgotPassword(of: name, within: .until(deadline))))
        case .resetPassword:
            let new = values["newPassword"] ?? ""
            try await pool.setForgottenPassword(of: name, to: new, code: code, within: .until(deadline))
            password = new
            return try await signIn()
        case .chooseFactor, .done, .cancelled: return .show(state.step)
        }
    }

    private func signIn() async throws(CognitoError) -> Result {
        do throws(CognitoError) {
            return .step(try await pool.signIn(name, password: password, flow: options.flow, within: .until(deadline)))
        } catch {
            switch error.code {
            case .userNotConfirmed:
                return await sending(SignInState.Step.confirmAccount) { () throws(CognitoError) in
                    try await pool.resendConfirmation(of: name, within: .until(deadline))
                }
            case .passwordResetRequired:
                return await sending(SignInState.Step.resetPassword) { () throws(CognitoError) in
                    try await pool.forgotPassword(of: name, within: .until(deadline))
                }
            default: throw error
            }
        }
    }

    private func signInWhenConfirmed() async throws(CognitoError) -> Result {
        password == nil ? .show(.signIn) : try await signIn()
    }

    /// Sends a code on the way to the step that asks for it. A user whom it cannot be sent to now may have one already.
    private func sending(
        _ step: (CodeDelivery) -> SignInState.Step, _ send: () async throws(CognitoError) -> CodeDelivery
    ) async -> Result {
        do throws(CognitoError) { return .show(step(try await send())) } catch {
            return .show(step(CodeDelivery(medium: nil, destination: nil)), error)
        }
    }

    private func answer(_ answer: SignInAnswer) async throws -> Result {
        guard let challenge else { return .show(.signIn) }
        do throws(CognitoError) {
            return .step(try await pool.answer(challenge, answer, within: .until(deadline)))
        } catch {
            // After a wrong answer to a question of its own the pool has ended the sign-in.
            guard case .custom = challenge.kind, error.code == .wrongCredentials else { throw error }
            self.challenge = nil
            return .show(.signIn, CognitoError(.refusedByFunction, error.message, serverCode: error.serverCode))
        }
    }

    private func choose(_ factor: SignInFactor, _ values: [String: String]) async throws -> Result {
        guard [.password, .passwordProof].contains(factor) else { return try await answer(.factor(factor)) }
        let given = values["password"].flatMap { $0.isEmpty ? nil : $0 } ?? password
        guard let given else {
            state.refusedFields = ["password"]
            throw CognitoError(.emptyField, "This factor needs the password.")
        }
        return try await answer(.password(given, asProof: factor == .passwordProof))
    }

    private func resend() async throws -> Result {
        switch state.step {
        case .confirmAccount:
            do throws(CognitoError) {
                return .show(.confirmAccount(try await pool.resendConfirmation(of: name, within: .until(deadline))))
            } catch {
                guard error.isOfConfirmedAccount else { throw error }
                return try await signInWhenConfirmed()
            }
        case .resetPassword:
            return .show(.resetPassword(try await pool.forgotPassword(of: name, within: .until(deadline))))
        default: return .show(state.step)
        }
    }

    // MARK: Working

    /// Does an action that asks the server, and shows what it leads to.
    private func work(_ action: @escaping @MainActor () async throws -> Result) async {
        number += 1
        let mine = number
        deadline = .now + options.timeout
        (state.isWorking, state.failure, state.refusedFields) = (true, nil, [])
        publish()
        do {
            let result = try await action()
            guard mine == number else { return }
            switch result {
            case .show(let step, let failure): show(step, failure.map(LarderError.init(signIn:)))
            case .step(let step): try await show(step, mine)
            }
        } catch {
            guard mine == number else { return }
            fail(LarderError(signIn: error))
        }
    }

    private func show(_ step: SignInStep, _ mine: Int) async throws {
        switch step {
        case .signedIn(let tokens):
            if let expected = options.expectedUser, tokens.subject != expected {
                throw CognitoError(
                    .foreignToken,
                    "The partition is the one of the user \(expected), whose queue would be sent in another's name; "
                        + "switch to a partition of the user who signs in")
            }
            // From here on the user is being signed in, and cannot cancel any more.
            state.actions = []
            publish()
            let credentials = Credentials(userPool: tokens)
            switch place {
            case .session(let session): try await session.signIn(credentials, within: .until(deadline))
            case .store(let store, let work, let server):
                change = try await store.signIn(
                    credentials, pending: work, within: .until(deadline), server: server)
            }
            forget()
            show(.done)
        case .challenge(let challenge):
            guard challenge.kind == .setUpAuthenticator else { return try show(challenge) }
            let key = try await pool.authenticatorKey(for: challenge, within: .until(deadline))
            guard mine == number else { return }
            self.challenge = key.challenge
            show(.setUpAuthenticator(secret: key.secret, uri: key.uri(issuer: options.programName)))
        }
    }

    private func show(_ challenge: SignInChallenge) throws(CognitoError) {
        let step: SignInState.Step =
            switch challenge.kind {
            case .newPassword: .newPassword
            case .code(let factor, let delivery): .code(factor, delivery)
            // To a user both are the password, and the server does not see it by a proof.
            case .chooseFirstFactor(let factors), .chooseSecondFactor(let factors):
                .chooseFactor(factors.filter { $0 != .password || !factors.contains(.passwordProof) })
            case .custom(let question): .question(question)
            case .passkey(let options): .passkey(options: options)
            case .confirmAuthenticator: .code(.authenticator, CodeDelivery(medium: nil, destination: nil))
            case .setUpAuthenticator, .unknown:
                throw CognitoError(.unknownChallenge, "\(challenge) is not known to this library.")
            }
        self.challenge = challenge
        show(step)
    }

    /// A challenge that is too old begins anew; everything else can be put right where it stands.
    private func fail(_ error: LarderError) {
        if challenge != nil, error.code.rawValue == CognitoError.Code.signInAgain.rawValue {
            challenge = nil
            show(.signIn)
        }
        state.actions = actions(of: state.step)
        state.isWorking = false
        state.failure = error
        publish()
    }

    private func forget() {
        password = nil
        challenge = nil
    }

    /// Refuses values that need no server to be refused.
    private func allows(_ values: [String: String]) -> Bool {
        let refused = state.fields.filter { field in
            let value = values[field.id] ?? ""
            return value.isEmpty || field.rules.map { !$0.violations(of: value).isEmpty } ?? false
        }
        guard !refused.isEmpty else { return true }
        state.refusedFields = Set(refused.map(\.id))
        state.failure = LarderError(
            signIn: CognitoError(
                refused.contains { !(values[$0.id] ?? "").isEmpty } ? .weakPassword : .emptyField,
                "These fields cannot be sent as they are: \(refused.map(\.id).joined(separator: ", "))."))
        publish()
        return false
    }

    private func show(_ step: SignInState.Step, _ failure: LarderError? = nil) {
        var new = SignInState()
        new.failure = failure
        new.step = step
        new.fields = fields(of: step)
        new.actions = actions(of: step)
        switch step {
        case .confirmAccount, .resetPassword: new.resendTime = options.now() + options.resendPause / .seconds(1)
        default: break
        }
        state = new
        publish()
    }

    private func fields(of step: SignInState.Step) -> [SignInField] {
        let newPassword = SignInField("newPassword", .newPassword, rules: options.passwordRules)
        let code = SignInField("code", .code)
        switch step {
        case .signIn:
            let asksPassword = [.passwordProof, .password].contains(options.flow)
            return [SignInField("name", .name, value: name)]
                + (asksPassword ? [SignInField("password", .password)] : [])
        case .code, .setUpAuthenticator, .confirmAccount: return [code]
        case .chooseFactor(let factors):
            let needsPassword = password == nil && !Set(factors).isDisjoint(with: [.password, .passwordProof])
            return needsPassword ? [SignInField("password", .password)] : []
        case .newPassword:
            guard case .newPassword(let required, let attributes) = challenge?.kind else { return [newPassword] }
            return [newPassword] + required.map { .attribute($0, value: attributes[$0] ?? "") }
        case .question: return [SignInField("answer", .text)]
        case .passkey: return [SignInField("credential", .credential)]
        case .signUp:
            return [SignInField("name", .name, value: name), newPassword]
                + (options.signUpAttributes ?? []).map { .attribute($0) }
        case .forgotPassword: return [SignInField("name", .name, value: name)]
        case .resetPassword: return [code, newPassword]
        case .done, .cancelled: return []
        }
    }

    private func actions(of step: SignInState.Step) -> [SignInAction] {
        switch step {
        case .signIn: [.submit, .forgotPassword] + (options.signUpAttributes == nil ? [] : [.signUp]) + [.cancel]
        case .chooseFactor(let factors): factors.map(SignInAction.choose) + [.back, .cancel]
        case .confirmAccount, .resetPassword: [.submit, .resendCode, .back, .cancel]
        case .done, .cancelled: []
        default: [.submit, .back, .cancel]
        }
    }

    private func publish() {
        for reader in readers.values {
            reader.yield(state)
            if state.hasEnded { reader.finish() }
        }
        if state.hasEnded { readers = [:] }
    }
}

extension SignInFlow: CustomReflectable {
    /// Has nothing of what the user has entered.
    public nonisolated var customMirror: Mirror { Mirror(self, children: []) }
}

extension LarderError {
    /// As a screen shows it: Cognito's errors with their own codes.
    fileprivate init(signIn error: any Error) {
        switch error {
        case let error as LarderError: self = error
        case let error as CognitoError:
            self.init(Code(rawValue: error.code.rawValue), error.message, cause: error)
        default: self.init(.cancelled, "\(error)", cause: error)
        }
    }
}
