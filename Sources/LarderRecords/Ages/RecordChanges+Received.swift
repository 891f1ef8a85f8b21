import LarderLMDB

/// What becomes of the table `received`.
struct ReceivedChanges {
    /// Blocks by their numbers; one without bytes goes.
    fileprivate(set) var blocks: [(number: UInt64, bytes: [UInt8])] = []
    /// Rows by their keys; one without bytes goes.
    fileprivate(set) var rows: [(key: SplitFieldKey, bytes: [UInt8])] = []

    var isEmpty: Bool { blocks.isEmpty && rows.isEmpty }
}

/// Safe: rows and blocks are copied from the transaction before it changes, and `put` copies what it is lent.
extension RecordChanges {
    /// Works out what becomes of the times of all that was worked out before.
    mutating func workOutTimes(_ generation: Generation, _ transaction: borrowing WriteTransaction) throws {
        let tables = generation.tables
        guard tables.received != nil else { return }
        var draft = ReceivedDraft(tables: tables)
        if var notes = received {
            received = nil
            notes.sort()
            for note in notes.notes { try draft.take(note, notes, transaction) }
            for key in notes.fields {
                let maxAge = key.record == notes.root ? notes.maxAge : ReceivedTime.anyAge
                try draft.put([(notes.time.seconds, maxAge)], under: key, transaction)
            }
            try draft.finishBlock(transaction)
        }
        for key in removedSplitFields { try draft.put([], under: key, transaction) }
        for id in removedRecords.sorted() { try draft.remove(id, transaction) }
        try draft.finishBlock(transaction)
        times = draft.changes
    }

    func storeTimes(_ tables: Tables, _ transaction: inout WriteTransaction) throws {
        guard !times.isEmpty, let received = tables.received else { return }
        for (number, bytes) in times.blocks {
            unsafe try ReceivedBlock.withKey(number) { unsafe try put(bytes, under: $0, in: received, &transaction) }
        }
        for (key, bytes) in times.rows {
            unsafe try key.withBytes { unsafe try put(bytes, under: $0, in: received, &transaction) }
        }
    }

    private func put(
        _ bytes: [UInt8], under key: UnsafeRawBufferPointer, in table: Table, _ transaction: inout WriteTransaction
    ) throws {
        if bytes.isEmpty {
            _ = unsafe try transaction.delete(key, in: table)
        } else {
            unsafe try bytes.withUnsafeBytes { unsafe try transaction.put(key, $0, in: table) }
        }
    }
}

/// Works out blocks and rows, one block after the other.
private struct ReceivedDraft {
    let tables: Tables
    var changes = ReceivedChanges()
    private var number: UInt64?
    private var slots: [ReceivedSlot] = []
    private var isChanged = false
    /// Blocks that were changed before, by where they are in `changes`.
    private var finished: [UInt64: Int] = [:]

    init(tables: Tables) { self.tables = tables }

    mutating func take(
        _ note: ReceivedNotes.Note, _ notes: ReceivedNotes, _ transaction: borrowing WriteTransaction
    ) throws {
        let old = try slot(of: note.id, transaction)
        let key = SplitFieldKey(record: note.id, field: 0)
        let others = notes.others[Int(note.others.lowerBound)..<Int(note.others.upperBound)]
        var left: [(UInt32, UInt32)] = []
        if !others.isEmpty {
            let earlier = old.hasRows ? try tables.receivedPairs(key, transaction) : []
            var next = earlier[...]
            for field in others {
                while let first = next.first, first.0 < field { next = next.dropFirst() }
                let own = next.first.flatMap { $0.0 == field ? $0.1 : nil }
                left.append((field, own ?? old.time.seconds))
            }
        }
        if note.isTimedByField {
            // The record was split by this write.
            for (field, seconds) in left {
                try put(
                    [(seconds, ReceivedTime.anyAge)], under: SplitFieldKey(record: note.id, field: field), transaction)
            }
            left = []
        } else {
            left.removeAll { $0.1 == notes.time.seconds }
        }
        if old.hasRows || !left.isEmpty { try put(left, under: key, transaction) }
        set(ReceivedSlot(notes.time, hasRows: note.isTimedByField || !left.isEmpty), of: note.id)
    }

    mutating func remove(_ id: RecordID, _ transaction: borrowing WriteTransaction) throws {
        let old = try slot(of: id, transaction)
        guard old != .none else { return }
        set(.none, of: id)
        guard old.hasRows, let table = tables.received else { return }
        var cursor = try transaction.cursor(in: table)
        var entry = try cursor.seek(atLeast: SplitFieldKey(record: id, field: 0).bytes.rawSpan)
        while let found = entry, let key = unsafe found.key.withUnsafeBytes({ unsafe SplitFieldKey($0) }),
            key.record == id
        {
            changes.rows.append((key, []))
            entry = try cursor.next()
        }
    }

    /// Puts a row, or removes it where there are no pairs, unless it is there, or gone, already.
    mutating func put(
        _ pairs: [(UInt32, UInt32)], under key: SplitFieldKey, _ transaction: borrowing WriteTransaction
    ) throws {
        let stored = try tables.receivedPairs(key, transaction)
        guard !stored.elementsEqual(pairs, by: ==) else { return }
        changes.rows.append((key, pairs.isEmpty ? [] : ReceivedRow.encoded(pairs, under: key)))
    }

    // MARK: Blocks

    private mutating func slot(of id: RecordID, _ transaction: borrowing WriteTransaction) throws -> ReceivedSlot {
        let wanted = ReceivedBlock.number(of: id)
        if number != wanted {
            try finishBlock(transaction)
            number = wanted
            if let place = finished[wanted] {
                let bytes = changes.blocks[place].bytes
                slots = unsafe bytes.withUnsafeBytes { unsafe ReceivedBlock.slots($0) }
            } else {
                slots = try tables.receivedSlots(wanted, transaction)
            }
        }
        return slots[ReceivedBlock.index(of: id)]
    }

    /// - Precondition: `slot(of:)` was asked last for the same block.
    private mutating func set(_ slot: ReceivedSlot, of id: RecordID) {
        assert(number == ReceivedBlock.number(of: id), "A slot is set in the block that was read")
        guard slots[ReceivedBlock.index(of: id)] != slot else { return }
        slots[ReceivedBlock.index(of: id)] = slot
        isChanged = true
    }

    mutating func finishBlock(_ transaction: borrowing WriteTransaction) throws {
        guard let number, isChanged else { return }
        isChanged = false
        let bytes = slots.allSatisfy { $0 == .none } ? [] : ReceivedBlock.encoded(slots, number: number)
        if let place = finished[number] {
            changes.blocks[place].bytes = bytes
        } else {
            finished[number] = changes.blocks.count
            changes.blocks.append((number, bytes))
        }
    }
}
