import Foundation
import GRDBSQLite

/// Uploads as somebody would keep them who needs nothing but SQLite: one table, one row, through the C API, with the
/// settings that the queue opens with.
final class BareTransfers {
    private var database: OpaquePointer?
    private var insertion: OpaquePointer?

    init(file: String) throws {
        try Self.check(sqlite3_open(file, &database))
        for statement in [
            "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON",
            "PRAGMA secure_delete = ON",
            """
            CREATE TABLE transfer (sequence INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE,
                partition INTEGER NOT NULL, kind INTEGER NOT NULL, state INTEGER NOT NULL, priority INTEGER NOT NULL,
                bucket TEXT NOT NULL, key TEXT NOT NULL, path TEXT NOT NULL, created INTEGER NOT NULL,
                size INTEGER, device INTEGER, inode INTEGER, modified INTEGER)
            """,
        ] { try Self.check(sqlite3_exec(database, statement, nil, nil, nil)) }
        let sql = """
            INSERT INTO transfer (id, partition, kind, state, priority, bucket, key, path, created, size, device, inode,
                modified) VALUES (?, 1, 0, 0, 0, 'media', ?, ?, ?, 1000, 1, 1, 1)
            """
        try Self.check(sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &insertion, nil))
    }

    deinit {
        sqlite3_finalize(insertion)
        sqlite3_close(database)
    }

    /// So many rows in one commit.
    ///
    /// - Parameter ids: Nil to have Foundation make one for each, which opens the system's file of random bytes.
    func insert(_ count: Int, path: String, ids: [UUID]? = nil) throws {
        // SQLITE_TRANSIENT, a macro that Swift does not see: SQLite takes a copy.
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        try Self.check(sqlite3_exec(database, "BEGIN", nil, nil, nil))
        for number in 0..<count {
            let id = ids?[number] ?? UUID()
            withUnsafeBytes(of: id.uuid) { _ = sqlite3_bind_blob(insertion, 1, $0.baseAddress, 16, copied) }
            sqlite3_bind_text(insertion, 2, "photos/\(number).jpg", -1, copied)
            sqlite3_bind_text(insertion, 3, path, -1, copied)
            sqlite3_bind_int64(insertion, 4, 1_700_000_000_000)
            try Self.check(sqlite3_step(insertion))
            try Self.check(sqlite3_reset(insertion))
        }
        try Self.check(sqlite3_exec(database, "COMMIT", nil, nil, nil))
    }

    private static func check(_ status: Int32) throws {
        guard [SQLITE_OK, SQLITE_ROW, SQLITE_DONE].contains(status) else {
            throw BenchFailure("SQLite answered \(status)")
        }
    }
}
