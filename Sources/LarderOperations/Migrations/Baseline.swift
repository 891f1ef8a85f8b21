package import Foundation
import GRDB
package import LarderFiles

extension OperationsDatabase {
    /// Puts down the history of a database that has the tables and not the history of how it got them, such as one that
    /// was copied statement by statement.
    ///
    /// - Parameter lock: Held by the caller, for this store.
    /// - Returns: What was put down; empty where nothing was missing.
    /// - Throws: `.unknownSchema` where the tables are not just those after one of the migrations, and nothing was
    ///   changed; `.foreign`, `.missing`, `.migrationChanged`.
    package static func baseline(
        folder: URL, holding lock: MigrationLock, waiting time: Duration = .seconds(5),
        files: FileSystem = FileSystem()
    ) throws(OperationsError) -> [SchemaStatus.Entry] {
        try baseline(folder: folder, waiting: time, migrations: .embedded, files)
    }

    static func baseline(
        folder: URL, waiting time: Duration, migrations: MigrationSet, _ files: FileSystem = FileSystem()
    ) throws(OperationsError) -> [SchemaStatus.Entry] {
        let file = folder.appending(path: fileName)
        guard try look(at: file.path, files) != nil else {
            throw OperationsError(.missing, "There is no \(file.path)")
        }
        return try translated {
            var configuration = Configuration()
            configuration.busyMode = .timeout(min(max(0, time / .seconds(1)), 86_400))
            let queue = try DatabaseQueue(path: file.path, configuration: configuration)
            do {
                var entries: [SchemaStatus.Entry] = []
                try queue.writeWithoutTransaction { db in
                    try db.execute(sql: "PRAGMA synchronous = FULL")
                    SyncedLog.prepare(db)
                    try SyncedLog(of: file, files).require(db)
                    try db.inTransaction(.immediate) {
                        entries = try migrations.recordHistory(db)
                        return entries.isEmpty ? .rollback : .commit
                    }
                }
                try queue.close()
                return entries
            } catch {
                try? queue.close()
                throw error
            }
        }
    }
}

extension MigrationSet {
    fileprivate func recordHistory(_ db: Database) throws -> [SchemaStatus.Entry] {
        let application = try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0
        guard application == 0 || application == OperationsDatabase.applicationID else {
            throw OperationsError(
                .foreign, "The file is another program's database (application id \(application)); name another folder")
        }
        let known = try history(db)
        try requireKnown(known)
        let last = try lastMigration(of: db)
        guard known.allSatisfy({ $0.number <= last }) else {
            throw OperationsError(
                .unknownSchema,
                "The history goes further than the tables, which are those after migration \(last); "
                    + "restore a backup")
        }
        let numbers = Set(known.map(\.number))
        let missing = migrations.filter { $0.number <= last && !numbers.contains($0.number) }
        guard !missing.isEmpty else { return [] }
        try Self.makeHistory(db)
        for migration in missing { try note(migration, db) }
        // What the migrations put into the tables that they made.
        if try db.hasTable("store") {
            try db.run("INSERT OR IGNORE INTO store (only, identity) VALUES (1, randomblob(16))")
        }
        return missing.map {
            .init(number: $0.number, name: $0.name, checksum: $0.checksum, applied: now())
        }
    }

    /// As `missing`, where rows may lack between others.
    private func requireKnown(_ history: [Applied]) throws(OperationsError) {
        guard let last = history.last else { return }
        var whole = history
        for migration in migrations where migration.number < last.number {
            guard !whole.contains(where: { $0.number == migration.number }) else { continue }
            whole.append(
                Applied(number: migration.number, name: migration.name, checksum: migration.checksum, time: now()))
        }
        _ = try missing(in: whole.sorted { $0.number < $1.number })
    }

    /// The number of the migration after which the tables are just these.
    private func lastMigration(of db: Database) throws -> Int {
        let found = try Self.schema(of: db)
        let model = try DatabaseQueue()
        defer { try? model.close() }
        for migration in migrations {
            try model.write { try $0.execute(sql: String(decoding: migration.sql, as: UTF8.self)) }
            if try model.read({ try Self.schema(of: $0) }) == found { return migration.number }
        }
        let last = try model.read { try Self.schema(of: $0) }
        let others = Set(found).symmetricDifference(last).map { $0[1] }
        throw OperationsError(
            .unknownSchema,
            "The tables are not those after any migration that this library knows; from the last they "
                + "differ in: \(Set(others).sorted().joined(separator: ", ")); nothing was put down")
    }

    /// Everything that makes up a schema, the table of the history and SQLite's own apart.
    private static func schema(of db: Database) throws -> [[String]] {
        try db.rows(
            """
            SELECT type, name, tbl_name, sql FROM sqlite_schema
            WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'migration' ORDER BY type, name
            """
        ) { [try $0.text(0), try $0.text(1), try $0.text(2), try $0.text(3)] }
    }
}
