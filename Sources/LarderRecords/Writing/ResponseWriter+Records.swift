import LarderLMDB

/// Records: what is stored of each is compared with what came, and encoded if it is different.
///
/// Safe: a far text is compared while the transaction lasts, keys lie in `parsed` or in what `run` keeps, and sorting
/// stays within `range`, whose fields it has just appended.
extension ResponseWriter {
    /// A record as it is stored; nil if it is not, or is a tombstone.
    @inline(__always)
    func existing(of record: StagedRecord) -> RecordView? {
        record.existing < 0 ? nil : storedViews[Int(record.existing)]
    }

    /// The value of a field as it is stored.
    func storedValue(
        of field: FieldID, in record: StagedRecord, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> (word: ValueWord, payload: PayloadView)? {
        guard let existing = existing(of: record) else { return nil }
        return try generation.value(of: field, in: existing, record.id, transaction)
    }

    /// Compares a record with what is stored, and encodes it if it is different.
    mutating func finish(
        _ index: Int, _ values: ParsedValues, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        let record = staged[index]
        if record.isDeleted { return try finishDeleted(index, values, transaction) }
        let count = fields.count
        let came = sortedFields(of: record)
        defer { fields.removeLast(fields.count - count) }
        let type = try typeID(of: record.object, transaction)
        let isTimedByField = unsafe isQueryRoot && root?.record == index
        guard let existing = existing(of: record) else {
            changes.changed(record.id)
            note(came, of: record, isTimedByField: isTimedByField || came.count > RecordFormat.splitThreshold)
            return try encodeNew(record, type: type, came, values)
        }
        if existing.type != type { changes.changed(record.id) }
        if existing.isSplit {
            return try finishSplit(record, existing, came, type: type, values, transaction)
        }
        var (entries, left) = (spareEntries, spareFields)
        (spareEntries, spareFields) = ([], [])
        defer {
            entries.removeAll(keepingCapacity: true)
            left.removeAll(keepingCapacity: true)
            (spareEntries, spareFields) = (entries, left)
        }
        var isChanged = existing.type != type
        let payload = existing.payload
        var (next, stood) = (came.lowerBound, 0)
        while next < came.upperBound || stood < existing.count {
            let new = next < came.upperBound ? fields[next].id : FieldID.max
            let old = stood < existing.count ? existing.field(stood) : FieldID.max
            if old < new, !record.isReplaced {
                entries.append(.init(field: old, source: .stored(existing.value(stood), payload)))
                left.append(old)
                stood += 1
                continue
            }
            if old == new, try equals(fields[next].cell, existing.value(stood), payload, values, transaction) {
                entries.append(.init(field: old, source: .stored(existing.value(stood), payload)))
                // What a program has read and stores again is as old as it was.
                if isEdited { left.append(old) }
                (next, stood) = (next + 1, stood + 1)
                continue
            }
            isChanged = true
            changes.changed(record.id, min(old, new))
            if old <= new {
                try dropParts(of: existing.value(stood), payload, keeping: old == new ? fields[next].cell : nil, values)
                stood += 1
            }
            if new <= old {
                entries.append(.init(field: new, source: .parsed(fields[next].cell)))
                next += 1
            }
        }
        if isChanged || !isEdited {
            let turnsSplit = !isTimedByField && isChanged && entries.count > RecordFormat.splitThreshold
            note(came, of: record, leaving: left, isTimedByField: isTimedByField || turnsSplit, turnsSplit: turnsSplit)
        }
        if isChanged { try encode(record, type: type, entries, values) }
    }

    /// Notes when the response brought the fields of a record; fields that it leaves as they were keep their times.
    ///
    /// - Parameter turnsSplit: Whether the fields have times of their own from now on.
    private mutating func note(
        _ came: Range<Int>, of record: StagedRecord, leaving left: [FieldID] = [], isTimedByField: Bool,
        turnsSplit: Bool = false
    ) {
        guard changes.received != nil else { return }
        if isTimedByField {
            // Both are in ascending order.
            var rest = left[...]
            for field in fields[came] {
                while let first = rest.first, first < field.id { rest = rest.dropFirst() }
                guard rest.first != field.id else { continue }
                changes.received?.note(SplitFieldKey(record: record.id, field: field.id))
            }
        }
        changes.received?.note(
            record.id, leaving: isTimedByField && !turnsSplit ? [] : left, isTimedByField: isTimedByField)
    }

    @inline(__always)
    mutating func equals(
        _ cell: ParsedCell, _ word: ValueWord, _ payload: PayloadView, _ values: ParsedValues,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> Bool {
        var heap = heap
        defer { self.heap = heap }
        return unsafe try values.equals(cell, word, payload) { (place) throws in
            unsafe try heap.text(at: place, transaction, generation.tables)
        }
    }

    /// Appends the record's fields to `fields` in ascending order of their numbers, and answers where they stand there.
    private mutating func sortedFields(of record: StagedRecord) -> Range<Int> {
        let first = fields.count
        if record.isWhole {
            appendParsedFields(of: record.source)
        } else {
            var next = record.firstField
            while next >= 0 {
                fields.append(fields[next])
                next = Int(fields[next].next)
            }
        }
        let range = first..<fields.count
        // Numbers are given in the order of the text, so that most fields are in order already, or nearly.
        if range.count > Self.insertionLimit {
            fields[range].sort { $0.id < $1.id }
        } else {
            unsafe fields.withUnsafeMutableBufferPointer { fields in
                for index in range.dropFirst() {
                    let field = unsafe fields[index]
                    var place = index
                    while place > first, unsafe fields[place - 1].id > field.id {
                        unsafe fields[place] = unsafe fields[place - 1]
                        place -= 1
                    }
                    unsafe fields[place] = field
                }
            }
        }
        return range
    }

    /// Up to as many fields are sorted by insertion.
    private static var insertionLimit: Int { 32 }

    /// As `finish`, for a record whose fields are entries of their own: only fields that came are looked at, unless the
    /// others must go.
    private mutating func finishSplit(
        _ record: StagedRecord, _ existing: RecordView, _ came: Range<Int>, type: FieldID, _ values: ParsedValues,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws {
        if record.isReplaced {
            let staying = Set(fields[came].map(\.id))
            try generation.forEachSplitField(of: record.id, transaction) { (field, payload) throws in
                guard !staying.contains(field) else { return }
                try dropParts(of: payload.word, payload, keeping: nil, values)
                changes.removedSplitFields.append(SplitFieldKey(record: record.id, field: field))
                changes.changed(record.id, field)
            }
        }
        var isNoted = false
        for field in fields[came] {
            let key = SplitFieldKey(record: record.id, field: field.id)
            if !isEdited {
                changes.received?.note(key)
                isNoted = true
            }
            if let stored = try storedValue(of: field.id, in: record, transaction) {
                if try equals(field.cell, stored.word, stored.payload, values, transaction) { continue }
                try dropParts(of: stored.word, stored.payload, keeping: field.cell, values)
            }
            if isEdited {
                changes.received?.note(key)
                isNoted = true
            }
            try encodeSplitField(field.id, of: record, .parsed(field.cell), values)
            changes.changed(record.id, field.id)
        }
        if isNoted { changes.received?.note(record.id, isTimedByField: true) }
        if existing.type != type { try encodeHeader(record, type: type, [], isSplit: true, values) }
    }

    private mutating func encode(
        _ record: StagedRecord, type: FieldID, _ entries: [RecordEncoder.Entry], _ values: ParsedValues
    ) throws {
        let isSplit = entries.count > RecordFormat.splitThreshold
        if isSplit {
            for entry in entries { try encodeSplitField(entry.field, of: record, entry.source, values) }
        }
        try encodeHeader(record, type: type, isSplit ? [] : entries, isSplit: isSplit, values)
    }

    /// Encodes a record that is not stored yet.
    private mutating func encodeNew(
        _ record: StagedRecord, type: FieldID, _ came: Range<Int>, _ values: ParsedValues
    ) throws {
        guard came.count <= RecordFormat.splitThreshold else {
            for field in fields[came] { try encodeSplitField(field.id, of: record, .parsed(field.cell), values) }
            return try encodeHeader(record, type: type, [], isSplit: true, values)
        }
        try changes.encoder.begin(flags(of: record), type: type, identity: identity(of: record), count: came.count)
        for field in came { try changes.encoder.append(fields[field].id, fields[field].cell, values) }
        changes.records.append((record.id, try changes.encoder.end(record.id)))
    }

    private mutating func encodeSplitField(
        _ field: FieldID, of record: StagedRecord, _ source: RecordEncoder.Source, _ values: ParsedValues
    ) throws {
        let key = SplitFieldKey(record: record.id, field: field)
        changes.splitFields.append((key, try changes.encoder.encodeSplitField(key, source, values)))
    }

    private mutating func encodeHeader(
        _ record: StagedRecord, type: FieldID, _ entries: [RecordEncoder.Entry], isSplit: Bool, _ values: ParsedValues
    ) throws {
        var flags = flags(of: record)
        if isSplit { flags.insert(.split) }
        let range = try changes.encoder.encode(
            record.id, flags, type: type, identity: identity(of: record), entries: entries, values)
        changes.records.append((record.id, range))
    }

    func flags(of record: StagedRecord) -> RecordFlags { record.holder < 0 ? .entity : [] }

    func identity(of record: StagedRecord) -> RecordEncoder.Identity {
        if record.holder >= 0 { return .part(owner: staged[record.holder].id, field: record.holderField) }
        // The root's key need not be one that its fields spell.
        if let root = unsafe root, unsafe staged[root.record].id == record.id { return unsafe .entity(key: root.key) }
        return unsafe .entity(key: parsed.key(of: record.object))
    }
}
