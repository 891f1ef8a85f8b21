public import Larder

/// A way to prove who one is.
public enum SignInFactor: Sendable, Hashable {
    /// The password itself.
    case password
    /// A proof that the user knows the password.
    case passwordProof
    /// A code by e-mail.
    case emailCode
    /// A code by text message, as the first proof.
    case messageCode
    /// A code by text message, after another proof.
    case secondMessageCode
    /// A code of an authenticator app.
    case authenticator
    /// A passkey.
    case passkey
    /// One that this library does not know, by Cognito's name.
    case other(String)

    private static let names: [(SignInFactor, String)] = [
        (.password, "PASSWORD"), (.passwordProof, "PASSWORD_SRP"), (.emailCode, "EMAIL_OTP"),
        (.messageCode, "SMS_OTP"), (.secondMessageCode, "SMS_MFA"), (.authenticator, "SOFTWARE_TOKEN_MFA"),
        (.passkey, "WEB_AUTHN"),
    ]

    init(name: String) { self = Self.names.first { $0.1 == name }?.0 ?? .other(name) }

    var name: String {
        if case .other(let name) = self { return name }
        return Self.names.first { $0.0 == self }?.1 ?? ""
    }
}

/// Where a code was sent.
public struct CodeDelivery: Sendable, Hashable {
    /// `EMAIL` or `SMS`.
    public var medium: String?
    /// Such as `a***@e***`.
    public var destination: String?
    /// The attribute that it confirms, such as `email`.
    public var attribute: String?

    package init(medium: String?, destination: String?, attribute: String? = nil) {
        self.medium = medium
        self.destination = destination
        self.attribute = attribute
    }

    init(_ answer: CognitoAnswer.Delivery?) {
        self.init(
            medium: answer?.DeliveryMedium, destination: answer?.Destination, attribute: answer?.AttributeName)
    }
}

/// What a user has to answer before a sign-in goes on. It is good for some minutes, and for one answer.
public struct SignInChallenge: Sendable {
    /// What is asked.
    public enum Kind: Sendable, Hashable {
        /// A password of the user's own choice, and attributes that the pool wants; and the attributes that the user
        /// has already.
        case newPassword(required: [String], attributes: [String: String])
        /// A code that was sent, or that an authenticator app shows.
        case code(SignInFactor, CodeDelivery)
        /// Which of these is to be the second proof.
        case chooseSecondFactor([SignInFactor])
        /// Which of these is to be the first proof.
        case chooseFirstFactor([SignInFactor])
        /// An authenticator app has to be set up: see `authenticatorKey(for:within:)`.
        case setUpAuthenticator
        /// A code of the authenticator app that was just set up.
        case confirmAuthenticator
        /// What the pool's own functions ask.
        case custom([String: String])
        /// A passkey: the options of the request, as JSON for the system's own interface.
        case passkey(options: String)
        /// One that this library does not know, by Cognito's name.
        case unknown(name: String)
    }

    /// What is asked.
    public let kind: Kind
    /// Who signs in.
    public let user: String
    /// Cognito's name for it.
    let name: String
    /// What the answer must be sent with.
    let session: String?
    /// The device that the user signs in on, where the pool remembers it.
    var device: RememberedDevice?
}

extension SignInChallenge: CustomStringConvertible, CustomReflectable {
    /// The kind.
    public var description: String { "challenge \(name.prefix(80))" }
    /// Has the kind alone.
    public var customMirror: Mirror { Mirror(self, children: ["kind": kind]) }
}

/// The answer to a challenge.
public enum SignInAnswer: Sendable {
    /// To `newPassword`, with the attributes that are required.
    case newPassword(String, attributes: [String: String] = [:])
    /// To `code` and `confirmAuthenticator`.
    case code(String)
    /// To `chooseSecondFactor` and `chooseFirstFactor`.
    case factor(SignInFactor)
    /// To `chooseFirstFactor`: the password, as it is or as a proof.
    case password(String, asProof: Bool = true)
    /// To `custom`.
    case text(String)
    /// To `passkey`: what the system's interface gave, as JSON.
    case credential(String)
}

/// What came of a step of a sign-in.
public enum SignInStep: Sendable {
    /// The user is signed in: give the tokens to the session.
    case signedIn(Credentials.UserPoolTokens)
    /// The user has to answer this.
    case challenge(SignInChallenge)
}
