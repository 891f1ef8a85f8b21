internal import LarderLMDB

extension RecordCache {
    /// What is known of an object.
    package enum Presence: Sendable, Hashable {
        case present
        /// Known to be no more.
        case deleted
        /// Never seen, or evicted.
        case absent
    }

    /// What is known of the object of a cache key, and what an answer that says so depends on.
    package func presence(of key: String) throws(RecordError) -> (presence: Presence, dependencies: Dependencies) {
        try translated {
            try withSnapshot { (generation, transaction) throws in
                guard let id = try generation.tables.record(of: key, transaction) else {
                    return (.absent, Dependencies(generation: generation.identity, fields: [], absentKeys: [key]))
                }
                let whole = RecordField(record: id, field: RecordField.any)
                let dependencies = Dependencies(generation: generation.identity, fields: [whole], absentKeys: [key])
                guard let record = try generation.record(id, transaction) else { return (.absent, dependencies) }
                return (record.isTombstone ? .deleted : .present, dependencies)
            }
        }
    }

    /// The names of fields by their numbers; those that the current generation does not have are left out.
    package func fieldKeys(_ numbers: [UInt32]) throws(RecordError) -> [String] {
        try translated {
            try withSnapshot { (generation, transaction) throws in
                try numbers.compactMap { number throws in
                    try generation.names.name(of: number, transaction, generation.tables)
                }
            }
        }
    }
}
