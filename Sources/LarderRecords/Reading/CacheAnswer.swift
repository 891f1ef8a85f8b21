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
    /// Whether optimistic layers have changed a field that the answer reads, or have created, removed or retyped one of
    /// its records.
    package let isOptimistic: Bool

    /// In which the records of the answer have their numbers.
    package var generation: UInt64 { plan.generation.identity }

    /// The records that the answer was made of, and how each was read. Two answers of the same footprint have the same
    /// dependencies, which take longer to work out.
    ///
    /// - Complexity: O(n) in the records of the answer.
    package var footprint: Footprint {
        let keyed = KeyedHash.ofProcess
        var hash: UInt64 = 0
        // A plan that waits for names is another one after each commit, and mostly reads the same.
        for index in plan.cases.indices { hash = keyed.mix(hash, UInt64(plan.cases[index].count)) }
        for index in plan.reads.indices { hash = keyed.mix(hash, UInt64(plan.reads[index].id)) }
        response.buffer?.forEachVisit { visit in
            hash = keyed.mix(hash ^ visit.record, UInt64(visit.caseIndex))
            if visit.record >= OverlayNumbers.firstRecord, let key = overlay?.key(of: visit.record) {
                hash = keyed.mix(hash, keyed.hash(key))
            }
        }
        return Footprint(generation: generation, hash: hash, absentKeys: absentKeys)
    }

    /// Every record that the answer was made of, or would be made of if it existed, with the fields that were read.
    ///
    /// - Complexity: O(n log n) in the objects of the answer, and O(f) in the fields of each way in which a record is read.
    package var dependencies: Dependencies {
        var keys = Set(absentKeys)
        var visits: [(record: UInt64, caseIndex: UInt32)] = []
        response.buffer?.forEachVisit { visit in
            // What is in layers alone may come into being as what the server says, under another number.
            if visit.record >= OverlayNumbers.firstRecord, let key = overlay?.key(of: visit.record) { keys.insert(key) }
            visits.append((visit.record, visit.caseIndex))
        }
        // The last comes first, and mostly has the greatest record.
        visits.reverse()
        visits.sort { ($0.record, $0.caseIndex) < ($1.record, $1.caseIndex) }
        var builder = Dependencies.Builder()
        var known: [[UInt32]: UInt32] = [:]
        var rest = visits[...]
        while let first = rest.first {
            let end = rest.firstIndex { $0.record != first.record } ?? rest.endIndex
            // A record that was met in several places may have been read in several ways.
            var cases: [UInt32] = []
            for visit in rest[..<end] where visit.caseIndex != cases.last { cases.append(visit.caseIndex) }
            rest = rest[end...]
            let place = known[cases] ?? builder.place(of: FieldSet(cases.flatMap(fields)))
            known[cases] = place
            builder.add(first.record, at: place)
        }
        return builder.dependencies(generation: generation, absentKeys: keys)
    }

    /// What a case reads of a record.
    private func fields(ofCase index: UInt32) -> [UInt32] {
        guard index != Visit.anyField else { return [RecordField.any] }
        let reads = plan.cases[Int(index)]
        return (Int(reads.start)..<Int(reads.start + reads.count)).map { read in
            // A field whose key has no number yet is 0, which is any field: it can only be waited for that way. So can
            // one whose name only layers know: the store will give it another number.
            let id = plan.reads[read].id
            return id >= OverlayNumbers.firstField && id != FieldRead.typename ? RecordField.any : id
        }
    }
}

/// See `CacheAnswer.footprint`.
package struct Footprint: Sendable, Equatable {
    let generation: UInt64
    /// Of what the plan reads, and of the records with how each was read.
    let hash: UInt64
    let absentKeys: [String]
}
