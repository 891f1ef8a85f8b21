internal import LarderGraphQL
internal import LarderLMDB

/// Which objects are different from what they were at a position.
package enum ChangedKeys: Sendable, Equatable {
    /// These, by their cache keys, in ascending order of bytes.
    case keys([String])
    /// It cannot be told: the position is of another epoch or older than the log, or an object is there no more.
    case anything
}

extension RecordCache {
    /// Which of the objects that an answer was made of were changed after a position, and the position of the newest
    /// change that this takes in. An object without identity counts as the one that holds it.
    ///
    /// - Complexity: O(n) in the changes since, and in the answer.
    package func changedKeys(
        since position: ChangePosition, in answer: CacheAnswer
    ) throws(RecordError) -> ChangedKeys {
        guard case .changes(let changes) = try changes(since: position) else { return .anything }
        let dependencies = answer.dependencies
        let concerned = Set(dependencies.fields.map(\.record))
        var records: Set<RecordID> = []
        for change in changes {
            if change.set.isEverything { return .anything }
            for field in change.set.fields where concerned.contains(field.record) { records.insert(field.record) }
        }
        return try translated {
            try withSnapshot { generation, transaction in
                // Its numbers may be others' by now.
                guard generation.identity == dependencies.generation else { return .anything }
                var keys: Set<ExactText> = []
                for record in records {
                    guard let key = try generation.holder(of: record, transaction) else { return .anything }
                    keys.insert(key)
                }
                return .keys(keys.ascending)
            }
        }
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
            if record.isEntity { return ExactText(String(decoding: try record.key, as: UTF8.self)) }
            guard let owner = record.owner else { return nil }
            id = owner.record
        }
        return nil
    }

    private static var greatestDepth: Int { 1024 }
}
