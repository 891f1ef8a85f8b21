import Crypto
import Foundation
import GRDB
import LarderFiles
import LarderMigrations

/// Migrations in order, and what a database has of them.
struct MigrationSet: Sendable {
    struct Applied: Sendable, Hashable {
        var number: Int
        var name: String
        var checksum: String
        var time: Date
    }

    let migrations: [Migration]
    /// The clock of the history's times, which nothing depends on.
    var now: @Sendable () -> Date = { Date() }

    static let embedded = MigrationSet(migrations: Migration.all)

    /// Applies what is missing, in one transaction, which another process may have done meanwhile. Takes no lock where
    /// nothing is missing.
    func apply(_ db: Database) throws {
        guard try !missing(in: history(db)).isEmpty else { return }
        try db.inTransaction(.immediate) {
            let missing = try missing(in: history(db))
            guard !missing.isEmpty else { return .rollback }
            try Self.makeHistory(db)
            for migration in missing { try apply(migration, db) }
            return .commit
        }
    }

    /// Makes the table of the history, and marks the database as ours.
    static func makeHistory(_ db: Database) throws {
        try db.execute(
            sql: """
                CREATE TABLE IF NOT EXISTS migration (
                    number INTEGER PRIMARY KEY,
                    name TEXT NOT NULL,
                    checksum TEXT NOT NULL,
                    applied INTEGER NOT NULL
                ) STRICT;
                PRAGMA application_id = \(OperationsDatabase.applicationID);
                PRAGMA user_version = \(OperationsDatabase.formatVersion);
                """)
    }

    private func apply(_ migration: Migration, _ db: Database) throws {
        do {
            try db.execute(sql: String(decoding: migration.sql, as: UTF8.self))
        } catch {
            let failure = OperationsError.translated(error)
            guard failure.code == .storage else { throw failure }
            throw OperationsError(
                .migrationFailed, "Migration \(migration.label) failed; the database is as it was; see the cause",
                cause: failure.cause)
        }
        try note(migration, db)
    }

    /// Says in the history that a migration was applied.
    func note(_ migration: Migration, _ db: Database) throws {
        try db.execute(
            sql: "INSERT INTO migration (number, name, checksum, applied) VALUES (?, ?, ?, ?)",
            arguments: [migration.number, migration.name, migration.checksum, now().milliseconds])
    }

    /// - Throws: `.pending` if a migration is missing.
    func requireComplete(_ db: Database) throws {
        let missing = try missing(in: history(db))
        guard let first = missing.first else { return }
        let names = missing.count == 1 ? first.label : "\(first.label) and \(missing.count - 1) more"
        throw OperationsError(
            .pending, "Migrations are yet to be applied: \(names); open the database for writing once")
    }

    func history(_ db: Database) throws -> [Applied] {
        // GRDB caches what tables there are, and does not notice tables that another connection makes.
        let exists = try Bool.fetchOne(
            db, sql: "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'migration'")
        guard exists == true else { return [] }
        return try db.rows("SELECT \(Applied.columns) FROM migration m ORDER BY m.number") { try Applied($0) }
    }

    /// - Throws: Where the history is not a beginning of what is known here.
    func missing(in history: [Applied]) throws(OperationsError) -> [Migration] {
        for applied in history {
            guard let known = migrations.first(where: { $0.number == applied.number }) else {
                let last = migrations.last?.number ?? 0
                if applied.number > last {
                    throw OperationsError(
                        .newerFormat,
                        "A newer version of the library has migrated this database to \(applied.number), "
                            + "known are those to \(last); update the program")
                }
                throw OperationsError(
                    .migrationMissing,
                    "The database has migration \(applied.label) with checksum \(applied.checksum), "
                        + "which this library lacks; use the version that applied it")
            }
            guard known.checksum == applied.checksum else {
                throw OperationsError(
                    .migrationChanged,
                    "Migration \(known.label) was changed after it was applied: the database has "
                        + "checksum \(applied.checksum), this library \(known.checksum); "
                        + "use the version that applied it")
            }
        }
        let last = history.last?.number ?? 0
        let numbers = Set(history.map(\.number))
        if let gap = migrations.first(where: { $0.number < last && !numbers.contains($0.number) }) {
            throw OperationsError(
                .migrationMissing,
                "The database has migration \(last) but not \(gap.label) with checksum "
                    + "\(gap.checksum); restore a backup")
        }
        return migrations.filter { $0.number > last }
    }
}

extension MigrationSet.Applied {
    static let columns = "m.number, m.name, m.checksum, m.applied"

    /// From `columns`.
    init(_ row: Columns) throws(OperationsError) {
        self.init(
            number: try row.count(0), name: try row.text(1), checksum: try row.text(2), time: try row.date(3))
    }

    var label: String { "\(number) \(name)" }
}

extension Migration {
    var label: String { "\(number) \(name)" }
    /// SHA-256 of the file, in hexadecimal.
    var checksum: String { hexadecimal(SHA256.hash(data: sql)) }
}
