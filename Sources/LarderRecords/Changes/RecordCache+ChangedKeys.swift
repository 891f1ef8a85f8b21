import LarderGraphQL
import LarderLMDB

/// Which objects are different from what they were.
package enum ChangedKeys: Sendable, Equatable {
    /// These, by their cache keys, in ascending order of bytes.
    case keys([String])
    /// It cannot be told: the position is of another epoch or older than the log, or an object is there no more.
    case anything
}

extension RecordCache {
    /// Which of the objects that an answer was made of are different from what they were at a position, under the
    /// layers that there were then. An object without identity counts as the one that holds it.
    ///
    /// May name objects that are the same again.
    ///
    /// - Parameter earlier: An answer that was read not before the position; nil where no layers made a difference to
    ///   what was read then.
    /// - Complexity: O(n) in the changes since, in what layers touch, and in the answer.
    package func changedKeys(
        since position: ChangePosition, _ earlier: CacheAnswer? = nil, in answer: CacheAnswer
    ) throws(RecordError) -> ChangedKeys {
        guard case .changes(let changes) = try changes(since: position) else { return .anything }
        let dependencies = answer.dependencies
        let places = Dictionary(dependencies.reads.map { ($0.record, Int($0.place)) }) { first, _ in first }
        var records: Set<RecordID> = []
        for set in changes.map(\.set) + [answer.differenceOfLayers(from: earlier)] {
            if set.isEverything { return .anything }
            for change in set.fields {
                guard let place = places[change.record] else { continue }
                if dependencies.fieldSets[place].isConcerned(by: change.field) { records.insert(change.record) }
            }
        }
        return try translated {
            try generations.takingSnapshot { generation, transaction in
                // Its numbers may be others' by now.
                guard generation.identity == dependencies.generation else { return .anything }
                // What exists in layers alone is looked for in the answer's.
                let state = try GenerationState.stored(transaction, generation.tables)
                let overlay = answer.overlay ?? Overlay(generation, Overlay.Basis(state: state))
                let snapshot = LayeredSnapshot(transaction, under: overlay, nil)
                var keys: Set<ExactText> = []
                for record in records {
                    guard let key = try generation.holder(of: record, snapshot) else { return .anything }
                    keys.insert(key)
                }
                return .keys(keys.ascending)
            }
        }
    }
}

extension CacheAnswer {
    /// What layers make different in this answer from an earlier one, as far as layers do.
    fileprivate func differenceOfLayers(from earlier: CacheAnswer?) -> ChangeSet {
        let before = earlier?.overlay
        if before === overlay { return ChangeSet() }
        // What an overlay of another numbering showed is unknown.
        if let before, before.generation.identity != plan.generation.identity { return .everything }
        return Overlay.difference(before, overlay)
    }
}

extension Set<ExactText> {
    /// The texts in ascending order of bytes.
    var ascending: [String] { map(\.text).sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) } }
}

extension Generation {
    /// The cache key of an entity, or of the one that holds a part; nil where one of them is there no more.
    func holder(
        of id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> ExactText? {
        var id = id
        // A damaged file could lead round in a circle.
        for _ in 0..<Self.greatestDepth {
            guard let record = try record(id, transaction) else { return nil }
            // Safe: the key is copied while the snapshot is borrowed in which it lies.
            if record.isEntity { return unsafe ExactText(String(decoding: try record.key, as: UTF8.self)) }
            guard let owner = record.owner else { return nil }
            id = owner.record
        }
        return nil
    }

    private static var greatestDepth: Int { 1024 }
}
