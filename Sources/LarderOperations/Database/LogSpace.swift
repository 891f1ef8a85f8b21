internal import Foundation
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

    /// It is left alone where the volume has not so many times as much free: others need room as well.
    private static let leastShare: Int64 = 64

    /// The file's length when it was last looked at; nil before. One that is found long has grown in another's time.
    private var seen: Int64?

    /// Makes the log's file longer where it has grown. In a write transaction, so that nobody else writes at its end.
    ///
    /// Nothing is to be done where it fails: the commit that needs the room makes it itself, and says if it cannot.
    mutating func reserve(_ db: Database) {
        // Safe: the file is the connection's, which nobody closes while its queue runs this; its functions are called
        // as SQLite itself does, with the file they belong to; and `zeros` holds as many bytes as are written of it.
        var found: UnsafeMutablePointer<sqlite3_file>?
        let code = sqlite3_file_control(db.sqliteConnection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &found)
        guard code == SQLITE_OK, let file = found, let calls = file.pointee.pMethods?.pointee else { return }
        var size: Int64 = 0
        guard calls.xFileSize?(file, &size) == SQLITE_OK, size != seen else { return }
        let hasGrown = seen.map { $0 < size } ?? (size < Self.smallest)
        defer { seen = size }
        guard hasGrown, size > 0, size < Self.largest else { return }
        let end = min(max(size * 2, Self.smallest), Self.largest)
        guard isRoomy(db, for: end - size) else { return }
        let zeros = [UInt8](repeating: 0, count: 64 << 10)
        while size < end {
            let count = min(Int64(zeros.count), end - size)
            guard calls.xWrite?(file, zeros, Int32(count), size) == SQLITE_OK else { return }
            size += count
        }
    }

    private func isRoomy(_ db: Database, for bytes: Int64) -> Bool {
        guard let path = sqlite3_db_filename(db.sqliteConnection, "main") else { return false }
        let attributes = try? FileManager.default.attributesOfFileSystem(forPath: String(cString: path))
        return (attributes?[.systemFreeSize] as? NSNumber).map { $0.int64Value / Self.leastShare >= bytes } ?? false
    }
}
