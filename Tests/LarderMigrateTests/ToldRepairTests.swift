import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite(
    "What a repair tells, and what it leaves", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct ToldRepairTests {
    @Test("What was saved, lost and set aside is told, and under which name the damaged file is kept")
    func lines() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(3)
            try fixture.executeUnchecked("DELETE FROM mutation_content WHERE sequence = 1")
            let told = try await fixture.migrate("repair")
            #expect(told.status == 3)
            #expect(told.output.hasPrefix("save what can be read of larder.sqlite into a new file ("))
            #expect(told.errors.contains("hint: 'larder-migrate repair --write' does it"), "\(told.errors)")
            let done = try await fixture.migrate("repair", "--write")
            let lines = done.output.split(separator: "\n").map(String.init)
            #expect(lines.contains("saved 2 rows of mutation"), "\(done.output)\(done.errors)")
            #expect(lines.contains("lost, since it cannot be read: 1 mutation"), "\(done.output)")
            #expect(lines.last?.hasPrefix("the damaged file is larder.sqlite.damaged-") == true, "\(done.output)")
            #expect(!done.output.contains("identity"))
        }
    }

    @Test("A repair tells how many mutations it has set aside, such as one that depends on a lost one")
    func bereft() async throws {
        try await MigrationFixture.with { fixture in
            let lost = try await fixture.queue(1)[0]
            _ = try await fixture.queue(in: "b", dependingOn: lost)
            try fixture.executeUnchecked("DELETE FROM mutation_content WHERE sequence = 1")
            let done = try await fixture.migrate("repair", "--write")
            #expect(done.output.contains("\nset aside, for you to look at: 1 mutation\n"), "\(done)")
        }
    }

    @Test("JSON counts the mutations that are lost apart from those that are set aside")
    func counted() async throws {
        try await MigrationFixture.with { fixture in
            let lost = try await fixture.queue(1)[0]
            for lane in ["b", "c"] { _ = try await fixture.queue(in: lane, dependingOn: lost) }
            try fixture.executeUnchecked("DELETE FROM mutation_content WHERE sequence = 1")
            let done = try result(await fixture.migrate("repair", "--write", "--json"))
            let report = try #require(done["database"] as? [String: Any])
            #expect(report["lost"] as? Int == 1 && report["setAside"] as? Int == 2)
            #expect(report["isNewStore"] as? Bool == false)
        }
    }

    @Test("A store whose identity is lost has another one from then on: its older backups are another store's")
    func identity() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            try fixture.damage(table: "store")
            let done = try await fixture.migrate("repair", "--write")
            #expect(done.output.contains("the store's identity is lost: its backups are another's from now on"))
            let refused = try await fixture.restore(backup, "--json")
            #expect(refused.status == 4)
            #expect(refused.errors.contains(#""code":"operations.foreignBackup""#), "\(refused.errors)")
            try await fixture.expectSound()
        }
    }

    @Test("Watchers and pins are there after a repair, and so are environments, and which of them is the current one")
    func others() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging", "--user", "ada").status == 0)
            try await fixture.queueInCurrent(2)
            try await fixture.withDatabase { database in
                let name = try #require(try database.environments.current()?.partition?.name)
                _ = try await database.watchers.put("w", in: name, document: "{ note }", now: Date())
                try await database.pins.put("p", in: name, document: "{ note }", now: Date())
            }
            try fixture.executeUnchecked("DELETE FROM mutation_content WHERE sequence = 1")
            #expect(try await fixture.migrate("repair", "--write").status == 0)
            try await fixture.withDatabase { (database) throws in
                let current = try database.environments.current()?.partition
                #expect(current?.environment == "staging" && current?.user == "ada")
                let name = try #require(current?.name)
                #expect(try database.watchers.list(in: name).map(\.name) == ["w"])
                #expect(try database.pins.list(in: name).map(\.name) == ["p"])
            }
            try await fixture.expectSound()
        }
    }

    @Test("A program that has a damaged cache open goes on with it while a repair puts an empty one in its place")
    func openCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let user = try MigrateProcess.Running("larder-crash", [fixture.store.path, "use", "reading"])
            defer { user.kill() }
            try await user.wait(forLine: "reads 7")
            // LMDB's magic number, at which only an opener of the file looks.
            let file = try FileHandle(forUpdating: fixture.store.appending(path: "records/main/1/data.mdb"))
            defer { try? file.close() }
            let size = try file.seekToEnd()
            try file.seek(toOffset: 16)
            try file.write(contentsOf: Data(count: 4))
            let outcome = try await fixture.migrate("repair", "--write", "--json")
            #expect(outcome.status == 0 && outcome.output.contains(#""step":"rebuildCache""#), "\(outcome)")
            #expect(try file.seekToEnd() == size)
            let count = user.lines.count
            // The first of these may have been read before the repair.
            try await user.wait { lines in lines.count > count + 1 }
            #expect(user.process.isRunning && Set(user.lines) == ["reads 7"], "\(user.lines.suffix(3))")
            #expect(try await fixture.number() == nil)
        }
    }

    @Test("Of several caches the damaged one is named and emptied, and the others stay")
    func oneCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.writeInEach()
            let partitions = try await fixture.withDatabase { try $0.environments.partitions() }
            let damaged = try #require(partitions.first { $0.environment == "staging" }).name
            try fixture.damageCache(of: damaged)
            let validated = try await fixture.migrate("validate", "--json")
            #expect(validated.status == 5 && validated.errors.contains(#""findings":["cache \#(damaged): "#))
            let plan = try result(try await fixture.migrate("repair", "--json"))["steps"] as? [[String: Any]]
            #expect(plan?.map { $0["partition"] as? String } == [damaged])
            // A program that has the store open keeps nothing from that, as it would where larder.sqlite is damaged.
            let done = try await fixture.withPartition { (_, _) throws in
                try await fixture.migrate("repair", "--write")
            }
            #expect(done.output.hasPrefix("empty the cache of partition \(damaged), to be fetched again ("))
            #expect(try await fixture.number() == 1)
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            #expect(try await fixture.number() == nil)
            try await fixture.expectSound()
        }
    }

    @Test("JSON counts by table the rows that were saved")
    func savedRows() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(3)
            try fixture.executeUnchecked("DELETE FROM mutation_content WHERE sequence = 1")
            let done = try result(await fixture.migrate("repair", "--write", "--json"))
            let report = try #require(done["database"] as? [String: Any])
            let tables = try #require(report["tables"] as? [[String: Any]])
            let mutations = tables.first { $0["table"] as? String == "mutation" }
            #expect(mutations?["saved"] as? Int == 2, "\(tables)")
        }
    }

    /// Runs `body` with a store in which both the database and the cache are damaged.
    private func withBothDamaged(_ body: (MigrationFixture) async throws -> Void) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(3)
            try fixture.executeUnchecked("DELETE FROM mutation_content WHERE sequence = 1")
            try fixture.damageCache()
            try await body(fixture)
        }
    }

    @Test("Where the database and a cache are damaged, one repair mends both")
    func both() async throws {
        try await withBothDamaged { fixture in
            let steps = try result(await fixture.migrate("repair", "--json"))["steps"] as? [[String: Any]]
            #expect(steps?.map { $0["step"] as? String } == ["salvageDatabase", "rebuildCache"])
            #expect(try await fixture.migrate("repair", "--write").status == 0)
            try await fixture.expectSound()
        }
    }

    @Test("validate names a row that refers to none, with status 5")
    func reference() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(2)
            try fixture.executeUnchecked("UPDATE mutation SET partition = 99 WHERE sequence = 1")
            let validated = try await fixture.migrate("validate")
            #expect(validated.status == 5 && validated.errors.contains(#"parent:"partition""#), "\(validated)")
        }
    }

    @Test("Where the database and a cache are damaged, validate names both")
    func bothNamed() async throws {
        try await withBothDamaged { fixture in
            let validated = try await fixture.migrate("validate", "--json")
            #expect(validated.status == 5, "\(validated)")
            for place in ["larder.sqlite: ", "cache main: "] {
                #expect(validated.errors.contains("\"\(place)"), "\(validated.errors)")
            }
        }
    }

    @Test("JSON says of which table some rows cannot be read")
    func damagedTable() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(3)
            try fixture.damage(table: "mutation_content")
            let done = try result(await fixture.migrate("repair", "--write", "--json"))
            let tables = try #require((done["database"] as? [String: Any])?["tables"] as? [[String: Any]])
            for (name, isDamaged) in [("mutation_content", true), ("watcher", false)] {
                let table = try #require(tables.first { $0["table"] as? String == name }, "\(tables)")
                #expect(table["isDamaged"] as? Bool == isDamaged, "\(table)")
            }
        }
    }

    @Test("JSON counts by table the rows that are damaged")
    func damagedRows() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.withDatabase { database in
                _ = try await database.watchers.put("w", in: "main", document: "{ number }", now: Date())
            }
            try fixture.executeUnchecked("UPDATE watcher SET variables = x'7b'")
            let done = try result(await fixture.migrate("repair", "--write", "--json"))
            let tables = try #require((done["database"] as? [String: Any])?["tables"] as? [[String: Any]])
            let table = try #require(tables.first { $0["table"] as? String == "watcher" }, "\(tables)")
            #expect(table["damaged"] as? Int == 1 && table["saved"] as? Int == 0, "\(table)")
        }
    }

    @Test("JSON says that the store's identity is lost")
    func identityInJSON() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            try fixture.damage(table: "store")
            let done = try result(await fixture.migrate("repair", "--write", "--json"))
            #expect((done["database"] as? [String: Any])?["isNewStore"] as? Bool == true, "\(done)")
        }
    }

    @Test("A repair that is refused for a process that has larder.sqlite open leaves a damaged cache alone, too")
    func bothInUse() async throws {
        try await withBothDamaged { fixture in
            let refused = try await fixture.withDatabase { _ in
                try await fixture.migrate("repair", "--write", "--json")
            }
            #expect(refused.status == 1 && refused.errors.contains(#""code":"operations.busy""#), "\(refused)")
            let steps = try result(await fixture.migrate("repair", "--json"))["steps"] as? [[String: Any]]
            #expect(steps?.map { $0["step"] as? String } == ["salvageDatabase", "rebuildCache"])
        }
    }

    @Test("JSON says of each step of a repair what is damaged")
    func findings() async throws {
        try await withBothDamaged { fixture in
            let steps = try result(await fixture.migrate("repair", "--json"))["steps"] as? [[String: Any]]
            let findings = try #require(steps?.compactMap { $0["finding"] as? String })
            #expect(findings.count == 2 && findings.allSatisfy { !$0.isEmpty }, "\(findings)")
        }
    }
}
