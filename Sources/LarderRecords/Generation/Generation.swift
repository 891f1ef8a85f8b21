import LarderLMDB
import Synchronization

/// One LMDB environment of a record cache: the folder `records/<partition>/<generation>`.
///
/// A generation is never swapped under a process that has it open. Compacting, clearing and changes of format make
/// the next one, and the last commit in this one says that it is superseded.
///
/// Safe: records and fields lie in the pages of the transaction, which readers borrow and so cannot change, or in the
/// memory of its overlay, which keeps a value until it is laid anew. Callers use them no longer; `RecordView` and
/// `PayloadView` check every offset in them.
package final class Generation: Sendable {
    /// Tells which numbering of records and fields this is: compaction keeps it, clearing does not.
    let identity: UInt64
    /// The folder's name; the greatest is the newest.
    let number: Int
    let environment: Environment
    let tables: Tables
    /// The bytes of memory that one answer may take.
    let maximumAnswerSize: Int
    /// As `RecordCache.Options.keepsUse`.
    let keepsUse: Bool
    /// As `RecordCache.Options.now`.
    let now: @Sendable () -> Int64
    let names = NameTable()
    let used = UsedRecords()
    /// True after an unclean close, until a commit has started a new epoch: power loss can take back commits whose
    /// numbers a caller may have noted.
    let mayHaveLostCommits = Atomic<Bool>(false)
    /// The last snapshot that was found not to be superseded.
    private let lastCurrent = Atomic<UInt64>(.max)

    init(
        number: Int, identity: UInt64, environment: Environment, tables: Tables, maximumAnswerSize: Int,
        keepsUse: Bool = true, now: @escaping @Sendable () -> Int64
    ) {
        self.number = number
        self.identity = identity
        self.environment = environment
        self.tables = tables
        self.maximumAnswerSize = maximumAnswerSize
        self.keepsUse = keepsUse
        self.now = now
    }

    /// Says that a commit has started the epoch that an unclean close asked for.
    func hasBegunEpoch() {
        mayHaveLostCommits.store(false, ordering: .relaxed)
        environment.withholdStamp(false)
    }

    /// Whether the snapshot is of the current generation. Looks once for each commit.
    @inline(__always)
    func isCurrent(_ transaction: borrowing ReadTransaction) throws -> Bool {
        let id = transaction.id
        if lastCurrent.load(ordering: .relaxed) == id { return true }
        guard let state = try GenerationState.read(transaction, tables), !state.isSuperseded else { return false }
        lastCurrent.store(id, ordering: .relaxed)
        return true
    }

    /// Answers an operation from one snapshot.
    func answer(
        _ operation: BoundOperation, from root: RecordCache.Root, _ transaction: borrowing ReadTransaction
    ) throws -> CacheAnswer {
        let plan = try operation.resolved(in: self, transaction, isCommitted: true)
        return try answer(operation, from: root, transaction, plan, isCommitted: true)
    }

    /// Answers an operation from one snapshot and the layers over it.
    func answer(
        _ operation: BoundOperation, from root: RecordCache.Root, _ transaction: borrowing LayeredSnapshot
    ) throws -> CacheAnswer {
        let plan = try operation.resolved(under: transaction.layers, transaction)
        return try answer(operation, from: root, transaction, plan, isCommitted: true)
    }

    /// Answers an operation from what a write transaction sees.
    func answer(
        _ operation: BoundOperation, from root: RecordCache.Root, _ transaction: borrowing WriteTransaction
    ) throws -> CacheAnswer {
        let plan = try operation.resolved(in: self, transaction, isCommitted: false)
        return try answer(operation, from: root, transaction, plan, isCommitted: false)
    }

    private func answer(
        _ operation: BoundOperation, from root: RecordCache.Root,
        _ transaction: borrowing some RecordSnapshot & ~Copyable, _ plan: ResolvedPlan, isCommitted: Bool
    ) throws -> CacheAnswer {
        let record = try tables.record(of: root.key, transaction)
        let depth = 2 * operation.layout.plan.depth + 2
        return unsafe try withUnsafeTemporaryAllocation(of: PathEntry.self, capacity: depth) { path in
            guard let path = path.baseAddress else { throw RecordError.damagedState }
            let reader = unsafe ResponseReader(operation, plan, path: path, isCommitted: isCommitted)
            return try reader.read(record, key: root.key, transaction)
        }
    }

    /// The stored record; nil if there is none. Valid until the transaction changes or ends.
    func record(
        _ id: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordView? {
        if let laid = transaction.overlay?.record(id) { return unsafe try laid.bytes.map { unsafe try RecordView($0) } }
        guard let stored = try transaction.get(id, in: tables.records) else { return nil }
        return unsafe try RecordView(unsafe stored.withUnsafeBytes { unsafe $0 })
    }

    /// The stored field of a split record; nil if there is none. Valid until the transaction changes or ends.
    func splitField(
        _ key: SplitFieldKey, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> PayloadView? {
        if let laid = transaction.overlay?.splitField(key) {
            return unsafe laid.bytes.map { unsafe PayloadView(bytes: $0) }
        }
        return unsafe try key.withBytes { bytes in
            unsafe try transaction.get(bytes, in: tables.fields)?.withUnsafeBytes { unsafe PayloadView(bytes: $0) }
        }
    }

    func greatestRecord(_ transaction: borrowing some RecordSnapshot & ~Copyable) throws -> RecordID? {
        var cursor = try transaction.cursor(in: tables.records)
        return try cursor.last()?.integerKey
    }

    /// Calls `body` with each field of a split record, in ascending order.
    func forEachSplitField(
        of record: RecordID, _ transaction: borrowing some RecordSnapshot & ~Copyable,
        _ body: (FieldID, PayloadView) throws -> Void
    ) throws {
        var laid = transaction.overlay?.splitFields(of: record)[...] ?? []
        /// Hands over what is laid over the snapshot, up to a field; true if that field is among it.
        func takeLaid(upTo field: FieldID) throws -> Bool {
            while let next = laid.first, next.field <= field {
                laid.removeFirst()
                if let bytes = unsafe next.value.bytes { unsafe try body(next.field, PayloadView(bytes: bytes)) }
                if next.field == field { return true }
            }
            return false
        }
        var cursor = try transaction.cursor(in: tables.fields)
        let first = SplitFieldKey(record: record, field: 0).bytes
        var entry = try cursor.seek(atLeast: first.rawSpan)
        while let found = entry {
            guard let key = unsafe found.key.withUnsafeBytes({ unsafe SplitFieldKey($0) }) else {
                throw DamagedRecord("the key of a field is damaged")
            }
            guard key.record == record else { break }
            // The bytes stay where they are until the transaction changes, which it cannot while a cursor exists.
            if try !takeLaid(upTo: key.field) {
                unsafe try body(key.field, PayloadView(bytes: unsafe found.value.withUnsafeBytes { unsafe $0 }))
            }
            entry = try cursor.next()
        }
        _ = try takeLaid(upTo: .max)
    }
}

/// Safe: a key is the caller's, and is read before the call returns; so is the number that it leads to.
extension Tables {
    /// The number of a cache key; nil if the snapshot has none.
    func record(of key: String, _ transaction: borrowing some RecordSnapshot & ~Copyable) throws -> RecordID? {
        var key = key
        return try key.withUTF8 { unsafe try record(of: UnsafeRawBufferPointer($0), transaction) }
    }

    func record(of key: [UInt8], _ transaction: borrowing some RecordSnapshot & ~Copyable) throws -> RecordID? {
        unsafe try key.withUnsafeBytes { unsafe try record(of: $0, transaction) }
    }

    func record(
        of key: UnsafeRawBufferPointer, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordID? {
        guard unsafe !key.isEmpty else { return nil }
        if let overlaid = unsafe overlaidRecord(of: key, transaction) { return overlaid }
        return unsafe try StoredKey.with(key) { stored throws in
            unsafe try number(in: transaction.get(stored, in: keys), of: key, transaction)
        }
    }

    /// As `record(of:_:)`, through a cursor: LMDB looks on the page where the cursor stands first, so that a key near the
    /// last one needs no search from the root.
    ///
    /// - Parameter cursor: Over `keys`.
    func record(
        of key: UnsafeRawBufferPointer, _ cursor: inout Cursor,
        _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordID? {
        guard unsafe !key.isEmpty else { return nil }
        if let overlaid = unsafe overlaidRecord(of: key, transaction) { return overlaid }
        return unsafe try StoredKey.with(key) { stored throws in
            unsafe try number(in: cursor.value(at: stored), of: key, transaction)
        }
    }

    private func overlaidRecord(
        of key: UnsafeRawBufferPointer, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) -> RecordID? {
        unsafe transaction.demand?.note(key: key)
        return unsafe transaction.overlay?.record(ofKey: key)
    }

    private func number(
        in value: RawSpan?, of key: UnsafeRawBufferPointer, _ transaction: borrowing some RecordSnapshot & ~Copyable
    ) throws -> RecordID? {
        guard let value else {
            unsafe transaction.overlay?.missed(key)
            return nil
        }
        guard let id = unsafe value.withUnsafeBytes(StoredNumber.number) else {
            throw RecordError(.damaged, "A number in the cache's index is damaged")
        }
        return id
    }
}
