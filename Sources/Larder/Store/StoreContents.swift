package import Foundation
package import LarderFiles
import LarderOperations
import LarderRecords

/// What lies in a store's folder, so that no other folder is taken for a new store.
package enum StoreContents {
    /// Whether a store keeps something under this name, or a process that was killed has left something under it.
    package static func isOwn(_ name: String) -> Bool {
        let database = OperationsDatabase.fileName
        return ["records", "schemas", "locks", "transfers"].contains(name)
            || ["", "-wal", "-shm", "-journal"].contains { name == database + $0 }
            || name.hasPrefix(database + ".damaged-")
            || name.hasPrefix("restored-") && name.contains(".sqlite")
            || name.hasPrefix(".")
    }

    /// Whether a store makes things of this name. Of hidden ones most are another program's.
    static func isMade(_ name: String) -> Bool {
        isOwn(name) && (!name.hasPrefix(".") || name.hasPrefix(".repair-") || name.hasPrefix(".larder.sqlite"))
    }

    /// Whether there is nothing else in a folder, which may be empty or missing.
    ///
    /// - Throws: `records.notWritable` where this user may not list the folder, and what else keeps the system from
    ///   telling.
    package static func areAll(of folder: URL, _ files: FileSystem) throws(LarderError) -> Bool {
        do throws(FileError) { return try files.names(in: folder.path).allSatisfy(isOwn) } catch {
            throw LarderError(RecordError.translated(error))
        }
    }
}
