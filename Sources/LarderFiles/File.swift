import CFiles
import Synchronization

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// A file or folder that is open, until it is closed or the last reference to it goes away.
package final class File: Sendable {
    package let path: String
    package let system: FileSystem
    /// -1 once the file is closed.
    private let held: Atomic<Int32>
    /// Whether it may have the kernel's lock: it was taken, and not given up since.
    let isLocked = Atomic(false)

    init(_ descriptor: Int32, _ path: String, _ system: FileSystem) {
        held = Atomic(descriptor)
        (self.path, self.system) = (path, system)
    }

    deinit { close() }

    /// For calls of other libraries. It is valid until the file is closed.
    package var descriptor: Int32 { held.load(ordering: .relaxed) }

    /// Gives the descriptor back, and with it the locks. Calls from now on fail as those on no file do. No call of
    /// another thread may be under way: the system may give the number to another file meanwhile.
    package func close() {
        let descriptor = held.exchange(-1, ordering: .relaxed)
        guard descriptor >= 0 else { return }
        unlock(descriptor)
        closeDescriptor(descriptor)
    }

    func call(_ kind: FileCall.Kind, _ body: () -> Int32) -> Int32 { system.call(kind, path, body) }

    private func require(_ status: Int32, _ doing: String) throws(FileError) {
        guard status == 0 else { throw FileError(status, doing: doing, path: path) }
    }

    package func status() throws(FileError) -> FileStatus {
        var answer = stat()
        try require(system.call(.status, path) { fstat(descriptor, &answer) }, "Looking at a file")
        return FileStatus(answer)
    }

    /// Gives back what a mask of the process took from the owner of a file that was just made.
    func restoreOwnersRights() {
        guard let made = try? status(), made.kind == .file, made.size == 0, made.isOwn,
            made.mode & FileSystem.ownersMode != FileSystem.ownersMode
        else { return }
        try? setMode(made.mode & 0o777 | FileSystem.ownersMode)
    }

    // MARK: Bytes

    /// Reads up to `count` bytes at an offset, in as many calls as it takes.
    ///
    /// - Parameter bytes: Has room for so many.
    /// - Returns: How many there were: fewer only at the end of the file.
    package func read(
        at offset: Int64, into bytes: UnsafeMutableRawPointer, count: Int
    ) throws(FileError) -> Int {
        var done = 0
        while done < count {
            // Safe: no more is asked for than there is room after what was read.
            let (read, status) = system.transfer(.read, path, count - done) {
                pread(descriptor, bytes + done, $0, off_t(offset) + off_t(done))
            }
            try require(status, "Reading a file")
            if read == 0 { break }
            done += read
        }
        return done
    }

    /// The bytes from an offset, as many as there are up to a count.
    package func bytes(at offset: Int64, count: Int) throws(FileError) -> [UInt8] {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, count), alignment: 16)
        defer { buffer.deallocate() }
        guard let start = buffer.baseAddress else { return [] }
        return Array(buffer[..<(try read(at: offset, into: start, count: count))])
    }

    /// Writes all of the bytes at an offset, in as many calls as it takes.
    package func write(_ bytes: UnsafeRawBufferPointer, at offset: Int64) throws(FileError) {
        guard let start = bytes.baseAddress else { return }
        var done = 0
        while done < bytes.count {
            let (written, status) = system.transfer(.write, path, bytes.count - done) {
                pwrite(descriptor, start + done, $0, off_t(offset) + off_t(done))
            }
            // A file that takes nothing, and names no reason, would be asked for ever.
            try require(written == 0 && status == 0 ? ENOSPC : status, "Writing a file")
            done += written
        }
    }

    package func write(_ bytes: [UInt8], at offset: Int64) throws(FileError) {
        var failure: FileError?
        bytes.withUnsafeBytes { all in
            do throws(FileError) { try write(all, at: offset) } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// Makes the file so long: what is cut off is lost, what is added is a hole.
    package func truncate(to size: Int64) throws(FileError) {
        try require(system.call(.truncate, path) { ftruncate(descriptor, off_t(size)) }, "Changing a file's size")
    }

    // MARK: Durability

    /// Returns when everything that was written survives power loss. On Apple's systems that is `F_FULLFSYNC`: `fsync`
    /// leaves bytes in the drive's cache (`man 2 fsync`).
    package func synchronize() throws(FileError) { try synchronize(as: .synchronize) }

    func synchronize(as kind: FileCall.Kind) throws(FileError) {
        let status = system.call(kind, path) {
            #if canImport(Darwin)
            // Not compiled here. Volumes that do not know the full one have the other; any other failure is one.
            let status = fcntl(descriptor, F_FULLFSYNC)
            return status != 0 && [ENOTSUP, ENOTTY, EINVAL].contains(errno) ? fsync(descriptor) : status
            #else
            fsync(descriptor)
            #endif
        }
        try require(status, "Synchronizing")
    }

    /// As `synchronize`, without the file's times.
    package func synchronizeData() throws(FileError) {
        #if canImport(Darwin)
        try synchronize()
        #else
        try require(system.call(.synchronize, path) { fdatasync(descriptor) }, "Synchronizing")
        #endif
    }

    /// Has the disk begin with what was written to a range, so that less is left for `synchronize`. No promise.
    package func beginSynchronizing(_ range: Range<Int64>) {
        larder_begin_writing(descriptor, range.lowerBound, range.upperBound - range.lowerBound)
    }

    // MARK: Rights and room

    package func setMode(_ mode: UInt16) throws(FileError) {
        try require(system.call(.setMode, path) { fchmod(descriptor, mode_t(mode)) }, "Changing a file's mode")
    }

    /// Bytes that its volume has free for this user.
    package func freeSpace() throws(FileError) -> Int64 {
        var volume = statvfs()
        try require(system.call(.freeSpace, path) { fstatvfs(descriptor, &volume) }, "Asking for free space")
        return volume.freeBytes
    }

    /// Whether the volume, or this process's limit on file sizes, leaves no room for the file to grow.
    package var hasNoRoom: Bool {
        if let room = try? freeSpace(), room < 1 << 20 { return true }
        var limit = rlimit()
        #if canImport(Glibc)
        let resource = __rlimit_resource_t(RLIMIT_FSIZE.rawValue)
        #else
        let resource = RLIMIT_FSIZE
        #endif
        guard getrlimit(resource, &limit) == 0, let size = try? status().size else { return false }
        return UInt64(size) &+ 1 << 20 >= UInt64(limit.rlim_cur)
    }
}

/// The system's own `close`, which a method hides.
private func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }
