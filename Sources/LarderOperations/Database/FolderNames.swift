import Foundation
import LarderFiles

/// Names in folders, which are on disk when the folder was synced and not when the file was (POSIX, `fsync`).
enum FolderNames {
    /// Makes a file's own name survive power loss, and those of the folders in which it is.
    ///
    /// SQLite syncs the folder in which it makes a file, and none above. What was made on the way down may be this
    /// program's work or another's, so all on the volume are synced.
    static func synchronize(above file: URL, _ files: FileSystem) throws(OperationsError) {
        do throws(FileError) { try files.synchronizeNames(above: file.standardizedFileURL.path) } catch {
            throw unsynced(file.deletingLastPathComponent(), error)
        }
    }

    /// Makes the names in a folder survive power loss; see `FileSystem.synchronizeFolder`.
    static func synchronize(_ folder: URL, _ files: FileSystem) throws(OperationsError) {
        do throws(FileError) { try files.synchronizeFolder(folder.path) } catch { throw unsynced(folder, error) }
    }

    private static func unsynced(_ folder: URL, _ cause: FileError) -> OperationsError {
        OperationsError(
            .storage,
            "The folder \(folder.path) could not be synced, so that a power cut may undo what was done to its "
                + "names; look after the volume, and try again", cause: cause)
    }
}
