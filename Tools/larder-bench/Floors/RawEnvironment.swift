import CLMDB
import Foundation

/// LMDB through its C API and nothing else: the floor.
final class RawEnvironment {
    struct Failure: Error, CustomStringConvertible {
        var status: Int32
        var description: String { String(cString: mdb_strerror(status)) }
    }

    /// A table's name, whether its keys are integers, and what is in it.
    struct Contents {
        var name: String
        var isInteger: Bool
        var entries: [(key: [UInt8], value: [UInt8])] = []

        /// The same in memory of its own.
        func copied() -> Contents {
            var copy = self
            copy.entries = entries.map { (key: $0.key.map { $0 }, value: $0.value.map { $0 }) }
            return copy
        }

        var byteCount: Int { entries.reduce(0) { $0 + $1.key.count + $1.value.count } }
    }

    /// The flags that the record cache opens with.
    static let flags = UInt32(MDB_NOTLS) | UInt32(MDB_NOMETASYNC)

    let environment: OpaquePointer

    init(folder: String, flags: UInt32 = RawEnvironment.flags) throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        var created: OpaquePointer?
        try Self.check(mdb_env_create(&created))
        guard let created else { throw Failure(status: ENOMEM) }
        environment = created
        try Self.check(mdb_env_set_mapsize(created, 64 << 30))
        try Self.check(mdb_env_set_maxdbs(created, 16))
        try Self.check(mdb_env_open(created, folder, flags, 0o644))
    }

    deinit { mdb_env_close(environment) }

    static func check(_ status: Int32) throws {
        guard status == MDB_SUCCESS else { throw Failure(status: status) }
    }

    func begin(_ flags: UInt32 = 0) throws -> OpaquePointer {
        var transaction: OpaquePointer?
        try Self.check(mdb_txn_begin(environment, nil, flags, &transaction))
        guard let transaction else { throw Failure(status: ENOMEM) }
        return transaction
    }

    func write(_ body: (OpaquePointer) throws -> Void) throws {
        let transaction = try begin()
        do { try body(transaction) } catch {
            mdb_txn_abort(transaction)
            throw error
        }
        try Self.check(mdb_txn_commit(transaction))
    }

    /// Opens or makes a table.
    func table(_ name: String?, isInteger: Bool = false) throws -> MDB_dbi {
        var table = MDB_dbi()
        try write { transaction in
            let flags = name == nil ? 0 : UInt32(MDB_CREATE) | (isInteger ? UInt32(MDB_INTEGERKEY) : 0)
            try Self.check(mdb_dbi_open(transaction, name, flags, &table))
        }
        return table
    }

    static func put(
        _ transaction: OpaquePointer, _ table: MDB_dbi, _ key: [UInt8], _ value: [UInt8], flags: UInt32 = 0
    ) throws {
        try key.withUnsafeBytes { key in
            try value.withUnsafeBytes { value in
                var keyValue = MDB_val(mv_size: key.count, mv_data: UnsafeMutableRawPointer(mutating: key.baseAddress))
                var valueValue = MDB_val(
                    mv_size: value.count, mv_data: UnsafeMutableRawPointer(mutating: value.baseAddress))
                try check(mdb_put(transaction, table, &keyValue, &valueValue, flags))
            }
        }
    }

    /// The length of the value, or -1.
    @inline(__always)
    static func get(_ transaction: OpaquePointer, _ table: MDB_dbi, _ key: UnsafeRawBufferPointer) -> Int {
        var keyValue = MDB_val(mv_size: key.count, mv_data: UnsafeMutableRawPointer(mutating: key.baseAddress))
        var value = MDB_val()
        return mdb_get(transaction, table, &keyValue, &value) == MDB_SUCCESS ? value.mv_size : -1
    }

    /// Everything in the environment, table by table in the order of their names.
    func contents() throws -> [Contents] {
        var found: [Contents] = []
        let names = try entries(of: table(nil)).map { String(decoding: $0.key, as: UTF8.self) }
        for name in names {
            var opened = MDB_dbi()
            var flags: UInt32 = 0
            try write { transaction in
                try Self.check(mdb_dbi_open(transaction, name, 0, &opened))
                try Self.check(mdb_dbi_flags(transaction, opened, &flags))
            }
            found.append(
                Contents(
                    name: name, isInteger: flags & UInt32(MDB_INTEGERKEY) != 0, entries: try entries(of: opened)))
        }
        return found
    }

    /// How the pages of the tables are used, in words.
    func pages() throws -> String {
        var (branch, leaf, overflow) = (0, 0, 0)
        for name in try entries(of: table(nil)).map({ String(decoding: $0.key, as: UTF8.self) }) {
            try write { transaction in
                var opened = MDB_dbi()
                var statistics = MDB_stat()
                try Self.check(mdb_dbi_open(transaction, name, 0, &opened))
                try Self.check(mdb_stat(transaction, opened, &statistics))
                branch += statistics.ms_branch_pages
                leaf += statistics.ms_leaf_pages
                overflow += statistics.ms_overflow_pages
            }
        }
        return "\(branch) branch, \(leaf) leaf, \(overflow) overflow pages"
    }

    private func entries(of table: MDB_dbi) throws -> [(key: [UInt8], value: [UInt8])] {
        let transaction = try begin(UInt32(MDB_RDONLY))
        defer { mdb_txn_abort(transaction) }
        var cursor: OpaquePointer?
        try Self.check(mdb_cursor_open(transaction, table, &cursor))
        defer { mdb_cursor_close(cursor) }
        var entries: [(key: [UInt8], value: [UInt8])] = []
        var key = MDB_val()
        var value = MDB_val()
        while mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == MDB_SUCCESS {
            entries.append(
                (
                    Array(UnsafeRawBufferPointer(start: key.mv_data, count: key.mv_size)),
                    Array(UnsafeRawBufferPointer(start: value.mv_data, count: value.mv_size))
                ))
        }
        return entries
    }
}
