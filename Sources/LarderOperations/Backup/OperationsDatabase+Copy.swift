package import Foundation
import GRDB
import LarderFiles

extension OperationsDatabase {
    /// Writes a snapshot of the database to a new file, by SQLite's online backup. Durable on return; other programs go
    /// on reading and writing meanwhile. O(size).
    ///
    /// - Throws: `.full`, `.damaged`, `.notWritable`, `.storage`; nothing of the file stays then.
    package func copy(to target: URL) throws(OperationsError) {
        do {
            try using { connection in
                try options.files.makeEmptyFile(target.path)
                let copy = try DatabaseQueue(path: target.path)
                do {
                    try connection.pool.backup(to: copy)
                    // A file that needs none beside it: the copy of a log is one as well.
                    try copy.writeWithoutTransaction { db in try db.run("PRAGMA journal_mode = DELETE") }
                } catch {
                    try? copy.close()
                    throw error
                }
                try copy.close()
                try options.files.synchronize(target.path)
            }
        } catch {
            Self.removeFiles(of: target, options.files)
            throw error
        }
    }

    /// Removes a database that no connection has open, with what SQLite keeps beside it.
    static func removeFiles(of file: URL, _ files: FileSystem) {
        for suffix in ["", "-wal", "-shm", "-journal"] { _ = try? files.remove(file.path + suffix) }
    }
}
