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

    /// What a store makes is its user's alone, from the moment when it has a name: no mode is narrowed afterwards.
    private static let fileMode: mode_t = 0o600

    /// Opens a file; the caller closes it.
    static func open(_ path: String, _ flags: Int32) throws(LMDBError) -> Int32 {
        while true {
            // What is no file, a pipe in its place, must not keep the caller waiting.
            let descriptor = systemOpen(path, flags | O_CLOEXEC | O_NONBLOCK, fileMode)
            if descriptor >= 0 {
                if flags & O_CREAT != 0 { restoreOwnersRights(descriptor) }
                return descriptor
            }
            if errno != EINTR { throw .make(errno, doing: "opening a file", path: path) }
        }
    }

    /// Makes a new file and opens it for writing; the caller closes it.
    package static func makeFile(_ path: String) throws(LMDBError) -> Int32 {
        try open(path, O_WRONLY | O_CREAT | O_EXCL)
    }

    /// Makes an empty file where there is none.
    ///
    /// It is made under another name: closing a file gives up the locks that this process has on it by other
    /// descriptors (https://www.sqlite.org/howtocorrupt.html, section 2.2), and a file that has its name may be another
    /// thread's database by then.
    package static func makeEmptyFile(_ path: String) throws(LMDBError) {
        let (folder, name) = (parent(of: path), path.split(separator: "/").last ?? "")
        let temporary = "\(folder)/.\(name).new"
        // One that is there is what a killed process left, or another process's that makes the file as well.
        close(try open(temporary, O_RDWR | O_CREAT))
        defer { unlink(temporary) }
        guard link(temporary, path) != 0 else { return }
        switch errno {
        case EEXIST: return
        case ENOENT where access(path, F_OK) == 0: return
        case EPERM, ENOTSUP, EOPNOTSUPP, EMLINK:
            // No links here.
            close(try open(path, O_RDWR | O_CREAT))
        case let failure: throw .make(failure, doing: "making a file", path: path)
        }
    }

    /// Gives back what a mask of the process took from the owner of a file that was just made.
    private static func restoreOwnersRights(_ descriptor: Int32) {
        var answer = stat()
        guard fstat(descriptor, &answer) == 0, answer.st_size == 0, answer.st_mode & fileMode != fileMode,
            answer.st_mode & S_IFMT == S_IFREG, answer.st_uid == geteuid()
        else { return }
        fchmod(descriptor, answer.st_mode & 0o777 | fileMode)
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

    /// Writes bytes at an offset.
    static func overwrite(_ descriptor: Int32, _ bytes: [UInt8], at offset: Int64, path: String) throws(LMDBError) {
        var done = 0
        while done < bytes.count {
            let written = bytes.withUnsafeBytes { all in
                let rest = UnsafeRawBufferPointer(rebasing: all[done...])
                return pwrite(descriptor, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
            }
            if written > 0 {
                done += written
            } else if written == 0 || errno != EINTR {
                throw .make(written == 0 ? ENOSPC : errno, doing: "writing a file", path: path)
            }
        }
    }

    /// Replaces a small file, whole or not at all, and durably.
    package static func replace(_ path: String, with bytes: [UInt8]) throws(LMDBError) {
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

    /// Removes a file; false where there was none.
    static func remove(_ path: String) throws(LMDBError) -> Bool {
        if unlink(path) == 0 { return true }
        guard errno == ENOENT else { throw .make(errno, doing: "removing a file", path: path) }
        return false
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

    /// Makes a file's contents survive power loss. For the names in a folder there is `FolderSync`.
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
