import LarderGraphQL
import LarderLMDB

extension RecordCache {
    /// Looks into the cache without a schema or an operation. Reads only; each answer is of one snapshot.
    package var inspect: Inspection { Inspection(cache: self) }

    package struct Inspection: Sendable {
        let cache: RecordCache

        /// Cache keys of what is in the cache, the root of all queries among them, in ascending order of their stored
        /// form. That is the order of their bytes, except for keys of more than 504 bytes: such a key comes before
        /// shorter keys that begin with the same 440 bytes, and several such keys are in the order of their SHA-256.
        ///
        /// - Parameters:
        ///   - type: Only objects of this type.
        ///   - prefix: Only keys that begin so.
        ///   - limit: At most as many.
        ///   - includingTombstones: Also those of objects that are known to be no more.
        package func keys(
            type: String? = nil, prefix: String = "", limit: Int = .max, includingTombstones: Bool = false
        ) throws(RecordError) -> [String] {
            try translated {
                try cache.generations.withSnapshot { generation, transaction in
                    var reader = InspectionReader(generation)
                    return try reader.keys(
                        type: type, prefix: Array(prefix.utf8), limit: limit, includingTombstones, transaction)
                }
            }
        }

        /// What the cache holds of an object; nil if nothing, or if it was evicted.
        ///
        /// - Parameter key: A cache key, or the path of a part as `StoredValue.part` gives it.
        package func record(key: String) throws(RecordError) -> StoredRecord? {
            try translated {
                try cache.generations.withSnapshot { generation, transaction in
                    var reader = InspectionReader(generation)
                    return try reader.record(key: key, transaction)
                }
            }
        }

        /// The log of changes after a position; all that the log still has where the position is nil.
        ///
        /// What the log no longer has, because the cache was cleared or compacted or because too much was committed
        /// since, is one change of everything before the first that it has.
        ///
        /// - Complexity: O(n) in the changes.
        package func changes(after position: ChangePosition? = nil) throws(RecordError) -> LoggedChanges {
            try translated {
                try cache.generations.withSnapshot { generation, transaction in
                    let state = try GenerationState.stored(transaction, generation.tables)
                    var found: [LoggedChange] = []
                    var start: UInt64 = 0
                    if let position {
                        let isKept = position.epoch == state.epoch && position.number >= state.firstChange &- 1
                        if isKept {
                            start = position.number == .max ? .max : position.number + 1
                        } else {
                            found.append(LoggedChange(number: state.firstChange &- 1, keys: [], isEverything: true))
                        }
                    }
                    var cursor = try transaction.cursor(in: generation.tables.changes)
                    var entry = try cursor.seek(atLeast: start)
                    while let current = entry {
                        let number = current.integerKey
                        // Safe: the set is read while the bytes are lent, and holds nothing of them.
                        let set = unsafe try current.value.withUnsafeBytes { bytes throws(RecordError) in
                            unsafe try ChangeSet(sealed: bytes, number: number)
                        }
                        var keys: Set<ExactText> = []
                        for record in Set(set.fields.map(\.record)) {
                            keys.insert(try generation.holder(of: record, transaction) ?? ExactText("#\(record)"))
                        }
                        found.append(
                            LoggedChange(number: number, keys: keys.ascending, isEverything: set.isEverything))
                        entry = try cursor.next()
                    }
                    return LoggedChanges(position: state.position, changes: found)
                }
            }
        }

        /// What each type takes, by name.
        ///
        /// - Complexity: O(n) in the cache's size.
        package func types() throws(RecordError) -> [CacheStatistics.TypeCount] {
            try translated {
                try cache.generations.withSnapshot { generation, transaction in
                    var reader = InspectionReader(generation)
                    return try reader.types(transaction)
                }
            }
        }

        /// How old the objects are: within an hour, a day, a week, 30 days, and the rest.
        ///
        /// - Complexity: O(n) in the cache's size.
        package func ages() throws(RecordError) -> [CacheStatistics.AgeCount] {
            try translated {
                try cache.generations.withSnapshot { generation, transaction in
                    var reader = InspectionReader(generation)
                    return try reader.ages(now: ReceivedTime(milliseconds: cache.options.now()), transaction)
                }
            }
        }

        /// O(1).
        package func statistics() throws(RecordError) -> CacheStatistics {
            try translated {
                try cache.generations.withSnapshot { generation, transaction in
                    guard let state = try GenerationState.read(transaction, generation.tables) else {
                        throw RecordError.damagedState
                    }
                    let whole = try transaction.statistics()
                    let tables = whole.tables.sorted { $0.key < $1.key }.map { name, tree in
                        CacheStatistics.Table(
                            name: name, entries: tree.entries, depth: tree.depth, branchPages: tree.branchPages,
                            leafPages: tree.leafPages, overflowPages: tree.overflowPages)
                    }
                    let used = tables.reduce(0) { $0 + $1.branchPages + $1.leafPages + $1.overflowPages }
                    return CacheStatistics(
                        generation: generation.number, position: state.position, firstChange: state.firstChange,
                        nextRecord: state.nextRecord, nextField: state.nextField, pageSize: whole.pageSize,
                        fileSize: whole.fileSize, otherPages: Int(clamping: whole.lastPage) + 1 - used, tables: tables)
                }
            }
        }
    }
}
