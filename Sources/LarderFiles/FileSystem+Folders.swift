#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

extension FileSystem {
    private static let folderMode: UInt16 = 0o700

    /// Makes a folder, and those above it that are missing, for this user alone. On return their names survive power
    /// loss.
    ///
    /// So does the name of a folder that is found: the process that made it may have been killed before it synced the
    /// name, or never meant to. Such a process made its folders from the top down and synced each name before the next,
    /// so that only the lowest of the folders found can be unsynced. Another program may have made any of them: above
    /// the first folder that is made, all names on the volume are synced.
    package func makeFolder(_ path: String) throws(FileError) {
        var (missing, place): ([String], String) = ([], path)
        while true {
            if try makeOneFolder(place) {
                try synchronizeNames(above: place)
                break
            }
            if try isFolder(place) {
                try synchronizeFolder(Self.parent(of: place))
                break
            }
            missing.append(place)
            let parent = Self.parent(of: place)
            guard parent != place, parent != "." else { throw FileError(ENOENT, doing: "Making a folder", path: path) }
            place = parent
        }
        for next in missing.reversed() {
            if try !makeOneFolder(next), try !isFolder(next) {
                throw FileError(ENOENT, doing: "Making a folder", path: next)
            }
            try synchronizeFolder(Self.parent(of: next))
        }
    }

    /// False where it is there, or has no folder to be in.
    private func makeOneFolder(_ path: String) throws(FileError) -> Bool {
        let status = call(.makeFolder, path) { mkdir(path, mode_t(Self.folderMode)) }
        guard status == 0 else {
            if status == ENOENT { return false }
            if let found = try? self.status(of: path), found.kind == .folder { return false }
            throw FileError(status == EEXIST ? ENOTDIR : status, doing: "Making a folder", path: path)
        }
        // What a mask of the process took from the owner.
        if let made = try self.status(of: path), made.mode & Self.folderMode != Self.folderMode {
            try setMode(Self.folderMode, of: path)
        }
        return true
    }

    private func isFolder(_ path: String) throws(FileError) -> Bool { try status(of: path)?.kind == .folder }

    /// Makes the names in a folder survive power loss, by the one rule that all callers share.
    ///
    /// A name that was made, moved or removed is on disk when its folder was synced, and not when the file was (POSIX,
    /// `fsync`). Where the sync cannot be asked for, the names are as durable as the file system keeps them by itself,
    /// and the caller goes on: the file system knows no sync of folders (`EINVAL`, `ENOTSUP`), is read-only (`EROFS`),
    /// or this user may write in the folder and not open it (`EACCES`, `EPERM`).
    ///
    /// Any other failure is thrown. The change of names was made all the same: every program sees it, and a power cut
    /// may undo it. So a caller that throws it on must promise neither that the change is durable nor that nothing
    /// happened.
    package func synchronizeFolder(_ path: String) throws(FileError) {
        do throws(FileError) {
            try open(path.isEmpty ? "." : path).synchronize(as: .synchronizeFolder)
        } catch {
            guard Self.folderCannotBeSynced.contains(error.status) else { throw error }
        }
    }

    private static let folderCannotBeSynced: Set<Int32> = [EINVAL, ENOTSUP, EROFS, EACCES, EPERM]

    /// Makes a file's or folder's own name survive power loss, and those of all folders above it on its volume.
    package func synchronizeNames(above path: String) throws(FileError) {
        var folder = Self.parent(of: path)
        let volume = try status(of: folder)?.device
        while try status(of: folder)?.device == volume {
            try synchronizeFolder(folder)
            let above = Self.parent(of: folder)
            guard above != folder, above != "." else { return }
            folder = above
        }
    }

    /// The folder in which a path is: "/" of what has none above it, "." of a name alone.
    package static func parent(of path: String) -> String {
        var rest = path[...]
        while rest.count > 1, rest.last == "/" { rest.removeLast() }
        guard let slash = rest.lastIndex(of: "/") else { return "." }
        rest = rest[..<slash]
        while rest.count > 1, rest.last == "/" { rest.removeLast() }
        return rest.isEmpty ? "/" : String(rest)
    }
}
