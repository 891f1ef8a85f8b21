import Dispatch
import LarderFiles
import LarderLMDB

/// Goes through the tables of a generation and collects their faults.
///
/// What it learns from one table is held against the next: names, then keys, then records and what they refer to.
///
/// Safe: the bytes that it looks at belong to the transaction of `run`, which lasts longer.
@safe struct GenerationCheck {
    var report = CheckReport()
    let generation: Generation
    let level: CheckReport.Level
    var state: GenerationState?
    /// All numbers of `texts` that are names.
    var names: Set<FieldID> = []
    /// The records that cache keys lead to, whether they exist or not.
    var keyed = CheckedRecords()
    /// The records that are parts.
    var parts = CheckedRecords()
    /// The parts that the check has found a record to hold.
    var held = CheckedRecords()
    /// The parts that the field holds which is being checked.
    var holdings: [RecordID] = []
    /// How often the parts are held that are held more than once.
    var holders: [RecordID: Int] = [:]
    /// The records whose fields are in `fields`.
    var split: Set<RecordID> = []
    /// Where the lists of the record that is being checked lie.
    var lists: [Range<Int>] = []
    /// By number; valid as long as the transaction.
    var segments: [UInt32: UnsafeRawBufferPointer] = unsafe [:]

    var tables: Tables { generation.tables }
    var isThorough: Bool { level == .everything }

    init(_ generation: Generation, _ level: CheckReport.Level) {
        self.generation = generation
        self.level = level
    }

    mutating func run(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        try checkNamesAndKeys(transaction)
        try checkRecords(transaction)
        try checkOthers(transaction)
    }

    /// The counters, names and keys.
    fileprivate mutating func checkNamesAndKeys(
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws(LMDBError) {
        checkState(transaction)
        try checkTexts(transaction)
        try checkNames(transaction)
        try checkKeys(transaction)
    }

    /// What is neither record, nor name or key.
    fileprivate mutating func checkOthers(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        try checkSplitFields(transaction)
        if isThorough { checkHoldings() }
        try checkChanges(transaction)
        try checkApplied(transaction)
        try checkTimes(transaction)
        try checkPositions(transaction)
    }

    private mutating func checkState(_ transaction: borrowing some RecordSnapshot & ~Copyable) {
        do {
            state = try GenerationState.read(transaction, tables)
            if state == nil { report.add(.state, "there are none") }
        } catch {
            report.add(.state, RecordError.translated(error).message)
        }
    }

    // MARK: Names

    private mutating func checkTexts(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        var cursor = try transaction.cursor(in: tables.texts)
        while let entry = try cursor.next() {
            let number = entry.integerKey
            // The bytes stay where they are until the transaction changes.
            let bytes = unsafe entry.value.withUnsafeBytes { unsafe $0 }
            guard unsafe SealedText.isSound(bytes, seed: number) else {
                report.add(.number(number), "its text has another checksum")
                continue
            }
            guard let id = FieldID(exactly: number) else {
                unsafe segments[UInt32(truncatingIfNeeded: number - TextHeap.firstSegment)] = unsafe bytes
                continue
            }
            report.counts.names += 1
            guard isThorough else { continue }
            names.insert(id)
            if let state, id == 0 || id >= state.nextField {
                report.add(.number(number), "it was never given to a name; the next is \(state.nextField)")
            }
            let text = unsafe SealedText.text(bytes).map(Array.init) ?? []
            let key = StoredKey.bytes(text)
            let back = key.isEmpty ? nil : try transaction.get(key.rawSpan, in: tables.names)
            if unsafe back?.withUnsafeBytes(StoredNumber.number) != number {
                report.add(.number(number), "its name \(shown(text)) does not lead back to it")
            }
        }
    }

    private mutating func checkNames(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        var cursor = try transaction.cursor(in: tables.names)
        while let entry = try cursor.next() {
            let isSound = unsafe entry.value.withUnsafeBytes { value in
                unsafe entry.key.withUnsafeBytes { unsafe StoredNumber.isSound(value, under: $0) }
            }
            if isSound, !isThorough { continue }
            let key = unsafe entry.key.withUnsafeBytes(Array.init)
            guard isSound else {
                report.add(.name(shown(key)), "its number has another checksum")
                continue
            }
            guard let number = unsafe entry.value.withUnsafeBytes(StoredNumber.number) else { continue }
            // That the text leads back was looked at from the other side; two names of one number were not.
            let text = unsafe try transaction.get(number, in: tables.texts)?.withUnsafeBytes { bytes in
                unsafe SealedText.text(bytes).map { unsafe Array($0) } ?? []
            }
            if text.map(StoredKey.bytes) != key {
                report.add(.name(shown(key)), "its number \(number) is that of another name")
            }
        }
    }

    // MARK: Keys

    private mutating func checkKeys(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        var cursor = try transaction.cursor(in: tables.keys)
        var ahead = PagesAhead()
        while let entry = try cursor.next() {
            unsafe entry.value.withUnsafeBytes { unsafe ahead.come(to: $0) }
            report.counts.keys += 1
            let isSound = unsafe entry.value.withUnsafeBytes { value in
                unsafe entry.key.withUnsafeBytes { unsafe StoredNumber.isSound(value, under: $0) }
            }
            if isSound, !isThorough { continue }
            let key = unsafe entry.key.withUnsafeBytes(Array.init)
            guard isSound, let id = unsafe entry.value.withUnsafeBytes(StoredNumber.number) else {
                report.add(.key(shown(key)), "its number has another checksum")
                continue
            }
            if let state, id == 0 || id >= state.nextRecord {
                report.add(.key(shown(key)), "record \(id) was never given; the next is \(state.nextRecord)")
            }
            if !keyed.insert(id) { report.add(.key(shown(key)), "another key leads to record \(id) as well") }
            // A key outlives its record.
            guard let stored = try transaction.get(id, in: tables.records) else { continue }
            // What of the record cannot be read is found when the records are checked.
            let own = unsafe stored.withUnsafeBytes { bytes in
                guard let record = unsafe try? RecordView(bytes), record.isEntity else { return nil as [UInt8]? }
                return unsafe (try? record.key).map(Array.init)
            }
            if own.map(StoredKey.bytes) != key {
                report.add(.key(shown(key)), "record \(id) has \(own.map(shown) ?? "no key")")
            }
        }
    }

    func shown(_ text: [UInt8]) -> String {
        text.count > 120 ? String(decoding: text[..<120], as: UTF8.self) + "…" : String(decoding: text, as: UTF8.self)
    }

    // MARK: Changes

    private mutating func checkChanges(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        var cursor = try transaction.cursor(in: tables.changes)
        var expected = state?.firstChange
        while let entry = try cursor.next() {
            report.counts.changes += 1
            let number = entry.integerKey
            let isSound = unsafe entry.value.withUnsafeBytes { unsafe SealedText.isSound($0, seed: number) }
            // A set that cannot be read is reported below, like one of another checksum.
            let set = unsafe try? entry.value.withUnsafeBytes { bytes throws(RecordError) in
                unsafe try ChangeSet(encoded: SealedText.text(bytes) ?? bytes)
            }
            if !isSound || set == nil { report.add(.change(number), "it has another checksum") }
            guard isThorough, let state, let next = expected else { continue }
            if number != next { report.add(.change(number), "it follows \(next &- 1)") }
            if let last = set?.fields.last, last.record >= state.nextRecord {
                report.add(.change(number), "record \(last.record) was never given")
            }
            expected = number &+ 1
        }
        if isThorough, let state, let next = expected, next != state.lastChange &+ 1 {
            report.add(.state, "the log ends with \(next &- 1) instead of \(state.lastChange)")
        }
    }

    // MARK: Mutations

    private mutating func checkApplied(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        guard let applied = tables.applied else { return }
        var cursor = try transaction.cursor(in: applied)
        while let entry = try cursor.next() {
            report.counts.applied += 1
            let key = unsafe entry.key.withUnsafeBytes(Array.init)
            let read = unsafe entry.value.withUnsafeBytes { value in
                unsafe key.withUnsafeBytes { unsafe AppliedEntry(value, under: $0) }
            }
            guard let read else {
                report.add(.applied(shown(key)), "it has another checksum")
                continue
            }
            if isThorough, StoredKey.bytes(Array(read.key.utf8)) != key {
                report.add(.applied(shown(key)), "it is the note of another key")
            }
        }
    }

    // MARK: Synchronizations

    private mutating func checkPositions(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        guard let positions = tables.positions else { return }
        var cursor = try transaction.cursor(in: positions)
        while let entry = try cursor.next() {
            let key = unsafe entry.key.withUnsafeBytes(Array.init)
            let content = unsafe entry.value.withUnsafeBytes { unsafe Tables.content($0, under: key) }
            guard let content,
                key.contains(UInt8(ascii: "/")) || SyncPosition(content) != nil || SubscriptionPosition(content) != nil
            else {
                report.add(.position(shown(key)), "it has another checksum")
                continue
            }
        }
    }

    // MARK: Times

    private mutating func checkTimes(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws(LMDBError) {
        guard let received = tables.received else { return }
        var cursor = try transaction.cursor(in: received)
        while let entry = try cursor.next() {
            if let number = unsafe entry.key.withUnsafeBytes({ unsafe ReceivedBlock.number(ofKey: $0) }) {
                guard unsafe !entry.value.withUnsafeBytes({ unsafe ReceivedBlock.isSound($0, number: number) }) else {
                    continue
                }
                let first = number > 1 << 40 ? 0 : ReceivedBlock.firstRecord(of: number)
                report.add(.record(first), "when it and the records after it came has another checksum")
                continue
            }
            guard let key = unsafe entry.key.withUnsafeBytes({ unsafe SplitFieldKey($0) }) else {
                report.add(.page(nil), "the table received has a key of \(entry.key.byteCount) bytes")
                continue
            }
            guard unsafe !entry.value.withUnsafeBytes({ unsafe ReceivedRow.isSound($0, under: key) }) else { continue }
            report.add(.field(record: key.record, field: key.field), "when it came has another checksum")
        }
    }
}

extension Generation {
    /// Compares every value with its checksum, on as many processors as there are.
    ///
    /// - Returns: What is wrong, as far as it was found.
    func checkChecksums() throws -> CheckReport {
        let greatest = try greatestRecord(environment.beginRead()) ?? 0
        // More than there are processors, so that none waits long for another.
        let slices: RecordID = 16
        let width = greatest / slices + 1
        let outcomes = Locked<[Int: Result<CheckReport, LMDBError>]>([:])
        DispatchQueue.concurrentPerform(iterations: Int(slices) + 1) { index in
            let outcome = Result { () throws(LMDBError) -> CheckReport in
                let transaction = try environment.beginRead()
                var check = GenerationCheck(self, .checksums)
                if index == 0 {
                    try check.checkNamesAndKeys(transaction)
                    try check.checkOthers(transaction)
                } else {
                    let first = RecordID(index - 1) * width
                    let last = index == Int(slices) ? RecordID.max : first + width - 1
                    try check.checkRecords(transaction, in: first...last)
                }
                return check.report
            }
            outcomes.withLock { $0[index] = outcome }
        }
        return try outcomes.withLock { outcomes throws in
            var all = CheckReport()
            for (_, outcome) in outcomes.sorted(by: { $0.key < $1.key }) { all.join(try outcome.get()) }
            return all
        }
    }
}
