import Foundation
import GRDBSQLite
import LarderMigrations

/// The rows of uploads through SQLite's C API, with the settings that the queue opens with.
final class BareTransfers {
    /// Where the rows go.
    enum Table {
        /// The queue's own: with what it checks, and the indices that it is read by.
        case own
        /// As a program would keep them that never looks for one.
        case bare
    }

    private var database: OpaquePointer?
    private var insertion: OpaquePointer?

    init(file: String, table: Table) throws {
        try Self.check(sqlite3_open(file, &database))
        let schema: [String] =
            switch table {
            case .own:
                Migration.all.map { String(decoding: $0.sql, as: UTF8.self) }
                    + ["INSERT INTO partition (id, name) VALUES (1, 'app')"]
            case .bare:
                [
                    """
                    CREATE TABLE transfer (sequence INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE,
                        partition INTEGER NOT NULL, kind INTEGER NOT NULL, state INTEGER NOT NULL,
                        priority INTEGER NOT NULL, bucket TEXT NOT NULL, key TEXT NOT NULL, path TEXT NOT NULL,
                        replaces INTEGER NOT NULL, attempts INTEGER NOT NULL, created INTEGER NOT NULL, size INTEGER,
                        device INTEGER, inode INTEGER, modified INTEGER, place INTEGER)
                    """
                ]
            }
        let settings = [
            "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON",
            "PRAGMA secure_delete = ON",
        ]
        for statement in settings + schema { try Self.check(sqlite3_exec(database, statement, nil, nil, nil)) }
        let sql = """
            INSERT INTO transfer (id, partition, kind, state, priority, bucket, key, path, replaces, attempts, created,
                size, device, inode, modified, place)
            VALUES (?, 1, 0, 0, 0, 'media', ?, ?, 0, 0, ?, 1000, 1, 1, 1, ?)
            """
        try Self.check(sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &insertion, nil))
    }

    deinit {
        sqlite3_finalize(insertion)
        sqlite3_close(database)
    }

    /// A row for each id, in one commit.
    func insert(_ ids: [UUID], path: String) throws {
        // SQLITE_TRANSIENT, a macro that Swift does not see: SQLite takes a copy.
        let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
        try Self.check(sqlite3_exec(database, "BEGIN", nil, nil, nil))
        for (number, id) in ids.enumerated() {
            withUnsafeBytes(of: id.uuid) { _ = sqlite3_bind_blob(insertion, 1, $0.baseAddress, 16, copied) }
            sqlite3_bind_text(insertion, 2, "photos/\(number).jpg", -1, copied)
            sqlite3_bind_text(insertion, 3, path, -1, copied)
            sqlite3_bind_int64(insertion, 4, 1_700_000_000_000)
            // As far apart as those of texts are.
            sqlite3_bind_int64(insertion, 5, Int64(UInt32(truncatingIfNeeded: number) &* 0x9E37_79B1))
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
