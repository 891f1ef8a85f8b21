extension LMDBError {
    /// A stable dotted name for one kind of failure.
    package struct Code: Hashable, Sendable, RawRepresentable, CustomStringConvertible {
        package let rawValue: String
        package init(rawValue: String) { self.rawValue = rawValue }
        package var description: String { rawValue }

        // The environment has no room.
        package static let mapFull = Code(rawValue: "lmdb.mapFull")
        package static let diskFull = Code(rawValue: "lmdb.diskFull")
        package static let readersFull = Code(rawValue: "lmdb.readersFull")
        package static let transactionFull = Code(rawValue: "lmdb.transactionFull")
        package static let outOfMemory = Code(rawValue: "lmdb.outOfMemory")
        package static let tooManyFiles = Code(rawValue: "lmdb.tooManyFiles")

        // The file is not what it should be.
        package static let damaged = Code(rawValue: "lmdb.damaged")
        package static let truncated = Code(rawValue: "lmdb.truncated")
        package static let foreign = Code(rawValue: "lmdb.foreign")
        package static let futureVersion = Code(rawValue: "lmdb.futureVersion")
        package static let missing = Code(rawValue: "lmdb.missing")
        package static let tableMissing = Code(rawValue: "lmdb.tableMissing")
        package static let tableMismatch = Code(rawValue: "lmdb.tableMismatch")

        // The environment is not at our disposal.
        package static let readOnly = Code(rawValue: "lmdb.readOnly")
        package static let permissionDenied = Code(rawValue: "lmdb.permissionDenied")
        package static let protected = Code(rawValue: "lmdb.protected")
        package static let alreadyOpen = Code(rawValue: "lmdb.alreadyOpen")
        package static let closed = Code(rawValue: "lmdb.closed")
        package static let lockTimedOut = Code(rawValue: "lmdb.lockTimedOut")
        package static let mapResized = Code(rawValue: "lmdb.mapResized")
        package static let environmentUnusable = Code(rawValue: "lmdb.environmentUnusable")
        package static let transactionUnusable = Code(rawValue: "lmdb.transactionUnusable")

        // The argument cannot be stored.
        package static let keyEmpty = Code(rawValue: "lmdb.keyEmpty")
        package static let keyTooLong = Code(rawValue: "lmdb.keyTooLong")
        package static let keyKindMismatch = Code(rawValue: "lmdb.keyKindMismatch")
        package static let valueTooLong = Code(rawValue: "lmdb.valueTooLong")
        package static let appendOutOfOrder = Code(rawValue: "lmdb.appendOutOfOrder")
        package static let invalidArgument = Code(rawValue: "lmdb.invalidArgument")

        /// The operating system refused; `status` is its `errno`.
        package static let io = Code(rawValue: "lmdb.io")
    }
}
