internal import Foundation

#if canImport(Darwin)
internal import Darwin
#elseif canImport(Glibc)
internal import Glibc
#elseif canImport(Musl)
internal import Musl
#endif

/// Names in folders, which are on disk when the folder was synced and not when the file was (POSIX, `fsync`).
enum FolderNames {
    /// Makes a file's own name survive power loss, and those of the folders in which it is.
    ///
    /// SQLite syncs the folder in which it makes a file, and none above. What was made on the way down may be this
    /// program's work or another's, so all on the volume are synced. A folder that this user may not open holds nothing
    /// that was made here.
    static func synchronize(above file: URL) throws {
        var folder = file.standardizedFileURL.deletingLastPathComponent()
        let volume = Self.volume(of: folder)
        while Self.volume(of: folder) == volume {
            try synchronize(folder)
            let parent = folder.deletingLastPathComponent()
            guard folder.path != "/", parent.path != folder.path else { return }
            folder = parent
        }
    }

    private static func volume(of folder: URL) -> dev_t? {
        var status = stat()
        return stat(folder.path, &status) == 0 ? status.st_dev : nil
    }

    private static func synchronize(_ folder: URL) throws {
        let descriptor = open(folder.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            let status = errno
            guard status == EACCES || status == EPERM else { throw unsynced(folder, status) }
            return
        }
        defer { close(descriptor) }
        // Some file systems have no sync of folders, and say so.
        guard fsync(descriptor) != 0, errno != EINVAL, errno != EROFS else { return }
        throw unsynced(folder, errno)
    }

    private static func unsynced(_ folder: URL, _ status: Int32) -> OperationsError {
        OperationsError(
            .storage, "the folder \(folder.path) cannot be synced (errno \(status)); look after the volume")
    }
}
