import Foundation
import GRDBSQLite
import LarderOperations

/// Mutations through SQLite's C API, with the settings that the queue opens with: their rows inserted, changed, read
/// and deleted, and nothing asked about them.
final class BareQueue {
    private var database: OpaquePointer?
    /// What is done for each row, where need be by several statements: see `QueueTables`.
    private var insertion: [OpaquePointer?] = []
    private var beginning: [OpaquePointer?] = []
    private var answering: [OpaquePointer?] = []
    private var deletion: [OpaquePointer?] = []
    private var selection: OpaquePointer?

    init(file: String, _ tables: QueueTables = .one) throws {
        try Self.check(sqlite3_open(file, &database))
        let settings = [
            "PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON",
            "PRAGMA secure_delete = ON",
        ]
        for statement in settings + tables.schema { try Self.check(sqlite3_exec(database, statement, nil, nil, nil)) }
        insertion = try tables.insertion.map(prepared)
        beginning = try tables.beginning.map(prepared)
        answering = try tables.answering.map(prepared)
        deletion = try tables.deletion.map(prepared)
        selection = try prepared("SELECT * FROM mutation ORDER BY sequence")
    }

    deinit {
        for statement in insertion + beginning + answering + deletion + [selection] { sqlite3_finalize(statement) }
        sqlite3_close(database)
    }

    private func prepared(_ sql: String) throws -> OpaquePointer? {
        var statement: OpaquePointer?
        try Self.check(sqlite3_prepare_v3(database, sql, -1, UInt32(SQLITE_PREPARE_PERSISTENT), &statement, nil))
        return statement
    }

    /// Each row inserted, updated twice and deleted, with so many commits in all.
    func pass(_ drafts: [MutationDraft], commits: Int) throws {
        let steps = drafts.count * 4
        let answer = Array(#"{"data":{"rename":{"__typename":"Item","id":"12345","title":"A soup of lentils"}}}"#.utf8)
        var (done, committed) = (0, 0)
        func step(_ body: () throws -> Void) throws {
            if sqlite3_get_autocommit(database) != 0 { try Self.check(sqlite3_exec(database, "BEGIN", nil, nil, nil)) }
            try body()
            done += 1
            // As even as whole numbers can be.
            guard done * commits / steps > committed else { return }
            committed += 1
            try Self.check(sqlite3_exec(database, "COMMIT", nil, nil, nil))
        }
        for draft in drafts { try step { try insert(draft) } }
        for sequence in 1...Int64(drafts.count) {
            try step { try run(beginning, sequence) }
            try step { try run(answering, sequence, answer) }
            try step { try run(deletion, sequence) }
        }
        if sqlite3_get_autocommit(database) == 0 { try Self.check(sqlite3_exec(database, "COMMIT", nil, nil, nil)) }
    }

    /// Rows in one commit.
    func insert(_ drafts: [MutationDraft]) throws {
        try Self.check(sqlite3_exec(database, "BEGIN", nil, nil, nil))
        for draft in drafts { try insert(draft) }
        try Self.check(sqlite3_exec(database, "COMMIT", nil, nil, nil))
    }

    /// Looks at every byte of every row; answers how many there are.
    func readAll() throws -> Int {
        var count = 0
        while true {
            let status = sqlite3_step(selection)
            try Self.check(status)
            guard status == SQLITE_ROW else { break }
            for column in 0..<sqlite3_column_count(selection) {
                _ = sqlite3_column_blob(selection, column)
                count += Int(sqlite3_column_bytes(selection, column))
            }
        }
        try Self.check(sqlite3_reset(selection))
        return count
    }

    private func run(_ statements: [OpaquePointer?], _ sequence: Int64, _ answer: [UInt8] = []) throws {
        for statement in statements {
            sqlite3_bind_int64(statement, 1, sequence)
            if sqlite3_bind_parameter_count(statement) == 2 { bind(answer, at: 2, of: statement) }
            try step(statement)
        }
    }

    /// One row, on disk when this returns unless a transaction is open.
    func insert(_ draft: MutationDraft) throws {
        let content = draft.content
        for statement in insertion {
            withUnsafeBytes(of: draft.id.uuid) { _ = sqlite3_bind_blob(statement, 1, $0.baseAddress, 16, Self.copied) }
            sqlite3_bind_text(statement, 2, draft.lane, -1, Self.copied)
            sqlite3_bind_int64(statement, 3, Int64(draft.created.timeIntervalSince1970 * 1000))
            if sqlite3_bind_parameter_count(statement) > 3 {
                sqlite3_bind_text(statement, 4, content.document, -1, Self.copied)
                sqlite3_bind_text(statement, 5, content.operationName, -1, Self.copied)
                bind(content.variables, at: 6, of: statement)
                bind(content.optimisticResponse ?? [], at: 7, of: statement)
            }
            try step(statement)
        }
    }

    private func step(_ statement: OpaquePointer?) throws {
        try Self.check(sqlite3_step(statement))
        try Self.check(sqlite3_reset(statement))
    }

    private func bind(_ bytes: [UInt8], at index: Int32, of statement: OpaquePointer?) {
        bytes.withUnsafeBytes {
            _ = sqlite3_bind_blob(statement, index, $0.baseAddress, Int32($0.count), Self.copied)
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
