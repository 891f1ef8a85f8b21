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

/// Where a download is to go.
struct DestinationFile {
    let file: URL
    let replaces: Bool

    init(file: URL, replaces: Bool) { (self.file, self.replaces) = (file, replaces) }

    init(of transfer: StoredTransfer) {
        self.init(file: URL(filePath: transfer.path), replaces: transfer.replaces)
    }

    private var folder: URL { file.deletingLastPathComponent() }

    /// - Throws: `.destinationExists`, `.destinationUnusable`.
    func check() throws(LarderError) {
        var status = stat()
        if lstat(file.path, &status) == 0 {
            guard status.st_mode & S_IFMT != S_IFDIR else {
                throw LarderError(.destinationUnusable, "\(file.path) is a folder; name a file in it")
            }
            guard replaces else { throw exists }
        } else if ![ENOENT, ENOTDIR].contains(errno) {
            // Such as that the name is too long: better now than when all has arrived.
            throw unusable(errno)
        }
        guard stat(folder.path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
            throw LarderError(.destinationUnusable, "there is no folder \(folder.path); make it first")
        }
        guard access(folder.path, W_OK) == 0 else {
            throw LarderError(.destinationUnusable, "no file can be made in \(folder.path): \(FileFailure(errno))")
        }
    }

    /// The file that is there, if it is one.
    var identity: FileIdentity? {
        var status = stat()
        guard lstat(file.path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        return FileIdentity(status)
    }

    /// Whether a file is there with just these bytes: that of another volume, copied before a crash.
    func isSame(as partial: PartialFile) async throws -> Bool {
        let size = try partial.identity().size
        guard let identity = try? SourceFile.identity(at: file.path), identity.size == size,
            let source = try? SourceFile(path: file.path, identity: identity)
        else { return false }
        let whole: Range<Int64> = 0..<size
        return try await source.digests(whole) == partial.digests(whole)
    }

    /// Puts a whole file there, in one step: whoever looks sees what was there, or all of the new file. It is the
    /// program's own from then on, and has the mode of any file that the program makes there.
    func take(_ partial: PartialFile) async throws {
        try check()
        let mode = try ordinaryMode(besides: partial.name)
        try partial.setMode(mode)
        if try !partial.hasItsName || !move(partial.path) {
            // From another volume, or from a file whose name was taken away: what was verified is open still. Beside
            // the destination first, where a rename can reach. A copy of the same name is what a kill has left.
            let copy = copyPath(of: partial.name)
            unlink(copy)
            do {
                try await partial.copy(to: copy, mode: mode)
                guard try move(copy) else { throw unusable(EXDEV) }
            } catch {
                unlink(copy)
                throw error
            }
            // The partial file stays until this is noted: whoever goes on after a kill compares it with what is there.
        }
        try synchronizeFolder()
    }

    /// Removes the copy that a program has left beside the destination, when it was killed while it made it.
    ///
    /// - Throws: `.destinationUnusable`.
    func removeCopy(of transfer: UUID) throws(LarderError) {
        let status = unlink(copyPath(of: PartialFile.name(of: transfer))) == 0 ? 0 : errno
        guard [0, ENOENT, ENOTDIR].contains(status) else { throw unusable(status) }
    }

    /// Bytes that are free for this user where the destination is; nil where that is the volume of `other`.
    func room(besides other: FileIdentity) throws(LarderError) -> Int64? {
        var status = stat()
        guard stat(folder.path, &status) == 0 else { throw unusable(errno) }
        guard Int64(truncatingIfNeeded: status.st_dev) != other.device else { return nil }
        var volume = statvfs()
        guard statvfs(folder.path, &volume) == 0 else { throw unusable(errno) }
        return volume.room
    }

    /// The mode of a file that this program makes in the folder. Its mask can be asked only by changing it, for all
    /// threads, and folders may have rules of their own: a file is made, and removed.
    private func ordinaryMode(besides partial: String) throws(LarderError) -> mode_t {
        let path = copyPath(of: partial)
        unlink(path)
        let descriptor = systemOpen(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o666)
        guard descriptor >= 0 else { throw unusable(errno) }
        defer { close(descriptor) }
        unlink(path)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw unusable(errno) }
        return status.st_mode & 0o777
    }

    /// Where a copy is made of what is on another volume. Names have up to 255 bytes.
    private func copyPath(of partial: String) -> String {
        let start = String(decoding: file.lastPathComponent.utf8.prefix(100), as: UTF8.self)
            .filter { $0 != "\u{FFFD}" }
        return folder.appending(path: ".\(start).\(partial)").path
    }

    /// - Returns: False where it is on another volume.
    func move(_ path: String) throws(LarderError) -> Bool {
        if replaces {
            if rename(path, file.path) == 0 { return true }
        } else {
            // Unlike a rename, it never replaces what somebody else has put there meanwhile.
            if link(path, file.path) == 0 {
                unlink(path)
                return true
            }
        }
        let status = errno
        switch status {
        case EXDEV: return false
        case EEXIST: throw exists
        case EPERM where !replaces, ENOTSUP where !replaces:
            // No links here. Somebody else's file of this name might be replaced, had it come since `check`.
            guard rename(path, file.path) == 0 else { throw unusable(errno) }
            return true
        default: throw unusable(status)
        }
    }

    /// Makes the name durable. Whoever finds the file in its place does so as well: the program that put it there may
    /// have been killed before that, or have failed in it.
    func synchronizeFolder() throws(LarderError) {
        do throws(LMDBError) { try FolderSync.run(folder.path) } catch {
            throw LarderError(
                .destinationUnusable, "\(file.path) was put in place, and a power cut may undo that: its folder could "
                    + "not be synced; look after the volume", cause: error)
        }
    }

    private var exists: LarderError {
        LarderError(
            .destinationExists, "\(file.path) is there; name another file, or say that it may be replaced")
    }

    private func unusable(_ status: Int32) -> LarderError {
        if status == ENOSPC || status == EDQUOT {
            return LarderError(.diskFull, "the disk of \(file.path) is full; nothing was changed there")
        }
        return LarderError(.destinationUnusable, "\(file.path) cannot be made: \(FileFailure(status))")
    }
}
