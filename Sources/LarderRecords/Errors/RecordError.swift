/// What went wrong in the record cache.
package struct RecordError: Error, Sendable {
    /// A stable name for the kind of failure. New ones may be added; none changes its meaning.
    package struct Code: RawRepresentable, Hashable, Sendable {
        /// The name, such as `records.full`.
        package let rawValue: String

        /// A code of this name, to compare with.
        package init(rawValue: String) { self.rawValue = rawValue }

        /// The response is not JSON, or not a GraphQL response.
        package static let responseMalformed = Code(rawValue: "records.responseMalformed")
        /// The response is one, but not to this operation.
        package static let responseMismatch = Code(rawValue: "records.responseMismatch")
        /// The schema is not the server's, or not the one that the cache was written with.
        package static let schemaMismatch = Code(rawValue: "records.schemaMismatch")
        /// A response or record is larger or deeper than the format holds, or an answer takes more memory than it may.
        package static let tooLarge = Code(rawValue: "records.tooLarge")
        /// The cache's files are damaged; what was cached must be fetched again.
        package static let damaged = Code(rawValue: "records.damaged")
        /// The cache's files were written by a newer format.
        package static let futureFormat = Code(rawValue: "records.futureFormat")
        /// The cache's files were written by an older format, and have to be migrated.
        package static let olderFormat = Code(rawValue: "records.olderFormat")
        /// The cache, or the disk under it, is full.
        package static let full = Code(rawValue: "records.full")
        /// The cache cannot be written: read-only, or without permission.
        package static let notWritable = Code(rawValue: "records.notWritable")
        /// The device was not unlocked since it was started, and keeps the cache's files locked.
        package static let protected = Code(rawValue: "records.protected")
        /// Another process, or an update's closure in this one, kept the cache past the deadline.
        package static let busy = Code(rawValue: "records.busy")
        /// The cache was closed.
        package static let closed = Code(rawValue: "records.closed")
        /// The cache is suspended.
        package static let suspended = Code(rawValue: "records.suspended")
        /// The cache is open already in this process.
        package static let alreadyOpen = Code(rawValue: "records.alreadyOpen")
        /// Nothing is there to be opened, or it belongs to something else.
        package static let missing = Code(rawValue: "records.missing")
        /// The cache belongs to another partition: its folder has been moved.
        package static let otherPartition = Code(rawValue: "records.otherPartition")
        /// The process has as many files open, or as much memory or address space in use, as the system allows.
        package static let systemLimit = Code(rawValue: "records.systemLimit")
        /// The layer below failed otherwise.
        package static let storage = Code(rawValue: "records.storage")
    }

    /// What kind of failure it is.
    package var code: Code
    /// What happened and what would help, in English, for developers.
    package var message: String
    /// The place in the response that the error is about.
    package var path: ResponsePath?
    /// The error of the layer below.
    package var cause: (any Error)?

    /// An error of this code.
    package init(_ code: Code, _ message: String, path: ResponsePath? = nil, cause: (any Error)? = nil) {
        self.code = code
        self.message = message
        self.path = path
        self.cause = cause
    }
}

extension RecordError: CustomStringConvertible {
    /// The message, the place in the response, the code and the cause.
    package var description: String {
        var text = message
        if let path, !path.components.isEmpty { text += ", at \(path)" }
        text += " [\(code.rawValue)]"
        if let cause { text += ": \(cause)" }
        return text
    }
}
