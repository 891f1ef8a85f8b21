import Foundation
import Larder
import LarderMigrations
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Migrations", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"), .timeLimit(.minutes(10)))
struct SchemaTests {
    @Test("A store of this version is current, and nothing is to be done")
    func current() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(1)
            try await fixture.queue(1)
            let status = try await fixture.migrate("status", "--json")
            #expect(status.status == 0, "\(status.errors)")
            #expect(try result(status)["isCurrent"] as? Bool == true)
            let plan = try await fixture.migrate("plan")
            #expect(plan.status == 0)
            #expect(plan.output == "nothing is to be done\n")
            let up = try await fixture.migrate("up", "--json")
            #expect(up.status == 0)
            #expect(!FileManager.default.fileExists(atPath: fixture.backups.path))
        }
    }

    @Test("Looking at an older store tells what is pending, with status 3, and migrates nothing")
    func looking() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let before = try Data(contentsOf: fixture.store.appending(path: "larder.sqlite"))
            let status = try await fixture.migrate("status", "--json")
            #expect(status.status == 3)
            #expect(status.output.contains(#""pending":[{"number":3,"name":"environments""#))
            #expect(try await fixture.migrate("plan").status == 3)
            #expect(try await fixture.migrate("validate").status == 0)
            #expect(try Data(contentsOf: fixture.store.appending(path: "larder.sqlite")) == before)
            #expect(try fixture.value("SELECT max(number) FROM migration") == "2")
        }
    }

    @Test("up takes the very steps that plan shows, and backs up first")
    func up() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 1)
            let plan = try await fixture.migrate("plan", "--json")
            let up = try await fixture.migrate("up", "--json")
            #expect(up.status == 0, "\(up.errors)")
            let steps = try text(result(plan)["steps"])
            #expect(try text(result(up)["steps"]) == steps)
            #expect(steps.contains(#""step":"backup""#))
            #expect(try result(up)["backup"] as? String == fixture.backup().path)
            let list = try result(await fixture.migrate("backup", "list", "--json"))["backups"] as? [[String: Any]]
            #expect(list?.first?["migrations"] as? Int == 1)
            #expect(try fixture.value("SELECT max(number) FROM migration") == "\(Migration.all.count)")
            #expect(try await fixture.migrate("status").status == 0)
            try await fixture.expectSound()
        }
    }

    @Test("The backup that up makes has the store as it was before any migration")
    func backedUpFirst() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 2)
            let up = try await fixture.migrate("up")
            #expect(up.status == 0, "\(up.errors)")
            #expect(try StoreBackup(at: fixture.backup()).manifest.schema == 2)
        }
    }

    @Test("A plan shows every migration that is pending, in the order in which they are applied")
    func wholePlan() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let plan = try await fixture.migrate("plan", "--no-backup")
            let steps = plan.output.split(separator: "\n").map { String($0.prefix { $0 != "-" }) }
            #expect(Migration.all.count > 4)
            #expect(steps == (3...Migration.all.count).map { String(format: "apply migration %04d", $0) })
        }
    }

    @Test("Without a backup only where that is said")
    func withoutBackup() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            #expect(try await fixture.migrate("up", "--no-backup").status == 0)
            #expect(!FileManager.default.fileExists(atPath: fixture.backups.path))
        }
    }

    @Test(
        "A migration file that was edited after it was applied is told with both checksums, and nothing is done",
        arguments: ["status", "plan", "up", "validate"])
    func edited(verb: String) async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let known = try #require(try fixture.value("SELECT checksum FROM migration WHERE number = 2"))
            try fixture.execute("UPDATE migration SET checksum = 'abc' WHERE number = 2")
            let outcome = try await fixture.migrate(verb, "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"operations.migrationChanged""#))
            #expect(outcome.errors.contains("abc") && outcome.errors.contains(known), "\(outcome.errors)")
            #expect(try fixture.value("SELECT max(number) FROM migration") == "2")
        }
    }

    @Test("A store that a newer version has migrated is refused", arguments: ["status", "up"])
    func newer(verb: String) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            try fixture.execute("INSERT INTO migration VALUES (99, 'later', 'x', 0)")
            let outcome = try await fixture.migrate(verb, "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"operations.newerFormat""#))
        }
    }

    @Test("Where there is no store, that is said", arguments: ["status", "plan", "up", "validate", "backup"])
    func missing(verb: String) async throws {
        try await MigrationFixture.with { fixture in
            let outcome = try await fixture.migrate(verb, "--json")
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains(#""code":"command.noStore""#))
            #expect(outcome.output == "")
        }
    }

    @Test("A folder that holds no store is told as that", arguments: ["status", "backup"])
    func noStore(verb: String) async throws {
        try await MigrationFixture.with { fixture in
            try FileManager.default.createDirectory(at: fixture.store, withIntermediateDirectories: true)
            let outcome = try await fixture.migrate(verb, "--json")
            #expect(outcome.status == 1 && outcome.output == "", "\(outcome.output)")
            #expect(outcome.errors.contains(#""code":"command.noStore""#), "\(outcome.errors)")
        }
    }

    @Test(
        "A file where the store's folder should be is a fault of the command, and stays as it is",
        arguments: [["status"], ["up"], ["backup"], ["env", "list"], ["env", "add", "a", "--url", "http://a/"]])
    func noFolder(verb: [String]) async throws {
        try await MigrationFixture.with { fixture in
            try Data("notes".utf8).write(to: fixture.store)
            let outcome = try await MigrateProcess.run(verb + ["--store", fixture.store.path, "--json"])
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(outcome.errors.contains("is no folder"), "\(outcome.errors)")
            #expect(try Data(contentsOf: fixture.store) == Data("notes".utf8))
        }
    }

    @Test(
        "A killed migration leaves the store as it was or as it is to be",
        arguments: ["backedUp", "migrated", "cache(named)", "cache(superseded)"])
    func killed(step: String) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(1)
            try fixture.makeOlder()
            try fixture.markCache(format: 0)
            let killed = try await MigrateProcess.crash(fixture.store.path, "up", step)
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            // Whatever was done is whole, and the rest is done by the next.
            let isMigrated = try fixture.value("SELECT max(number) FROM migration") == "\(Migration.all.count)"
            #expect(isMigrated == (step != "backedUp"))
            #expect(try await fixture.migrate("up", "--no-backup").status == 0)
            #expect(try await fixture.migrate("status").status == 0)
            try await fixture.expectSound("\(step)")
            #expect(try fixture.leftovers() == [])
        }
    }

    @Test("A store from before there were environments has none that is protected, and a sound one is left as it is")
    func beforeEnvironments() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let repaired = try await fixture.migrate("repair", "--write")
            #expect(repaired.status == 0 && repaired.output == "the store is sound\n", "\(repaired)")
            #expect(try fixture.value("SELECT max(number) FROM migration") == "2")
        }
    }

    @Test("validate counts the migrations that are pending, and mutations, outcomes and watchers apart")
    func counted() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let older = try result(await fixture.migrate("validate", "--json"))
            #expect(older["migrations"] as? Int == 2)
            #expect(older["pending"] as? Int == Migration.all.count - 2)
            #expect(try await fixture.migrate("up", "--no-backup").status == 0)
            let ids = try await fixture.queue(3)
            for id in ids[1...] { try await fixture.settle(id) }
            try await fixture.withDatabase { database in
                for name in ["a", "b", "c"] {
                    _ = try await database.watchers.put(name, in: "main", document: "{ note }", now: Date())
                }
            }
            let now = try result(await fixture.migrate("validate", "--json"))
            let counts = ["pending", "mutations", "outcomes", "watchers"].map { now[$0] as? Int }
            #expect(counts == [0, 1, 2, 3])
        }
    }

    @Test("validate counts the caches of all partitions")
    func countedCaches() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.writeInEach()
            let sound = try result(await fixture.migrate("validate", "--json"))
            #expect(sound["caches"] as? Int == 2 && sound["migrations"] as? Int == Migration.all.count)
        }
    }

    @Test("status says in JSON that a store with pending migrations is not current")
    func notCurrent() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let status = try result(await fixture.migrate("status", "--json"))
            #expect(status["isCurrent"] as? Bool == false)
        }
    }

    @Test("plan names each migration by the checksum that status has of it")
    func checksums() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let status = try result(await fixture.migrate("status", "--json"))
            let pending = (status["schema"] as? [String: Any])?["pending"] as? [[String: Any]]
            let plan = try result(await fixture.migrate("plan", "--no-backup", "--json"))["steps"] as? [[String: Any]]
            let known = try #require(pending?.compactMap { $0["checksum"] as? String })
            #expect(plan?.compactMap { $0["checksum"] as? String } == known)
            #expect(known.count == Migration.all.count - 2 && known.allSatisfy { !$0.isEmpty })
        }
    }

    @Test("status says when each migration was applied, and how long ago that was")
    func appliedAgo() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let words = try await fixture.migrate("status").output
            let times = words.matches(of: /applied .+, 20[\dT:-]+Z \(\d+ (s|min) ago\)\n/)
            #expect(times.count == Migration.all.count, "\(words)")
        }
    }

    @Test("status tells in JSON the format of larder.sqlite that it tells in words")
    func databaseFormat() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let words = try await fixture.migrate("status").output
            let format = try #require(words.firstMatch(of: /larder\.sqlite  format ([1-9]\d*)\n/).flatMap { Int($0.1) })
            let status = try result(await fixture.migrate("status", "--json"))
            #expect((status["schema"] as? [String: Any])?["format"] as? Int == format, "\(status)")
        }
    }

    @Test("A program that opens an older store for reading only is told what is pending, and migrates nothing")
    func readingProgram() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            var options = Store.Options()
            options.isReadOnly = true
            let schema = ["type Query { number: Int }"]
            let store = try Store.open(at: fixture.store, schemaText: schema, options: options)
            let error = #expect(throws: LarderError.self) { _ = try store.current() }
            #expect(error?.code.rawValue == "operations.pending")
            try store.close()
            #expect(try fixture.value("SELECT max(number) FROM migration") == "2")
        }
    }

    @Test("up names in JSON no backup where none is wanted")
    func noBackup() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let up = try result(await fixture.migrate("up", "--no-backup", "--json"))
            #expect(up["backup"] is NSNull, "\(up)")
        }
    }

    @Test("status names in JSON the folder of the store, with its whole path")
    func folder() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let status = try result(await fixture.migrate("status", "--json"))
            #expect(status["store"] as? String == fixture.store.path, "\(status)")
        }
    }

    @Test("status says in JSON when each migration was applied")
    func appliedTime() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            try fixture.execute("UPDATE migration SET applied = 1800000000000 WHERE number = 2")
            let status = try result(await fixture.migrate("status", "--json"))
            let applied = (status["schema"] as? [String: Any])?["applied"] as? [[String: Any]]
            let second = applied?.first { $0["number"] as? Int == 2 }
            #expect(second?["applied"] as? String == "2027-01-15T08:00:00Z", "\(status)")
        }
    }
}
