package import Foundation
import LarderFiles
import LarderOperations

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
    package static func areAll(of folder: URL) -> Bool {
        ((try? FileSystem().names(in: folder.path)) ?? []).allSatisfy(isOwn)
    }
}
