import Foundation
import LarderFiles
import LarderOperations

/// The bytes of a download that have arrived: a file of the object's size in the store's folder, with holes.
final class PartialFile: Sendable {
    static let folderName = "transfers"
    static let suffix = ".part"

    private let file: File
    private let files: FileSystem

    var path: String { file.path }

    /// The name tells the file from other transfers' files.
    var name: String { URL(filePath: path).lastPathComponent }

    static func folder(of store: URL) -> URL { store.appending(path: folderName) }

    static func name(of transfer: UUID) -> String { transfer.uuidString.lowercased() + suffix }

    static func path(of transfer: UUID, in store: URL) -> String {
        folder(of: store).appending(path: name(of: transfer)).path
    }

    /// The regular files that are named as transfers', by their names; with what each takes on the volume.
    static func all(
        in store: URL, _ files: FileSystem
    ) throws(FileError) -> [(url: URL, transfer: UUID, bytes: Int64)] {
        let folder = folder(of: store)
        var found: [(url: URL, transfer: UUID, bytes: Int64)] = []
        for name in try files.names(in: folder.path) {
            let url = folder.appending(path: name)
            guard name.hasSuffix(suffix), let transfer = UUID(uuidString: String(name.dropLast(suffix.count))),
                url.path == path(of: transfer, in: store),
                let status = try files.status(of: url.path, followingLinks: false), status.kind == .file
            else { continue }
            found.append((url, transfer, status.allocated))
        }
        return found
    }

    /// Opens the file of a transfer, which is made if there is none.
    ///
    /// - Throws: `.diskFull`, `.destinationUnusable`.
    init(of transfer: UUID, in store: URL, _ files: FileSystem) throws(LarderError) {
        self.files = files
        let path = Self.path(of: transfer, in: store)
        let access: FileSystem.Access = [.reading, .writing, .making, .unlinked]
        do throws(FileError) {
            var opened: File?
            do throws(FileError) { opened = try files.open(path, access) } catch {
                guard error.code == .missing else { throw error }
                try files.makeFolder(Self.folder(of: store).path)
            }
            file = if let opened { opened } else { try files.open(path, access) }
        } catch { throw Self.failure(error) }
    }

    /// Runs calls of the file system, whose failures are a transfer's.
    private static func translated<Result>(
        _ body: () throws(FileError) -> Result
    ) throws(LarderError) -> Result {
        do throws(FileError) { return try body() } catch { throw failure(error) }
    }

    /// - Returns: Whether there was one.
    /// - Throws: `.destinationUnusable` where it cannot be removed.
    @discardableResult
    static func remove(_ transfer: UUID, in store: URL, _ files: FileSystem) throws(LarderError) -> Bool {
        let path = path(of: transfer, in: store)
        do throws(FileError) { return try files.remove(path) } catch {
            throw LarderError(.destinationUnusable, "\(path) cannot be removed: \(error.reason)", cause: error)
        }
    }

    func identity() throws(LarderError) -> FileIdentity {
        FileIdentity(try Self.translated { () throws(FileError) in try file.status() })
    }

    /// Whether its name is still its own: another program may have removed it, or put another file there.
    var hasItsName: Bool {
        get throws(LarderError) {
            try Self.translated { () throws(FileError) in
                let own = try file.status()
                // A name that cannot be looked at is not relied on.
                return ((try? files.status(of: path, followingLinks: false)) ?? nil)?.isSameFile(as: own) ?? false
            }
        }
    }

    /// Makes it so large, with a hole where nothing was written, and everything void that it had.
    func reserve(_ size: Int64) throws(LarderError) {
        try Self.translated { () throws(FileError) in
            try file.truncate(to: 0)
            try file.truncate(to: size)
        }
    }

    /// Bytes that the volume has free for this user.
    func room() throws(LarderError) -> Int64 {
        try Self.translated { () throws(FileError) in try file.freeSpace() }
    }

    func write(_ offset: Int64, _ bytes: UnsafeRawBufferPointer) throws(LarderError) {
        try Self.translated { () throws(FileError) in try file.write(bytes, at: offset) }
    }

    /// Fills a buffer with the bytes from an offset on.
    func read(_ offset: Int64, _ buffer: UnsafeMutableRawBufferPointer) throws(LarderError) {
        guard let start = buffer.baseAddress else { return }
        let count = try Self.translated { () throws(FileError) in
            try file.read(at: offset, into: start, count: buffer.count)
        }
        guard count == buffer.count else {
            throw LarderError(.damagedDownload, "\(path) is shorter than it was made")
        }
    }

    /// Has the disk begin to write a range: else `synchronize` would have to write all of it, while the disk has
    /// nothing to do before.
    func beginSynchronizing(_ range: Range<Int64>) {
        file.beginSynchronizing(range)
    }

    /// Returns when all written bytes are on disk.
    func synchronize() throws(LarderError) {
        try Self.translated { () throws(FileError) in try file.synchronizeData() }
    }

    /// Gives it the mode that it is to have where it is moved to. The store's folder keeps other users out of it until
    /// then.
    func setMode(_ mode: UInt16) throws(LarderError) {
        try Self.translated { () throws(FileError) in try file.setMode(mode) }
    }

    /// Copies all of it to a file that is made, and is on disk when this returns.
    ///
    /// - Parameter mode: Of the copy once it is whole.
    func copy(to path: String, mode: UInt16) async throws {
        let copy = try Self.translated { () throws(FileError) in try files.open(path, [.writing, .new, .unlinked]) }
        var offset: Int64 = 0
        try await scan(0..<identity().size) { bytes in
            try Self.translated { () throws(FileError) in try copy.write(bytes, at: offset) }
            offset += Int64(bytes.count)
        }
        try Self.translated { () throws(FileError) in
            try copy.setMode(mode)
            try copy.synchronize()
        }
    }

    private static func failure(_ error: FileError) -> LarderError {
        guard error.code != .noSpace else {
            return LarderError(
                .diskFull, "The disk has no room for \(error.path); make some, and retry the transfer", cause: error)
        }
        return LarderError(
            .destinationUnusable, "\(error.path) cannot be made or used: \(error.reason)", cause: error)
    }
}
