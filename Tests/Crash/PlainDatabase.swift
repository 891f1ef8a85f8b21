import Foundation
import GRDBSQLite

/// A database as another program has it: whatever SQL says, and what the columns of rows are in it.
final class PlainDatabase {
    struct Refusal: Error { var message: String }

    private var connection: OpaquePointer?

    init(_ file: URL) throws {
        guard sqlite3_open(file.path, &connection) == SQLITE_OK else { throw Refusal(message: "it cannot be opened") }
    }

    deinit { sqlite3_close(connection) }

    func run(_ sql: String) throws {
        guard sqlite3_exec(connection, sql, nil, nil, nil) == SQLITE_OK else {
            throw Refusal(message: String(cString: sqlite3_errmsg(connection)))
        }
    }

    /// Every row's columns as text; null is empty.
    func rows(_ sql: String) throws -> [[String]] {
        var statement: OpaquePointer?
        defer { sqlite3_finalize(statement) }
        guard sqlite3_prepare_v2(connection, sql, -1, &statement, nil) == SQLITE_OK else {
            throw Refusal(message: String(cString: sqlite3_errmsg(connection)))
        }
        var rows: [[String]] = []
        while sqlite3_step(statement) == SQLITE_ROW {
            rows.append(
                (0..<sqlite3_column_count(statement)).map { index in
                    sqlite3_column_text(statement, index).map { String(cString: $0) } ?? ""
                })
        }
        return rows
    }

    var changes: Int { Int(sqlite3_changes(connection)) }
}
