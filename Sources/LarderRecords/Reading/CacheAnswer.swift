/// What a cache answers: the response, and what it depends on.
package struct CacheAnswer: Sendable {
    package let response: Response
    let plan: ResolvedPlan
    /// Keys that were looked for and do not exist; the answer may change when they do.
    package let absentKeys: [String]
    /// True if the root itself is known to be no more.
    package let isDeleted: Bool
    /// The layers under which it was read.
    let overlay: Overlay?
    /// Whether the answer, or what it lacks, is what optimistic layers make of it: true as soon as they have a record
    /// that was looked for, or have removed it.
    package let isOptimistic: Bool

    /// In which the records of the answer have their numbers.
    package var generation: UInt64 { plan.generation.identity }

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
        var keys = Set(absentKeys)
        response.buffer?.forEachVisit { visit in
            // What is in layers alone may come into being as what the server says, under another number.
            if visit.record >= OverlayNumbers.firstRecord, let key = overlay?.key(of: visit.record) { keys.insert(key) }
            guard visit.caseIndex != Visit.anyField else {
                fields.insert(RecordField(record: visit.record, field: RecordField.any))
                return
            }
            let reads = plan.cases[Int(visit.caseIndex)]
            for index in Int(reads.start)..<Int(reads.start + reads.count) {
                // A field whose key has no number yet is 0, which is any field: it can only be waited for that way.
                // So can one whose name only layers know: the store will give it another number.
                let id = plan.reads[index].id
                let isOfLayers = id >= OverlayNumbers.firstField && id != FieldRead.typename
                fields.insert(RecordField(record: visit.record, field: isOfLayers ? RecordField.any : id))
            }
        }
        return Dependencies(generation: plan.generation.identity, fields: fields, absentKeys: keys)
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
