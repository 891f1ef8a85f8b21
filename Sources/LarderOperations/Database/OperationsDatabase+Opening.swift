package import Foundation
import GRDB
package import LarderFiles

extension OperationsDatabase {
    /// "Lrdr", so that a database is known to be ours.
    static let applicationID: Int64 = 0x4C72_6472
    /// How the history of migrations is kept; the schema's version is in the history.
    static let formatVersion: Int64 = 1

    static func open(
        _ file: URL, _ options: Options, _ migrations: MigrationSet
    ) throws(OperationsError) -> (DatabasePool, SyncedLog, dataVersion: Int64, home: HomeFolder?) {
        try prepareFolder(of: file, options)
        return try translated {
            let pool = try openPool(file, options)
            let log = SyncedLog(of: file, options.files, committed: options.committed)
            do {
                try pool.writeWithoutTransaction { db in
                    if options.verifiesAlways { try quickCheck(db) }
                    if !options.isReadOnly {
                        let isNew = try isNew(db)
                        try makeDurable(db)
                        log.takeCheckpoints(of: db)
                        try log.keepFound(db)
                        if isNew { try FolderNames.synchronize(above: file, options.files) }
                    }
                    switch options.schema {
                    case .asItIs: break
                    case .migrated where options.isReadOnly: try migrations.requireComplete(db)
                    case .migrated:
                        try apply(migrations, db, log, file, options)
                        try notePlace(db, log, file, options)
                    }
                }
                let home =
                    options.schema == .migrated ? try pool.writeWithoutTransaction { try notedHome($0) } : nil
                let version = try pool.writeWithoutTransaction { try dataVersion($0) }
                return (pool, log, version, home)
            } catch {
                try? pool.close()
                throw error
            }
        }
    }

    /// Applies the missing migrations under the migration lock, which is not taken where none is missing.
    private static func apply(
        _ migrations: MigrationSet, _ db: Database, _ log: SyncedLog, _ file: URL, _ options: Options
    ) throws {
        guard try !migrations.missing(in: migrations.history(db)).isEmpty else { return }
        let lock = try MigrationLock.take(
            in: file.deletingLastPathComponent(), for: "opening a store", within: options.busyTimeout, options.files)
        defer { lock.release() }
        try log.require(db)
        do { try migrations.apply(db) } catch {
            // Nor may closing it copy to the file what the log holds.
            log.doubt(db)
            throw error
        }
    }

    /// Of the file by which a process holds that it sends a partition's mutations. It is made only after the database had
    /// its tables.
    package static let runnerLockSuffix = ".runner"

    /// Whether a folder has a database, or had one: opening it says then what became of it. A file that is empty is what
    /// a process leaves that could not make one.
    package static func exists(in folder: URL, _ files: FileSystem) throws(OperationsError) -> Bool {
        if try isWritten(folder.appending(path: fileName), files) { return true }
        return try isLost(in: folder, files)
    }

    /// Whether a folder had a database of which nothing is left but its log, or that mutations were sent from it.
    package static func isLost(in folder: URL, _ files: FileSystem) throws(OperationsError) -> Bool {
        try loss(of: folder.appending(path: fileName), files) != nil
    }

    /// SQLite takes a file of a single byte for a new one, too.
    private static func isWritten(_ file: URL, _ files: FileSystem) throws(OperationsError) -> Bool {
        try look(at: file.path, files)?.size ?? 0 > 1
    }

    /// SQLite would take it for a new database, and delete the log with all that is in it.
    ///
    /// - Returns: What was lost; nil where nothing is.
    private static func loss(of file: URL, _ files: FileSystem) throws(OperationsError) -> String? {
        // In this order: the log is made when the file has its first page already.
        let hasLog = try look(at: file.path + "-wal", files)?.size ?? 0 > 0
        let found = try look(at: file.path, files)
        guard found?.size ?? 0 <= 1 else { return nil }
        if hasLog {
            let state = found == nil ? "not there" : "empty"
            return "The file is \(state), and its log, \(file.path)-wal, is what there is of it"
        }
        let locks = file.deletingLastPathComponent().appending(path: "locks").path
        guard found != nil, let names = try? files.names(in: locks),
            names.contains(where: { $0.hasSuffix(runnerLockSuffix) })
        else { return nil }
        return "The file is empty, and mutations were sent from it before"
    }

    private static func prepareFolder(of file: URL, _ options: Options) throws(OperationsError) {
        let files = options.files
        let loss = try loss(of: file, files)
        let found = try look(at: file.path, files)
        guard found?.kind != .folder else {
            throw OperationsError(.foreign, "\(file.path) is a folder; move it away")
        }
        if let loss { throw OperationsError.damaged(loss) }
        if options.isReadOnly {
            guard try isWritten(file, files) else {
                throw OperationsError(.missing, "There is no \(file.path); open it for writing once, which makes it")
            }
            return
        }
        guard found != nil else {
            // SQLite would make it readable for all users. It gives its log and its shared memory the file's own mode.
            return try translated {
                try files.makeFolder(file.deletingLastPathComponent().path)
                try files.makeEmptyFile(file.path)
            }
        }
        // SQLite would open it for reading, and fail at the first write.
        if !files.isWritable(file.path) {
            throw OperationsError(
                .notWritable, "\(file.path) cannot be written; make the file and its folder writable for this user")
        }
    }

    private static func openPool(_ file: URL, _ options: Options) throws -> DatabasePool {
        var configuration = Configuration()
        configuration.label = "larder.operations"
        configuration.readonly = options.isReadOnly
        configuration.foreignKeysEnabled = true
        // A day at most, so that it fits what SQLite takes.
        let seconds = min(max(0, options.busyTimeout / .seconds(1)), 86_400)
        configuration.busyMode = .timeout(seconds)
        // Before anything is written to a file that may be another program's.
        configuration.prepareDatabase { db in
            // GRDB gives readers a time of its own.
            try db.execute(sql: "PRAGMA busy_timeout = \(Int(seconds * 1000))")
            SyncedLog.prepare(db)
            try requireOurs(db)
            try requireForeignKeys(db)
            #if canImport(Darwin)
            // Not compiled where this is developed. Without it fsync(2) leaves data in the drive's cache.
            try db.execute(sql: "PRAGMA fullfsync = ON; PRAGMA checkpoint_fullfsync = ON")
            guard try Int.fetchOne(db, sql: "PRAGMA fullfsync") == 1 else {
                throw OperationsError(.unsupported, "This SQLite does not know fullfsync; use the system's")
            }
            #endif
            // After the file was read: a disk that fails would look like a SQLite that can keep no log.
            if !db.configuration.readonly { try keepLog(db) }
        }
        do {
            return try pool(file.path, configuration, until: .now + .seconds(seconds))
        } catch let error as DatabaseError
            where [.SQLITE_CANTOPEN, .SQLITE_PERM, .SQLITE_AUTH].contains(error.resultCode)
            && options.files.isProtected(file.path)
        {
            throw OperationsError.filesProtected(cause: error)
        } catch let error as DatabaseError
            where options.isReadOnly && error.resultCode == .SQLITE_CANTOPEN
            && (try? options.files.exists(file.path + "-wal")) == false
        {
            // A folder that takes no shared-memory file. No process can write there: a writer would have left a log.
            let path = file.path.addingPercentEncoding(withAllowedCharacters: .urlPathAllowed) ?? file.path
            return try DatabasePool(path: "file:\(path)?immutable=1", configuration: configuration)
        }
    }

    /// What is there; nil where there is nothing. A file that cannot be looked at, on a disk that fails, is not
    /// missing.
    package static func look(at path: String, _ files: FileSystem) throws(OperationsError) -> FileStatus? {
        do throws(FileError) { return try files.status(of: path) } catch {
            guard error.code != .permissionDenied else {
                throw OperationsError(
                    .notWritable, "\(path) cannot be looked at; give this user access to its folder.", cause: error)
            }
            throw OperationsError(
                .storage, "\(path) cannot be looked at (\(error.reason)); look after the volume.", cause: error)
        }
    }

    /// SQLite does not wait, whatever its timeout, where two connections turn the journal of a new file into a log.
    private static func pool(
        _ path: String, _ configuration: Configuration, until deadline: SuspendingClock.Instant
    ) throws -> DatabasePool {
        var mayBeUnread = true
        while true {
            do { return try DatabasePool(path: path, configuration: configuration) } catch let error as DatabaseError
                where error.resultCode == .SQLITE_BUSY && .now < deadline
            {
                Thread.sleep(forTimeInterval: 0.002)
            } catch let error as DatabaseError where error.resultCode == .SQLITE_CORRUPT && mayBeUnread {
                // What GRDB reads is not held against the system's last error. What `configuration` reads is.
                mayBeUnread = false
            }
        }
    }

    private static func requireOurs(_ db: Database) throws {
        var (application, version, tables): (Int64, Int64, Int64) = (0, 0, 0)
        // At one moment: another process may be making the database.
        try db.inTransaction(.deferred) {
            tables = try db.integer("SELECT count(*) FROM sqlite_schema") ?? 0
            application = try db.integer("PRAGMA application_id") ?? 0
            version = try db.integer("PRAGMA user_version") ?? 0
            return .commit
        }
        guard application != 0 || version != 0 || tables != 0 else { return }
        guard application == applicationID else {
            throw OperationsError(
                .foreign, "The file is another program's database (application id \(application)); name another folder")
        }
        guard version <= formatVersion else {
            throw OperationsError(
                .newerFormat,
                "A newer version of the library wrote this database (format \(version), known are those to "
                    + "\(formatVersion)); update the program")
        }
    }

    private static func requireForeignKeys(_ db: Database) throws {
        guard try Int.fetchOne(db, sql: "PRAGMA foreign_keys") == 1 else {
            throw OperationsError(.unsupported, "This SQLite was built without foreign keys; use another")
        }
    }

    /// GRDB hears neither of a disk that fails in this, which SQLite says only when it is asked for more rows, nor of a
    /// volume without shared memory.
    private static func keepLog(_ db: Database) throws {
        if try String.fetchOne(db, sql: "PRAGMA journal_mode") != "wal" {
            try db.execute(sql: "PRAGMA journal_mode = WAL")
        }
        guard try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal" else {
            throw OperationsError(
                .unsupported, "SQLite keeps no log here; use a local volume, and the system's SQLite")
        }
    }

    /// GRDB opens a pool with synchronous=NORMAL, by which the last commits may be lost with the power.
    private static func makeDurable(_ db: Database) throws {
        // What is deleted is overwritten with zeros: a key that was destroyed is nowhere in the file any more.
        try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA secure_delete = ON")
        guard try Int.fetchOne(db, sql: "PRAGMA secure_delete") == 1 else {
            throw OperationsError(.unsupported, "This SQLite cannot overwrite what is deleted; use the system's")
        }
        guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2 else {
            throw OperationsError(.unsupported, "This SQLite cannot wait for the disk at each commit; use the system's")
        }
    }

    /// Whether nothing was ever committed to it.
    private static func isNew(_ db: Database) throws -> Bool {
        try db.integer("SELECT count(*) FROM sqlite_schema") == 0
    }

    private static func quickCheck(_ db: Database) throws {
        if let finding = try db.findings("quick_check(1)").first { throw OperationsError.damaged(finding) }
    }
}
