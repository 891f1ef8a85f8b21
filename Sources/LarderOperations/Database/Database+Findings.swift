import Foundation
import GRDB
import GRDBSQLite

extension Database {
    /// - Throws: What GRDB throws of a connection that is closed, where this is: a call may have come to its queue behind
    ///   the closing. SQLite itself does not look.
    func requireOpen() throws {
        guard sqliteConnection != nil else {
            throw DatabaseError(resultCode: .SQLITE_MISUSE, message: "Connection is closed")
        }
    }

    /// Whether the disk has failed under a file of this connection.
    ///
    /// SQLite says of a page that the disk does not give (`EIO`) that the file is malformed, and its checks list it
    /// among their findings (`SQLITE_IOERR_CORRUPTFS`, `unixRead` in https://sqlite.org/src/file/src/os_unix.c). So
    /// what it calls damage is held against the system's last error.
    var hasFailedReading: Bool {
        // The names of all databases that this layer attaches.
        ["main", "backup", "damaged"].contains { schema in
            [SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER].contains { which in
                guard let (file, calls) = try? SyncedLog.file(which, of: self, schema) else { return false }
                var status: Int32 = 0
                // Safe: the call takes an Int32 by this code.
                guard calls.xFileControl?(file, SQLITE_FCNTL_LAST_ERRNO, &status) == SQLITE_OK else { return false }
                return [EIO, ENXIO].contains(status)
            }
        }
    }

    /// What SQLite's own check of all pages finds.
    ///
    /// - Parameter pragma: With the greatest number of findings: `quick_check(1)`.
    func findings(_ pragma: String) throws -> [String] {
        let findings = try texts("PRAGMA \(pragma)").filter { $0 != "ok" }
        guard findings.isEmpty || !hasFailedReading else {
            throw DatabaseError(resultCode: .SQLITE_IOERR_READ, message: findings.first, sql: pragma)
        }
        return findings
    }
}
