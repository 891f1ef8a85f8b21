import Foundation
import GRDB
package import LarderFiles

/// Runs `body` and turns whatever it throws into this layer's error.
func translated<Result>(_ body: () throws -> Result) throws(OperationsError) -> Result {
    do { return try body() } catch { throw OperationsError.translated(error) }
}

extension OperationsError {
    /// The one place where errors of GRDB, SQLite and the file system become this layer's.
    static func translated(_ error: any Error) -> OperationsError {
        switch error {
        case let error as OperationsError: error
        case let error as DatabaseError: translated(error)
        case let error as FileError: translated(error)
        default: OperationsError(.storage, "The operations database failed", cause: error)
        }
    }

    private static func translated(_ error: DatabaseError) -> OperationsError {
        let cause = SQLiteFailure(
            resultCode: error.extendedResultCode.rawValue, message: error.message ?? "\(error.resultCode)",
            sql: error.sql)
        let (code, message) = meaning(of: error)
        return OperationsError(code, message, cause: cause)
    }

    /// https://www.sqlite.org/rescode.html
    private static func meaning(of error: DatabaseError) -> (Code, String) {
        switch error.extendedResultCode {
        // The extended codes first: they tell what the primary ones do not.
        case .SQLITE_READONLY_ROLLBACK, .SQLITE_READONLY_RECOVERY:
            return (
                .unfinished,
                "A write to larder.sqlite was cut off, and reading cannot take back what it left; open the "
                    + "store for writing once, as larder-migrate up does."
            )
        // A shared-memory file that cannot grow: on a full disk, above all.
        case .SQLITE_IOERR_SHMSIZE:
            return (.full, "The disk is full; free space and try again, nothing was changed")
        default: break
        }
        return switch error.resultCode {
        case .SQLITE_CORRUPT:
            (.damaged, "larder.sqlite is damaged; restore a backup, or repair it into a new file")
        // What is bound is of its column's type; what was stored, or is worked out from that, is not.
        case .SQLITE_CONSTRAINT where error.extendedResultCode == .SQLITE_CONSTRAINT_DATATYPE:
            (
                .damagedRow,
                "A row of larder.sqlite is damaged: a value is not of its column's type; larder check names "
                    + "it, larder-migrate repair mends what can be saved"
            )
        case .SQLITE_NOTADB:
            (.foreign, "larder.sqlite is no SQLite database; move the file away, or name another folder")
        case .SQLITE_FULL:
            (.full, "The disk is full; free space and try again, nothing was changed")
        case .SQLITE_IOERR:
            (.storage, "The disk failed under larder.sqlite, as the cause says; look after the volume.")
        case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL:
            (.busy, "Another program kept larder.sqlite locked past the deadline; end it, or wait longer")
        case .SQLITE_READONLY, .SQLITE_PERM, .SQLITE_AUTH:
            (.notWritable, "larder.sqlite cannot be written; make the file and its folder writable for this user")
        case .SQLITE_CANTOPEN:
            (
                .notWritable,
                "larder.sqlite cannot be opened; give this user access to it and its folder, or look after the volume"
            )
        case .SQLITE_TOOBIG:
            (.invalid, "A text, or all of a row, is larger than SQLite stores; send less at a time")
        case .SQLITE_MISUSE where error.message == "Connection is closed":
            (.closed, "The operations database was closed; open the store again")
        default: (.storage, "SQLite failed; the cause says how")
        }
    }

    static func filesProtected(cause: any Error) -> OperationsError {
        OperationsError(
            .filesProtected,
            "The device was not unlocked since it was started, and keeps the store's files locked; unlock it, and try "
                + "again", cause: cause)
    }

    /// The calls of the file system that the layers share.
    package static func translated(_ error: FileError) -> OperationsError {
        switch error.code {
        case .noSpace: OperationsError(.full, "The disk is full; free space and try again.", cause: error)
        case .protected: .filesProtected(cause: error)
        case .permissionDenied, .readOnlyVolume:
            OperationsError(.notWritable, "Give this user access to the store's folder.", cause: error)
        default: OperationsError(.storage, "The store's folder cannot be used; the cause says why.", cause: error)
        }
    }
}
