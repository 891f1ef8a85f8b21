/// Why a key cannot be had, or cannot be used.
public struct KeyError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `keys.locked`.
        public let rawValue: String

        /// A code of this name, to compare with.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The key store is locked.
        public static let locked = Code(rawValue: "keys.locked")
        /// The provider has not answered by the deadline.
        public static let timedOut = Code(rawValue: "keys.timedOut")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "keys.cancelled")
        /// There is no key.
        public static let missing = Code(rawValue: "keys.missing")
        /// There are keys, and none of the id that was asked for.
        public static let unknownKey = Code(rawValue: "keys.unknownKey")
        /// The key cannot be read: no permission, or the key store failed.
        public static let unreadable = Code(rawValue: "keys.unreadable")
        /// Others than the owner may read the key file, or it lies in the store's folder.
        public static let exposed = Code(rawValue: "keys.exposed")
        /// The stored key is damaged.
        public static let damaged = Code(rawValue: "keys.damaged")
        /// Something else is stored where the key should be.
        public static let foreign = Code(rawValue: "keys.foreign")
        /// A newer version of the library has written the key.
        public static let newerFormat = Code(rawValue: "keys.newerFormat")
        /// The key cannot be written.
        public static let notWritable = Code(rawValue: "keys.notWritable")
        /// The user changes this provider's key outside the program; it cannot be changed from here.
        public static let cannotRotate = Code(rawValue: "keys.cannotRotate")
        /// There is no such key store here.
        public static let unsupported = Code(rawValue: "keys.unsupported")
        /// The bytes are no key.
        public static let invalid = Code(rawValue: "keys.invalid")
    }

    /// What kind of failure it is.
    public var code: Code
    /// What happened and what would help, in English, for developers. Nothing secret.
    public var message: String
    /// The error of the layer below.
    public var cause: (any Error)?

    /// An error of this code, for providers to throw.
    public init(_ code: Code, _ message: String, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.cause = cause
    }
}

extension KeyError: CustomStringConvertible {
    /// The message, the code and the cause.
    public var description: String {
        var text = "\(message) [\(code.rawValue)]"
        if let cause { text += ": \(cause)" }
        return text
    }
}

extension LarderError {
    init(_ error: KeyError) {
        guard error.code != .cancelled else {
            self = .cancelled
            return
        }
        self.init(Code(rawValue: error.code.rawValue), error.message, cause: error)
    }
}
