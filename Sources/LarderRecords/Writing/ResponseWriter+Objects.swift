import LarderLMDB

/// Objects: which record each of them is.
///
/// Safe: keys lie in `parsed`, and the root's in what `run` keeps; stored bytes are the transaction's or the overlay's,
/// and nothing is written over them while they are looked at.
extension ResponseWriter {
    mutating func stageRoot(
        _ object: Int, _ key: UnsafeRawBufferPointer, _ cursor: inout Cursor,
        _ keyCursor: inout Cursor, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int? {
        let own = unsafe parsed.key(of: object)
        guard unsafe own.isEmpty || hasSameBytes(own, key) else {
            let (own, wanted) = unsafe (String(decoding: own, as: UTF8.self), String(decoding: key, as: UTF8.self))
            throw RecordError(.responseMismatch, "The object is \(own), and was to be stored as \(wanted)")
        }
        guard let record = unsafe try stageEntity(object, key: key, &cursor, &keyCursor, transaction) else {
            return nil
        }
        unsafe root = unsafe (key, record)
        return record
    }

    /// The index of the object's record in `staged`; nil where it is not stored.
    mutating func stage(
        _ object: Int, _ cursor: inout Cursor, _ keyCursor: inout Cursor,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int? {
        let key = unsafe parsed.key(of: object)
        if unsafe !key.isEmpty {
            // An entity: the same record for every object of its key.
            if let root = unsafe root, unsafe hasSameBytes(key, root.key) { return unsafe root.record }
            let first = Int(parsed.entities[Int(parsed.objects[object].entity)].first)
            if first != object, places[first] >= 0 {
                let place = Int(places[first])
                guard layout.hasVersions, let version = version(of: object) else { return place }
                if let known = stagedVersion(of: place), isOutdated(version, known) {
                    records[object] = staged[place].id
                    return nil
                }
                note(version, of: place)
                return place
            }
            let record = unsafe try stageEntity(object, key: key, &cursor, &keyCursor, transaction)
            // Where the first is outdated, the objects of its key that follow share the record of this one.
            if let record, first != object { places[first] = Int32(truncatingIfNeeded: record) }
            return record
        }
        switch origins[object] {
        case .unstored: return nil
        case .same(let other):
            let first = firstOccurrence(of: Int(other))
            if case .unstored = origins[first] { return nil }
            return places[first] >= 0 ? Int(places[first]) : nil
        case .new(let place):
            return append(StagedRecord(id: changes.newRecordID(), object: object, place: place))
        case .existing(let index):
            let part = storedParts[Int(index)]
            guard let record = try append(part.id, object, place: part.place, &cursor, transaction) else { return nil }
            if part.isReplaced { staged[record].isReplaced = true }
            staged[record].isCompared = part.isCompared
            return record
        }
    }

    private mutating func stageEntity(
        _ object: Int, key: UnsafeRawBufferPointer, _ cursor: inout Cursor, _ keyCursor: inout Cursor,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int? {
        let version = layout.hasVersions ? version(of: object) : nil
        let tables = generation.tables
        let known =
            try mayHaveKeys
            ? storedRecord(of: object) { unsafe try tables.record(of: key, &keyCursor, transaction) } : nil
        guard let id = known else {
            let record = unsafe append(StagedRecord(id: changes.created(key), object: object))
            note(version, of: record)
            return record
        }
        guard let record = try append(id, object, place: nil, version: version, &cursor, transaction) else {
            // References to it stay: what is stored is newer.
            records[object] = id
            return nil
        }
        note(version, of: record)
        if existing(of: staged[record]) == nil { unsafe changes.cameBack(key, as: id) }
        return record
    }

    /// The number that the key of an object has in the store; nil where it has none.
    mutating func storedRecord(
        of object: Int, key: UnsafeRawBufferPointer, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordID? {
        let tables = generation.tables
        return try storedRecord(of: object) { unsafe try tables.record(of: key, transaction) }
    }

    /// - Parameter lookUp: Must not use the writer, which is being changed.
    private mutating func storedRecord(of object: Int, lookUp: () throws -> RecordID?) rethrows -> RecordID? {
        // The root need have no key of its own.
        guard !parsed.isPart(object) else { return try lookUp() }
        let entity = parsed.entities[Int(parsed.objects[object].entity)]
        let first = Int(parsed.objects[Int(entity.first)].entity)
        if storedRecords[first] == 0 { storedRecords[first] = try lookUp() ?? Self.noRecord }
        return storedRecords[first] == Self.noRecord ? nil : storedRecords[first]
    }

    private static var noRecord: RecordID { .max }

    /// Stages a record whose number is known; one of another type is replaced.
    ///
    /// - Returns: Nil where what is stored has a greater version.
    private mutating func append(
        _ id: RecordID, _ object: Int, place: PartPlace?, version: Int64? = nil, _ cursor: inout Cursor,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int? {
        var record = StagedRecord(id: id, object: object, place: place)
        // Nothing is written before all is worked out, so the bytes stay where they are.
        let stored =
            if let laid = transaction.overlay?.record(id) { unsafe laid.bytes } else {
                unsafe try cursor.value(at: id)?.withUnsafeBytes { unsafe $0 }
            }
        if let stored = unsafe stored {
            let view = unsafe try RecordView(stored)
            if let version, let known = try storedVersion(of: object, in: view, id, transaction),
                isOutdated(version, known)
            {
                return nil
            }
            let type = try typeID(of: object, transaction)
            if !view.isTombstone {
                record.existing = Int32(truncatingIfNeeded: storedViews.count)
                storedViews.append(view)
            }
            if !view.isTombstone, view.type != type { record.isReplaced = true }
        }
        return append(record)
    }

    private mutating func append(_ record: StagedRecord) -> Int {
        staged.append(record)
        return staged.count - 1
    }
}
