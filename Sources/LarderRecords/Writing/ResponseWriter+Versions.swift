import LarderLMDB

/// Versions: an object that is older than what is stored of it is passed over, and a deleted one becomes a tombstone,
/// which keeps its version so that nothing older brings the object back.
extension ResponseWriter {
    /// The version that an object tells; nil where its type has none, or the response does not say it.
    func version(of object: Int) -> Int64? {
        let field = layout.cases[Int(parsed.objects[object].caseIndex)].version
        guard field >= 0, !parsed.isPart(object), let cell = cell(of: field, in: object), cell.kind == .int else {
            return nil
        }
        return Int64(bitPattern: cell.payload)
    }

    /// Whether a version is not stored, for a greater one is. What a program has queued or edited shows whatever came.
    func isOutdated(_ version: Int64, _ known: Int64) -> Bool {
        version < known && changes.numbers == nil && !isEdited
    }

    /// The version that is stored of an object, be it a tombstone.
    mutating func storedVersion(
        of object: Int, in stored: RecordView, _ id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Int64? {
        guard let field = try versionField(of: object, transaction),
            let (word, payload) = try generation.value(of: field, in: stored, id, transaction)
        else { return nil }
        return try payload.integer(word)
    }

    func isDeleted(_ object: Int) -> Bool {
        let field = layout.cases[Int(parsed.objects[object].caseIndex)].deleted
        return field >= 0 && !parsed.isPart(object) && cell(of: field, in: object)?.kind == .yes
    }

    /// Forgets what earlier objects of the response said of a record that is deleted.
    mutating func stageDeletion(of record: Int) throws {
        gather(record)
        var field = staged[record].firstField
        while field >= 0 {
            abandonParts(of: fields[field].cell, unlessIn: nil)
            field = Int(fields[field].next)
        }
        (staged[record].firstField, staged[record].lastField, staged[record].fieldCount) = (-1, -1, 0)
    }

    /// Leaves a tombstone of a record.
    mutating func finishDeleted(
        _ index: Int, _ values: ParsedValues, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        let record = staged[index]
        // A deletion that does not say its version is of the one that is known.
        var version = stagedVersion(of: index)
        if let stored = try generation.record(record.id, transaction) {
            let known = try storedVersion(of: record.object, in: stored, record.id, transaction)
            version = version ?? known
            if stored.isTombstone, known == version { return }
            orphans += try changes.removeFields(of: stored, record.id, generation, transaction)
        }
        var entries: [RecordEncoder.Entry] = []
        if let version, let field = try versionField(of: record.object, transaction) {
            entries.append(.init(field: field, source: .parsed(.int(version))))
        }
        let range = try changes.encoder.encode(
            record.id, flags(of: record).union(.tombstone), type: try typeID(of: record.object, transaction),
            identity: identity(of: record), entries: entries, values)
        changes.records.append((record.id, range))
        changes.changed(record.id)
    }

    private func cell(of field: Int32, in object: Int) -> ParsedCell? {
        for index in parsed.objects[object].fields where parsed.fields[index].field == field && isStored(index) {
            return parsed.fields[index].cell
        }
        return nil
    }

    private mutating func versionField(
        of object: Int, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> FieldID? {
        let field = layout.cases[Int(parsed.objects[object].caseIndex)].version
        guard field >= 0 else { return nil }
        return try fieldID(Int(layout.fields[Int(field)].key), transaction).id
    }
}
