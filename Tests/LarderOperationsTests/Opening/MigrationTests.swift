import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderOperations

@Suite("Migrations", .timeLimit(.minutes(10)))
struct MigrationTests {
    private let one = Migration(number: 1, name: "one", sql: json("CREATE TABLE one (id INTEGER PRIMARY KEY);"))
    private let two = Migration(number: 2, name: "two", sql: json("CREATE TABLE two (id INTEGER PRIMARY KEY);"))
    private let three = Migration(number: 3, name: "three", sql: json("CREATE TABLE three (id INTEGER PRIMARY KEY);"))

    private func open(_ folder: URL, _ migrations: [Migration], readOnly: Bool = false) throws -> OperationsDatabase {
        var options = OperationsDatabase.Options()
        options.isReadOnly = readOnly
        return try OperationsDatabase(folder: folder, options: options, migrations: .init(migrations: migrations))
    }

    private func history(_ database: OperationsDatabase) throws -> [Int] {
        try database.pool.read { try Int.fetchAll($0, sql: "SELECT number FROM migration ORDER BY number") }
    }

    @Test("The folder, the package and the library have the same files, numbered without gaps")
    func files() throws {
        let folder = packageRoot.appending(path: "Migrations").resolvingSymlinksInPath()
        let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
        let names = files.filter { $0.hasSuffix(".sql") }.sorted()
        #expect(names == Migration.all.map { String(format: "%04d", $0.number) + "-\($0.name).sql" })
        #expect(Migration.all.map(\.number) == Array(1...names.count))
        for (name, migration) in zip(names, Migration.all) {
            #expect(try Array(Data(contentsOf: folder.appending(path: name))) == migration.sql)
        }
    }

    @Test("All are applied to a new database, with number, name, checksum and time")
    func applied() async throws {
        try await withOperations { database in
            let rows = try database.pool.read { try Row.fetchAll($0, sql: "SELECT * FROM migration ORDER BY number") }
            #expect(rows.map { $0["name"] as String } == Migration.all.map(\.name))
            #expect(rows.allSatisfy { ($0["checksum"] as String).count == 64 && ($0["applied"] as Int64) > 0 })
            // As `sha256sum` says it of the file, which never changes.
            let first = "06fa306d1f5be80a53ce20db25122ebae6241700dce474aad1f0770344f5533e"
            #expect(rows.first.map { $0["checksum"] as String } == first)
        }
    }

    @Test("The history says when each migration was applied, by the clock")
    func times() async throws {
        try await withTemporaryFolder { folder in
            for (last, time) in [(1, after(0.5)), (3, after(60))] {
                let set = MigrationSet(migrations: [one, two, three].filter { $0.number <= last }, now: { time })
                try OperationsDatabase(folder: folder, options: .init(), migrations: set).close()
            }
            let database = try open(folder, [one, two, three])
            #expect(try database.schemaStatus().applied.map(\.applied) == [after(0.5), after(60), after(60)])
            try database.close()
        }
    }

    @Test("A database that is given its history is given an identity too where it has none, and keeps the one it has")
    func baselineIdentity() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            let before = try database.schemaStatus().identity
            for isLost in [false, true] {
                try database.writeWithoutTransaction { db in
                    try db.run("DELETE FROM migration")
                    if isLost { try db.run("DELETE FROM store") }
                }
                let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
                defer { lock.release() }
                let recorded = try OperationsDatabase.baseline(folder: folder, holding: lock)
                #expect(recorded.map(\.number) == Migration.all.map(\.number))
                let identity = try #require(try database.schemaStatus().identity)
                #expect((identity == before) == !isLost)
            }
            try database.close()
        }
    }

    @Test("A database of which one definition differs from every version's is given no history")
    func baselineDefinition() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            try database.writeWithoutTransaction { db in
                try db.run("DELETE FROM migration")
                try db.run("ALTER TABLE watcher ADD COLUMN colour TEXT")
            }
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
            defer { lock.release() }
            let error = await failure { _ = try OperationsDatabase.baseline(folder: folder, holding: lock) }
            #expect(error?.code == .unknownSchema)
            #expect(error?.message.contains("differ in: watcher;") == true)
            let known = try history(database)
            #expect(known == [])
            try database.close()
        }
    }

    @Test("A database is brought up to date when it is opened, keeping what it has")
    func upgraded() async throws {
        try await withTemporaryFolder { folder in
            let old = try open(folder, [one])
            try await old.pool.write { try $0.execute(sql: "INSERT INTO one VALUES (7)") }
            try old.close()
            let new = try open(folder, [one, two, three])
            #expect(try history(new) == [1, 2, 3])
            #expect(try await new.pool.read { try Int.fetchOne($0, sql: "SELECT id FROM one") } == 7)
            try new.close()
        }
    }

    @Test("A migration that was changed is refused with both checksums")
    func changed() async throws {
        try await withTemporaryFolder { folder in
            try open(folder, [one, two]).close()
            let edited = Migration(number: 1, name: "one", sql: json("CREATE TABLE one (id INTEGER);"))
            let error = await failure { _ = try open(folder, [edited, two]) }
            #expect(error?.code == .migrationChanged)
            #expect(error?.message.contains(one.checksum) == true)
            #expect(error?.message.contains(edited.checksum) == true)
        }
    }

    @Test("A migration that the database lacks between others is refused")
    func missingInDatabase() async throws {
        try await withTemporaryFolder { folder in
            try open(folder, [one, three]).close()
            let error = await failure { _ = try open(folder, [one, two, three]) }
            #expect(error?.code == .migrationMissing)
            #expect(error?.message.contains(two.checksum) == true)
        }
    }

    @Test("A migration that the library lacks between others is refused")
    func missingInLibrary() async throws {
        try await withTemporaryFolder { folder in
            try open(folder, [one, two, three]).close()
            let error = await failure { _ = try open(folder, [one, three]) }
            #expect(error?.code == .migrationMissing)
            #expect(error?.message.contains(two.checksum) == true)
        }
    }

    @Test("A database of a newer version is refused with the number")
    func newer() async throws {
        try await withTemporaryFolder { folder in
            try open(folder, [one, two, three]).close()
            let error = await failure { _ = try open(folder, [one]) }
            #expect(error?.code == .newerFormat)
            #expect(error?.message.contains("to 2") == true)
            await expectFailure(.newerFormat) { _ = try open(folder, [one], readOnly: true) }
        }
    }

    @Test("Opened for reading only, a database is not migrated and says what is missing")
    func pending() async throws {
        try await withTemporaryFolder { folder in
            try open(folder, [one]).close()
            let error = await failure { _ = try open(folder, [one, two], readOnly: true) }
            #expect(error?.code == .pending)
            #expect(error?.message.contains(": 2 two;") == true)
            let both = await failure { _ = try open(folder, [one, two, three], readOnly: true) }
            #expect(both?.message.contains(": 2 two and 1 more;") == true)
            let old = try open(folder, [one])
            #expect(try history(old) == [1])
            try old.close()
        }
    }

    @Test("If one fails none is applied")
    func failing() async throws {
        try await withTemporaryFolder { folder in
            try open(folder, [one]).close()
            let bad = Migration(number: 3, name: "bad", sql: json("CREATE TABLE four (id); SELECT nonsense;"))
            await expectFailure(.migrationFailed) { _ = try open(folder, [one, two, bad]) }
            let again = try open(folder, [one])
            #expect(try history(again) == [1])
            #expect(try await again.pool.read { try $0.tableExists("two") } == false)
            try again.close()
        }
    }

    @Test("The error of a migration that failed has SQLite's error as its cause")
    func causeOfFailure() async throws {
        try await withTemporaryFolder { folder in
            let bad = Migration(number: 2, name: "bad", sql: json("SELECT nonsense;"))
            let error = await failure { _ = try open(folder, [one, bad]) }
            #expect(error?.code == .migrationFailed && error?.cause is SQLiteFailure, "\(error as Any)")
        }
    }

    @Test("Several that open a new database at once apply each migration once")
    func together() async throws {
        try await withTemporaryFolder { folder in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<6 {
                    group.addTask {
                        let database = try OperationsDatabase(folder: folder)
                        _ = try await database.enqueue(draft())
                        try database.close()
                    }
                }
                try await group.waitForAll()
            }
            let database = try OperationsDatabase(folder: folder)
            #expect(try history(database) == Migration.all.map(\.number))
            #expect(try database.mutations.list().count == 6)
            try expectSound(database)
            try database.close()
        }
    }

    @Test("The partitions of a database from before environments are known by their names, and are of none")
    func olderPartitions() async throws {
        try await withTemporaryFolder { folder in
            let old = try open(folder, Array(Migration.all.prefix(2)))
            try await old.pool.write { try $0.execute(sql: "INSERT INTO partition (name) VALUES ('b'), ('a')") }
            let owners = try old.partitionOwners()
            #expect(owners.map { $0.name } == ["b", "a"] && owners.allSatisfy { $0.environment == nil })
            try old.close()
        }
    }

    @Test("A migration that leaves a reference to no row fails, and the database is as it was")
    func foreignKeys() async throws {
        try await withTemporaryFolder { folder in
            try open(folder, [one]).close()
            let sql = "CREATE TABLE two (one INTEGER REFERENCES one (id)); INSERT INTO two VALUES (7);"
            let bad = Migration(number: 2, name: "bad", sql: json(sql))
            await expectFailure(.migrationFailed) { try open(folder, [one, bad]).close() }
            let again = try open(folder, [one])
            #expect(try history(again) == [1])
            try again.close()
        }
    }

    @Test("Opening a database holds the migration lock while it applies migrations, and not afterwards")
    func lockHeld() async throws {
        try await withTemporaryFolder { folder in
            let holders = Mutex<[String?]>([])
            let set = MigrationSet(
                migrations: [one],
                now: {
                    let holder = MigrationLock.holder(in: folder)
                    holders.withLock { $0.append(holder) }
                    return noon
                })
            let database = try OperationsDatabase(folder: folder, options: .init(), migrations: set)
            let found = holders.withLock { $0 }
            #expect(found.count == 1 && found.first??.contains("opening a store") == true, "\(found)")
            #expect(MigrationLock.holder(in: folder) == nil)
            try database.close()
        }
    }
}
