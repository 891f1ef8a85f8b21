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
            remove(record, id)
            changed(id)
        }
    }

    /// Removes the fields of a split record, and answers the parts that any record's fields hold.
    mutating func removeFields(
        of record: RecordView, _ id: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> [RecordID] {
        var parts: [RecordID] = []
        for index in 0..<record.count {
            try record.payload.collectRecords(in: record.value(index), into: &parts, alsoReferences: false)
        }
        if record.isSplit {
            try generation.forEachSplitField(of: id, transaction) { (field, payload) throws in
                parts += try payload.parts(in: payload.word)
                removedSplitFields.append(SplitFieldKey(record: id, field: field))
                unsafe removedBytes += payload.bytes.count
            }
        }
        return parts
    }

    private mutating func remove(_ record: RecordView, _ id: RecordID) {
        removedRecords.append(id)
        unsafe removedBytes += record.bytes.count
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
        guard leavingTombstone else {
            try evict(record, id, generation, transaction)
            return true
        }
        let parts = try removeFields(of: record, id, generation, transaction)
        try removeParts(parts, generation, transaction)
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
        changed(id)
        return true
    }

    /// Removes an entity that was found, and leaves nothing.
    mutating func evict(
        _ record: RecordView, _ id: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        let parts = try removeFields(of: record, id, generation, transaction)
        try removeParts(parts, generation, transaction)
        remove(record, id)
        evictedTypes.insert(record.type)
        changed(id)
    }

    /// Removes a field of an entity with whatever arguments it was stored; what it holds goes with it.
    ///
    /// - Complexity: O(log n) in the entity's fields, and O(m) in the arguments with which the cache knows the field.
    mutating func removeField(
        _ name: String, of id: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        try removeFields(generation.numbers(ofField: name, transaction), of: id, generation, transaction)
    }

    /// Removes those of the fields that an entity has; what they hold goes with them.
    mutating func removeFields(
        _ fields: Set<FieldID>, of id: RecordID, _ generation: Generation,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        guard let record = try generation.record(id, transaction), !record.isTombstone else { return }
        var parts: [RecordID] = []
        if record.isSplit {
            for field in fields.sorted() {
                let key = SplitFieldKey(record: id, field: field)
                guard let payload = try generation.splitField(key, transaction) else { continue }
                parts += try payload.parts(in: payload.word)
                removedSplitFields.append(key)
                unsafe removedBytes += payload.bytes.count
                changed(id, field)
            }
        } else {
            var kept: [RecordEncoder.Entry] = []
            for index in 0..<record.count {
                let (field, word) = (record.field(index), record.value(index))
                if fields.contains(field) {
                    parts += try record.payload.parts(in: word)
                    removedBytes += RecordFormat.entrySize
                    changed(id, field)
                } else {
                    kept.append(.init(field: field, source: .stored(word, record.payload)))
                }
            }
            if kept.count < record.count { try rewrite(record, id, kept) }
        }
        try removeParts(parts, generation, transaction)
    }
}

extension Generation {
    /// The numbers of a field with whatever arguments it was ever stored, or of one field key.
    ///
    /// Safe: a key and its number are read while the transaction lends them.
    fileprivate func numbers(
        ofField name: String, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Set<FieldID> {
        var found: Set<FieldID> = []
        if let number = try names.lookUp(name, transaction, tables) { found.insert(number) }
        let beginning = name + "("
        let prefix = StoredKey.prefix(Array(beginning.utf8))
        let isWhole = prefix.count == beginning.utf8.count
        var cursor = try transaction.cursor(in: tables.names)
        var entry = try cursor.seek(atLeast: prefix.rawSpan)
        while let current = entry {
            guard unsafe current.key.withUnsafeBytes({ unsafe $0.starts(with: prefix) }) else { break }
            guard let number = unsafe current.value.withUnsafeBytes(StoredNumber.number).flatMap(FieldID.init(exactly:))
            else {
                throw RecordError(.damaged, "The number of a field that begins with \(beginning.prefix(80)) is damaged")
            }
            // A shortened key tells only how the name begins.
            if try isWhole
                || names.lookUpName(of: number, transaction, tables)?.utf8.starts(with: beginning.utf8) ?? false
            {
                found.insert(number)
            }
            entry = try cursor.next()
        }
        return found
    }
}
