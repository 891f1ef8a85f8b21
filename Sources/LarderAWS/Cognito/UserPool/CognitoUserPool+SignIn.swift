import Larder

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension CognitoUserPool {
    /// How a sign-in begins.
    public enum Flow: Sendable, Hashable {
        /// A proof that the user knows the password (`USER_SRP_AUTH`).
        case passwordProof
        /// The password itself (`USER_PASSWORD_AUTH`), for pools that take users over from elsewhere.
        case password
        /// The user chooses the first proof (`USER_AUTH`); the one that is preferred, if it is one of the user's.
        case choice(preferred: SignInFactor? = nil)
        /// What the pool's own functions ask (`CUSTOM_AUTH`).
        case custom

        fileprivate var name: String {
            switch self {
            case .passwordProof: "USER_SRP_AUTH"
            case .password: "USER_PASSWORD_AUTH"
            case .choice: "USER_AUTH"
            case .custom: "CUSTOM_AUTH"
            }
        }
    }

    /// Begins a sign-in.
    ///
    /// - Parameters:
    ///   - user: The name of the user.
    ///   - password: May be nil where the flow needs none.
    ///   - flow: How the sign-in begins.
    ///   - device: This device, where the pool remembers it. The pool's refusal to know it is no failure: the sign-in
    ///     goes on as on a new one.
    ///   - time: For all exchanges that this takes.
    /// - Returns: The user's tokens, or what has to be answered first.
    /// - Throws: `.wrongCredentials`, `.userNotConfirmed`, `.passwordResetRequired`, `.flowNotEnabled` and others.
    public func signIn(
        _ user: String, password: String?, flow: Flow = .passwordProof, device: RememberedDevice? = nil,
        within time: Duration? = nil
    ) async throws(CognitoError) -> SignInStep {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        do throws(CognitoError) {
            return try await begin(user, password, flow, device, deadline)
        } catch {
            guard device != nil, error.serverCode == "ResourceNotFoundException",
                error.message.lowercased().contains("device")
            else { throw error }
            return try await begin(user, password, flow, nil, deadline)
        }
    }

    private func begin(
        _ user: String, _ password: String?, _ flow: Flow, _ device: RememberedDevice?,
        _ deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> SignInStep {
        var parameters = ["USERNAME": user]
        parameters["DEVICE_KEY"] = device?.key
        parameters["SECRET_HASH"] = secretHash(of: user)
        var proof: PasswordProof?
        func required() throws(CognitoError) -> String {
            guard let password else { throw CognitoError(.invalidInput, "This flow needs a password.") }
            return password
        }
        switch flow {
        case .passwordProof:
            proof = PasswordProof(password: try required(), secret: options.random(32))
        case .password:
            parameters["PASSWORD"] = try required()
        case .choice(let preferred):
            parameters["PREFERRED_CHALLENGE"] = preferred?.name
            if preferred == .passwordProof {
                proof = PasswordProof(password: try required(), secret: options.random(32))
            } else if preferred == .password {
                parameters["PASSWORD"] = try required()
            }
        case .custom: break
        }
        parameters["SRP_A"] = proof?.exchange.publicText
        let answer = try await service.call(
            "InitiateAuth",
            [
                "AuthFlow": .text(flow.name), "ClientId": .text(pool.clientID), "AuthParameters": .texts(parameters),
            ], deadline: deadline)
        return try await step(answer, user: user, proof: proof, device: device, deadline: deadline)
    }

    /// Answers a challenge.
    ///
    /// - Throws: `.codeMismatch`: the same challenge can be answered again; `.codeExpired`; `.signInAgain` where the
    ///   challenge is too old; `.invalidInput` where the answer is to another kind; and as `signIn`.
    public func answer(
        _ challenge: SignInChallenge, _ answer: SignInAnswer, within time: Duration? = nil
    ) async throws(CognitoError) -> SignInStep {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        var responses: [String: String] = [:]
        var proof: PasswordProof?
        var session = challenge.session
        switch (challenge.kind, answer) {
        case (.newPassword, .newPassword(let password, let attributes)):
            responses["NEW_PASSWORD"] = password
            for (name, value) in attributes { responses["userAttributes.\(name)"] = value }
        case (.code, .code(let code)):
            responses["\(challenge.name)_CODE"] = code
        case (.confirmAuthenticator, .code(let code)):
            session = try await confirmAuthenticator(code, session, deadline: deadline)
        case (.chooseSecondFactor, .factor(let factor)), (.chooseFirstFactor, .factor(let factor)):
            responses["ANSWER"] = factor.name
        case (.chooseFirstFactor, .password(let password, let asProof)):
            responses["ANSWER"] = asProof ? SignInFactor.passwordProof.name : SignInFactor.password.name
            if asProof {
                let new = PasswordProof(password: password, secret: options.random(32))
                responses["SRP_A"] = new.exchange.publicText
                proof = new
            } else {
                responses["PASSWORD"] = password
            }
        case (.custom, .text(let text)):
            responses["ANSWER"] = text
        case (.passkey, .credential(let credential)):
            responses["CREDENTIAL"] = credential
        case (.unknown(let name), _):
            throw CognitoError(.unknownChallenge, "The challenge \(name.prefix(80)) is not known to this library.")
        default:
            throw CognitoError(.invalidInput, "The answer is to another kind of challenge than \(challenge.name).")
        }
        return try await respond(
            to: challenge.name, session, responses, user: challenge.user, proof: proof, device: challenge.device,
            deadline: deadline)
    }

    /// The key for an authenticator app.
    public struct AuthenticatorKey: Sendable {
        /// In Base32, for typing it in.
        public let secret: String
        /// To be answered with a code that the app shows.
        public let challenge: SignInChallenge

        /// What the app reads from a picture: `otpauth://totp/…`.
        ///
        /// - Parameter issuer: The program's name, as the app shows it.
        public func uri(issuer: String) -> String {
            func encoded(_ text: String) -> String { URIEncoding.component(text) }
            return "otpauth://totp/\(encoded(issuer)):\(encoded(challenge.user))?secret=\(encoded(secret))"
                + "&issuer=\(encoded(issuer))"
        }
    }

    /// Gets the key for an authenticator app that has to be set up.
    public func authenticatorKey(
        for challenge: SignInChallenge, within time: Duration? = nil
    ) async throws(CognitoError) -> AuthenticatorKey {
        let deadline = SuspendingClock.now + (time ?? options.timeout)
        guard challenge.kind == .setUpAuthenticator, let session = challenge.session else {
            throw CognitoError(.invalidInput, "No authenticator app is to be set up by \(challenge.name).")
        }
        let answer = try await service.call("AssociateSoftwareToken", ["Session": .text(session)], deadline: deadline)
        guard let secret = answer.SecretCode, let next = answer.Session else {
            throw CognitoError(.unusableAnswer, "Cognito gave no key for an authenticator app.")
        }
        return AuthenticatorKey(
            secret: secret,
            challenge: SignInChallenge(
                kind: .confirmAuthenticator, user: challenge.user, name: challenge.name, session: next,
                device: challenge.device))
    }

    private func confirmAuthenticator(
        _ code: String, _ session: String?, deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> String? {
        let answer = try await service.call(
            "VerifySoftwareToken", ["Session": .text(session ?? ""), "UserCode": .text(code)], deadline: deadline)
        guard answer.Status == "SUCCESS" else {
            throw CognitoError(.codeMismatch, "The authenticator app's code was not accepted.")
        }
        return answer.Session
    }

    private func respond(
        to name: String, _ session: String?, _ responses: [String: String], user: String, proof: PasswordProof?,
        device: RememberedDevice?, proofs: Int = 0, deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> SignInStep {
        var responses = responses
        responses["USERNAME"] = user
        responses["DEVICE_KEY"] = device?.key
        responses["SECRET_HASH"] = secretHash(of: user)
        var members: [String: CognitoValue] = [
            "ChallengeName": .text(name), "ClientId": .text(pool.clientID), "ChallengeResponses": .texts(responses),
        ]
        if let session { members["Session"] = .text(session) }
        let answer = try await service.call("RespondToAuthChallenge", members, deadline: deadline)
        return try await step(answer, user: user, proof: proof, device: device, proofs: proofs, deadline: deadline)
    }

    /// What an answer leads to. A proof is given once, of the password and of the device, which takes three answers.
    ///
    /// - Parameter proofs: How many answers were given without the user.
    private func step(
        _ answer: CognitoAnswer, user: String, proof: PasswordProof?, device: RememberedDevice?, proofs: Int = 0,
        deadline: SuspendingClock.Instant
    ) async throws(CognitoError) -> SignInStep {
        guard let name = answer.ChallengeName else {
            var tokens = try tokens(answer.AuthenticationResult)
            if tokens.deviceKey == nil { tokens.deviceKey = device?.key }
            return .signedIn(tokens)
        }
        let parameters = answer.ChallengeParameters ?? [:]
        let user = parameters["USERNAME"] ?? user
        guard proofs < 3 || !["DEVICE_SRP_AUTH", "DEVICE_PASSWORD_VERIFIER"].contains(name) else {
            throw CognitoError(.unusableAnswer, "Cognito asks for the same proof again and again.")
        }
        // Cognito's clock, where it says the time: this machine's may be wrong.
        let time = answer.serverTime ?? options.wallClock()
        if name == "PASSWORD_VERIFIER", let proof {
            let responses = try proof.responses(to: parameters, pool: poolName, at: time)
            return try await respond(
                to: name, answer.Session, responses, user: user, proof: nil, device: device, proofs: proofs + 1,
                deadline: deadline)
        }
        if name == "DEVICE_SRP_AUTH", let device {
            let proof = PasswordProof(password: device.password, secret: options.random(32))
            return try await respond(
                to: name, answer.Session, ["SRP_A": proof.exchange.publicText], user: user, proof: proof,
                device: device, proofs: proofs + 1, deadline: deadline)
        }
        if name == "DEVICE_PASSWORD_VERIFIER", let device, let proof {
            let responses = try proof.responses(
                to: parameters.merging(["USER_ID_FOR_SRP": device.key]) { $1 }, pool: device.group, at: time)
            return try await respond(
                to: name, answer.Session, responses, user: user, proof: nil, device: device, proofs: proofs + 1,
                deadline: deadline)
        }
        return .challenge(
            SignInChallenge(
                kind: .init(name: name, parameters, answer.AvailableChallenges), user: user, name: name,
                session: answer.Session, device: device))
    }
}

/// A proof that the user knows the password, as far as it can be made before the server has answered.
private struct PasswordProof {
    let password: String
    let exchange: SecureRemotePassword

    init(password: String, secret: [UInt8]) {
        self.password = password
        exchange = SecureRemotePassword(secret: secret)
    }

    func responses(
        to parameters: [String: String], pool: String, at time: Date
    ) throws(CognitoError) -> [String: String] {
        guard let salt = parameters["SALT"], let serverValue = parameters["SRP_B"],
            let user = parameters["USER_ID_FOR_SRP"], let blockText = parameters["SECRET_BLOCK"],
            let block = Data(base64Encoded: blockText)
        else {
            throw CognitoError(.unusableAnswer, "Cognito's answer lacks what a proof of the password is made of.")
        }
        let timestamp = CognitoTime.text(time)
        do throws(SecureRemotePassword.Refused) {
            let key = try exchange.key(
                pool: pool, user: user, password: password, salt: salt, serverValue: serverValue)
            return [
                "PASSWORD_CLAIM_SECRET_BLOCK": blockText, "TIMESTAMP": timestamp,
                "PASSWORD_CLAIM_SIGNATURE": SecureRemotePassword.signature(
                    key: key, pool: pool, user: user, block: block, timestamp: timestamp),
            ]
        } catch {
            throw CognitoError(
                .unusableAnswer, "What answers as Cognito sent values that would give the password away.")
        }
    }
}

extension SignInChallenge.Kind {
    fileprivate init(name: String, _ parameters: [String: String], _ available: [String]?) {
        let delivery = CodeDelivery(
            medium: parameters["CODE_DELIVERY_DELIVERY_MEDIUM"], destination: parameters["CODE_DELIVERY_DESTINATION"])
        func factors(_ names: [String]) -> [SignInFactor] { names.map(SignInFactor.init(name:)) }
        self =
            switch name {
            case "NEW_PASSWORD_REQUIRED":
                .newPassword(
                    required: Self.list(parameters["requiredAttributes"]).map {
                        $0.hasPrefix("userAttributes.") ? String($0.dropFirst("userAttributes.".count)) : $0
                    },
                    attributes: Self.texts(parameters["userAttributes"]))
            case "SMS_MFA", "SMS_OTP", "EMAIL_OTP", "SOFTWARE_TOKEN_MFA":
                .code(SignInFactor(name: name), delivery)
            case "SELECT_MFA_TYPE": .chooseSecondFactor(factors(Self.list(parameters["MFAS_CAN_CHOOSE"])))
            case "SELECT_CHALLENGE": .chooseFirstFactor(factors(available ?? []))
            case "MFA_SETUP" where Self.list(parameters["MFAS_CAN_SETUP"]).contains("SOFTWARE_TOKEN_MFA"):
                .setUpAuthenticator
            case "CUSTOM_CHALLENGE": .custom(parameters.filter { $0.key != "USERNAME" && $0.key != "USER_ID_FOR_SRP" })
            case "WEB_AUTHN": .passkey(options: parameters["CREDENTIAL_REQUEST_OPTIONS"] ?? "")
            default: .unknown(name: name)
            }
    }

    /// A list of strings in JSON; none where it is none.
    private static func list(_ json: String?) -> [String] {
        json.flatMap { try? JSONDecoder().decode([String].self, from: Data($0.utf8)) } ?? []
    }

    private static func texts(_ json: String?) -> [String: String] {
        json.flatMap { try? JSONDecoder().decode([String: String].self, from: Data($0.utf8)) } ?? [:]
    }
}
