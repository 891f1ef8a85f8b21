import LarderGraphQL
import LarderLMDB

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
            // Before the snapshot, as in `read`.
            if let layers = layers.current {
                return try withLayers(layers) { generation, snapshot in try generation.presence(of: key, snapshot) }
            }
            return try generations.withSnapshot { generation, transaction in
                try generation.presence(of: key, transaction)
            }
        }
    }

    /// The version that the server's data has of an object, whatever is queued; nil where none is known.
    package func version(of key: String) throws(RecordError) -> Int64? {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws -> Int64? in
                guard let id = try generation.tables.record(of: key, transaction),
                    let record = try generation.record(id, transaction),
                    let field = try generation.names.lookUp(VersionField.version, transaction, generation.tables),
                    let (word, payload) = try generation.value(of: field, in: record, id, transaction)
                else { return nil }
                return try payload.integer(word)
            }
        }
    }

    /// The names of fields by their numbers, without fields that the current generation does not have.
    package func fieldKeys(_ numbers: [UInt32]) throws(RecordError) -> [String] {
        try translated {
            try generations.withSnapshot { (generation, transaction) throws in
                try numbers.compactMap { number throws in
                    try generation.names.name(of: number, transaction, generation.tables)
                }
            }
        }
    }
}

extension Generation {
    fileprivate func presence(
        of key: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (presence: RecordCache.Presence, dependencies: Dependencies) {
        guard let id = try tables.record(of: key, transaction) else {
            return (.absent, Dependencies(generation: identity, fields: [], absentKeys: [key]))
        }
        let whole = RecordField(record: id, field: RecordField.any)
        let dependencies = Dependencies(generation: identity, fields: [whole], absentKeys: [key])
        guard let record = try record(id, transaction) else { return (.absent, dependencies) }
        return (record.isTombstone ? .deleted : .present, dependencies)
    }
}
