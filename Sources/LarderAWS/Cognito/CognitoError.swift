public import Foundation
import Larder

/// Why Cognito has not done what it was asked for.
public struct CognitoError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `cognito.codeMismatch`.
        public let rawValue: String

        /// A code of this name, to compare with.
        public init(rawValue: String) { self.rawValue = rawValue }

        // It may go better later.

        /// Cognito could not be reached, or failed, or had not answered by the deadline.
        public static let unreachable = Code(rawValue: "cognito.unreachable")
        /// Cognito asks to be left alone for a while.
        public static let throttled = Code(rawValue: "cognito.throttled")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "cognito.cancelled")

        // The user can put it right.

        /// The name and the password do not go together, or the answer to a challenge is wrong.
        public static let wrongCredentials = Code(rawValue: "cognito.wrongCredentials")
        /// The sign-in took too long, or the tokens are not accepted any more: sign in from the start.
        public static let signInAgain = Code(rawValue: "cognito.signInAgain")
        /// There is no such user. Pools may hide this behind `wrongCredentials`.
        public static let userNotFound = Code(rawValue: "cognito.userNotFound")
        /// The user has not confirmed the account: ask for the code.
        public static let userNotConfirmed = Code(rawValue: "cognito.userNotConfirmed")
        /// The password must be set anew: begin with `forgotPassword`.
        public static let passwordResetRequired = Code(rawValue: "cognito.passwordResetRequired")
        /// The code is wrong.
        public static let codeMismatch = Code(rawValue: "cognito.codeMismatch")
        /// The code has expired: send another.
        public static let codeExpired = Code(rawValue: "cognito.codeExpired")
        /// The password is not as the pool wants it; the message says how.
        public static let weakPassword = Code(rawValue: "cognito.weakPassword")
        /// The password was used before.
        public static let passwordUsedBefore = Code(rawValue: "cognito.passwordUsedBefore")
        /// A user has this name already.
        public static let userExists = Code(rawValue: "cognito.userExists")
        /// A user has this e-mail address or telephone number already.
        public static let aliasExists = Code(rawValue: "cognito.aliasExists")
        /// It was tried too often: wait.
        public static let tooManyAttempts = Code(rawValue: "cognito.tooManyAttempts")
        /// A field of the screen is empty: nothing was sent.
        public static let emptyField = Code(rawValue: "cognito.emptyField")
        /// What was given is not as Cognito wants it.
        public static let invalidInput = Code(rawValue: "cognito.invalidInput")

        // Only the pool's owner can.

        /// The user is disabled.
        public static let userDisabled = Code(rawValue: "cognito.userDisabled")
        /// One of the pool's functions has refused.
        public static let refusedByFunction = Code(rawValue: "cognito.refusedByFunction")
        /// The identity pool gives no credentials for the logins, or to guests.
        public static let federatedRefused = Code(rawValue: "cognito.federatedRefused")
        /// The client does not allow this way to sign in.
        public static let flowNotEnabled = Code(rawValue: "cognito.flowNotEnabled")
        /// The client has a secret, and it was not given or is wrong.
        public static let clientSecret = Code(rawValue: "cognito.clientSecret")
        /// Pool, client or identity are not there, or not set up for this.
        public static let configuration = Code(rawValue: "cognito.configuration")

        // It was not made for this.

        /// The challenge is none that this library knows how to answer.
        public static let unknownChallenge = Code(rawValue: "cognito.unknownChallenge")
        /// The tokens are no JSON Web Tokens, or another pool's or client's. They were not kept.
        public static let foreignToken = Code(rawValue: "cognito.foreignToken")
        /// The answer cannot be understood, or is longer than any.
        public static let unusableAnswer = Code(rawValue: "cognito.unusableAnswer")
        /// Cognito refuses it for another reason, which `serverCode` names.
        public static let rejected = Code(rawValue: "cognito.rejected")
    }

    /// What kind of failure it is.
    public var code: Code
    /// What happened and what would help, in English, for developers. Nothing secret.
    public var message: String
    /// Cognito's own name for it, such as `CodeMismatchException`.
    public var serverCode: String?
    /// How long Cognito asked to be left alone.
    public var retryAfter: Duration?
    /// The error of the layer below.
    public var cause: (any Error)?

    /// An error of this code.
    public init(
        _ code: Code, _ message: String, serverCode: String? = nil, retryAfter: Duration? = nil,
        cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.serverCode = serverCode
        self.retryAfter = retryAfter
        self.cause = cause
    }
}

extension CognitoError: LocalizedError {
    /// As a `LarderError` of this code.
    public var errorDescription: String? { LarderError(.init(rawValue: code.rawValue), message).errorDescription }
    /// The message for developers.
    public var failureReason: String? { message }
}

extension CognitoError: RetryAfterError {}

extension CognitoError: CustomStringConvertible {
    /// The message, the code and the cause.
    public var description: String {
        var text = "\(message) [\(code.rawValue)]"
        if let cause { text += ": \(cause)" }
        return text
    }
}
