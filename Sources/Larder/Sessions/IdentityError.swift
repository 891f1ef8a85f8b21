/// Why an identity provider has given no credentials.
public struct IdentityError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `identity.unreachable`.
        public let rawValue: String

        /// A code of this name, to compare with.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The server could not be asked: no network, a fault of the server, the deadline. Signs no user out.
        public static let unreachable = Code(rawValue: "identity.unreachable")
        /// The server asks to be left alone for a while. Signs no user out.
        public static let throttled = Code(rawValue: "identity.throttled")
        /// The user pool does not accept the tokens any more: revoked, expired, another client's.
        public static let userPoolRefused = Code(rawValue: "identity.userPoolRefused")
        /// The identity pool gives no credentials for the tokens, or to guests.
        public static let federatedRefused = Code(rawValue: "identity.federatedRefused")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "identity.cancelled")
        /// The answer, or the configuration, cannot be used. Signs no user out.
        public static let unusable = Code(rawValue: "identity.unusable")
    }

    /// What kind of failure it is.
    public var code: Code
    /// What happened and what would help, in English, for developers. Nothing secret.
    public var message: String
    /// How long the server asked to be left alone.
    public var retryAfter: Duration?
    /// The error of the layer below.
    public var cause: (any Error)?

    /// An error of this code, for providers to throw.
    public init(_ code: Code, _ message: String, retryAfter: Duration? = nil, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.retryAfter = retryAfter
        self.cause = cause
    }
}

extension IdentityError: CustomStringConvertible {
    /// The message, the code and the cause.
    public var description: String {
        var text = "\(message) [\(code.rawValue)]"
        if let cause { text += ": \(cause)" }
        return text
    }
}

extension IdentityError {
    var event: SessionEvent {
        switch code {
        case .userPoolRefused: .userPoolRefused
        case .federatedRefused: .federatedRefused
        default: .unreachable
        }
    }
}

extension LarderError {
    init(_ error: IdentityError) { self.init(Code(rawValue: error.code.rawValue), error.message, cause: error) }
}
