internal import CFiles
internal import Foundation
internal import LarderLMDB
internal import LarderOperations

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// What has arrived of a download: a file of the object's size in the store's folder, with holes.
final class PartialFile: Sendable {
    static let folderName = "transfers"
    static let suffix = ".part"

    let path: String
    private let descriptor: Int32

    /// By which it is told from other transfers'.
    var name: String { URL(filePath: path).lastPathComponent }

    static func folder(of store: URL) -> URL { store.appending(path: folderName) }

    static func name(of transfer: UUID) -> String { transfer.uuidString.lowercased() + suffix }

    static func path(of transfer: UUID, in store: URL) -> String {
        folder(of: store).appending(path: name(of: transfer)).path
    }

    /// The regular files that are named as transfers', by their names; with what each takes on the volume.
    static func all(in store: URL) -> [(url: URL, transfer: UUID, bytes: Int64)] {
        let folder = folder(of: store)
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
        return names.sorted().compactMap { name in
            let url = folder.appending(path: name)
            var status = stat()
            guard name.hasSuffix(suffix), let transfer = UUID(uuidString: String(name.dropLast(suffix.count))),
                url.path == path(of: transfer, in: store),
                lstat(url.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG
            else { return nil }
            return (url, transfer, Int64(status.st_blocks) * 512)
        }
    }

    /// Opens the file of a transfer, which is made if there is none.
    ///
    /// - Throws: `.diskFull`, `.destinationUnusable`.
    init(of transfer: UUID, in store: URL) throws(LarderError) {
        path = Self.path(of: transfer, in: store)
        let flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW
        var opened = systemOpen(path, flags, 0o600)
        if opened < 0, errno == ENOENT {
            let folder = Self.folder(of: store)
            do throws(LMDBError) { try FileSystem.makeFolder(folder.path) } catch {
                throw LarderError(.destinationUnusable, "The folder \(folder.path) cannot be made.", cause: error)
            }
            opened = systemOpen(path, flags, 0o600)
        }
        guard opened >= 0 else { throw Self.failure(errno, path) }
        descriptor = opened
    }

    deinit { close(descriptor) }

    /// - Returns: Whether there was one.
    /// - Throws: `.destinationUnusable` where it cannot be removed.
    @discardableResult
    static func remove(_ transfer: UUID, in store: URL) throws(LarderError) -> Bool {
        let path = path(of: transfer, in: store)
        if unlink(path) == 0 { return true }
        let status = errno
        if [ENOENT, ENOTDIR].contains(status) { return false }
        throw LarderError(.destinationUnusable, "\(path) cannot be removed: \(FileFailure(status))")
    }

    func identity() throws(LarderError) -> FileIdentity {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.failure(errno, path) }
        return FileIdentity(status)
    }

    /// Whether its name is still its own: another program may have removed it, or put another file there.
    var hasItsName: Bool {
        get throws(LarderError) {
            let own = try identity()
            var status = stat()
            guard lstat(path, &status) == 0 else { return false }
            let named = FileIdentity(status)
            return named.device == own.device && named.inode == own.inode
        }
    }

    /// Makes it so large, with a hole where nothing was written, and everything void that it had.
    func reserve(_ size: Int64) throws(LarderError) {
        guard ftruncate(descriptor, 0) == 0, ftruncate(descriptor, off_t(size)) == 0 else {
            throw Self.failure(errno, path)
        }
    }

    /// Bytes that the volume has free for this user.
    func room() throws(LarderError) -> Int64 {
        var volume = statvfs()
        guard fstatvfs(descriptor, &volume) == 0 else { throw Self.failure(errno, path) }
        return volume.room
    }

    func write(_ offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(LarderError) {
        try Self.write(bytes, to: descriptor, at: offset, path)
    }

    private static func write(
        _ bytes: UnsafeRawBufferPointer, to descriptor: Int32, at offset: Int64, _ path: String
    ) throws(LarderError) {
        guard let start = bytes.baseAddress else { return }
        var count = 0
        while count < bytes.count {
            let put = pwrite(descriptor, start + count, bytes.count - count, off_t(offset) + off_t(count))
            guard put < 0 else {
                count += put
                continue
            }
            let status = errno
            if status != EINTR { throw failure(status, path) }
        }
    }

    /// Fills a buffer with the bytes from an offset on.
    func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws(LarderError) {
        let (count, failure) = systemRead(descriptor, offset, buffer)
        if let failure { throw Self.failure(failure.status, path) }
        guard count == buffer.count else {
            throw LarderError(.damagedDownload, "\(path) is shorter than it was made")
        }
    }

    /// Has the disk begin with what was written to a range: else all of it would be left for `synchronize`, while the
    /// disk has nothing to do before.
    func beginSynchronizing(_ range: Range<Int64>) {
        larder_begin_writing(descriptor, range.lowerBound, range.upperBound - range.lowerBound)
    }

    /// Returns when what was written is on disk.
    func synchronize() throws(LarderError) {
        #if canImport(Darwin)
        // Not compiled here.
        guard fcntl(descriptor, F_FULLFSYNC) == 0 || fsync(descriptor) == 0 else { throw Self.failure(errno, path) }
        #else
        guard fdatasync(descriptor) == 0 else { throw Self.failure(errno, path) }
        #endif
    }

    /// Gives it the mode that it is to have where it is moved to. The store's folder keeps other users out of it until
    /// then.
    func setMode(_ mode: mode_t) throws(LarderError) {
        guard fchmod(descriptor, mode) == 0 else { throw Self.failure(errno, path) }
    }

    /// Copies all of it to a file that is made, and is on disk when this returns.
    ///
    /// - Parameter mode: Of the copy once it is whole.
    func copy(to path: String, mode: mode_t) async throws {
        let copy = systemOpen(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard copy >= 0 else { throw Self.failure(errno, path) }
        defer { close(copy) }
        var offset: Int64 = 0
        try await scan(0..<identity().size) { bytes in
            try Self.write(bytes, to: copy, at: offset, path)
            offset += Int64(bytes.count)
        }
        guard fchmod(copy, mode) == 0, fsync(copy) == 0 else { throw Self.failure(errno, path) }
    }

    private static func failure(_ status: Int32, _ path: String) -> LarderError {
        if [ENOSPC, EDQUOT, EFBIG].contains(status) {
            return LarderError(.diskFull, "the disk has no room for \(path); make some, and retry the transfer")
        }
        return LarderError(.destinationUnusable, "\(path) cannot be made or used: \(FileFailure(status))")
    }
}
