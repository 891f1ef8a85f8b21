/// Why no answer could be had from the server.
public struct TransportError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `transport.timedOut`.
        public let rawValue: String

        /// A code of this name, to compare with.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The server could not be reached: no network, no such host, refused.
        public static let unreachable = Code(rawValue: "transport.unreachable")
        /// The deadline passed.
        public static let timedOut = Code(rawValue: "transport.timedOut")
        /// The calling task was cancelled.
        public static let cancelled = Code(rawValue: "transport.cancelled")
        /// The connection broke before the answer was whole.
        public static let interrupted = Code(rawValue: "transport.interrupted")
        /// TLS could not be agreed or the certificate was not trusted.
        public static let insecure = Code(rawValue: "transport.insecure")
        /// An HTTP status other than success, and a body that is not a GraphQL response.
        public static let status = Code(rawValue: "transport.status")
        /// The answer is not of a type that can hold a GraphQL response, or is larger than allowed.
        public static let unusableAnswer = Code(rawValue: "transport.unusableAnswer")
        /// The request could not be made, for a reason that passes: its headers could not be had, the client is shut down.
        public static let notPrepared = Code(rawValue: "transport.notPrepared")
        /// The request cannot be sent as it is: a bad URL, a header that HTTP does not allow, a subscription.
        public static let unusableRequest = Code(rawValue: "transport.unusableRequest")
    }

    /// What kind of failure it is.
    public var code: Code
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
    public init(
        _ code: Code, _ message: String, status: Int? = nil, retryAfter: Duration? = nil,
        body: [UInt8] = [], cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.status = status
        self.retryAfter = retryAfter
        self.body = body
        self.cause = cause
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
