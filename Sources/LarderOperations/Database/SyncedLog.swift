import CFiles
import Foundation
import GRDB
import GRDBSQLite
import LarderFiles

/// Keeps the rule that nothing is acknowledged behind bytes that this process has not synced itself.
///
/// A failed sync is not made good by the next one: Linux takes the pages for clean then, so that every reader finds
/// them in memory and the disk never gets them (https://wiki.postgresql.org/wiki/Fsync_Errors). SQLite takes whatever a
/// log holds for synced when it opens one, and appends to it. Commits behind such a hole, synced or not, are gone with
/// the next power cut, and a checkpoint would tear the database itself.
///
/// So the frames that a process finds in the log when it opens the database for writing are written once more, as they
/// are, and synced, before it tells of them or commits behind them; and again after a commit that failed. No checkpoint
/// is made before. An empty log costs nothing.
///
/// The same holds of the database's own file. SQLite's automatic checkpoints say nothing when a sync fails, and what a
/// checkpoint before had copied, which was not synced as a reader kept it from copying all, is never copied again. So
/// checkpoints are made here, and after one that failed all pages of the file are written once more and synced before
/// the next. Until then the log has everything: SQLite begins it anew only where all of it was copied and synced. The
/// process whose checkpoint has failed may be gone by then, so the others see it in the memory that all share.
final class SyncedLog: Sendable {
    private enum State {
        /// It may hold what others wrote, or tried to.
        case found
        /// What it held when it was found is durable; this process has written nothing.
        case kept
        case synced
        /// A commit failed: its frames may be in the log, and may be on the disk, whole or in part.
        case doubtful
    }

    /// From so many frames on, of a page each, a commit is followed by a checkpoint: as SQLite's own are.
    static let longest: Int32 = 1_000

    private let state = Locked(State.found)
    /// How many frames there were after the last commit of this process.
    private let frames = Locked<Int32>(0)
    /// Whether a checkpoint of this process has failed, so that pages of the file may never have got to the disk.
    private let isFileDoubtful = Locked(false)
    private let folder: URL
    private let committed: @Sendable () -> Void

    let files: FileSystem

    init(of file: URL, _ files: FileSystem, committed: @escaping @Sendable () -> Void = {}) {
        folder = file.deletingLastPathComponent()
        self.committed = committed
        self.files = files
    }

    /// Whether this process has written, or tried to.
    var isWritten: Bool { state.withLock { $0 == .synced || $0 == .doubtful } }

    /// Whether a commit of this process may be there or not, which `require` decides.
    var isDoubtful: Bool { state.withLock { $0 == .doubtful } }

    /// Keeps SQLite from making a checkpoint when it closes a connection that comes before `require`.
    static func prepare(_ db: Database) { larder_keep_log(db.sqliteConnection, 1) }

    /// Takes the place of SQLite's automatic checkpoints of the connection that writes.
    func takeCheckpoints(of db: Database) {
        // Safe: commits alone call the function, and the code that makes them holds this object.
        sqlite3_wal_hook(
            db.sqliteConnection,
            { context, _, _, frames in
                guard let context else { return SQLITE_OK }
                Unmanaged<SyncedLog>.fromOpaque(context).takeUnretainedValue().frames.withLock { $0 = frames }
                return SQLITE_OK
            }, Unmanaged.passUnretained(self).toOpaque())
    }

    /// Makes durable what the log holds when the database is opened. Outside a transaction.
    ///
    /// SQLite shows the commit of a process that was killed before it had synced it. A power cut would take that back
    /// after others were told of it.
    func keepFound(_ db: Database) throws {
        let (file, calls) = try Self.file(SQLITE_FCNTL_JOURNAL_POINTER, of: db)
        if try Self.size(of: file, calls) > Self.head {
            do { try rewrite(db) } catch let error as DatabaseError
                where [.SQLITE_BUSY, .SQLITE_LOCKED].contains(error.resultCode)
            {
                // Who writes for so long has made durable what it found before.
                return
            }
        }
        state.withLock { $0 = .kept }
    }

    /// Makes everything durable that the log holds. Outside a transaction.
    ///
    /// After a commit that failed it writes another in its place, so that it can never be there again.
    func require(_ db: Database) throws {
        let state = state.withLock { $0 }
        guard state != .synced else { return }
        if state != .kept {
            try rewrite(db) {
                guard state == .doubtful else { return }
                let version = try db.integer("PRAGMA user_version") ?? 0
                // The same once more is a commit to SQLite: the first page is written.
                try db.run("PRAGMA user_version = \(version)")
            }
        }
        self.state.withLock { $0 = .synced }
        if state == .doubtful { noteCommit() }
        if !isFileDoubtful.withLock({ $0 }) { larder_keep_log(db.sqliteConnection, 0) }
    }

    /// Writes the log's frames once more and syncs it, and runs `body` before others may write.
    private func rewrite(_ db: Database, _ body: () throws -> Void = {}) throws {
        try db.run("BEGIN IMMEDIATE TRANSACTION")
        do {
            if try Self.rewrite(db) { try FolderNames.synchronize(folder, files) }
            try body()
            try db.run("COMMIT TRANSACTION")
        } catch {
            if db.isInsideTransaction { try? db.rollback() }
            throw error
        }
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
        noteCommit()
        checkpointIfLong(db)
    }

    /// Says that what was committed can be read: to this process, and to the others that watch the folder.
    func noteCommit() {
        committed()
        // A process that is killed before closes the database's file, which tells them as well.
        FolderNotice(folder.path).tell()
    }

    /// Says that a commit has failed in a way that leaves open whether it is there.
    func doubt(_ db: Database) {
        state.withLock { $0 = .doubtful }
        larder_keep_log(db.sqliteConnection, 1)
    }

    // MARK: Checkpoints

    /// Makes a checkpoint where the log has grown long. One that fails takes nothing back: it is tried again after the
    /// next commit. Outside a transaction.
    func checkpointIfLong(_ db: Database) {
        guard frames.withLock({ $0 >= Self.longest }) else { return }
        try? checkpoint(db, .passive)
    }

    /// Copies what the log holds to the file. Outside a transaction.
    func checkpoint(_ db: Database, _ mode: Database.CheckpointMode) throws {
        try require(db)
        if try isFileDoubtful.withLock({ $0 }) || Self.hasBrokenCheckpoint(db) {
            try Self.rewriteFile(db)
            isFileDoubtful.withLock { $0 = false }
            larder_keep_log(db.sqliteConnection, 0)
        }
        do { _ = try db.checkpoint(mode) } catch let error as DatabaseError {
            // Another program's reader or checkpoint.
            if [.SQLITE_BUSY, .SQLITE_LOCKED].contains(error.resultCode) { throw error }
            isFileDoubtful.withLock { $0 = true }
            larder_keep_log(db.sqliteConnection, 1)
            throw error
        }
    }

    /// Which of the locks in shared memory a checkpoint holds: https://www.sqlite.org/walformat.html
    private static let checkpointLock: Int32 = 1

    /// Whether a checkpoint of some process has ended before its time, after an earlier one had copied frames: these
    /// are not copied again. One that another process makes at this moment looks the same, and holds the lock.
    private static func hasBrokenCheckpoint(_ db: Database) throws -> Bool {
        // Safe: the connection keeps the region mapped, and it has so many bytes.
        guard let found = try sharedMemory(of: db) else { return false }
        let copied = found.load(fromByteOffset: 96, as: UInt32.self)
        return copied > 0 && found.load(fromByteOffset: 128, as: UInt32.self) > copied
    }

    /// The first region of the memory that a database's connections share, which stays where it is for as long as the
    /// connection is open; nil where there is none.
    static func sharedMemory(of db: Database) throws -> UnsafeMutableRawPointer? {
        let (file, calls) = try self.file(SQLITE_FCNTL_FILE_POINTER, of: db)
        var found: UnsafeMutableRawPointer?
        try withUnsafeMutablePointer(to: &found) { region in
            try check(calls.xShmMap?(file, 0, sharedRegion, 0, region))
        }
        return found
    }

    /// Bytes of a region of the shared memory; the first says at 96 and 128 how many frames checkpoints have copied,
    /// and how many they were about to: https://www.sqlite.org/walformat.html
    private static let sharedRegion: Int32 = 32_768

    /// Writes all pages of the database's own file once more, as they are, and syncs it.
    private static func rewriteFile(_ db: Database) throws {
        let (file, calls) = try self.file(SQLITE_FCNTL_FILE_POINTER, of: db)
        // In a file whose changes go to a log only checkpoints write, one at a time.
        try check(calls.xShmLock?(file, checkpointLock, 1, SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE))
        defer { _ = calls.xShmLock?(file, checkpointLock, 1, SQLITE_SHM_UNLOCK | SQLITE_SHM_EXCLUSIVE) }
        let size = try size(of: file, calls)
        var bytes = [UInt8](repeating: 0, count: 64 << 10)
        var offset: Int64 = 0
        while offset < size {
            let count = Int32(min(Int64(bytes.count), size - offset))
            try check(calls.xRead?(file, &bytes, count, offset))
            try check(calls.xWrite?(file, bytes, count, offset))
            offset += Int64(count)
        }
        try check(calls.xSync?(file, syncFlags))
    }

    // MARK: Frames

    /// https://www.sqlite.org/fileformat2.html#the_write_ahead_log
    private static let head = 32
    private static let frameHead = 24

    /// Writes the log's frames once more, as far as a recovery would go through them at most, and syncs the file.
    ///
    /// - Returns: False where there are none.
    private static func rewrite(_ db: Database) throws -> Bool {
        let (file, calls) = try self.file(SQLITE_FCNTL_JOURNAL_POINTER, of: db)
        let size = try size(of: file, calls)
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
        try check(calls.xSync?(file, syncFlags))
        return true
    }

    #if canImport(Darwin)
    private static let syncFlags = SQLITE_SYNC_FULL
    #else
    private static let syncFlags = SQLITE_SYNC_NORMAL
    #endif

    /// One of a connection's files, and what can be done with it.
    ///
    /// Safe to be used while the connection's queue runs, when the connection is not closed, as SQLite itself uses it:
    /// its functions with the file they belong to, and with as many bytes as they are told of.
    static func file(
        _ which: Int32, of db: Database, _ schema: String = "main"
    ) throws -> (UnsafeMutablePointer<sqlite3_file>, sqlite3_io_methods) {
        try db.requireOpen()
        var found: UnsafeMutablePointer<sqlite3_file>?
        let code = sqlite3_file_control(db.sqliteConnection, schema, which, &found)
        guard code == SQLITE_OK, let file = found, let calls = file.pointee.pMethods?.pointee else {
            throw failure(code == SQLITE_OK ? SQLITE_IOERR : code)
        }
        return (file, calls)
    }

    private static func size(
        of file: UnsafeMutablePointer<sqlite3_file>, _ calls: sqlite3_io_methods
    ) throws -> Int64 {
        var size: Int64 = 0
        try check(calls.xFileSize?(file, &size))
        return size
    }

    private static func check(_ code: Int32?) throws {
        guard code == SQLITE_OK else { throw failure(code ?? SQLITE_IOERR) }
    }

    private static func failure(_ code: Int32) -> DatabaseError {
        DatabaseError(
            resultCode: ResultCode(rawValue: code),
            message: "The log, or the file, could not be written once more and synced")
    }
}

extension OperationsError {
    static func commitUnknown(_ cause: (any Error)?) -> OperationsError {
        OperationsError(
            .commitUnknown,
            "The disk failed while this was written, so that it may be stored or not. Look after the "
                + "volume; then ask for it by its id, or try again with the same id", cause: cause)
    }
}
