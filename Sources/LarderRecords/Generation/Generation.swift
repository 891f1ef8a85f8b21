internal import LarderLMDB

/// One LMDB environment of a record cache: the folder `records/<partition>/<generation>`.
///
/// A generation is never swapped under a process that has it open. Compacting, clearing and changes of format make
/// the next one, and the last commit in this one says that it is superseded.
package final class Generation: Sendable {
    /// Tells the generations of a process apart.
    let identity = UInt64.random(in: .min ... .max)
    /// The folder's name; the greatest is the newest.
    let number: Int
    let environment: Environment
    let tables: Tables
    let names = NameTable()

    init(number: Int, environment: Environment, tables: Tables) {
        self.number = number
        self.environment = environment
        self.tables = tables
    }

    /// The stored record; nil if there is none. Valid until the transaction changes or ends.
    func record(
        _ id: RecordID, _ transaction: borrowing some Transaction & ~Copyable
    ) throws -> RecordView? {
        guard let stored = try transaction.get(id, in: tables.records) else { return nil }
        return try RecordView(unsafe stored.withUnsafeBytes { $0 })
    }

    func greatestRecord(_ transaction: borrowing some Transaction & ~Copyable) throws -> RecordID? {
        var cursor = try transaction.cursor(in: tables.records)
        return try cursor.last()?.integerKey
    }

    /// Calls `body` with each field of a split record, in ascending order.
    func forEachSplitField(
        of record: RecordID, _ transaction: borrowing some Transaction & ~Copyable,
        _ body: (FieldID, PayloadView) throws -> Void
    ) throws {
        var cursor = try transaction.cursor(in: tables.fields)
        let first = SplitFieldKey(record: record, field: 0).bytes
        var entry = try cursor.seek(atLeast: first.span.bytes)
        while let found = entry {
            guard let key = found.key.withUnsafeBytes({ SplitFieldKey($0) }) else {
                throw DamagedRecord("the key of a field is damaged")
            }
            guard key.record == record else { return }
            // The bytes stay where they are until the transaction changes, which it cannot while a cursor exists.
            try body(key.field, PayloadView(bytes: unsafe found.value.withUnsafeBytes { $0 }))
            entry = try cursor.next()
        }
    }
}

extension Tables {
    /// The number of a cache key; nil if the snapshot has none.
    func record(of key: String, _ transaction: borrowing some Transaction & ~Copyable) throws -> RecordID? {
        try record(of: Array(key.utf8), transaction)
    }

    func record(of key: [UInt8], _ transaction: borrowing some Transaction & ~Copyable) throws -> RecordID? {
        guard !key.isEmpty else { return nil }
        guard let stored = try transaction.get(StoredKey.bytes(key).span.bytes, in: keys) else { return nil }
        guard stored.byteCount == 8 else { throw RecordError(.damaged, "a number in the cache's index is damaged") }
        return UInt64(littleEndian: stored.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) })
    }
}
