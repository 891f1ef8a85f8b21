internal import Foundation
#if canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#elseif canImport(Darwin)
internal import Darwin
#endif

/// A file of another program's, which is looked at and left as it is.
struct ForeignFile {
    /// By which a change of the file is told.
    struct Status: Hashable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        /// Nanoseconds since 1970.
        var modified: Int64
    }

    let path: String

    /// Nil where there is no such file.
    ///
    /// - Throws: `.foreign` where it is no regular file, `.unreadable`.
    func status() throws(ImportError) -> Status? {
        var answer = stat()
        guard stat(path, &answer) == 0 else {
            if errno == ENOENT || errno == ENOTDIR { return nil }
            throw unreadable(errno)
        }
        guard answer.st_mode & S_IFMT == S_IFREG else {
            throw ImportError(.foreign, "\(path) is no regular file; give the database itself")
        }
        #if canImport(Darwin)
        let modified = answer.st_mtimespec
        #else
        let modified = answer.st_mtim
        #endif
        return Status(
            device: UInt64(truncatingIfNeeded: answer.st_dev), inode: UInt64(truncatingIfNeeded: answer.st_ino),
            size: Int64(answer.st_size),
            modified: Int64(modified.tv_sec) &* 1_000_000_000 &+ Int64(modified.tv_nsec))
    }

    /// The first bytes; fewer where the file is shorter.
    func start(_ count: Int) throws(ImportError) -> [UInt8] {
        try withDescriptor { (descriptor) throws(ImportError) in
            var bytes = [UInt8](repeating: 0, count: count)
            let read = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
            guard read >= 0 else { throw unreadable(errno) }
            return Array(bytes.prefix(read))
        }
    }

    /// The process that holds a lock for writing on some of the bytes, if one does. Closing the file gives up what
    /// locks this process itself has on it, as POSIX has it: the file must be no other library's of this process.
    func writer(from start: Int, count: Int) throws(ImportError) -> Int32? {
        try withDescriptor { (descriptor) throws(ImportError) in
            var lock = flock()
            // What conflicts with reading is a lock for writing.
            lock.l_type = Int16(F_RDLCK)
            lock.l_whence = Int16(SEEK_SET)
            lock.l_start = off_t(start)
            lock.l_len = off_t(count)
            // A file system without locks has nobody who holds one.
            guard fcntl(descriptor, F_GETLK, &lock) == 0, lock.l_type != Int16(F_UNLCK) else { return nil }
            return Int32(lock.l_pid)
        }
    }

    private func withDescriptor<Result>(
        _ body: (Int32) throws(ImportError) -> Result
    ) throws(ImportError) -> Result {
        // What is no file, a pipe in its place, must not keep the caller waiting.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw unreadable(errno) }
        defer { close(descriptor) }
        return try body(descriptor)
    }

    private func unreadable(_ code: Int32) -> ImportError {
        ImportError(.unreadable, "\(path) cannot be read: \(String(cString: strerror(code))); see who may read it")
    }
}
