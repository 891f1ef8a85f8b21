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
