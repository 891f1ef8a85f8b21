/// Why something could not be had from, or done at, the storage.
public struct ObjectError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `object.notFound`.
        public let rawValue: String

        /// A code of this name, to compare with.
        public init(rawValue: String) { self.rawValue = rawValue }

        // It may go better later.

        /// The server could not be reached: no network, no such host, refused.
        public static let unreachable = Code(rawValue: "object.unreachable")
        /// The deadline passed, or no bytes moved for too long.
        public static let timedOut = Code(rawValue: "object.timedOut")
        /// The connection broke before the exchange was whole.
        public static let interrupted = Code(rawValue: "object.interrupted")
        /// The server asks to be left alone for a while: `SlowDown`, 429, 503.
        public static let throttled = Code(rawValue: "object.throttled")
        /// The server failed: `InternalError`, 5xx.
        public static let serverFault = Code(rawValue: "object.serverFault")
        /// The bytes that arrived are not the ones that were sent: their checksum or ETag is another.
        public static let checksum = Code(rawValue: "object.checksum")
        /// The server sent another length or another range than it was asked for or than it said.
        public static let wrongLength = Code(rawValue: "object.wrongLength")
        /// The answer cannot be understood.
        public static let unusableAnswer = Code(rawValue: "object.unusableAnswer")
        /// The request could not be made, for a reason that passes: the client is shut down, a credential cannot be
        /// had.
        public static let notPrepared = Code(rawValue: "object.notPrepared")

        // The user has to sign in.

        /// The credentials have ended: `ExpiredToken`.
        public static let expiredCredentials = Code(rawValue: "object.expiredCredentials")
        /// There are no credentials, or the server does not know them: `InvalidAccessKeyId`, `SignatureDoesNotMatch`.
        public static let invalidCredentials = Code(rawValue: "object.invalidCredentials")

        // It will not go better on its own.

        /// These credentials may not do this: `AccessDenied`.
        public static let accessDenied = Code(rawValue: "object.accessDenied")
        /// There is no such object.
        public static let notFound = Code(rawValue: "object.notFound")
        /// There is no such bucket.
        public static let noSuchBucket = Code(rawValue: "object.noSuchBucket")
        /// The upload in parts was completed or aborted.
        public static let noSuchUpload = Code(rawValue: "object.noSuchUpload")
        /// The object has other bytes than the ETag says.
        public static let changed = Code(rawValue: "object.changed")
        /// A part is missing, is another one, or is too small: `InvalidPart`, `InvalidPartOrder`, `EntityTooSmall`.
        public static let incomplete = Code(rawValue: "object.incomplete")
        /// It is larger than the storage takes: `EntityTooLarge`.
        public static let tooLarge = Code(rawValue: "object.tooLarge")
        /// The bucket is in a region that could not be found out.
        public static let wrongRegion = Code(rawValue: "object.wrongRegion")
        /// The clock of this machine is wrong, and the server's could not be used instead.
        public static let clockSkew = Code(rawValue: "object.clockSkew")
        /// TLS could not be agreed or the certificate was not trusted.
        public static let insecure = Code(rawValue: "object.insecure")
        /// The server refuses it for another reason, which `serverCode` names.
        public static let rejected = Code(rawValue: "object.rejected")
        /// It cannot be sent as it is: an empty key, a header that HTTP does not allow.
        public static let unusableRequest = Code(rawValue: "object.unusableRequest")

        // It ended on this side.

        /// The calling task was cancelled.
        public static let cancelled = Code(rawValue: "object.cancelled")
        /// The body could not be read, or the sink could not take what arrived; `cause` says why.
        public static let local = Code(rawValue: "object.local")
    }

    /// What kind of failure it is.
    public var code: Code
    /// What happened and what would help, in English, for developers.
    public var message: String
    /// The HTTP status, where one arrived.
    public var status: Int?
    /// The server's own name for it, such as `NoSuchKey`.
    public var serverCode: String?
    /// What the server calls the request, by which its owners find it: `x-amz-request-id`.
    public var requestID: String?
    /// The other half of that name: `x-amz-id-2`.
    public var hostID: String?
    /// How long the server asked to be left alone, from `Retry-After`.
    public var retryAfter: Duration?
    /// The error of the layer below.
    public var cause: (any Error)?

    /// An error of this code, for transports to throw.
    public init(
        _ code: Code, _ message: String, status: Int? = nil, serverCode: String? = nil, requestID: String? = nil,
        hostID: String? = nil, retryAfter: Duration? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.status = status
        self.serverCode = serverCode
        self.requestID = requestID
        self.hostID = hostID
        self.retryAfter = retryAfter
        self.cause = cause
    }
}

extension ObjectError: CustomStringConvertible {
    /// The message, the code, the server's names and the cause.
    public var description: String {
        "\(message) [\(([code.rawValue] + names).joined(separator: ", "))]" + (cause.map { ": \($0)" } ?? "")
    }

    /// The message with the server's names, by which its owners find the request: what is stored and shown, without the
    /// texts of libraries below.
    var told: String { names.isEmpty ? message : "\(message) [\(names.joined(separator: ", "))]" }

    private var names: [String] { [serverCode, requestID.map { "request \($0)" }].compactMap(\.self) }
}
