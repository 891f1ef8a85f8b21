internal import GRDB
internal import GRDBSQLite

/// Room at the end of the write-ahead log that is on disk before it is needed.
///
/// A commit that makes the log's file longer waits for the file system's journal as well as for its own pages, and one
/// that writes where the file has been before waits for its pages alone, half as long. SQLite begins a log at its start
/// again when it has a thousand pages; until then, each time that the file has grown, it is made twice as long here.
///
/// What follows the last commit in a log says nothing to SQLite, whose salts and checksums it does not have:
/// https://www.sqlite.org/fileformat2.html#the_write_ahead_log
struct LogSpace {
    /// In bytes. A file that is shorter than a page's share costs more to look after than it saves.
    private static let smallest: Int64 = 256 << 10
    /// In bytes: where SQLite begins again, after the commit that brings it to a thousand pages of 4 KiB, each with a
    /// head.
    private static let largest: Int64 = 1_100 * (4_096 + 24) + 32

    /// The file's length when it was last looked at.
    private var seen: Int64 = 0

    /// Makes the log's file longer where it has grown. In a write transaction, so that nobody else writes at its end.
    ///
    /// Nothing is to be done where it fails: the commit that needs the room makes it itself, and says if it cannot.
    mutating func reserve(_ db: Database) {
        var found: UnsafeMutablePointer<sqlite3_file>?
        let code = sqlite3_file_control(db.sqliteConnection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &found)
        guard code == SQLITE_OK, let file = found, let calls = file.pointee.pMethods?.pointee else { return }
        var size: Int64 = 0
        guard calls.xFileSize?(file, &size) == SQLITE_OK, size != seen else { return }
        defer { seen = size }
        guard size > seen, size < Self.largest else { return }
        let zeros = [UInt8](repeating: 0, count: 64 << 10)
        let end = min(max(size * 2, Self.smallest), Self.largest)
        while size < end {
            let count = min(Int64(zeros.count), end - size)
            guard calls.xWrite?(file, zeros, Int32(count), size) == SQLITE_OK else { return }
            size += count
        }
    }
}
