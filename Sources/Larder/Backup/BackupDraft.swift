import Foundation
import LarderFiles

/// A backup that has no name yet. The kernel locks its folder as long as its process lives, so that the next backup can
/// tell what a killed one has left from one that another store's process is making in the same place.
struct BackupDraft {
    private static let prefix = ".draft-"

    let folder: URL
    /// Held until the backup is done, or has failed.
    private let lock: LockFile

    /// Makes a draft, and removes the ones that killed backups have left.
    init(in backups: URL, _ files: FileSystem) throws {
        try files.makeFolder(backups.path)
        Self.removeLeft(in: backups, files)
        for _ in 0..<8 {
            let folder = backups.appending(path: Self.prefix + UUID().uuidString)
            try files.makeFolder(folder.path)
            let lock = try LockFile(existing: folder.path, in: files)
            // Another backup may have taken it for left before it was locked.
            if try lock.tryLock(.exclusive), try files.exists(folder.path) {
                (self.folder, self.lock) = (folder, lock)
                return
            }
        }
        throw LarderError(.backup, "Other backups in \(backups.path) take this one for left; try again")
    }

    private static func removeLeft(in backups: URL, _ files: FileSystem) {
        for name in (try? files.names(in: backups.path)) ?? [] where name.hasPrefix(prefix) {
            guard UUID(uuidString: String(name.dropFirst(prefix.count))) != nil else { continue }
            let folder = backups.appending(path: name)
            // A draft that cannot be locked or removed belongs to another process or user, and is no reason to fail.
            guard let lock = try? LockFile(existing: folder.path, in: files), (try? lock.tryLock(.exclusive)) == true
            else {
                continue
            }
            try? files.removeTree(folder.path)
        }
    }
}
