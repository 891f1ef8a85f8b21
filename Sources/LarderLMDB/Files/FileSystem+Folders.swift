#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

extension FileSystem {
    private static let folderMode: mode_t = 0o700

    /// Makes a folder, and those above it that are missing, for this user alone. On return their names survive power
    /// loss.
    ///
    /// So does the name of a folder that is found: the process that made it may have been killed before it synced the
    /// name, or never meant to. Such a process made its folders from the top down and synced each name before the next,
    /// so that of those that are found only the lowest can be unsynced. Another program may have made any of them: above
    /// the first folder that is made, all names on the volume are synced.
    package static func makeFolder(_ path: String) throws(LMDBError) {
        var (missing, place): ([String], String) = ([], path)
        while true {
            if try makeOneFolder(place) {
                try synchronizeNames(above: place)
                break
            }
            if isFolder(place) {
                try FolderSync.run(parent(of: place))
                break
            }
            missing.append(place)
            let parent = parent(of: place)
            guard parent != place, parent != "." else {
                throw .make(ENOENT, doing: "making a folder", path: path)
            }
            place = parent
        }
        for next in missing.reversed() {
            guard try makeOneFolder(next) || isFolder(next) else {
                throw .make(ENOENT, doing: "making a folder", path: next)
            }
            try FolderSync.run(parent(of: next))
        }
    }

    /// False where it is there, or has no folder to be in.
    private static func makeOneFolder(_ path: String) throws(LMDBError) -> Bool {
        guard mkdir(path, folderMode) == 0 else {
            let failure = errno
            guard failure != ENOENT, !isFolder(path) else { return false }
            throw .make(failure == EEXIST ? ENOTDIR : failure, doing: "making a folder", path: path)
        }
        var status = stat()
        // What a mask of the process took from the owner.
        if stat(path, &status) == 0, status.st_mode & folderMode != folderMode { chmod(path, folderMode) }
        return true
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Makes a file's or folder's own name survive power loss, and those of all folders above it on its volume.
    package static func synchronizeNames(above path: String) throws(LMDBError) {
        var folder = parent(of: path)
        let volume = volume(of: folder)
        while Self.volume(of: folder) == volume {
            try FolderSync.run(folder)
            let above = parent(of: folder)
            guard above != folder, above != "." else { return }
            folder = above
        }
    }

    private static func volume(of folder: String) -> dev_t? {
        var status = stat()
        return stat(folder, &status) == 0 ? status.st_dev : nil
    }

    /// The folder in which a path is: "/" of what has none above it, "." of a name alone.
    static func parent(of path: String) -> String {
        var rest = path[...]
        while rest.count > 1, rest.last == "/" { rest.removeLast() }
        guard let slash = rest.lastIndex(of: "/") else { return "." }
        rest = rest[..<slash]
        while rest.count > 1, rest.last == "/" { rest.removeLast() }
        return rest.isEmpty ? "/" : String(rest)
    }
}
