import LarderGraphQL
import LarderLMDB

/// Everything that one write will do to a generation, worked out before the first byte is changed.
///
/// Working it out only reads, so that a failure on the way leaves nothing behind, and bytes that were read stay valid
/// until all is encoded.
///
/// Safe: keys are copied by the call that brings them; what is stored lies in the encoder's own memory, which no write
/// to the file moves, at ranges that the encoder answered.
struct RecordChanges {
    var state: GenerationState
    var encoder: RecordEncoder
    /// Records to be stored, and where they stand in the encoder's bytes.
    var records: [(id: RecordID, range: Range<Int>)] = []
    var splitFields: [(key: SplitFieldKey, range: Range<Int>)] = []
    var removedRecords: [RecordID] = []
    var removedSplitFields: [SplitFieldKey] = []
    /// What removed objects, their parts and their fields took; for reports.
    var removedBytes = 0
    /// Rows of `keys` that go, by their keys as they are stored.
    var removedKeys: [[UInt8]] = []
    /// Keys that are given a number, by their indices in `changes.createdKeys`.
    private(set) var newKeys: [(index: Int, id: RecordID)] = []
    /// Keys of entities that have a number and come into being again; kept for overlays.
    private(set) var comingBack: [(index: Int, id: RecordID)] = []
    /// Where numbers come from that are not the store's.
    var numbers: OverlayNumbers?
    var newNames: [ExactText: FieldID] = [:]
    var changes = ChangeSet()
    /// What becomes known of mutations.
    var applied: [AppliedEntry] = []
    /// The object that stands for those that were taken out of lists, where it comes into being.
    var placeholderID: RecordID?
    /// Idempotency keys of which nothing will be known any more.
    var forgotten: [String] = []
    /// The new values of rows of the table `positions`, by their keys; nil removes a row.
    var positions: [[UInt8]: [UInt8]?] = [:]
    /// Types of which an object was removed without a tombstone.
    var evictedTypes: Set<FieldID> = []
    /// When what is stored came; nil where no times are kept, as in layers.
    var received: ReceivedNotes?
    /// What becomes of the times.
    var times = ReceivedChanges()
    /// Whether later steps of the write, which are stored, moved times or positions alone.
    private var hasMovedTimes = false
    /// What was known of the mutation already, for which the write was to be made.
    var earlier: AppliedEntry?

    /// - Parameter scratch: Memory for what will be stored. No other code may use it until the changes are applied.
    init(_ state: GenerationState, scratch: ByteBuffer = ByteBuffer()) {
        self.state = state
        encoder = RecordEncoder(scratch)
    }

    /// A cache is kept as it is by a write that changes nothing.
    var isEmpty: Bool {
        changes.isEmpty && newKeys.isEmpty && newNames.isEmpty && applied.isEmpty && forgotten.isEmpty
            && positions.isEmpty && times.isEmpty && !hasMovedTimes
    }

    /// Prepares for a write that only brings new records.
    mutating func reserveCapacity(records count: Int, keyBytes: Int) {
        records.reserveCapacity(count)
        newKeys.reserveCapacity(count)
        changes.fields.reserveCapacity(count)
        changes.createdKeys.reserveCapacity(count, byteCount: keyBytes)
    }

    /// Takes in the key of an entity that was never stored, and gives it a number.
    mutating func created(_ key: UnsafeRawBufferPointer) -> RecordID {
        let id = unsafe numbers?.record(of: key) ?? newRecordID()
        newKeys.append((changes.createdKeys.count, id))
        unsafe changes.createdKeys.append(key)
        return id
    }

    /// Takes in the key of an entity that has a number and comes into being again.
    mutating func cameBack(_ key: UnsafeRawBufferPointer, as id: RecordID) {
        if numbers != nil { comingBack.append((changes.createdKeys.count, id)) }
        unsafe changes.createdKeys.append(key)
    }

    mutating func newRecordID() -> RecordID {
        if let numbers { return numbers.newRecord() }
        defer { state.nextRecord += 1 }
        return state.nextRecord
    }

    /// The number of a name, which is given one if it has none yet.
    mutating func fieldID(
        _ name: String, _ generation: Generation, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> FieldID {
        let exact = ExactText(name)
        if let number = newNames[exact] { return number }
        if let number = try generation.names.lookUp(name, transaction, generation.tables) { return number }
        if let numbers {
            let number = try numbers.field(exact)
            newNames[exact] = number
            return number
        }
        guard state.nextField < OverlayNumbers.firstField else {
            throw RecordError(.full, "The cache has no numbers left for fields; clear it")
        }
        defer { state.nextField += 1 }
        newNames[exact] = state.nextField
        return state.nextField
    }

    mutating func changed(_ record: RecordID, _ field: FieldID = RecordField.any) {
        changes.fields.append(RecordField(record: record, field: field))
    }

    /// How many changes the log holds before it forgets the oldest.
    static let logLength: UInt64 = 1024

    /// Makes the changes in a transaction, except that the log does not tell of them yet.
    mutating func store(_ generation: Generation, _ transaction: inout WriteTransaction) throws {
        guard !isEmpty else { return }
        let tables = generation.tables
        for (name, number) in newNames {
            let text = Array(name.text.utf8)
            let key = StoredKey.bytes(text)
            unsafe try key.withUnsafeBytes { key throws in
                unsafe try StoredNumber.with(UInt64(number), under: key) {
                    unsafe try transaction.put(key, $0, in: tables.names)
                }
            }
            let sealed = SealedText.encoded(text, seed: UInt64(number))
            try transaction.put(UInt64(number), sealed.rawSpan, in: tables.texts)
        }
        if !newKeys.isEmpty || !removedKeys.isEmpty {
            try transaction.write(to: tables.keys) { stored throws in
                for (index, id) in newKeys {
                    unsafe try changes.createdKeys.withKey(index) { key throws in
                        unsafe try StoredKey.with(key) { key throws in
                            unsafe try StoredNumber.with(id, under: key) { unsafe try stored.put(key, $0) }
                        }
                    }
                }
                for key in removedKeys { unsafe try key.withUnsafeBytes { _ = unsafe try stored.remove($0) } }
            }
        }
        let greatest = try generation.greatestRecord(transaction)
        if !zip(records, records.dropFirst()).allSatisfy({ $0.id < $1.id }) { records.sort { $0.id < $1.id } }
        // Nothing more is encoded, so the bytes stay where they are.
        let bytes = unsafe encoder.bytes
        unsafe assert(
            fault(in: bytes) == nil, unsafe "A write would store what no reader accepts: \(fault(in: bytes) ?? "")")
        let known = records.firstIndex { $0.id > greatest ?? 0 } ?? records.count
        try transaction.write(to: tables.records) { stored throws in
            for (id, range) in records[..<known] {
                unsafe try stored.put(id, UnsafeRawBufferPointer(rebasing: bytes[range]))
            }
            for (id, range) in records[known...] {
                unsafe try stored.append(id, UnsafeRawBufferPointer(rebasing: bytes[range]))
            }
            for id in removedRecords { try stored.remove(id) }
        }
        if !splitFields.isEmpty || !removedSplitFields.isEmpty {
            try transaction.write(to: tables.fields) { stored throws in
                for (key, range) in splitFields {
                    let value = unsafe UnsafeRawBufferPointer(rebasing: bytes[range])
                    unsafe try key.withBytes { unsafe try stored.put($0, value) }
                }
                for key in removedSplitFields { unsafe try key.withBytes { _ = unsafe try stored.remove($0) } }
            }
        }
        try storeApplied(tables, &transaction)
        try storeTimes(tables, &transaction)
        try storePositions(tables, &transaction)
    }

    /// What is wrong with what is about to be stored; nil where all of it can be read back. For debug builds.
    private func fault(in bytes: UnsafeRawBufferPointer) -> String? {
        for (id, range) in records {
            guard id > 0 else { return "a record without a number" }
            do {
                let record = unsafe try RecordView(UnsafeRawBufferPointer(rebasing: bytes[range]))
                guard record.storedChecksum == record.checksum(of: id) else { return "the checksum of record \(id)" }
                let fields = (0..<record.count).map(record.field)
                guard zip(fields, fields.dropFirst()).allSatisfy({ $0 < $1 }) else {
                    return "the order of the fields of record \(id)"
                }
                _ = unsafe try record.key
            } catch { return "record \(id): \(error.what)" }
        }
        for (key, range) in splitFields where unsafe !key.isSound(UnsafeRawBufferPointer(rebasing: bytes[range])) {
            return "field \(key.field) of record \(key.record)"
        }
        return nil
    }

    /// Takes in what was worked out, and stored, after this in the same write.
    mutating func join(_ later: RecordChanges) {
        state = later.state
        hasMovedTimes = hasMovedTimes || !later.times.isEmpty || !later.positions.isEmpty
        newKeys += later.newKeys
        newNames.merge(later.newNames) { $1 }
        changes.fields += later.changes.fields
        for key in later.changes.createdKeys.indices {
            unsafe later.changes.createdKeys.withKey(key) { unsafe changes.createdKeys.append($0) }
        }
    }

    /// Ends the changes of one write: the log and the counters tell of them.
    mutating func finish(_ tables: Tables, _ transaction: inout WriteTransaction) throws {
        guard !isEmpty else { return }
        if !changes.isEmpty { try log(tables, &transaction) }
        try state.store(&transaction, tables)
    }

    private mutating func log(_ tables: Tables, _ transaction: inout WriteTransaction) throws {
        changes.normalize()
        state.lastChange += 1
        let encoded = SealedText.encoded(changes.encoded, seed: state.lastChange)
        try transaction.put(state.lastChange, encoded.rawSpan, in: tables.changes)
        while state.firstChange + Self.logLength <= state.lastChange {
            try transaction.delete(state.firstChange, in: tables.changes)
            state.firstChange += 1
        }
    }
}
