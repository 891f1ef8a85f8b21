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
    /// Records are looked into in ascending order as far as can be: they lie so on the pages.
    private var place: RecordID = 0

    /// Whether everything that was reached was looked into.
    var isDone: Bool { pending.isEmpty }

    /// Takes in a record that is needed, or was changed. It is looked into once more if it was before.
    mutating func add(_ id: RecordID) {
        // What is in optimistic layers alone has no number in the store.
        guard id < OverlayNumbers.firstRecord else { return }
        marked.insert(id)
        pending.insert(id)
    }

    /// Looks into what was reached, until all is looked into or the time has come.
    ///
    /// - Parameters:
    ///   - next: The number that the next record will have.
    ///   - lookedInto: Called with each record.
    /// - Returns: Whether everything was looked into.
    /// - Throws: `DamagedRecord`: what a damaged record leads to is not known.
    mutating func run(
        _ generation: Generation, _ snapshot: borrowing some RecordSnapshot & ~Copyable, below next: RecordID,
        until deadline: ContinuousClock.Instant, lookedInto: (RecordID) -> Void = { _ in }
    ) throws -> Bool {
        var targets: [RecordID] = []
        var count = 0
        var cursor = try snapshot.cursor(in: generation.tables.records)
        while let id = popPending() {
            lookedInto(id)
            if let stored = try cursor.value(at: id) {
                // The bytes stay where they are: a snapshot does not change while a cursor exists.
                let record = unsafe try RecordView(unsafe stored.withUnsafeBytes { unsafe $0 })
                try Self.collectTargets(of: record, id, generation, snapshot, &targets)
                for target in targets {
                    guard target < next else { throw DamagedRecord("it refers to a record that never was") }
                    if marked.insert(target) { pending.insert(target) }
                }
                targets.removeAll(keepingCapacity: true)
            }
            count += 1
            if count % Self.recordsBetweenLooks == 0, .now >= deadline { break }
        }
        return pending.isEmpty
    }

    /// How many records are looked into between two looks at the clock.
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
            guard unsafe SplitFieldKey(record: id, field: field).isSound(payload.bytes) else {
                throw DamagedRecord("one of its fields has another checksum")
            }
            try payload.collectRecords(in: payload.word, into: &targets, alsoReferences: true)
        }
    }
}
