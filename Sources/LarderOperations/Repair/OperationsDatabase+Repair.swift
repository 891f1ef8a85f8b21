import CFiles
package import Foundation
import GRDB
package import LarderFiles

extension OperationsDatabase {
    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: Sendable, Hashable, CaseIterable {
        /// The new file is whole, under a name of no meaning.
        case salvaged
        /// The damaged file has the name under which it is kept as well.
        case kept
        /// The new file has taken the place of the damaged one.
        case swapped
    }

    private static func draft(in folder: URL) -> URL { folder.appending(path: ".repair-draft") }

    /// Saves what can be read of a damaged database into a new file, which takes its place; the damaged one is kept
    /// beside it as `larder.sqlite.damaged-TIME`, with its log.
    ///
    /// - Parameter lock: Held by the caller, for this store.
    /// - Throws: `.busy` where another process has it open, with its number; `.damaged` where nothing can be read;
    ///   `.full`, `.missing`. The database is as it was then, unless the folder could not be synced after the new file
    ///   had taken its place: the error says so, and a power cut may undo it.
    package static func repair(
        folder: URL, holding lock: MigrationLock, now: Date = Date(), files: FileSystem = FileSystem(),
        reached: (KillPoint) throws -> Void = { _ in }
    ) throws -> RepairReport {
        let file = folder.appending(path: fileName)
        guard try look(at: file.path, files) != nil else {
            throw OperationsError(.missing, "There is no \(file.path); restore a backup")
        }
        let draft = draft(in: folder)
        try? files.removeTree(draft.path)
        defer { try? files.removeTree(draft.path) }
        return try translated {
            // Before the work, too, so that it is not done in vain.
            let before = try ExclusiveUse.of(file, files) { try state(of: file, files) }
            let source = try interrupted(file, files) ?? file
            try files.makeFolder(draft.path)
            // SQLite writes to what it reads: it is given a copy.
            let copy = draft.appending(path: "damaged.sqlite")
            for suffix in ["", "-wal"] where try files.exists(source.path + suffix) {
                try files.copy(source.path + suffix, to: copy.path + suffix)
            }
            var report = try salvage(copy, into: draft, now, files)
            try reached(.salvaged)
            report.kept = try ExclusiveUse.of(file, files) {
                guard try state(of: file, files) == before else {
                    throw OperationsError(.busy, "Another process wrote to \(file.path) meanwhile; end it first")
                }
                return try swap(file, for: draft.appending(path: fileName), source, now, files, reached)
            }
            return report
        }
    }

    /// The size of the file and its log, and when each was changed.
    private static func state(of file: URL, _ files: FileSystem) throws(FileError) -> [FileStatus?] {
        [try files.status(of: file.path), try files.status(of: file.path + "-wal")]
    }

    /// What a killed repair has kept already: the same file, and its log, which it may have taken away.
    private static func interrupted(_ file: URL, _ files: FileSystem) throws(FileError) -> URL? {
        let folder = file.deletingLastPathComponent()
        guard let status = try files.status(of: file.path) else { return nil }
        for name in try files.names(in: folder.path)
        where name.hasPrefix(fileName + ".damaged-") && !name.hasSuffix("-wal") {
            let path = folder.appending(path: name)
            if try files.status(of: path.path)?.isSameFile(as: status) ?? false { return path }
        }
        return nil
    }

    private static func salvage(
        _ damaged: URL, into folder: URL, _ now: Date, _ files: FileSystem
    ) throws -> RepairReport {
        // No other process looks into this folder: the lock is its own.
        var options = Options()
        options.files = files
        let new = try OperationsDatabase(folder: folder, options: options)
        do {
            var configuration = Configuration()
            // SQLite then takes what it can read of the definitions of tables, where it would refuse all of them:
            // https://www.sqlite.org/pragma.html#pragma_writable_schema
            configuration.prepareDatabase { db in
                _ = larder_lower_defence(db.sqliteConnection)
                try db.execute(sql: "PRAGMA writable_schema = ON")
            }
            // Attached: GRDB reads a definition of each database that it opens itself.
            let source = try DatabaseQueue(configuration: configuration)
            defer { try? source.close() }
            try source.writeWithoutTransaction { try $0.run("ATTACH DATABASE ? AS damaged", [damaged.path]) }
            let report = try source.unsafeRead { damaged in
                try new.pool.writeWithoutTransaction { db in
                    try db.execute(sql: "PRAGMA foreign_keys = OFF")
                    var report = RepairReport()
                    try db.inTransaction(.immediate) {
                        var salvage = Salvage(db: db, damaged: damaged, now: now)
                        try salvage.run()
                        report = salvage.report
                        return .commit
                    }
                    return report
                }
            }
            let problems = try new.check().problems
            guard problems.isEmpty else {
                throw OperationsError(
                    .damaged,
                    "The readable rows of larder.sqlite do not fit together "
                        + "(\(problems.prefix(5).map(\.description).joined(separator: "; "))); restore a backup")
            }
            try new.close()
            let file = folder.appending(path: fileName)
            let queue = try DatabaseQueue(path: file.path)
            try queue.writeWithoutTransaction { try $0.run("PRAGMA journal_mode = DELETE") }
            try queue.close()
            try files.synchronize(file.path)
            return report
        } catch {
            try? new.close()
            throw error
        }
    }

    /// A name of the moment under which a damaged or lost database is kept, and none is yet.
    static func unusedDamagedName(
        for file: URL, _ now: Date, _ files: FileSystem
    ) throws(FileError) -> URL {
        let style = Date.ISO8601FormatStyle(
            dateSeparator: .dash, dateTimeSeparator: .standard, timeSeparator: .omitted, timeZoneSeparator: .omitted)
        var number = 1
        while true {
            let suffix = number == 1 ? "" : "-\(number)"
            let name = file.path + ".damaged-\(now.formatted(style))\(suffix)"
            if try !files.exists(name), try !files.exists(name + "-wal") { return URL(filePath: name) }
            number += 1
        }
    }

    /// Puts a file in the place of the damaged one. Where that has a log, this takes two steps: the log would be taken
    /// for the new file's. `interrupted` finds what a kill between them leaves.
    private static func swap(
        _ file: URL, for new: URL, _ source: URL, _ now: Date, _ files: FileSystem,
        _ reached: (KillPoint) throws -> Void
    ) throws -> String {
        let folder = file.deletingLastPathComponent()
        var kept = source
        if source == file {
            kept = try unusedDamagedName(for: file, now, files)
            // The log first: the file under its name says that both are kept.
            if try files.exists(file.path + "-wal") { try files.link(file.path + "-wal", kept.path + "-wal") }
            try files.link(file.path, kept.path)
            try files.synchronizeFolder(folder.path)
        }
        try reached(.kept)
        // SQLite would read the old log into the new file.
        for suffix in ["-wal", "-shm"] { try files.remove(file.path + suffix) }
        try files.synchronizeFolder(folder.path)
        try files.rename(new.path, file.path)
        try files.synchronizeFolder(folder.path)
        try reached(.swapped)
        return kept.lastPathComponent
    }
}
