#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// The few system calls that this layer makes itself, each with its failure as an error.
package enum FileSystem {
    /// What a file is, as far as this layer asks.
    struct Status: Hashable {
        var device: UInt64
        var inode: UInt64
        var size: Int64
        /// When the contents last changed, in nanoseconds since 1970.
        var modified: Int64
        var isRegularFile: Bool
    }

    /// Makes a folder and those above it, whose names survive power loss then.
    static func makeFolder(_ path: String) throws(LMDBError) {
        if try makeOneFolder(path) { return }
        let failure = errno
        guard failure == ENOENT, let end = path.lastIndex(of: "/"), end > path.startIndex else {
            throw .make(failure, doing: "making a folder", path: path)
        }
        try makeFolder(String(path[..<end]))
        guard try makeOneFolder(path) else { throw .make(errno, doing: "making a folder", path: path) }
    }

    /// False, with the reason in `errno`, where it cannot be made.
    private static func makeOneFolder(_ path: String) throws(LMDBError) -> Bool {
        guard mkdir(path, 0o755) == 0 else { return errno == EEXIST }
        let parent = path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
        do throws(LMDBError) { try synchronize(parent) } catch {
            // A folder that may be written and not opened, and a file system that knows no sync of folders.
            guard [EACCES, EPERM, EINVAL].contains(error.status) else { throw error }
        }
        return true
    }

    /// Opens a file; the caller closes it.
    static func open(_ path: String, _ flags: Int32) throws(LMDBError) -> Int32 {
        while true {
            // What is no file, a pipe in its place, must not keep the caller waiting.
            let descriptor = systemOpen(path, flags | O_CLOEXEC | O_NONBLOCK, 0o644)
            if descriptor >= 0 { return descriptor }
            if errno != EINTR { throw .make(errno, doing: "opening a file", path: path) }
        }
    }

    static func status(_ descriptor: Int32, path: String) throws(LMDBError) -> Status {
        var answer = stat()
        guard fstat(descriptor, &answer) == 0 else { throw .make(errno, doing: "asking about a file", path: path) }
        #if canImport(Darwin)
        let modified = answer.st_mtimespec
        #else
        let modified = answer.st_mtim
        #endif
        return Status(
            device: UInt64(truncatingIfNeeded: answer.st_dev),
            inode: UInt64(truncatingIfNeeded: answer.st_ino),
            size: Int64(answer.st_size),
            modified: Int64(modified.tv_sec) &* 1_000_000_000 &+ Int64(modified.tv_nsec),
            isRegularFile: answer.st_mode & S_IFMT == S_IFREG
        )
    }

    /// Reads up to `count` bytes at an offset; fewer only at the end of the file.
    @inline(__always)
    static func read(
        _ descriptor: Int32, at offset: Int64, into bytes: UnsafeMutableRawPointer, count: Int, path: String
    ) throws(LMDBError) -> Int {
        var done = 0
        while done < count {
            let read = pread(descriptor, bytes + done, count - done, off_t(offset) + off_t(done))
            if read == 0 { break }
            if read > 0 {
                done += read
            } else if errno != EINTR {
                throw .make(errno, doing: "reading a file", path: path)
            }
        }
        return done
    }

    /// Replaces a small file, whole or not at all, and durably.
    static func replace(_ path: String, with bytes: [UInt8]) throws(LMDBError) {
        let temporary = path + ".new"
        let descriptor = try open(temporary, O_WRONLY | O_CREAT | O_TRUNC)
        var failure: Int32 = 0
        let written = bytes.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
        if written != bytes.count { failure = written < 0 ? errno : ENOSPC }
        if failure == 0, fsync(descriptor) != 0 { failure = errno }
        close(descriptor)
        if failure == 0, rename(temporary, path) != 0 { failure = errno }
        guard failure == 0 else {
            unlink(temporary)
            throw .make(failure, doing: "writing a file", path: path)
        }
    }

    /// Removes a file for good; true also where there is none. False where it stays, or may come back after power loss.
    static func remove(_ name: String, from folder: String) -> Bool {
        guard unlink("\(folder)/\(name)") == 0 else { return errno == ENOENT }
        return (try? synchronize(folder)) != nil
    }

    /// Writes zeros to the end of a file, which is made if need be, until it has that many bytes.
    static func fill(_ path: String, to size: Int) throws(LMDBError) {
        let descriptor = try open(path, O_RDWR | O_CREAT)
        defer { close(descriptor) }
        let start = Int(clamping: try status(descriptor, path: path).size)
        guard start < size else { return }
        let zeros = [UInt8](repeating: 0, count: size - start)
        let written = zeros.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(start)) }
        guard written == zeros.count else {
            let failure = written < 0 ? errno : ENOSPC
            // What is there in part would be taken for a table.
            ftruncate(descriptor, off_t(start))
            throw .make(failure, doing: "making room for the reader table", path: path)
        }
    }

    /// Fails as writing to the file would, which is made if need be.
    static func requireWritable(_ path: String) throws(LMDBError) { close(try open(path, O_RDWR | O_CREAT)) }

    /// Makes a file's contents, or a folder's names, survive power loss.
    package static func synchronize(_ path: String) throws(LMDBError) {
        let descriptor = try open(path, O_RDONLY)
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .make(errno, doing: "synchronizing", path: path) }
    }

    /// Whether the volume, or this process's limit on file sizes, leaves no room for a file to grow.
    static func hasNoRoom(_ descriptor: Int32) -> Bool {
        var volume = statvfs()
        if fstatvfs(descriptor, &volume) == 0, UInt64(volume.f_bavail) &* UInt64(volume.f_frsize) < 1 << 20 {
            return true
        }
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
        let resource = RLIMIT_FSIZE
        #endif
        var answer = stat()
        guard getrlimit(resource, &limit) == 0, fstat(descriptor, &answer) == 0 else { return false }
        return UInt64(answer.st_size) &+ 1 << 20 >= UInt64(limit.rlim_cur)
    }
}

private func systemOpen(_ path: String, _ flags: Int32, _ mode: mode_t) -> Int32 { open(path, flags, mode) }
