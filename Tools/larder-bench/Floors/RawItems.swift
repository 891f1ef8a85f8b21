import CLMDB

/// Items as a program would keep them that needs nothing but LMDB: key to bytes.
final class RawItems {
    /// About what a record of ten fields takes in the cache.
    private static let value = [UInt8](repeating: 0x2A, count: 256)

    private let raw: RawEnvironment
    private let table: MDB_dbi
    private let reader: OpaquePointer

    init(folder: String) throws {
        raw = try RawEnvironment(folder: folder)
        table = try raw.table("records")
        reader = try raw.begin(UInt32(MDB_RDONLY))
        mdb_txn_reset(reader)
    }

    deinit { mdb_txn_abort(reader) }

    func fill(_ numbers: Range<Int>) throws {
        try raw.write { transaction in
            for number in numbers {
                try RawEnvironment.put(transaction, table, Array(ItemShop.key(number).utf8), Self.value)
            }
        }
    }

    @inline(__always)
    func get(_ key: [UInt8]) throws {
        try RawEnvironment.check(mdb_txn_renew(reader))
        let size = key.withUnsafeBytes { RawEnvironment.get(reader, table, $0) }
        mdb_txn_reset(reader)
        guard size == Self.value.count else { throw BenchFailure("an item is missing") }
    }
}

/// The puts that a change of one field needs: the record, the change, the counters; each of the size that it has in the
/// cache.
final class RawChange {
    private static let recordSize = 256
    /// A checksum, two bytes of header, the record's number in two and the field's in one.
    private static let changeSize = 9
    private static let countersSize = 60

    private let raw: RawEnvironment
    private let records, changes, meta: MDB_dbi
    private var number: UInt64 = 0

    init(folder: String, recordCount: Int) throws {
        raw = try RawEnvironment(folder: folder)
        records = try raw.table("records", isInteger: true)
        changes = try raw.table("changes", isInteger: true)
        meta = try raw.table("meta")
        for name in ["names", "texts", "keys", "fields"] { _ = try raw.table(name) }
        try raw.write { transaction in
            for record in 0..<recordCount { try put(transaction, records, UInt64(record), size: Self.recordSize) }
        }
        try change(0)
    }

    func change(_ record: Int) throws {
        number += 1
        try raw.write { transaction in
            try put(transaction, records, UInt64(record), size: Self.recordSize)
            try put(transaction, changes, number, size: Self.changeSize)
            try RawEnvironment.put(
                transaction, meta, Array("state".utf8),
                Array(repeating: UInt8(truncatingIfNeeded: number), count: Self.countersSize))
        }
    }

    private func put(_ transaction: OpaquePointer, _ table: MDB_dbi, _ key: UInt64, size: Int) throws {
        try RawEnvironment.put(
            transaction, table, withUnsafeBytes(of: key) { Array($0) },
            Array(repeating: UInt8(truncatingIfNeeded: number), count: size))
    }
}
