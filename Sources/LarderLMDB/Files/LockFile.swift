#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A file that the kernel locks for a living process: a dead holder's lock is free at once, a stopped holder's is not.
///
/// `flock` belongs to the open file, so each instance excludes all others, in this process too.
package final class LockFile: Sendable {
    package let path: String
    package let isWritable: Bool
    private let descriptor: Int32

    /// Opens the file, and makes it where that is permitted.
    ///
    /// - Parameter mustWrite: where false, a file that cannot be made or written is opened for reading only.
    package init(path: String, mustWrite: Bool) throws(LMDBError) {
        self.path = path
        do throws(LMDBError) {
            descriptor = try FileSystem.open(path, O_RDWR | O_CREAT)
            isWritable = true
        } catch {
            guard !mustWrite, [EACCES, EPERM, EROFS].contains(error.status) else { throw error }
            descriptor = try FileSystem.open(path, O_RDONLY)
            isWritable = false
        }
    }

    /// Opens the file for writing, and makes it with the folder in which it is.
    package init(making path: String) throws(LMDBError) {
        self.path = path
        var opened: Int32?
        do throws(LMDBError) { opened = try FileSystem.open(path, O_RDWR | O_CREAT) } catch {
            guard error.status == ENOENT else { throw error }
            try FileSystem.makeFolder(FileSystem.parent(of: path))
        }
        descriptor = if let opened { opened } else { try FileSystem.open(path, O_RDWR | O_CREAT) }
        isWritable = true
    }

    /// Opens what is there, which may be a folder, for reading only.
    package init(existing path: String) throws(LMDBError) {
        self.path = path
        descriptor = try FileSystem.open(path, O_RDONLY)
        isWritable = false
    }

    deinit { close(descriptor) }

    package enum Kind { case shared, exclusive }

    /// Takes the lock if it is free; replaces the kind that is held.
    package func tryLock(_ kind: Kind) throws(LMDBError) -> Bool {
        while flock(descriptor, (kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB) != 0 {
            if errno == EWOULDBLOCK { return false }
            if errno != EINTR { throw .make(errno, doing: "locking a file", path: path) }
        }
        return true
    }

    /// Takes the lock as soon as it is free; false where it was not before the deadline.
    package func lock(_ kind: Kind, until deadline: ContinuousClock.Instant) throws(LMDBError) -> Bool {
        let locked: Void? = try poll(until: deadline) { () throws(LMDBError) in try tryLock(kind) ? () : nil }
        return locked != nil
    }

    package func unlock() { _ = flock(descriptor, LOCK_UN) }

    /// The first bytes of the file, as text.
    package func note() -> String {
        withUnsafeTemporaryAllocation(byteCount: Self.noteSize, alignment: 1) { bytes in
            guard let start = bytes.baseAddress else { return "" }
            let count = pread(descriptor, start, bytes.count, 0)
            let text = String(decoding: UnsafeRawBufferPointer(rebasing: bytes[..<max(0, count)]), as: UTF8.self)
            return String(text.prefix { $0 != "\n" })
        }
    }

    /// Replaces the note, which is for people: failing to write it is no failure.
    package func setNote(_ note: String) {
        var bytes = Array(note.utf8.prefix(Self.noteSize - 1))
        bytes += repeatElement(UInt8(ascii: "\n"), count: Self.noteSize - bytes.count)
        _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }

    private static let noteSize = 160
}

/// Asks again and again, with growing pauses, until the answer is not nil or the deadline has passed.
func poll<Answer>(
    until deadline: ContinuousClock.Instant, _ ask: () throws(LMDBError) -> Answer?
) throws(LMDBError) -> Answer? {
    var pause: UInt32 = 50
    while true {
        if let answer = try ask() { return answer }
        let left = ContinuousClock.now.duration(to: deadline)
        guard left > .zero else { return nil }
        let microseconds = left.components.seconds > 0 ? 1_000_000 : left.components.attoseconds / 1_000_000_000_000
        usleep(min(pause, UInt32(clamping: microseconds) + 1))
        pause = min(pause * 2, 10_000)
    }
}
