internal import LarderLMDB

/// Records: what is stored of each is compared with what came, and encoded if it is different.
extension ResponseWriter {
    /// The value of a field as it is stored.
    func storedValue(
        of field: FieldID, in record: StagedRecord, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> (word: ValueWord, payload: PayloadView)? {
        guard let existing = record.existing else { return nil }
        guard existing.isSplit else { return existing.value(of: field).map { ($0, existing.payload) } }
        let key = SplitFieldKey(record: record.id, field: field)
        return try key.withBytes { bytes in
            // As in `existing`: the bytes stay where they are.
            try transaction.get(bytes, in: generation.tables.fields)?.withUnsafeBytes { bytes in
                let payload = PayloadView(bytes: bytes)
                return (payload.word, payload)
            }
        }
    }

    /// Compares a record with what is stored, and encodes it if it is different.
    mutating func finish(
        _ record: StagedRecord, _ values: ParsedValues, _ transaction: borrowing some Transaction & ~Copyable
    ) throws {
        let fields = takeSortedFields(of: record)
        var entries = spareEntries
        spareEntries = []
        defer {
            spareFields = fields
            entries.removeAll(keepingCapacity: true)
            spareEntries = entries
        }
        let type = try typeID(of: record.object, transaction)
        guard let existing = record.existing else {
            changes.changed(record.id)
            for field in fields { entries.append(.init(field: field.id, source: .parsed(field.cell))) }
            return try encode(record, type: type, entries, values)
        }
        if existing.type != type { changes.changed(record.id) }
        if existing.isSplit {
            return try finishSplit(record, existing, fields, type: type, values, transaction)
        }
        var isChanged = existing.type != type
        let payload = existing.payload
        var (came, stood) = (0, 0)
        while came < fields.count || stood < existing.count {
            let new = came < fields.count ? fields[came].id : FieldID.max
            let old = stood < existing.count ? existing.field(stood) : FieldID.max
            if old < new, !record.isReplaced {
                entries.append(.init(field: old, source: .stored(existing.value(stood), payload)))
                stood += 1
                continue
            }
            if old == new, try equals(fields[came].cell, existing.value(stood), payload, values, transaction) {
                entries.append(.init(field: old, source: .stored(existing.value(stood), payload)))
                (came, stood) = (came + 1, stood + 1)
                continue
            }
            isChanged = true
            changes.changed(record.id, min(old, new))
            if old <= new {
                try dropParts(of: existing.value(stood), payload, keeping: old == new ? fields[came].cell : nil, values)
                stood += 1
            }
            if new <= old {
                entries.append(.init(field: new, source: .parsed(fields[came].cell)))
                came += 1
            }
        }
        if isChanged { try encode(record, type: type, entries, values) }
    }

    @inline(__always)
    private mutating func equals(
        _ cell: ParsedCell, _ word: ValueWord, _ payload: PayloadView, _ values: ParsedValues,
        _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> Bool {
        var heap = heap
        defer { self.heap = heap }
        return try values.equals(cell, word, payload) { (place) throws in
            try heap.text(at: place, transaction, generation.tables)
        }
    }

    /// The record's fields in ascending order of their numbers, in the memory that is kept for them.
    private mutating func takeSortedFields(of record: StagedRecord) -> [StagedField] {
        var fields = spareFields
        spareFields = []
        fields.removeAll(keepingCapacity: true)
        var isSorted = true
        var next = record.firstField
        while next >= 0 {
            if let last = fields.last, last.id > stagedFields[next].id { isSorted = false }
            fields.append(stagedFields[next])
            next = stagedFields[next].next
        }
        // Numbers are given in the order of the text, so that most records' fields are in order already.
        if !isSorted { fields.sort { $0.id < $1.id } }
        return fields
    }

    /// As `finish`, for a record whose fields are entries of their own: only those that came are looked at, unless the
    /// others must go.
    private mutating func finishSplit(
        _ record: StagedRecord, _ existing: RecordView, _ fields: [StagedField], type: FieldID, _ values: ParsedValues,
        _ transaction: borrowing some Transaction & ~Copyable
    ) throws {
        if record.isReplaced {
            let staying = Set(fields.map(\.id))
            try generation.forEachSplitField(of: record.id, transaction) { (field, payload) throws in
                guard !staying.contains(field) else { return }
                try dropParts(of: payload.word, payload, keeping: nil, values)
                changes.removedSplitFields.append(SplitFieldKey(record: record.id, field: field))
                changes.changed(record.id, field)
            }
        }
        for field in fields {
            if let stored = try storedValue(of: field.id, in: record, transaction) {
                if try equals(field.cell, stored.word, stored.payload, values, transaction) { continue }
                try dropParts(of: stored.word, stored.payload, keeping: field.cell, values)
            }
            let key = SplitFieldKey(record: record.id, field: field.id)
            let range = try changes.encoder.encodeSplitField(key, .parsed(field.cell), values)
            changes.splitFields.append((key, range))
            changes.changed(record.id, field.id)
        }
        if existing.type != type { try encodeHeader(record, type: type, [], isSplit: true, values) }
    }

    private mutating func encode(
        _ record: StagedRecord, type: FieldID, _ entries: [RecordEncoder.Entry], _ values: ParsedValues
    ) throws {
        let isSplit = entries.count > RecordFormat.splitThreshold
        if isSplit {
            for entry in entries {
                let key = SplitFieldKey(record: record.id, field: entry.field)
                let range = try changes.encoder.encodeSplitField(key, entry.source, values)
                changes.splitFields.append((key, range))
            }
        }
        try encodeHeader(record, type: type, isSplit ? [] : entries, isSplit: isSplit, values)
    }

    private mutating func encodeHeader(
        _ record: StagedRecord, type: FieldID, _ entries: [RecordEncoder.Entry], isSplit: Bool, _ values: ParsedValues
    ) throws {
        var flags: RecordFlags = isSplit ? .split : []
        let range: Range<Int>
        switch record.place {
        case .entity(let key):
            flags.insert(.entity)
            range = try key.withUnsafeBytes { key in
                try changes.encoder.encode(
                    record.id, flags, type: type, identity: .entity(key: key), entries: entries, values)
            }
        case .part(let owner, let field):
            range = try changes.encoder.encode(
                record.id, flags, type: type, identity: .part(owner: owner, field: field), entries: entries, values)
        }
        changes.records.append((record.id, range))
    }
}
