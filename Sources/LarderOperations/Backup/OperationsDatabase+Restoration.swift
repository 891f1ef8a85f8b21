package import Foundation
import GRDB
package import LarderFiles

extension OperationsDatabase {
    /// What is left to be done where a backup's `larder.sqlite` is put into a store.
    private static func stagedFile(in folder: URL, _ token: String) -> URL {
        folder.appending(path: "restored-\(token).sqlite")
    }

    /// The token of the last backup that was brought back; nil where none was.
    package func restoration() throws(OperationsError) -> String? {
        try read { db in
            guard try db.hasTable("store") else { return nil }
            return try db.row("SELECT restoration FROM store") { try $0.optional(0, $0.text) } ?? nil
        }
    }

    /// Gets a backup's database ready: a copy in the store's folder, of this library's schema.
    ///
    /// - Parameters:
    ///   - token: Names it.
    ///   - fill: Writes the file at the path that it is given.
    ///   - lock: Held by the caller, for this store.
    /// - Throws: What `fill` throws; `.newerFormat`, `.migrationChanged`, `.damaged`, `.damagedBackup`, `.full`.
    package static func stage(
        _ token: String, in folder: URL, holding lock: MigrationLock, options: Options = Options(),
        _ fill: (String) throws -> Void
    ) throws {
        let file = stagedFile(in: folder, token)
        do {
            try fill(file.path)
            var options = options
            options.schema = .asItIs
            let copy = try OperationsDatabase(file: file, options: options, migrations: .embedded)
            do {
                try copy.migrate(holding: lock)
                let problems = try copy.check().problems
                if let problem = problems.first {
                    throw OperationsError(.damagedBackup, "The backup's larder.sqlite is damaged: \(problem)")
                }
                try copy.close()
            } catch {
                try? copy.close()
                throw error
            }
        } catch {
            removeFiles(of: file, options.files)
            throw error
        }
    }

    /// Removes every copy that was staged, under whatever token.
    package static func removeStaged(in folder: URL, _ files: FileSystem = FileSystem()) {
        for name in (try? files.names(in: folder.path)) ?? []
        where name.hasPrefix("restored-") && name.contains(".sqlite") {
            try? files.removeTree(folder.appending(path: name).path)
        }
    }

    /// Brings back what was staged, in one transaction, while other programs read and write. Where the store has no
    /// database, the staged one becomes it.
    ///
    /// - Parameters:
    ///   - lock: Held by the caller, for this store.
    ///   - nothingSentSince: Whether the caller says that no program has sent mutations since the backup was made.
    /// - Throws: `.foreignBackup`, `.environmentChanged`, `.full`, …; nothing was brought back then. Missing migrations
    ///   are applied before that, and what is left of a lost database is put aside.
    package static func restoreStaged(
        _ token: String, in folder: URL, holding lock: MigrationLock, nothingSentSince: Bool = false,
        options: Options = Options(), now: Date
    ) throws(OperationsError) -> RestorationReport {
        let staged = stagedFile(in: folder, token)
        defer { removeFiles(of: staged, options.files) }
        let file = folder.appending(path: fileName)
        guard try look(at: file.path, options.files) != nil, try !isLost(in: folder, options.files) else {
            return try translated { try install(staged, as: file, token, nothingSentSince, now, options.files) }
        }
        var options = options
        options.schema = .asItIs
        let database = try OperationsDatabase(file: file, options: options, migrations: .embedded)
        defer { try? database.close() }
        try database.migrate(holding: lock)
        return try translated {
            try database.writeWithoutTransaction { db in
                try db.run("ATTACH DATABASE ? AS backup", [staged.path])
                // Statements that are kept hold on to it.
                defer {
                    db.clearSchemaCache()
                    try? db.execute(sql: "DETACH DATABASE backup")
                }
                var report = RestorationReport()
                try db.inTransaction(.immediate) {
                    var restoration = Restoration(db: db, nothingSentSince: nothingSentSince, now: now)
                    try restoration.run(token: token)
                    report = restoration.report
                    return .commit
                }
                return report
            }
        }
    }

    /// Makes a staged database the store's, which has none. Nothing in the folder tells what the lost one has sent.
    private static func install(
        _ staged: URL, as file: URL, _ token: String, _ nothingSentSince: Bool, _ now: Date,
        _ files: FileSystem
    ) throws -> RestorationReport {
        let queue = try DatabaseQueue(path: staged.path)
        var report = RestorationReport(isWhole: true)
        do {
            try queue.write { db in
                report.mutations = Int(try db.integer("SELECT count(*) FROM mutation") ?? 0)
                report.partitions = Int(try db.integer("SELECT count(*) FROM partition") ?? 0)
                report.setAside = try RestorationDoubt.distrustAll(db, isProven: nothingSentSince, now)
                try db.run(
                    "UPDATE store SET restoration = ?, device_token = NULL, next_device_token = NULL", [token])
            }
            try queue.writeWithoutTransaction { db in try db.run("PRAGMA journal_mode = DELETE") }
        } catch {
            try? queue.close()
            throw error
        }
        try queue.close()
        try files.synchronize(staged.path)
        try putAside(remainsOf: file, now, files)
        // Fails where another process has made one meanwhile.
        try files.link(staged.path, file.path)
        try FolderNames.synchronize(above: file, files)
        return report
    }

    /// Renames what is left of a lost database: SQLite would take its log for that of the file that takes its place.
    private static func putAside(remainsOf file: URL, _ now: Date, _ files: FileSystem) throws {
        let kept = try unusedDamagedName(for: file, now, files)
        // The log last: as long as it lies there, the database counts as lost.
        for suffix in ["", "-journal", "-wal"] where try files.exists(file.path + suffix) {
            try files.rename(file.path + suffix, kept.path + suffix)
        }
        _ = try? files.remove(file.path + "-shm")
        try files.synchronizeFolder(file.deletingLastPathComponent().path)
    }
}
