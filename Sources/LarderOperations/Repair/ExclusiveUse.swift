import Foundation
import LarderFiles

/// Makes sure that no process has a database open, as long as `body` runs.
///
/// A process that has one open in WAL mode holds SQLite's shared lock on it all the while: a POSIX lock on certain
/// bytes of the file (https://www.sqlite.org/lockingv3.html). Such a lock is lost when this process closes the file by
/// any descriptor: `body` must not open it.
enum ExclusiveUse {
    /// The bytes of the shared lock, far behind the end of any file.
    private static let first: Int64 = 0x4000_0002
    private static let count: Int64 = 510

    static func of<Result>(_ file: URL, _ files: FileSystem, _ body: () throws -> Result) throws -> Result {
        let opened: File
        do throws(FileError) { opened = try files.open(file.path, [.reading, .writing]) } catch {
            throw OperationsError(.notWritable, "\(file.path) cannot be opened (errno \(error.status))", cause: error)
        }
        if let holder = try opened.tryRangeLock(from: first, count: count) {
            throw OperationsError(
                .busy,
                "\(holder > 0 ? "Process \(holder)" : "Another process") has \(file.path) open, and no file is "
                    + "swapped under a process; end it first")
        }
        return try withExtendedLifetime(opened) { try body() }
    }
}
