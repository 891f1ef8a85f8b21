internal import Foundation
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

    static func path(of transfer: UUID, in store: URL) -> String {
        folder(of: store).appending(path: transfer.uuidString.lowercased() + suffix).path
    }

    /// Opens the file of a transfer, which is made if there is none.
    ///
    /// - Throws: `.diskFull`, `.destinationUnusable`.
    init(of transfer: UUID, in store: URL) throws(LarderError) {
        let folder = Self.folder(of: store)
        do { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) } catch {
            throw LarderError(.destinationUnusable, "the folder \(folder.path) cannot be made", cause: error)
        }
        path = Self.path(of: transfer, in: store)
        descriptor = systemOpen(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw Self.failure(errno, path) }
    }

    deinit { close(descriptor) }

    /// - Throws: `.destinationUnusable` where it cannot be removed. None there is no error.
    static func remove(_ transfer: UUID, in store: URL) throws(LarderError) {
        let path = path(of: transfer, in: store)
        guard unlink(path) != 0, errno != ENOENT, errno != ENOTDIR else { return }
        throw failure(errno, path)
    }

    func identity() throws(LarderError) -> FileIdentity {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.failure(errno, path) }
        return FileIdentity(status)
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
        let (bytes, isLarge) = Int64(clamping: volume.f_bavail).multipliedReportingOverflow(
            by: Int64(clamping: volume.f_frsize))
        return isLarge ? .max : bytes
    }

    /// Bytes of it that take room on the volume.
    func taken() throws(LarderError) -> Int64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw Self.failure(errno, path) }
        return Int64(status.st_blocks) * 512
    }

    func write(_ offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(LarderError) {
        guard let start = bytes.baseAddress else { return }
        var count = 0
        while count < bytes.count {
            let put = pwrite(descriptor, start + count, bytes.count - count, off_t(offset) + off_t(count))
            guard put < 0 else {
                count += put
                continue
            }
            let status = errno
            if status != EINTR { throw Self.failure(status, path) }
        }
    }

    /// Fills a buffer with the bytes from an offset on.
    func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws(LarderError) {
        guard let start = buffer.baseAddress else { return }
        var count = 0
        while count < buffer.count {
            let got = pread(descriptor, start + count, buffer.count - count, off_t(offset) + off_t(count))
            if got == 0 { throw LarderError(.damagedDownload, "\(path) is shorter than it was made") }
            guard got < 0 else {
                count += got
                continue
            }
            let status = errno
            if status != EINTR { throw Self.failure(status, path) }
        }
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

    /// Copies all of it to a file that is made, and is on disk when this returns.
    func copy(to path: String) throws(LarderError) {
        let copy = systemOpen(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard copy >= 0 else { throw Self.failure(errno, path) }
        defer { close(copy) }
        let size = try identity().size
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var offset: Int64 = 0
        while offset < size {
            let count = Int(min(Int64(buffer.count), size - offset))
            let result = buffer.withUnsafeMutableBytes { bytes -> Result<Void, LarderError> in
                do throws(LarderError) {
                    let bytes = UnsafeMutableRawBufferPointer(rebasing: bytes[..<count])
                    try read(offset, bytes)
                    var done = 0
                    while done < count {
                        // Safe: the buffer has so many bytes.
                        let put = systemWrite(copy, UnsafeRawBufferPointer(rebasing: bytes[done...]))
                        if put < 0 {
                            let status = errno
                            if status != EINTR { throw Self.failure(status, path) }
                        } else {
                            done += put
                        }
                    }
                    return .success(())
                } catch { return .failure(error) }
            }
            try result.get()
            offset += Int64(count)
        }
        guard fsync(copy) == 0 else { throw Self.failure(errno, path) }
    }

    private static func failure(_ status: Int32, _ path: String) -> LarderError {
        if [ENOSPC, EDQUOT, EFBIG].contains(status) {
            return LarderError(.diskFull, "the disk has no room for \(path); make some, and retry the transfer")
        }
        return LarderError(.destinationUnusable, "\(path) cannot be made or used: \(FileFailure(status))")
    }
}

/// `write`, whose name a method has.
private func systemWrite(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    write(descriptor, bytes.baseAddress, bytes.count)
}
