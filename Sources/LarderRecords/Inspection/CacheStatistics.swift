/// How much a cache holds and what it takes, in one moment.
package struct CacheStatistics: Sendable, Hashable {
    package struct Table: Sendable, Hashable {
        package let name: String
        package let entries: Int
        package let depth: Int
        /// In pages of `pageSize`; values of more than half a page stand on overflow pages.
        package let branchPages: Int
        package let leafPages: Int
        package let overflowPages: Int
    }

    /// What a type takes.
    package struct TypeCount: Sendable, Hashable {
        package let type: String
        package internal(set) var entities = 0
        package internal(set) var parts = 0
        package internal(set) var tombstones = 0
        /// Of the records alone, without what LMDB adds.
        package internal(set) var bytes = 0
    }

    /// What came within some time, and not within the time of the count before.
    package struct AgeCount: Sendable, Hashable {
        /// In seconds; nil for what is older than all others, or of an age that is not known.
        package let within: Int?
        /// Objects with a cache key.
        package internal(set) var objects = 0
        /// Of their records alone, without what LMDB adds.
        package internal(set) var bytes = 0
    }

    /// The folder's name.
    package let generation: Int
    package let position: ChangePosition
    /// The oldest change in the log, if it holds any.
    package let firstChange: UInt64
    package let nextRecord: UInt64
    package let nextField: UInt32
    package let pageSize: Int
    /// The data file's length in bytes.
    package let fileSize: Int64
    /// Pages of the file that no table uses: free, or LMDB's own.
    package let otherPages: Int
    package let tables: [Table]
}

/// A change as the log has it.
package struct LoggedChange: Sendable, Hashable {
    package let number: UInt64
    /// The objects that were changed, by their cache keys, in ascending order of bytes; an object without identity
    /// counts as the one that holds it, and one that is there no more is `#` and its number.
    package let keys: [String]
    /// Whether anything may have changed: there were too many to be kept, or the log has lost what came before.
    package let isEverything: Bool
}

/// What the log of changes tells of the time after a position.
package struct LoggedChanges: Sendable, Hashable {
    /// Of the snapshot: what comes later is asked for from here.
    package let position: ChangePosition
    /// The oldest first.
    package let changes: [LoggedChange]
}
