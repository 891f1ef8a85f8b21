import Foundation
import Larder
import LarderMigrations
import LarderTestSupport
import Testing

@Suite(
    "Where the backup before a change is made", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct BackupPlaceTests {
    private func count(_ folder: String) -> Int {
        (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
    }

    @Test(
        "Unless a folder is named it lies beside the store, in whatever way the store's path is written",
        arguments: ["/a/store", "/a/store/", "/a/store/.", "/a/b/../store"])
    func besideStore(path: String) {
        #expect(MigrationPlan.backupFolder(of: URL(filePath: path)).path == "/a/store.backups")
    }

    @Test("plan and up make it in the folder that is named, and none where none is wanted")
    func migrating() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let place = fixture.folder.appending(path: "place").path
            let named = try await fixture.migrate("plan", "--backups", place)
            #expect(named.status == 3 && named.output.hasPrefix("back up into \(place)\napply migration 0003-"))
            let without = try await fixture.migrate("plan", "--no-backup")
            #expect(without.status == 3 && without.output.hasPrefix("apply migration 0003-"), "\(without.output)")
            #expect(try await fixture.migrate("up", "--no-backup", "--backups", place).status == 2)
            let up = try await fixture.migrate("up", "--backups", place)
            #expect(up.status == 0 && up.output.contains("\nthe backup is \(place)/"), "\(up.output)\(up.errors)")
            #expect(count(place) == 1 && count(fixture.backups.path) == 0)
            #expect(try await fixture.migrate("up").output == "nothing was to be done\n")
        }
    }

    @Test("restore makes its backup in the folder that is named, and none where that is said")
    func restoring() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let place = fixture.folder.path + "/place"
            let backup = try await fixture.makeBackup(in: fixture.folder.appending(path: "first"))
            let without = try await fixture.restore(backup, "--no-backup", "--json")
            #expect(try result(without)["backup"] is NSNull, "\(without.errors)")
            #expect(count(fixture.backups.path) == 0)
            let named = try await fixture.restore(backup, "--backups", place, "--json")
            #expect((try result(named)["backup"] as? String)?.hasPrefix(place + "/") == true, "\(named.errors)")
            #expect(count(place) == 1 && count(fixture.backups.path) == 0)
        }
    }

    @Test("backup list, verify and prune work on the folder that is named")
    func caring() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let place = fixture.folder.path + "/place"
            for _ in 0..<2 { #expect(try await fixture.migrate("backup", "--to", place).status == 0) }
            _ = try await fixture.makeBackup()
            func lines(_ arguments: String...) async throws -> Int {
                let all = ["backup"] + arguments + ["--backups", place, "--store", fixture.store.path]
                return try await MigrateProcess.run(all).output.split(separator: "\n").count
            }
            #expect(try await lines("list") == 2)
            #expect(try await lines("verify") == 2)
            #expect(try await lines("prune", "--keep", "1", "--write") == 1)
            #expect(count(place) == 1 && count(fixture.backups.path) == 1)
        }
    }

    @Test("A cache that is left out of a backup is told of, with the reason")
    func omitted() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.damageCache()
            let outcome = try await fixture.migrate("backup")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.errors.contains(/the cache of partition main is left out: \S+/), "\(outcome.errors)")
        }
    }

    @Test("A cache that was copied from another partition's is left out of a backup, and told of")
    func copiedCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let records = fixture.store.appending(path: "records")
            try FileManager.default.copyItem(at: records.appending(path: "main"), to: records.appending(path: "copy"))
            let outcome = try await fixture.migrate("backup")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.errors.contains("the cache of partition copy is left out: "), "\(outcome.errors)")
            #expect(!outcome.errors.contains("main is left out"), "\(outcome.errors)")
        }
    }

    @Test("What lies among the caches under a name that no partition has is none, and in no backup")
    func otherFolders() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let records = fixture.store.appending(path: "records")
            for name in ["main.old", ".main"] {
                try FileManager.default.copyItem(at: records.appending(path: "main"), to: records.appending(path: name))
            }
            let status = try await fixture.migrate("status")
            #expect(status.status == 0 && status.output.contains("main, generation"), "\(status.errors)")
            #expect(!status.output.contains("main.old") && !status.output.contains(".main"), "\(status.output)")
            let backup = try await fixture.migrate("backup", "--json")
            #expect(try (result(backup)["partitions"] as? [Any])?.count == 1, "\(backup.errors)")
        }
    }

    @Test("What a verb works on is told on standard error: the store, its environment, and whether that is protected")
    func heading() async throws {
        try await MigrationFixture.with { fixture in
            let store = "larder-migrate: store \(fixture.store.path)"
            let new = try await fixture.add("staging")
            #expect(new.errors.hasPrefix("\(store), new\n"), "\(new.errors)")
            _ = try await fixture.add("production", "--protected")
            #expect(try await fixture.migrate("status").errors.hasPrefix("\(store)\n"))
            for (name, told) in [("staging", "staging"), ("production", "production, protected")] {
                #expect(try await fixture.migrate("env", "use", name).status == 0)
                let status = try await fixture.migrate("status")
                #expect(status.errors.hasPrefix("\(store), environment \(told)\n"), "\(status.errors)")
            }
        }
    }

    @Test("status and validate tell in words what there is")
    func words() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let none = try await fixture.migrate("status").output
            #expect(none.hasPrefix("larder.sqlite  none yet\ncache          main, generation 1, "), "\(none)")
            try await fixture.queue(2)
            let status = try await fixture.migrate("status").output
            #expect(status.contains(/\napplied        0001-mutations, \d{4}-/), "\(status)")
            let named = ["LARDER_STORE": fixture.store.path]
            let again = try await MigrateProcess.run(["status"], environment: named).output
            #expect(again.replacing(/\d+ s ago/, with: "") == status.replacing(/\d+ s ago/, with: ""))
            #expect(!status.contains("pending") && status.contains(/bytes: format \d+\n$/), "\(status)")
            let sound = try await fixture.migrate("validate").output
            #expect(sound.contains(/^sound: \d+ migrations as applied, 2 mutations, 1 cache\n$/), "\(sound)")
            try fixture.markCache(format: 0)
            #expect(try await fixture.migrate("status").output.contains(": format 0, to be migrated to "))
        }
    }

    @Test("A folder among the backups that is none is told of beside their list, with a hint")
    func unread() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let other = fixture.backups.appending(path: "notes")
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
            let list = try await fixture.migrate("backup", "list")
            #expect(list.status == 0 && list.output.hasPrefix("\(backup.path) "), "\(list.output)")
            let told = list.errors.split(separator: "\n")
            try #require(told.count == 2, "\(list.errors)")
            #expect(told[0].hasPrefix("larder-migrate: \(other.path): "), "\(list.errors)")
            #expect(told[1].hasPrefix("larder-migrate: hint: 'larder-migrate backup verify' "), "\(list.errors)")
        }
    }

    @Test("backup tells files, bytes and partitions in JSON, and restore the caches that came back")
    func members() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let made = try result(await fixture.migrate("backup", "--json"))
            let backup = try fixture.backup()
            let files = ["larder.sqlite", "records/main/data.mdb"].map { backup.appending(path: $0) }
            let bytes = try files.reduce(0) { try $0 + Data(contentsOf: $1).count }
            #expect(made["files"] as? Int == 2 && made["bytes"] as? Int == bytes)
            #expect(made["partitions"] as? [String] == ["main"])
            let list = try result(await fixture.migrate("backup", "list", "--json"))["backups"] as? [[String: Any]]
            #expect(list?.first?["migrations"] as? Int == Migration.all.count && list?.first?["bytes"] as? Int == bytes)
            let restored = try result(await fixture.restore(backup, "--json"))
            #expect(restored["caches"] as? [String] == ["main"])
        }
    }

    @Test("backup and backup list name in JSON the store that a backup is of, by its identity")
    func identity() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let status = try result(await fixture.migrate("status", "--json"))
            let identity = try #require((status["schema"] as? [String: Any])?["identity"] as? String)
            let made = try result(await fixture.migrate("backup", "--json"))
            #expect(made["store"] as? String == identity)
            let list = try result(await fixture.migrate("backup", "list", "--json"))["backups"] as? [[String: Any]]
            #expect(list?.map { $0["store"] as? String } == [identity], "\(list as Any)")
        }
    }

    @Test("plan names in JSON the folder in which the backup is to be made, and each migration by its number")
    func planned() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder()
            let place = fixture.folder.appending(path: "place").path
            let plan = try result(await fixture.migrate("plan", "--backups", place, "--json"))
            let steps = try #require(plan["steps"] as? [[String: Any]])
            #expect(steps.first?["folder"] as? String == place, "\(plan)")
            #expect(steps.dropFirst().first?["number"] as? Int == 3, "\(plan)")
        }
    }

    @Test("backup list says in JSON when each backup was made")
    func creation() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            _ = try await fixture.makeBackup(ofYear: 2021)
            let list = try result(await fixture.migrate("backup", "list", "--json"))["backups"] as? [[String: Any]]
            #expect(list?.map { $0["created"] as? String } == ["2021-01-01T00:00:00Z"], "\(list as Any)")
        }
    }

    @Test("A backup is restored whole into an empty folder that is there")
    func emptyFolder() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let other = MigrationFixture(folder: fixture.folder.appending(path: "other"))
            try FileManager.default.createDirectory(at: other.store, withIntermediateDirectories: true)
            let outcome = try await other.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await other.mutations() == ids)
            try await other.expectSound()
        }
    }

    @Test("JSON has no schema, no migrations and no identity of a store that has caches alone")
    func cachesAlone() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let status = try result(await fixture.migrate("status", "--json"))
            #expect(status["schema"] is NSNull, "\(status)")
            let made = try result(await fixture.migrate("backup", "--json"))
            #expect(made["store"] is NSNull, "\(made)")
            let list = try result(await fixture.migrate("backup", "list", "--json"))
            let backup = try #require((list["backups"] as? [[String: Any]])?.first)
            #expect(backup["store"] is NSNull && backup["migrations"] is NSNull, "\(backup)")
        }
    }

    @Test("A backup that leaves a damaged cache out has the other caches")
    func besideDamaged() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.writeInEach()
            let partitions = try await fixture.withDatabase { try $0.environments.partitions() }
            let damaged = try #require(partitions.first { $0.environment == "staging" }).name
            try fixture.damageCache(of: damaged)
            let made = try result(await fixture.migrate("backup", "--json"))
            #expect(made["omitted"] as? [String] == [damaged], "\(made)")
            // The database, and the other cache.
            #expect(made["files"] as? Int == 2, "\(made)")
        }
    }

    @Test("JSON has the code, the reason and a hint of each backup that is damaged or cannot be read")
    func reasonsInJSON() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let other = fixture.backups.appending(path: "notes")
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
            try Data("x".utf8).write(to: backup.appending(path: "larder.sqlite"))
            let list = try result(await fixture.migrate("backup", "list", "--json"))
            let verified = try result(await fixture.migrate("backup", "verify", "--json"))
            let unread = try #require(list["unread"] as? [[String: Any]], "\(list)")
            let damaged = try #require(verified["damaged"] as? [[String: Any]], "\(verified)")
            #expect(unread.count == 1 && damaged.count == 2)
            for row in unread + damaged {
                #expect(row["code"] as? String == "operations.damagedBackup", "\(row)")
                #expect((row["message"] as? String)?.isEmpty == false, "\(row)")
                #expect((row["hint"] as? String)?.hasPrefix("'larder-migrate backup verify' ") == true, "\(row)")
            }
        }
    }
}
