import LarderLMDB

/// Marks the records that references and parts lead to from the roots, in slices.
///
/// Between two slices other writes may change what was looked into already. What they changed is added again, so that
/// in the end every marked record was looked into as it is.
///
/// Safe: a record is looked into where it lies in the snapshot, which is borrowed, and only numbers are kept of it.
struct Marking {
    /// What was reached.
    private(set) var marked = RecordSet()
    /// What was reached and is to be looked into.
    private var pending = RecordSet()
    /// Fields that were changed of records that had been looked into.
    private var changedFields: [RecordField] = []
    /// Records are looked into in ascending order as far as can be: they lie so on the pages.
    private var place: RecordID = 0

    /// Whether everything that was reached was looked into.
    var isDone: Bool { pending.isEmpty && changedFields.isEmpty }

    /// Takes in a record that is needed, or was changed. It is looked into once more if it was before.
    mutating func add(_ id: RecordID) {
        // What is in optimistic layers alone has no number in the store.
        guard id < OverlayNumbers.firstRecord else { return }
        marked.insert(id)
        pending.insert(id)
    }

    /// Takes in a field that was changed. The rest of a record that was looked into is as it was then, and the root of all
    /// queries may have more fields than can be looked into at once.
    mutating func add(_ field: RecordField) {
        guard field.field != RecordField.any, field.record < OverlayNumbers.firstRecord,
            marked.contains(field.record), !pending.contains(field.record)
        else { return add(field.record) }
        changedFields.append(field)
    }

    /// Looks into what was reached, until all is looked into or the time has come.
    ///
    /// - Parameters:
    ///   - next: The number that the next record will have.
    ///   - lookedInto: Called with each record, and with each field that is looked into by itself.
    /// - Returns: Whether everything was looked into.
    /// - Throws: `DamagedRecord`: what a damaged record leads to is not known.
    mutating func run(
        _ generation: Generation, _ snapshot: borrowing some RecordSnapshot & ~Copyable, below next: RecordID,
        until deadline: SuspendingClock.Instant, lookedInto: (RecordField) -> Void = { _ in }
    ) throws -> Bool {
        var targets: [RecordID] = []
        var count = 0
        var cursor = try snapshot.cursor(in: generation.tables.records)
        func reach() throws {
            for target in targets {
                guard target < next else { throw DamagedRecord("it refers to a record that never was") }
                if marked.insert(target) { pending.insert(target) }
            }
            targets.removeAll(keepingCapacity: true)
        }
        func isLate() -> Bool {
            count += 1
            return count % Self.recordsBetweenLooks == 0 && .now >= deadline
        }
        while let field = changedFields.popLast() {
            lookedInto(field)
            guard let stored = try cursor.value(at: field.record) else { continue }
            let isSplit = unsafe try RecordView(unsafe stored.withUnsafeBytes { unsafe $0 }).isSplit
            if isSplit {
                let key = SplitFieldKey(record: field.record, field: field.field)
                guard let payload = try generation.splitField(key, snapshot) else { continue }
                try Self.collectTargets(of: payload, key, &targets)
                try reach()
            } else {
                pending.insert(field.record)
            }
            if isLate() { return false }
        }
        while let id = popPending() {
            lookedInto(RecordField(record: id, field: RecordField.any))
            if let stored = try cursor.value(at: id) {
                // The bytes stay where they are: a snapshot does not change while a cursor exists.
                let record = unsafe try RecordView(unsafe stored.withUnsafeBytes { unsafe $0 })
                try Self.collectTargets(of: record, id, generation, snapshot, &targets)
                try reach()
            }
            if isLate() { break }
        }
        return isDone
    }

    /// How many records and fields are looked into between two looks at the clock.
    private static let recordsBetweenLooks = 16

    private mutating func popPending() -> RecordID? {
        let found = pending.popFirst(from: place) ?? pending.popFirst(from: 0)
        if let found { place = found + 1 }
        return found
    }

    private static func collectTargets(
        of record: RecordView, _ id: RecordID, _ generation: Generation,
        _ snapshot: borrowing some RecordSnapshot & ~Copyable, _ targets: inout [RecordID]
    ) throws {
        guard record.storedChecksum == record.checksum(of: id) else {
            throw DamagedRecord("it has another checksum")
        }
        for index in 0..<record.count {
            try record.payload.collectRecords(in: record.value(index), into: &targets, alsoReferences: true)
        }
        guard record.isSplit else { return }
        try generation.forEachSplitField(of: id, snapshot) { (field, payload) throws in
            try collectTargets(of: payload, SplitFieldKey(record: id, field: field), &targets)
        }
    }

    private static func collectTargets(
        of payload: PayloadView, _ key: SplitFieldKey, _ targets: inout [RecordID]
    ) throws {
        guard unsafe key.isSound(payload.bytes) else {
            throw DamagedRecord("one of its fields has another checksum")
        }
        try payload.collectRecords(in: payload.word, into: &targets, alsoReferences: true)
    }
}
