import LarderGraphQL
import LarderRecords

/// What went wrong, in whatever layer.
public struct LarderError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    ///
    /// Failures of the record cache and of the transport keep their own codes, `records.…` and `transport.…`.
    public struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `larder.miss`.
        public let rawValue: String

        /// A code of this name, to compare with.
        public init(rawValue: String) { self.rawValue = rawValue }

        /// The cache does not know all that was asked; `missing` has the paths. Or what it knows is older than it may be;
        /// `response` has it.
        public static let miss = Code(rawValue: "larder.miss")
        /// The object that was asked for by its cache key is known to be no more.
        public static let deleted = Code(rawValue: "larder.deleted")
        /// The server answered with errors; `errors` has them, and `response` what came beside.
        public static let serverErrors = Code(rawValue: "larder.serverErrors")
        /// The schema cannot be used.
        public static let schema = Code(rawValue: "larder.schema")
        /// The document is not GraphQL.
        public static let syntax = Code(rawValue: "larder.syntax")
        /// The document does not fit the schema, one of its operations must be named, or it is not of the kind asked
        /// for.
        public static let operation = Code(rawValue: "larder.operation")
        /// A variable is missing, unknown or not of its type.
        public static let variables = Code(rawValue: "larder.variables")
        /// The data does not fit the program's type, or the other way round.
        public static let data = Code(rawValue: "larder.data")
        /// The server's pages form no list: they lead back to one that was read, or do not say whether another follows.
        public static let paging = Code(rawValue: "larder.paging")
        /// There is no transport, and the network was needed.
        public static let noTransport = Code(rawValue: "larder.noTransport")
        /// The partition is not the current one any more, or the store was closed.
        public static let parked = Code(rawValue: "larder.parked")
        /// The store is suspended.
        public static let suspended = Code(rawValue: "larder.suspended")
        /// The device was not unlocked since it was started, and keeps the store's files locked.
        public static let protected = Code(rawValue: "larder.protected")
        /// An environment's definition, or its configuration file, cannot be used.
        public static let environment = Code(rawValue: "larder.environment")
        /// The deadline passed; the message says what the call waited for, and who held it where that is known.
        public static let timedOut = Code(rawValue: "larder.timedOut")
        /// A lock of the store cannot be made or taken; the cause says why.
        public static let lock = Code(rawValue: "larder.lock")
        /// Forgotten data is still on disk; the cause says why.
        public static let notRemoved = Code(rawValue: "larder.notRemoved")
        /// No environment is chosen.
        public static let noEnvironment = Code(rawValue: "larder.noEnvironment")
        /// The mutation is neither applied nor set aside yet; it goes on.
        public static let unsettled = Code(rawValue: "larder.unsettled")
        /// No mutation of this id is known.
        public static let unknownMutation = Code(rawValue: "larder.unknownMutation")
        /// No updater of lists is registered under the name.
        public static let unknownUpdater = Code(rawValue: "larder.unknownUpdater")
        /// Queued mutations, or transfers, cannot be sent from here; the message says why.
        public static let notRunnable = Code(rawValue: "larder.notRunnable")
        /// A backup cannot be made, or cannot be brought back, for a reason of its own; the message says which.
        public static let backup = Code(rawValue: "larder.backup")
        /// The task was cancelled.
        public static let cancelled = Code(rawValue: "larder.cancelled")
    }

    /// What kind of failure it is.
    public var code: Code
    /// What happened and what would help, in English, for developers.
    public var message: String
    /// For `.miss`: what the cache does not know.
    public var missing: [ResponsePath]
    /// For `.serverErrors`: what the server reported.
    public var errors: [GraphQLError]
    /// For `.miss` and `.serverErrors`: the data that there is nevertheless.
    public var response: Response?
    /// The queued mutation concerned, by which `Partition.mutation(_:)` finds it; where several were queued in one
    /// call, the first that is. After `operations.commitUnknown` its status says whether it is queued.
    public var mutation: MutationID?
    /// For `.operationsUnsentWork`: how many mutations the server may not have.
    public internal(set) var unsentMutations: Int?
    /// For `.operationsUnsentWork` and `.operationsUploadsLeft`: how many uploads the storage may not have, or has a part
    /// of.
    public internal(set) var unsentUploads: Int?
    /// The error of the layer below.
    public var cause: (any Error)?

    /// An error of this code; tests and a program's own layers make them.
    public init(
        _ code: Code, _ message: String, missing: [ResponsePath] = [], errors: [GraphQLError] = [],
        response: Response? = nil, cause: (any Error)? = nil
    ) {
        self.code = code
        self.message = message
        self.missing = missing
        self.errors = errors
        self.response = response
        self.cause = cause
    }
}

extension LarderError: CustomStringConvertible {
    /// The message, the first few missing paths and server errors, and the code.
    public var description: String {
        var text = message
        if !missing.isEmpty {
            text += ": " + missing.prefix(5).map(\.description).joined(separator: ", ")
            if missing.count > 5 { text += " and \(missing.count - 5) more" }
        }
        for error in errors.prefix(5) { text += "; \(error)" }
        return text + " [\(code.rawValue)]"
    }
}

extension LarderError {
    init(_ error: RecordError) {
        guard error.code != .suspended else {
            self = .suspended
            cause = error
            return
        }
        guard error.code != .protected else {
            self = .protected(cause: error)
            return
        }
        self.init(Code(rawValue: error.code.rawValue), error.message, cause: error)
        if let path = error.path, !path.components.isEmpty { message += ", at \(path)" }
    }

    init(_ error: TransportError) {
        self.init(Code(rawValue: error.code.rawValue), error.message, cause: error)
    }

    static func protected(cause: any Error) -> LarderError {
        LarderError(
            .protected,
            "The device was not unlocked since it was started, and keeps the store's files locked; try again once it is",
            cause: cause)
    }

    init(_ error: SchemaError) { self.init(.schema, error.description, cause: error) }

    init(_ error: SyntaxError) { self.init(.syntax, error.description, cause: error) }

    init(_ error: PlanError) {
        self.init(error.code == .variable ? .variables : .operation, error.description, cause: error)
    }

    static func unknownUpdater(_ name: String) -> LarderError {
        LarderError(.unknownUpdater, "No updater is named \(name); give it to the store in its options")
    }

    static func tooOld(_ response: Response) -> LarderError {
        LarderError(
            .miss, "The cache's answer is older than it may be; ask the server, or allow what is stale",
            response: response)
    }

    static func miss(_ response: Response) -> LarderError {
        LarderError(
            .miss, "The cache does not know all that the operation asks", missing: response.missing, response: response)
    }
}
