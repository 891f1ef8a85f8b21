/// Why no answer could be had from the server.
public struct TransportError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `transport.timedOut`.
        public let rawValue: String

        /// A code of this name, to compare with.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The server could not be reached: no network, no such host, refused. Nothing of the request was sent.
        public static let unreachable = Code(rawValue: "transport.unreachable")
        /// The deadline passed.
        public static let timedOut = Code(rawValue: "transport.timedOut")
        /// The calling task was cancelled.
        public static let cancelled = Code(rawValue: "transport.cancelled")
        /// The connection broke before the answer was whole.
        public static let interrupted = Code(rawValue: "transport.interrupted")
        /// TLS could not be agreed or the certificate was not trusted. Nothing of the request was sent.
        public static let insecure = Code(rawValue: "transport.insecure")
        /// An HTTP status other than success, and a body that is not a GraphQL response.
        public static let status = Code(rawValue: "transport.status")
        /// The answer is not of a type that can hold a GraphQL response, or is larger than allowed.
        public static let unusableAnswer = Code(rawValue: "transport.unusableAnswer")
        /// The request could not be made, for a reason that passes: its headers could not be had, the client is shut
        /// down.
        public static let notPrepared = Code(rawValue: "transport.notPrepared")
        /// The request needs a user, and none is signed in. Nothing of it was sent.
        public static let notSignedIn = Code(rawValue: "transport.notSignedIn")
        /// The request cannot be sent as it is: a bad URL, a header that HTTP does not allow, a subscription.
        public static let unusableRequest = Code(rawValue: "transport.unusableRequest")
    }

    /// How far an exchange had come when it ended. It decides whether a mutation may have taken effect.
    public enum Phase: Sendable, Hashable, CaseIterable {
        /// Nothing on which a server could act had left, and nothing will: the exchange ended before there was a
        /// connection, in the TLS handshake, or while its headers were supplied.
        case beforeSending
        /// The request was sent, or a part of it was: the server may have acted on it.
        case sending
    }

    /// What kind of failure it is.
    public var code: Code
    /// How far the exchange had come.
    public var phase: Phase
    /// What happened and what would help, in English, for developers.
    public var message: String
    /// The HTTP status, where one arrived.
    public var status: Int?
    /// How long the server asked to be left alone, from `Retry-After`.
    public var retryAfter: Duration?
    /// The beginning of the body (at most 1,024 bytes), where one arrived.
    public var body: [UInt8]
    /// The error of the layer below.
    public var cause: (any Error)?

    /// An error of this code, for transports to throw.
    ///
    /// - Parameters:
    ///   - code: What went wrong.
    ///   - message: For developers; without secrets.
    ///   - phase: Unless given, `.beforeSending` for `.unreachable`, `.insecure`, `.notPrepared`, `.notSignedIn` and
    ///     `.unusableRequest`, and `.sending` for every other code.
    ///   - status: The status of HTTP where there was an answer.
    ///   - retryAfter: How long the server asks to wait.
    ///   - body: The beginning of an answer that is no GraphQL response.
    ///   - cause: What another library has thrown.
    public init(
        _ code: Code, _ message: String, phase: Phase? = nil, status: Int? = nil, retryAfter: Duration? = nil,
        body: [UInt8] = [], cause: (any Error)? = nil
    ) {
        self.code = code
        self.phase = phase ?? code.phase
        self.message = message
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
        self.cause = cause
    }
}

extension TransportError.Code {
    /// Where an exchange that fails in this way ends, unless its transport says otherwise.
    package var phase: TransportError.Phase {
        [.unreachable, .insecure, .notPrepared, .notSignedIn, .unusableRequest].contains(self)
            ? .beforeSending : .sending
    }
}

extension TransportError: CustomStringConvertible {
    /// The message, the code and the cause.
    public var description: String {
        var text = "\(message) [\(code.rawValue)]"
        if let cause { text += ": \(cause)" }
        return text
    }
}
