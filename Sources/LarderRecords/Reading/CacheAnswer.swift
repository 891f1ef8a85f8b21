/// What a cache answers: the response, and what it depends on.
package struct CacheAnswer: Sendable {
    package let response: Response
    let plan: ResolvedPlan
    /// Keys that were looked for and do not exist; the answer may change when they do.
    package let absentKeys: [String]
    /// True if the root itself is known to be no more.
    package let isDeleted: Bool

    /// The records that the answer was made of, and how each was read. Two answers of the same footprint have the same
    /// dependencies, which take longer to work out.
    ///
    /// - Complexity: O(n) in the records of the answer.
    package var footprint: Footprint {
        var visits: [Footprint.Visited] = []
        response.buffer?.forEachVisit { visits.append(.init(record: $0.record, caseIndex: $0.caseIndex)) }
        return Footprint(plan: plan, visits: visits, absentKeys: absentKeys)
    }

    /// Every (record, field) that the answer was made of, or would be made of if it existed.
    ///
    /// - Complexity: O(n) in the fields of the answer.
    package var dependencies: Dependencies {
        var fields: Set<RecordField> = []
        response.buffer?.forEachVisit { visit in
            guard visit.caseIndex != Visit.anyField else {
                fields.insert(RecordField(record: visit.record, field: RecordField.any))
                return
            }
            let reads = plan.cases[Int(visit.caseIndex)]
            for index in Int(reads.start)..<Int(reads.start + reads.count) {
                // A field whose key has no number yet is 0, which is any field: it can only be waited for that way.
                fields.insert(RecordField(record: visit.record, field: plan.reads[index].id))
            }
        }
        return Dependencies(generation: plan.generation.identity, fields: fields, absentKeys: Set(absentKeys))
    }
}

/// See `CacheAnswer.footprint`.
package struct Footprint: Sendable, Equatable {
    struct Visited: Sendable, Equatable {
        var record: UInt64
        var caseIndex: UInt32
    }

    let plan: ResolvedPlan
    let visits: [Visited]
    let absentKeys: [String]

    package static func == (left: Footprint, right: Footprint) -> Bool {
        left.plan === right.plan && left.visits == right.visits && left.absentKeys == right.absentKeys
    }
}

/// A field of a record, by their numbers in one generation.
package struct RecordField: Hashable, Sendable, Comparable {
    /// Stands for any field, or for the record as a whole.
    package static let any: UInt32 = 0

    package var record: UInt64
    package var field: UInt32

    package init(record: UInt64, field: UInt32) {
        self.record = record
        self.field = field
    }

    package static func < (left: RecordField, right: RecordField) -> Bool {
        (left.record, left.field) < (right.record, right.field)
    }
}

/// What an answer depends on.
package struct Dependencies: Sendable {
    /// The generation whose numbers these are; in another one everything may be different.
    package let generation: UInt64
    package let fields: Set<RecordField>
    /// Swift finds keys equal here that differ only in how they compose characters: a watcher of one hears of both.
    package let absentKeys: Set<String>
}
