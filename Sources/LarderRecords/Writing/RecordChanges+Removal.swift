import LarderGraphQL
import LarderLMDB

/// Safe: a record's key is copied into the encoder before anything is written over it, in the file or in an overlay.
extension RecordChanges {
    /// Removes parts that nothing holds any more, and the parts of those.
    mutating func removeParts(
        _ parts: [RecordID], _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        var rest = parts
        var seen: Set<RecordID> = []
        while let id = rest.popLast() {
            // A damaged file could make a part hold itself.
            guard seen.insert(id).inserted, let record = try generation.record(id, transaction) else { continue }
            rest += try removeFields(of: record, id, generation, transaction)
            removedRecords.append(id)
            changed(id)
        }
    }

    /// Removes the fields of a split record, and answers the parts that any record's fields hold.
    mutating func removeFields(
        of record: RecordView, _ id: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [RecordID] {
        var parts: [RecordID] = []
        for index in 0..<record.count { parts += try record.payload.parts(in: record.value(index)) }
        if record.isSplit {
            try generation.forEachSplitField(of: id, transaction) { (field, payload) throws in
                parts += try payload.parts(in: payload.word)
                removedSplitFields.append(SplitFieldKey(record: id, field: field))
            }
        }
        return parts
    }

    /// Removes an entity. A deleted one leaves a tombstone, an evicted one nothing.
    ///
    /// - Parameter keepsVersion: Whether the tombstone has the object's version, so that no older one takes its place.
    /// - Returns: Whether there was anything to remove.
    mutating func removeEntity(
        _ id: RecordID, leavingTombstone: Bool, keepsVersion: Bool = true, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        guard let record = try generation.record(id, transaction) else { return false }
        if record.isTombstone, leavingTombstone { return false }
        let parts = try removeFields(of: record, id, generation, transaction)
        try removeParts(parts, generation, transaction)
        if leavingTombstone {
            var entries: [RecordEncoder.Entry] = []
            let tables = generation.tables
            if keepsVersion, let field = try generation.names.lookUp(VersionField.version, transaction, tables),
                let (word, payload) = try generation.value(of: field, in: record, id, transaction),
                try payload.integer(word) != nil
            {
                entries.append(.init(field: field, source: .stored(word, payload)))
            }
            let range = unsafe try encoder.encode(
                id, [.entity, .tombstone], type: record.type, identity: .entity(key: try record.key),
                entries: entries, nil)
            records.append((id, range))
        } else {
            removedRecords.append(id)
            evictedTypes.insert(record.type)
        }
        changed(id)
        return true
    }

    /// Removes those of an entity's fields whose keys fit; what they hold goes with them.
    ///
    /// - Returns: How many fields were removed.
    mutating func removeFields(
        of id: RecordID, where fits: (String) -> Bool, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int {
        guard let record = try generation.record(id, transaction), !record.isTombstone else { return 0 }
        var parts: [RecordID] = []
        var removed = 0
        func isRemoved(_ field: FieldID) throws -> Bool {
            try generation.names.lookUpName(of: field, transaction, generation.tables).map(fits) ?? false
        }
        if record.isSplit {
            try generation.forEachSplitField(of: id, transaction) { (field, payload) throws in
                guard try isRemoved(field) else { return }
                parts += try payload.parts(in: payload.word)
                removedSplitFields.append(SplitFieldKey(record: id, field: field))
                changed(id, field)
                removed += 1
            }
        } else {
            var kept: [RecordEncoder.Entry] = []
            for index in 0..<record.count {
                let (field, word) = (record.field(index), record.value(index))
                if try isRemoved(field) {
                    parts += try record.payload.parts(in: word)
                    changed(id, field)
                    removed += 1
                } else {
                    kept.append(.init(field: field, source: .stored(word, record.payload)))
                }
            }
            if removed > 0 { try rewrite(record, id, kept) }
        }
        try removeParts(parts, generation, transaction)
        return removed
    }
}
