import Foundation
import GRDBSQLite

/// A connection to larder.sqlite of another program's, past the library.
final class OtherProgram {
    struct Refusal: Error { var code: Int32 }

    private var connection: OpaquePointer?

    init(_ store: URL) throws {
        let code = sqlite3_open(store.appending(path: "larder.sqlite").path, &connection)
        guard code == SQLITE_OK else { throw Refusal(code: code) }
        sqlite3_busy_timeout(connection, 2_000)
    }

    deinit { sqlite3_close(connection) }

    func run(_ statement: String) throws {
        let code = sqlite3_exec(connection, statement, nil, nil, nil)
        guard code == SQLITE_OK else { throw Refusal(code: code) }
    }

    /// Leaves the row of the first mutation such that it cannot be read.
    func damageFirstMutation() throws {
        try run("PRAGMA ignore_check_constraints = ON")
        try run(
            """
            UPDATE mutation SET attempts = 9223372036854775807
            WHERE sequence = (SELECT min(sequence) FROM mutation)
            """)
    }
}
