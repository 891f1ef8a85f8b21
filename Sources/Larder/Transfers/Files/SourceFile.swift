internal import Foundation
package import LarderOperations

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// A file that is uploaded, open for reading, and known to be the one that was queued.
final class SourceFile: Sendable {
    private let path: String
    private let descriptor: Int32
    /// As it was when it was opened.
    let identity: FileIdentity

    /// - Parameter identity: As it was when it was queued, on whatever device.
    /// - Throws: `.sourceMissing`, `.sourceUnreadable`, `.sourceNotFile`; `.sourceChanged` where it is not the file
    ///   that was queued, or was written to since.
    init(path: String, identity: FileIdentity) throws(LarderError) {
        let descriptor = try Self.open(path)
        do throws(LarderError) {
            let found = try Self.identity(descriptor, path)
            guard found.isSame(as: identity) else { throw Self.changed(path) }
            (self.path, self.descriptor, self.identity) = (path, descriptor, found)
        } catch {
            // Nothing is set then, so that `deinit` does not close it a second time.
            close(descriptor)
            throw error
        }
    }

    deinit { close(descriptor) }

    static func identity(at path: String) throws(LarderError) -> FileIdentity {
        let descriptor = try open(path)
        defer { close(descriptor) }
        return try identity(descriptor, path)
    }

    /// - Throws: `.sourceChanged` where the file is not as it was queued any more.
    func check() throws(LarderError) {
        let found = try Self.identity(descriptor, path)
        guard found == identity else { throw Self.changed(path) }
    }

    private static func changed(_ path: String) -> LarderError {
        LarderError(
            .sourceChanged, "\(path) is not the file that was queued, or was written to since; retry the transfer to "
                + "send it as it is now")
    }

    /// Its bytes from an offset on, for whoever sends them from there.
    func segment(_ offset: Int64) -> FileSegment { FileSegment(descriptor: descriptor, offset: offset, owner: self) }

    /// Fills a buffer with the bytes from an offset on.
    func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws(LarderError) {
        let (count, failure) = systemRead(descriptor, offset, buffer)
        if let failure { throw LarderError(.sourceUnreadable, "\(path) cannot be read: \(failure)") }
        guard count == buffer.count else {
            throw LarderError(
                .sourceChanged, "\(path) ends at \(offset + Int64(count)) bytes, it had more when queued")
        }
    }

    private static func open(_ path: String) throws(LarderError) -> Int32 {
        // A pipe that nobody writes to would be waited for.
        let descriptor = systemOpen(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor < 0 else { return descriptor }
        let status = errno
        switch status {
        case ENOENT, ENOTDIR: throw LarderError(.sourceMissing, "there is no \(path)")
        default: throw LarderError(.sourceUnreadable, "\(path) cannot be opened: \(FileFailure(status))")
        }
    }

    private static func identity(_ descriptor: Int32, _ path: String) throws(LarderError) -> FileIdentity {
        var status = stat()
        guard fstat(descriptor, &status) == 0 else {
            throw LarderError(.sourceUnreadable, "\(path) cannot be looked at: \(FileFailure(errno))")
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw LarderError(.sourceNotFile, "\(path) is no regular file")
        }
        if status.st_size == 0 { try requireNothing(in: descriptor, &status, path) }
        return FileIdentity(status)
    }
}

extension SourceFile {
    /// Files that a kernel makes while they are read say that they have 0 bytes, and would be sent as nothing.
    ///
    /// - Parameter status: Taken anew where there are bytes: they may have been written since.
    private static func requireNothing(
        in descriptor: Int32, _ status: inout stat, _ path: String
    ) throws(LarderError) {
        var byte: UInt8 = 0
        let (count, failure) = withUnsafeMutableBytes(of: &byte) { systemRead(descriptor, 0, $0) }
        if let failure { throw LarderError(.sourceUnreadable, "\(path) cannot be read: \(failure)") }
        guard count > 0 else { return }
        guard fstat(descriptor, &status) == 0, status.st_size > 0 else {
            throw LarderError(
                .sourceUnreadable, "\(path) says that it has 0 bytes, and has some; copy it to a file, and send that")
        }
    }
}

extension FileIdentity {
    /// The file that an upload is of, as it is now.
    ///
    /// - Throws: `.sourceMissing`, `.sourceUnreadable`, `.sourceNotFile`.
    package init(ofSource path: String) throws(LarderError) {
        self = try SourceFile.identity(at: path)
    }

    init(_ status: stat) {
        #if canImport(Darwin)
        // Not compiled here.
        let modified = status.st_mtimespec
        #else
        let modified = status.st_mtim
        #endif
        self.init(
            device: Int64(truncatingIfNeeded: status.st_dev), inode: Int64(truncatingIfNeeded: status.st_ino),
            size: Int64(status.st_size),
            modified: Int64(modified.tv_sec) &* 1_000_000_000 &+ Int64(modified.tv_nsec))
    }
}
