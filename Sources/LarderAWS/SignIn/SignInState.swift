public import Foundation
public import Larder

/// What a sign-in screen shows at one moment: which step it is, what it asks for, and what the user can do.
public struct SignInState: Sendable {
    /// Where a sign-in stands.
    public enum Step: Sendable, Hashable {
        /// The user's name and password are asked for.
        case signIn
        /// A code that was sent, or that an authenticator app shows.
        case code(SignInFactor, CodeDelivery)
        /// Which way the user wants to prove who he or she is.
        case chooseFactor([SignInFactor])
        /// An authenticator app has to be set up: the screen shows the URI as a picture, or the secret to be typed in.
        case setUpAuthenticator(secret: String, uri: String)
        /// A password of the user's own choice, in place of one that was given.
        case newPassword
        /// What the pool's own functions ask.
        case question([String: String])
        /// A passkey: the options of the request, as JSON for the system's own interface.
        case passkey(options: String)
        /// A new account.
        case signUp
        /// The code that confirms a new account.
        case confirmAccount(CodeDelivery)
        /// Whose password was forgotten.
        case forgotPassword
        /// The code that was sent for it, and a new password.
        case resetPassword(CodeDelivery)
        /// The user is signed in, and the session has the credentials.
        case done
        /// The user gave up.
        case cancelled
    }

    /// Where the sign-in stands.
    public internal(set) var step = Step.signIn
    /// What the step asks for, in order.
    public internal(set) var fields: [SignInField] = []
    /// What the user can do, the usual one first.
    public internal(set) var actions: [SignInAction] = []
    /// Whether the server is being asked; actions other than to cancel then do nothing.
    public internal(set) var isWorking = false
    /// Why the last action failed. `ErrorTexts` has a text for it.
    public internal(set) var failure: LarderError?
    /// The fields whose values were refused before anything was sent: empty ones, and passwords that break the rules.
    public internal(set) var refusedFields: Set<String> = []
    /// When a code can be sent once more; nil for now.
    public internal(set) var resendTime: Date?

    /// Whether nothing more will happen.
    public var hasEnded: Bool { step == .done || step == .cancelled }
}

/// A field of a sign-in screen.
public struct SignInField: Sendable, Hashable, Identifiable {
    /// What a field holds, by which a system fills it in and shows its keyboard.
    public enum Kind: Sendable, Hashable {
        /// What the user types. Passwords are not to be shown: see `isSecret`.
        case name, password, newPassword, code, text
        /// An attribute of the account, by Cognito's name, such as `email`.
        case attribute(String)
        /// What the system's interface gave for a passkey, as JSON. The program fills it in, and not the user.
        case credential
    }

    /// By which its value is given: `name`, `password`, `newPassword`, `code`, `answer`, `credential`, or of an attribute
    /// its name after `attribute.`, as `attribute.email`.
    public let id: String
    /// What it holds.
    public let kind: Kind
    /// What it begins with.
    public let value: String
    /// What a new password must have, as far as the program has said it.
    public let rules: PasswordRules?

    /// Whether the screen must hide what the user types.
    public var isSecret: Bool { kind == .password || kind == .newPassword }

    package init(_ id: String, _ kind: Kind, value: String = "", rules: PasswordRules? = nil) {
        self.id = id
        self.kind = kind
        self.value = value
        self.rules = rules
    }

    static func attribute(_ name: String, value: String = "") -> SignInField {
        SignInField("attribute.\(name)", .attribute(name), value: value)
    }
}

/// What a user can do at a step of a sign-in.
public enum SignInAction: Sendable, Hashable {
    /// Sends the fields.
    case submit
    /// Chooses a way to prove who the user is.
    case choose(SignInFactor)
    /// Sends the code once more.
    case resendCode
    /// Goes to the step of a forgotten password.
    case forgotPassword
    /// Goes to the step of a new account.
    case signUp
    /// Goes back to name and password.
    case back
    /// Gives up.
    case cancel
}

/// What a pool wants of passwords. The pool decides; this lets a screen say it before it sends one.
public struct PasswordRules: Sendable, Hashable {
    /// A rule that a password breaks.
    public enum Violation: String, Sendable, Hashable, CaseIterable {
        /// What the password lacks.
        case tooShort, noLowercaseLetter, noUppercaseLetter, noDigit, noSymbol
    }

    /// In characters.
    public var minimumLength: Int
    /// The violations other than `tooShort` that the pool refuses.
    public var refused: Set<Violation>

    /// Cognito's own rules: eight characters, with a letter of both cases, a digit and a symbol.
    public init(
        minimumLength: Int = 8,
        refused: Set<Violation> = [.noLowercaseLetter, .noUppercaseLetter, .noDigit, .noSymbol]
    ) {
        self.minimumLength = minimumLength
        self.refused = refused
    }

    /// The rules that a password breaks. Cognito counts letters and digits of ASCII.
    public func violations(of password: String) -> [Violation] {
        let symbols = Set(#"^$*.[]{}()?"!@#%&/\,><':;|_~`=+- "#)
        return Violation.allCases.filter { violation in
            switch violation {
            case .tooShort: return password.count < minimumLength
            case _ where !refused.contains(violation): return false
            case .noLowercaseLetter: return !password.contains { ("a"..."z").contains($0) }
            case .noUppercaseLetter: return !password.contains { ("A"..."Z").contains($0) }
            case .noDigit: return !password.contains { ("0"..."9").contains($0) }
            case .noSymbol: return !password.contains { symbols.contains($0) }
            }
        }
    }
}
