import LarderLMDB

/// How many records a commit touched, objects without identity included.
package struct ChangeTally: Sendable, Hashable {
    /// Records that came into being or became another.
    package var created = 0
    package var changed = 0
    /// Records that went, or are known to be no more.
    package var removed = 0

    package init() {}

    package static func += (left: inout ChangeTally, right: ChangeTally) {
        left.created += right.created
        left.changed += right.changed
        left.removed += right.removed
    }
}

extension RecordCache {
    /// Counts what a commit did, by what is there now: right as long as no other commit came after it.
    ///
    /// - Complexity: O(n) in the commit's changes. A commit that changed everything counts nothing.
    package func tally(_ commit: Commit) throws(RecordError) -> ChangeTally {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                var tally = ChangeTally()
                guard generation.identity == commit.generation else { return tally }
                var last: UInt64?
                for change in commit.changes.fields where change.record != last {
                    last = change.record
                    guard change.field == RecordField.any else {
                        tally.changed += 1
                        continue
                    }
                    let record = try generation.record(change.record, transaction)
                    if record?.isTombstone ?? true { tally.removed += 1 } else { tally.created += 1 }
                }
                return tally
            }
        }
    }
}
