import Foundation
import LarderFiles
import LarderOperations

/// Where a download is to go.
struct DestinationFile {
    let file: URL
    let replaces: Bool

    private let files: FileSystem
    /// Whether the path has a null character, at which URLs and the system's calls would end it.
    private let hasNull: Bool

    init(file: URL, replaces: Bool, _ files: FileSystem) {
        (self.file, self.replaces, self.files) = (file, replaces, files)
        hasNull = file.path.utf8.contains(0)
    }

    init(of transfer: StoredTransfer, _ files: FileSystem) {
        (file, replaces, self.files) = (URL(filePath: transfer.path), transfer.replaces, files)
        hasNull = transfer.path.utf8.contains(0)
    }

    /// Runs calls of the file system, whose failures are a transfer's.
    private func translated<Result>(_ body: () throws(FileError) -> Result) throws(LarderError) -> Result {
        do throws(FileError) { return try body() } catch { throw unusable(error) }
    }

    private var folder: URL { file.deletingLastPathComponent() }

    /// - Throws: `.destinationExists`, `.destinationUnusable`.
    func check() throws(LarderError) {
        guard !hasNull else {
            throw LarderError(.destinationUnusable, "The path of the file has a null character; name another place")
        }
        // Fails where the name is too long, for one: better now than when all has arrived.
        let found = try translated { () throws(FileError) in try files.status(of: file.path, followingLinks: false) }
        if let found {
            guard found.kind != .folder else {
                throw LarderError(.destinationUnusable, "\(file.path) is a folder; name a file in it")
            }
            // A device or a pipe is no file that could come back.
            guard found.kind != .other else {
                throw LarderError(.destinationUnusable, "\(file.path) is no regular file; name another place")
            }
            guard replaces else { throw exists }
        }
        guard let above = (try? files.status(of: folder.path)) ?? nil, above.kind == .folder else {
            throw LarderError(.destinationUnusable, "There is no folder \(folder.path); make it first")
        }
        guard files.isWritable(folder.path) else {
            throw LarderError(
                .destinationUnusable, "No file can be made in \(folder.path); give this user access to it")
        }
    }

    /// The file that is there, if it is one.
    var identity: FileIdentity? {
        guard let status = (try? files.status(of: file.path, followingLinks: false)) ?? nil, status.kind == .file
        else { return nil }
        return FileIdentity(status)
    }

    /// Whether a file is there with just these bytes: that of another volume, copied before a crash.
    func isSame(as partial: PartialFile) async throws -> Bool {
        let size = try partial.identity().size
        guard let identity = try? SourceFile.identity(at: file.path, files), identity.size == size,
            let source = try? SourceFile(path: file.path, identity: identity, files)
        else { return false }
        let whole: Range<Int64> = 0..<size
        return try await source.digests(whole) == partial.digests(whole)
    }

    /// Puts a whole file there, in one step: a reader sees what was there, or all of the new file. The file is the
    /// program's own from then on, and has the mode of any file that the program makes there.
    func take(_ partial: PartialFile) async throws {
        try check()
        let mode = try ordinaryMode(besides: partial.name)
        try partial.setMode(mode)
        if try !partial.hasItsName || !move(partial.path) {
            // From another volume, or from a file whose name was taken away: the verified file is open still. The copy
            // is made beside the destination first, where a rename can reach. A copy of the same name is what a kill
            // has left.
            let copy = copyPath(of: partial.name)
            try translated { () throws(FileError) in _ = try files.remove(copy) }
            do {
                try await partial.copy(to: copy, mode: mode)
                guard try move(copy) else {
                    throw LarderError(.destinationUnusable, "\(file.path) cannot be made from another volume")
                }
            } catch {
                _ = try? files.remove(copy)
                throw error
            }
            // The partial file stays until this is noted: after a kill, the next attempt compares it with what is
            // there.
        }
        try synchronizeFolder()
    }

    /// Removes the copy that a program has left beside the destination, when it was killed while it made it.
    ///
    /// - Throws: `.destinationUnusable`.
    func removeCopy(of transfer: UUID) throws(LarderError) {
        try translated { () throws(FileError) in _ = try files.remove(copyPath(of: PartialFile.name(of: transfer))) }
    }

    /// Bytes that are free for this user where the destination is; nil where that is the volume of `other`.
    func room(besides other: FileIdentity) throws(LarderError) -> Int64? {
        try translated { () throws(FileError) in
            let device = try files.status(of: folder.path).map { Int64(truncatingIfNeeded: $0.device) }
            return device == other.device ? nil : try files.freeSpace(at: folder.path)
        }
    }

    /// The mode of a file that this program makes in the folder. Its mask can be asked only by changing it, for all
    /// threads, and folders may have rules of their own: a file is made, and removed.
    private func ordinaryMode(besides partial: String) throws(LarderError) -> UInt16 {
        try translated { () throws(FileError) in
            let path = copyPath(of: partial)
            try files.remove(path)
            let made = try files.open(path, [.writing, .new, .unlinked], mode: 0o666)
            defer { _ = try? files.remove(path) }
            return try made.status().mode & 0o777
        }
    }

    /// The path of the copy of a file that is on another volume. Names have up to 255 bytes.
    private func copyPath(of partial: String) -> String {
        let start = String(decoding: file.lastPathComponent.utf8.prefix(100), as: UTF8.self)
            .filter { $0 != "\u{FFFD}" }
        return folder.appending(path: ".\(start).\(partial)").path
    }

    /// - Returns: False where it is on another volume.
    func move(_ path: String) throws(LarderError) -> Bool {
        do throws(FileError) {
            guard !replaces else {
                try files.rename(path, file.path)
                return true
            }
            // Unlike a rename, it never replaces what another program has put there meanwhile.
            try files.link(path, file.path)
            _ = try? files.remove(path)
            return true
        } catch {
            switch error.code {
            case .otherVolume: return false
            case .exists: throw exists
            case .permissionDenied where !replaces, .unsupported where !replaces:
                // No links here. Another program's file of this name might be replaced, had it come since `check`.
                try translated { () throws(FileError) in try files.rename(path, file.path) }
                return true
            default: throw unusable(error)
            }
        }
    }

    /// Makes the name durable. A program that finds the file in its place does so as well: the program that put it
    /// there may have been killed before that, or have failed in it.
    func synchronizeFolder() throws(LarderError) {
        do throws(FileError) { try files.synchronizeFolder(folder.path) } catch {
            throw LarderError(
                .destinationUnusable,
                "\(file.path) was put in place, and a power cut may undo that: its folder could "
                    + "not be synced; look after the volume", cause: error)
        }
    }

    private var exists: LarderError {
        LarderError(
            .destinationExists, "\(file.path) is there; name another file, or say that it may be replaced")
    }

    private func unusable(_ error: FileError) -> LarderError {
        if error.code == .noSpace {
            return LarderError(
                .diskFull, "The disk of \(file.path) is full; nothing was changed there", cause: error)
        }
        return LarderError(.destinationUnusable, "\(file.path) cannot be made: \(error.reason)", cause: error)
    }
}
