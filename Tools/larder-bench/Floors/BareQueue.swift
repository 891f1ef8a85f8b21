import Foundation
import GRDBSQLite
import LarderOperations

/// Mutations as somebody would keep them who needs nothing but SQLite: one table, one row, through the C API, with the
/// settings that the queue opens with.
final class BareQueue {
    private var database: OpaquePointer?
    private var insertion: OpaquePointer?

    init(file: String) throws {
        try Self.check(sqlite3_open(file, &database))
        for statement in [
            "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON",
            """
            CREATE TABLE mutation (sequence INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE,
                partition INTEGER NOT NULL, lane TEXT NOT NULL, state INTEGER NOT NULL, attempts INTEGER NOT NULL,
                created INTEGER NOT NULL, document TEXT NOT NULL, operation_name TEXT, variables BLOB NOT NULL,
                optimistic_response BLOB)
            """,
        ] { try Self.check(sqlite3_exec(database, statement, nil, nil, nil)) }
        let sql = """
            INSERT INTO mutation (id, partition, lane, state, attempts, created, document, operation_name, variables,
                optimistic_response) VALUES (?, 1, ?, 0, 0, ?, ?, ?, ?, ?)
            """
        try Self.check(sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &insertion, nil))
    }

    deinit {
        sqlite3_finalize(insertion)
        sqlite3_close(database)
    }

    /// One row, on disk when this returns.
    func insert(_ draft: MutationDraft) throws {
        let content = draft.content
        withUnsafeBytes(of: draft.id.uuid) { _ = sqlite3_bind_blob(insertion, 1, $0.baseAddress, 16, Self.copied) }
        sqlite3_bind_text(insertion, 2, draft.lane, -1, Self.copied)
        sqlite3_bind_int64(insertion, 3, Int64(draft.created.timeIntervalSince1970 * 1000))
        sqlite3_bind_text(insertion, 4, content.document, -1, Self.copied)
        sqlite3_bind_text(insertion, 5, content.operationName, -1, Self.copied)
        bind(content.variables, at: 6)
        bind(content.optimisticResponse ?? [], at: 7)
        try Self.check(sqlite3_step(insertion))
        try Self.check(sqlite3_reset(insertion))
    }

    private func bind(_ bytes: [UInt8], at index: Int32) {
        bytes.withUnsafeBytes {
            _ = sqlite3_bind_blob(insertion, index, $0.baseAddress, Int32($0.count), Self.copied)
        }
    }

    /// SQLITE_TRANSIENT, a macro that Swift does not see: SQLite takes a copy.
    private static let copied = unsafeBitCast(-1, to: sqlite3_destructor_type.self)

    private static func check(_ status: Int32) throws {
        guard [SQLITE_OK, SQLITE_ROW, SQLITE_DONE].contains(status) else {
            throw BenchFailure("SQLite answered \(status)")
        }
    }
}
