internal import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Makes sure that no process has a database open, as long as `body` runs.
///
/// Whoever has one open in WAL mode holds SQLite's shared lock on it all the while: a POSIX lock on certain bytes of
/// the file (https://www.sqlite.org/lockingv3.html). Such a lock is lost when this process closes the file by any
/// descriptor: `body` must not open it.
enum ExclusiveUse {
    /// The bytes of the shared lock, far behind the end of any file.
    private static let first: off_t = 0x4000_0002
    private static let count: off_t = 510

    static func of<Result>(_ file: URL, _ body: () throws -> Result) throws -> Result {
        let descriptor = open(file.path, O_RDWR | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw OperationsError(.notWritable, "\(file.path) cannot be opened (errno \(errno))")
        }
        defer { close(descriptor) }
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        lock.l_start = first
        lock.l_len = count
        guard fcntl(descriptor, F_SETLK, &lock) == 0 else {
            var holder = lock
            let isKnown = fcntl(descriptor, F_GETLK, &holder) == 0 && holder.l_type != Int16(F_UNLCK)
            throw OperationsError(
                .busy, "\(isKnown ? "process \(holder.l_pid)" : "another process") has \(file.path) open, and no file is "
                    + "swapped under a process; end it first")
        }
        return try body()
    }
}
