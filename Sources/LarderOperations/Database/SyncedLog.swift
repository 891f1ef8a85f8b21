internal import CFiles
internal import Foundation
internal import GRDB
internal import GRDBSQLite
internal import Synchronization

/// Keeps the rule that nothing is acknowledged behind bytes that this process has not synced itself.
///
/// A failed sync is not made good by the next one: Linux takes the pages for clean then, so that every reader finds
/// them in memory and the disk never gets them (https://wiki.postgresql.org/wiki/Fsync_Errors). SQLite takes whatever a
/// log holds for synced when it opens one, and appends to it. Commits behind such a hole, synced or not, are gone with
/// the next power cut, and a checkpoint would tear the database itself.
///
/// So the frames that a process finds in the log are written once more, as they are, and synced before its first
/// commit; and again after a commit that failed. No checkpoint is made before. An empty log costs nothing.
final class SyncedLog: Sendable {
    private enum State {
        /// It may hold what others wrote, or tried to.
        case found
        case synced
        /// A commit failed: its frames may be in the log, and may be on the disk, whole or in part.
        case doubtful
    }

    private let state = Mutex(State.found)
    private let folder: URL

    init(of file: URL) { folder = file.deletingLastPathComponent() }

    /// Whether this process has written, or tried to.
    var isWritten: Bool { state.withLock { $0 != .found } }

    /// Whether a commit of this process may be there or not, which `require` decides.
    var isDoubtful: Bool { state.withLock { $0 == .doubtful } }

    /// Keeps SQLite from making a checkpoint when it closes a connection that comes before `require`.
    static func prepare(_ db: Database) { larder_keep_log(db.sqliteConnection, 1) }

    /// Makes everything durable that the log holds. Outside a transaction.
    ///
    /// After a commit that failed it writes another in its place, so that it can never be there again.
    func require(_ db: Database) throws {
        let state = state.withLock { $0 }
        guard state != .synced else { return }
        try db.run("BEGIN IMMEDIATE TRANSACTION")
        do {
            // In a transaction, so that nobody else writes meanwhile.
            if try Self.rewrite(db) { try FolderNames.synchronize(folder) }
            if state == .doubtful {
                let version = try db.integer("PRAGMA user_version") ?? 0
                // The same once more is a commit to SQLite: the first page is written.
                try db.run("PRAGMA user_version = \(version)")
            }
            try db.run("COMMIT TRANSACTION")
        } catch {
            if db.isInsideTransaction { try? db.rollback() }
            throw error
        }
        self.state.withLock { $0 = .synced }
        larder_keep_log(db.sqliteConnection, 0)
    }

    /// Begins a transaction that `commit` ends.
    func begin(_ db: Database) throws {
        try require(db)
        try db.run("BEGIN IMMEDIATE TRANSACTION")
    }

    /// Ends a transaction.
    ///
    /// - Throws: `.commitUnknown` where the log could not be synced. A log that could not be written lacks the frame
    ///   that ends a commit.
    func commit(_ db: Database) throws {
        do { try db.run("COMMIT TRANSACTION") } catch let error as DatabaseError
            where error.resultCode == .SQLITE_IOERR && error.extendedResultCode != .SQLITE_IOERR_WRITE
        {
            doubt(db)
            throw OperationsError.commitUnknown(OperationsError.translated(error).cause)
        }
    }

    /// Says that a commit has failed in a way that leaves open whether it is there.
    func doubt(_ db: Database) {
        state.withLock { $0 = .doubtful }
        larder_keep_log(db.sqliteConnection, 1)
    }

    // MARK: Frames

    /// https://www.sqlite.org/fileformat2.html#the_write_ahead_log
    private static let head = 32
    private static let frameHead = 24

    /// Writes the log's frames once more, as far as a recovery would go through them at most, and syncs the file.
    ///
    /// - Returns: False where there are none.
    private static func rewrite(_ db: Database) throws -> Bool {
        // Safe: the file is the connection's, which nobody closes while its queue runs this; its functions are called
        // as SQLite itself does, with the file they belong to, and with as many bytes as they are told of.
        var found: UnsafeMutablePointer<sqlite3_file>?
        let code = sqlite3_file_control(db.sqliteConnection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &found)
        guard code == SQLITE_OK, let file = found, let calls = file.pointee.pMethods?.pointee else {
            throw failure(code == SQLITE_OK ? SQLITE_IOERR : code)
        }
        var size: Int64 = 0
        try check(calls.xFileSize?(file, &size))
        guard size > head else { return false }
        var bytes = [UInt8](repeating: 0, count: head)
        try check(calls.xRead?(file, &bytes, Int32(head), 0))
        let page = bytes[8..<12].reduce(0) { $0 << 8 | Int($1) }
        guard (512...65_536).contains(page) else { return false }
        // Frames of an earlier round have other salts.
        let salts = bytes[16..<24]
        try check(calls.xWrite?(file, bytes, Int32(head), 0))
        let frame = frameHead + page
        bytes = [UInt8](repeating: 0, count: frame)
        var offset = Int64(head)
        while offset + Int64(frame) <= size {
            try check(calls.xRead?(file, &bytes, Int32(frame), offset))
            guard bytes[8..<16] == salts else { break }
            try check(calls.xWrite?(file, bytes, Int32(frame), offset))
            offset += Int64(frame)
        }
        guard offset > head else { return false }
        #if canImport(Darwin)
        try check(calls.xSync?(file, SQLITE_SYNC_FULL))
        #else
        try check(calls.xSync?(file, SQLITE_SYNC_NORMAL))
        #endif
        return true
    }

    private static func check(_ code: Int32?) throws {
        guard code == SQLITE_OK else { throw failure(code ?? SQLITE_IOERR) }
    }

    private static func failure(_ code: Int32) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code), message: "the log could not be written once more and synced")
    }
}

extension OperationsError {
    static func commitUnknown(_ cause: (any Error)?) -> OperationsError {
        OperationsError(
            .commitUnknown, "The disk failed while this was written, so that it may be stored or not. Look after the "
                + "volume; then ask for it by its id, or try again with the same id", cause: cause)
    }
}
