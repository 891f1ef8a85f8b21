import GRDB
import GRDBSQLite
import LarderFiles

/// Room at the end of the write-ahead log that is on disk before it is needed.
///
/// A commit that makes the log's file longer waits for the file system to note that as well as for its own pages, and
/// one that writes where the file has been before waits for its pages alone, half as long. `SyncedLog` makes a checkpoint
/// once the log has `SyncedLog.longest` frames, of a page each, after which SQLite begins it at its start again; until
/// then `reserve` makes a file that is full twice as long.
///
/// What follows the last commit in a log says nothing to SQLite, whose salts and checksums it does not have:
/// https://www.sqlite.org/fileformat2.html#the_write_ahead_log
enum LogSpace {
    /// In bytes: the log's own head, and a frame, which has a head as well.
    private static let head: Int64 = 32
    private static let frame: Int64 = 24 + 4_096
    /// Below this much a file costs more to look after than it saves.
    private static let fewestFrames: Int64 = 64
    /// As many as there are before a checkpoint, with those of the commit that is followed by it.
    private static let mostFrames = Int64(SyncedLog.longest) + 100
    /// It is left alone where the volume has not so many times as much free: others need room as well.
    private static let leastShare: Int64 = 64

    /// Makes the log's file longer where it is full. In a write transaction, so that no other connection writes at its
    /// end.
    ///
    /// A failure needs no handling: the commit that needs the room makes it itself, and says if it cannot.
    ///
    /// - Returns: Whether it is as long as it will be, and need not be looked at for a while.
    static func reserve(_ db: Database, _ files: FileSystem) -> Bool {
        guard let (file, calls) = try? SyncedLog.file(SQLITE_FCNTL_JOURNAL_POINTER, of: db) else { return false }
        var size: Int64 = 0
        guard calls.xFileSize?(file, &size) == SQLITE_OK, size > head, (size - head).isMultiple(of: frame) else {
            return false
        }
        let frames = (size - head) / frame
        guard frames < mostFrames else { return true }
        // A frame begins with its page's number. There is none where the room was made here, by whatever process.
        var page: UInt32 = 0
        guard calls.xRead?(file, &page, 4, size - frame) == SQLITE_OK, page != 0 else { return false }
        let end = head + min(max(frames * 2, fewestFrames), mostFrames) * frame
        guard isRoomy(db, for: end - size, files) else { return false }
        let zeros = [UInt8](repeating: 0, count: 64 << 10)
        while size < end {
            let count = min(Int64(zeros.count), end - size)
            guard calls.xWrite?(file, zeros, Int32(count), size) == SQLITE_OK else { return false }
            size += count
        }
        return false
    }

    private static func isRoomy(_ db: Database, for bytes: Int64, _ files: FileSystem) -> Bool {
        guard let path = sqlite3_db_filename(db.sqliteConnection, "main") else { return false }
        return (try? files.freeSpace(at: String(cString: path))).map { $0 / leastShare >= bytes } ?? false
    }
}
