import Foundation
package import LarderFiles
package import LarderOperations

/// A file that is uploaded, open for reading, and known to be the one that was queued.
final class SourceFile: Sendable {
    private let file: File
    /// As it was when it was opened.
    let identity: FileIdentity

    /// - Parameter identity: As it was when it was queued, on whatever device.
    /// - Throws: `.sourceMissing`, `.sourceUnreadable`, `.sourceNotFile`; `.sourceChanged` where it is not the file
    ///   that was queued, or was written to since.
    init(path: String, identity: FileIdentity, _ files: FileSystem) throws(LarderError) {
        file = try Self.open(path, files)
        self.identity = try Self.identity(of: file)
        guard self.identity.isSame(as: identity) else { throw Self.changed(path) }
    }

    private var path: String { file.path }

    static func identity(at path: String, _ files: FileSystem) throws(LarderError) -> FileIdentity {
        try identity(of: open(path, files))
    }

    /// - Throws: `.sourceChanged` where the file is not as it was queued any more.
    func check() throws(LarderError) {
        let found = try Self.identity(of: file)
        guard found == identity else { throw Self.changed(path) }
    }

    private static func changed(_ path: String) -> LarderError {
        LarderError(
            .sourceChanged,
            "\(path) is not the file that was queued, or was written to since; retry the transfer to "
                + "send it as it is now")
    }

    /// Its bytes from an offset on, for a transport that sends them from there.
    func segment(_ offset: Int64) -> FileSegment {
        FileSegment(descriptor: file.descriptor, offset: offset, owner: self, file.system)
    }

    /// Fills a buffer with the bytes from an offset on.
    func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws(LarderError) {
        guard let start = buffer.baseAddress else { return }
        let count = try Self.readable(path) { () throws(FileError) in
            try file.read(at: offset, into: start, count: buffer.count)
        }
        guard count == buffer.count else {
            throw LarderError(
                .sourceChanged, "\(path) ends at \(offset + Int64(count)) bytes, it had more when queued")
        }
    }

    private static func open(_ path: String, _ files: FileSystem) throws(LarderError) -> File {
        do throws(FileError) { return try files.open(path) } catch {
            guard error.code != .missing else {
                throw LarderError(.sourceMissing, "There is no \(path)", cause: error)
            }
            throw LarderError(.sourceUnreadable, "\(path) cannot be opened: \(error.reason)", cause: error)
        }
    }

    private static func identity(of file: File) throws(LarderError) -> FileIdentity {
        var status = try readable(file.path) { () throws(FileError) in try file.status() }
        guard status.kind == .file else {
            throw LarderError(.sourceNotFile, "\(file.path) is no regular file")
        }
        if status.size == 0 { try requireNothing(in: file, &status) }
        return FileIdentity(status)
    }

    private static func readable<Result>(
        _ path: String, _ body: () throws(FileError) -> Result
    ) throws(LarderError) -> Result {
        do throws(FileError) { return try body() } catch {
            throw LarderError(.sourceUnreadable, "\(path) cannot be read: \(error.reason)", cause: error)
        }
    }
}

extension SourceFile {
    /// Files that a kernel makes while they are read say that they have 0 bytes, and would be sent as nothing.
    ///
    /// - Parameter status: Taken anew where there are bytes: they may have been written since.
    private static func requireNothing(in file: File, _ status: inout FileStatus) throws(LarderError) {
        let bytes = try readable(file.path) { () throws(FileError) in try file.bytes(at: 0, count: 1) }
        guard !bytes.isEmpty else { return }
        status = try readable(file.path) { () throws(FileError) in try file.status() }
        guard status.size > 0 else {
            throw LarderError(
                .sourceUnreadable,
                "\(file.path) says that it has 0 bytes, and has some; copy it to a file, and send that")
        }
    }
}

extension FileIdentity {
    /// The file that an upload is of, as it is now.
    ///
    /// - Throws: `.sourceMissing`, `.sourceUnreadable`, `.sourceNotFile`.
    package init(ofSource path: String, _ files: FileSystem = FileSystem()) throws(LarderError) {
        self = try SourceFile.identity(at: path, files)
    }

    init(_ status: FileStatus) {
        self.init(
            device: Int64(truncatingIfNeeded: status.device), inode: Int64(truncatingIfNeeded: status.inode),
            size: status.size, modified: status.modified)
    }
}
