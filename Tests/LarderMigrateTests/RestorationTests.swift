import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite("Restoring", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"), .timeLimit(.minutes(10)))
struct RestorationTests {
    @Test("A mutation that is pending in the backup and was settled since is not sent again; its outcome stays")
    func settledSince() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let ids = try await fixture.queue(3)
            let backup = try await fixture.makeBackup()
            try await fixture.settle(ids[0])
            let later = try await fixture.queue(1, named: "later")
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try text(result(outcome)["mutations"]) == #"{"kept":2,"restored":0,"setAside":0,"settledSince":1}"#)
            // What was queued since is not lost either.
            #expect(try await fixture.mutations() == [ids[1], ids[2]] + later)
            try await fixture.expectApplied(ids[0])
            try await fixture.expectSound()
        }
    }

    @Test("A mutation that is pending in the backup and in flight since stays in flight, and its answer is taken")
    func begunSince() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            let attempt = try await fixture.withDatabase { database in
                try await database.mutations.begin(ids[0], owner: "somebody", now: Date()).attempt
            }
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            try await fixture.withDatabase { database in
                #expect(try database.mutations.list().map(\.state) == [.inFlight, .pending])
                try await database.mutations.answer(attempt, Array("{}".utf8), now: Date())
                try await database.mutations.settle(ids[0], now: Date())
            }
            #expect(try await fixture.mutations() == [ids[1]])
            try await fixture.expectSound()
        }
    }

    @Test("What environment is the current one since the backup stays so, and none does", arguments: [true, false])
    func current(isEntered: Bool) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            let backup = try await fixture.makeBackup()
            let since = isEntered ? ["env", "use", "other"] : ["env", "none"]
            #expect(try await MigrateProcess.run(since + ["--store", fixture.store.path]).status == 0)
            let before = try await fixture.withDatabase { try $0.environments.current() }
            #expect(try await fixture.restore(backup).status == 0)
            #expect(try await fixture.withDatabase { try $0.environments.current() } == before)
        }
    }

    @Test("Lost mutations come back at their place; mutations in flight are set aside, for their end is unknown")
    func lost() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(3)
            try await fixture.begin(ids[1])
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            let restored = try await fixture.mutations(after: fixture.restore(backup, "--json"))
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.pending, .deadLetter, .pending])
            #expect(restored[1].failure?.class == .outcomeUnknown)
        }
    }

    @Test(
        "A mutation that was settled so long ago that its outcome is forgotten is not sent again, but set aside",
        arguments: [true, false])
    func forgottenOutcome(byTime: Bool) async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            try await fixture.settle(ids[0])
            // As if as many had been queued meanwhile.
            try fixture.execute("UPDATE sqlite_sequence SET seq = seq + \(Outcome.kept) WHERE name = 'mutation'")
            let later = try await fixture.queue(1, named: "later")
            try await fixture.settle(later[0])
            let pruned = try await fixture.withDatabase { database in
                byTime
                    ? try await database.mutations.prune(before: Date() + 60)
                    : try await database.mutations.prune(keeping: Outcome.kept, in: Store.unnamedPartition)
            }
            #expect(pruned == (byTime ? 2 : 1))
            let outcome = try await fixture.restore(backup, "--json")
            let restored = try await fixture.mutations(after: outcome)
            #expect(
                try text(result(outcome)["mutations"])
                    == #"{"kept":1,"restored":1,"setAside":1,"settledSince":0}"#)
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.deadLetter, .pending])
            #expect(restored[0].failure?.class == .restored)
        }
    }

    @Test("No number is given again that the backup's store had given, also to a mutation that was settled then")
    func givenNumbers() async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)
            try fixture.keepDatabase()
            let second = try await fixture.queue(4, named: "second")
            for id in second.dropFirst() { try await fixture.settle(id) }
            _ = try await fixture.withDatabase { try await $0.mutations.prune(before: Date() + 60) }
            let backup = try await fixture.makeBackup()
            try fixture.bringBackKeptDatabase()
            #expect(try await fixture.restore(backup).status == 0)
            let later = try await fixture.queue(1, named: "later")
            let mutations = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(mutations.map(\.id) == [first[0], second[0], later[0]])
            #expect(mutations.map(\.sequence) == [1, 2, 6])
            try await fixture.expectSound()
        }
    }

    @Test(
        "A backup whose numbers the store has given to other mutations is refused, and nothing of it is left",
        arguments: [false, true])
    func takenNumbers(isSettled: Bool) async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)
            try fixture.keepDatabase()
            try await fixture.queue(1, named: "second")
            let backup = try await fixture.makeBackup()
            try fixture.bringBackKeptDatabase()
            let later = try await fixture.queue(1, named: "later")
            if isSettled { for id in first + later { try await fixture.settle(id) } }
            let before = try await fixture.mutations()
            let elsewhere = fixture.folder.appending(path: "elsewhere").path
            for more in [[], ["--backups", elsewhere]] {
                let outcome = try await MigrateProcess.run(
                    ["restore", backup.path, "--json", "--store", fixture.store.path] + more)
                #expect(outcome.status != 0)
                #expect(outcome.errors.contains(#""code":"operations.foreignBackup""#), "\(outcome.errors)")
            }
            // What was backed up first for nothing is gone.
            #expect(try fixture.backup() == backup)
            #expect(!FileManager.default.fileExists(atPath: elsewhere))
            #expect(try await fixture.mutations() == before)
            #expect(try fixture.leftovers() == [])
            try await fixture.expectSound()
        }
    }

    @Test("A restoration that fails once all of it is staged leaves nothing of it")
    func failsStaged() async throws {
        struct Stop: Error {}
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(2)
            let backup = try StoreBackup(at: try await fixture.makeBackup())
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .seconds(60))
            defer { lock.release() }
            #expect(throws: (any Error).self) {
                try StoreRestoration.bringBack(backup, to: fixture.store, backingUpInto: nil, holding: lock) { moment in
                    if moment == .staged { throw Stop() }
                }
            }
            #expect(try fixture.leftovers() == [])
        }
    }

    @Test(
        "The backup that a failed restoration has made goes with it, and the folder if it was made for that",
        arguments: [true, false])
    func failsAfterBackup(isThere: Bool) async throws {
        struct Stop: Error {}
        try await MigrationFixture.with { fixture in
            try await fixture.queue(2)
            let backup = try StoreBackup(at: try await fixture.makeBackup())
            let place = fixture.folder.appending(path: "place")
            if isThere { try FileManager.default.createDirectory(at: place, withIntermediateDirectories: false) }
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .seconds(60))
            defer { lock.release() }
            #expect(throws: (any Error).self) {
                try StoreRestoration.bringBack(backup, to: fixture.store, backingUpInto: place, holding: lock) {
                    moment in
                    if moment == .staged { throw Stop() }
                }
            }
            let left = try? FileManager.default.contentsOfDirectory(atPath: place.path)
            #expect(left == (isThere ? [] : nil))
        }
    }

    @Test("The backup that a failed restoration has made stays where migrations were applied", arguments: [16, 17])
    func failsAfterMigrating(migrations: Int) async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: migrations)
            let backup = try StoreBackup(at: try await fixture.makeBackup())
            try fixture.execute(
                """
                CREATE TRIGGER refusal BEFORE UPDATE OF restoration ON store BEGIN SELECT RAISE(ABORT, 'No.'); END
                """)
            let place = fixture.folder.appending(path: "place")
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .seconds(60))
            defer { lock.release() }
            #expect(throws: LarderError.self) {
                try StoreRestoration.bringBack(backup, to: fixture.store, backingUpInto: place, holding: lock)
            }
            #expect(try fixture.value("SELECT max(number) FROM migration") == "17")
            let left = try? FileManager.default.contentsOfDirectory(atPath: place.path)
            #expect(left?.count == (migrations == 17 ? nil : 1))
        }
    }

    @Test("A damaged backup is refused before a folder is made for it")
    func damaged() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            try Data("x".utf8).write(to: backup.appending(path: "larder.sqlite"))
            let new = fixture.folder.appending(path: "new").path
            let outcome = try await MigrateProcess.run(["restore", backup.path, "--store", new])
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: new))
        }
    }

    @Test("A folder that holds something else becomes no store")
    func somethingElse() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let other = fixture.folder.appending(path: "other")
            try FileManager.default.createDirectory(at: other, withIntermediateDirectories: false)
            try Data("mine".utf8).write(to: other.appending(path: "letter.txt"))
            let outcome = try await MigrateProcess.run(["restore", backup.path, "--store", other.path, "--json"])
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"command.notAStore""#), "\(outcome.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: other.path) == ["letter.txt"])
        }
    }

    @Test("The cache becomes what it was while another process reads and writes; nothing that it queued is lost")
    func whileUsed() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            try await fixture.write(8)
            let user = try MigrateProcess.Running("larder-crash", [fixture.store.path, "use"])
            defer { user.kill() }
            try await user.wait(forLine: "reads 8")
            for _ in 0..<3 {
                let outcome = try await fixture.restore(backup)
                #expect(outcome.status == 0, "\(outcome.errors)")
            }
            try await user.wait { lines in lines.last { $0.hasPrefix("reads") } == "reads 7" }
            let count = user.lines.count
            try await user.wait { $0.count > count + 20 }
            #expect(user.process.isRunning)
            user.kill()
            let said = try await user.finish()
            #expect(said.errors == "")
            let queued = said.output.split(separator: "\n").filter { $0.hasPrefix("queued ") }
                .map { String($0.dropFirst("queued ".count)) }
            let known = Set(try await fixture.mutations().map(\.uuidString))
            #expect(queued.count > 20 && queued.allSatisfy(known.contains))
            #expect(try await fixture.number() == 7)
            try await fixture.expectSound()
        }
    }

    @Test(
        "A killed restoration leaves the store wholly before or wholly after",
        arguments: ["backedUp", "staged", "committed", "cache(named)", "cache(superseded)"])
    func killed(step: String) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            try await fixture.write(8)
            try fixture.execute("DELETE FROM mutation")
            let killed = try await MigrateProcess.crash(fixture.store.path, "restore", backup.path, step)
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            let isAfter = !["backedUp", "staged"].contains(step)
            #expect(try await fixture.number() == (isAfter ? 7 : 8))
            #expect(try await fixture.mutations() == (isAfter ? ids : []))
            try await fixture.expectSound("\(step)")
            // Once more, and all of it.
            try await fixture.write(9)
            #expect(try await fixture.restore(backup).status == 0)
            #expect(try await fixture.number() == 7)
            #expect(try await fixture.mutations() == ids)
            #expect(try fixture.leftovers() == [])
            try await fixture.expectSound()
        }
    }

    @Test(
        "A restoration into a new folder that was killed can be made again",
        arguments: ["staged", "committed", "cache(named)"])
    func killedInNewFolder(step: String) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            let new = MigrationFixture(folder: fixture.folder.appending(path: "new"))
            try FileManager.default.createDirectory(at: new.folder, withIntermediateDirectories: true)
            let killed = try await MigrateProcess.crash(new.store.path, "restore", backup.path, step)
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            let again = try await new.restore(backup)
            #expect(again.status == 0, "\(again.errors)")
            #expect(try await new.number() == 7)
            #expect(try await new.mutations() == ids)
            #expect(try new.leftovers() == [])
            try await new.expectSound()
        }
    }

    @Test("A restoration backs up the store first, so that it can be taken back")
    func takenBack() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let first = try await fixture.makeBackup(in: fixture.folder.appending(path: "first"))
            try await fixture.write(8)
            #expect(try await fixture.restore(first).status == 0)
            #expect(try await fixture.number() == 7)
            #expect(try await fixture.restore(try fixture.backup()).status == 0)
            #expect(try await fixture.number() == 8)
        }
    }

    @Test("To a position from before a restoration everything may have changed, whatever is written after it")
    func positions() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let backup = try await fixture.makeBackup()
            try await fixture.write(8)
            let position = try await fixture.withPartition { _, app in try app.records.position }
            #expect(try await fixture.restore(backup).status == 0)
            try await fixture.write(9)
            let changes = try await fixture.withPartition { _, app in try app.records.changes(since: position) }
            #expect(changes == .everything)
        }
    }

    @Test("A journal that a lost larder.sqlite has left is put aside, and is none of the new file's")
    func leftJournal() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            try fixture.loseDatabase()
            try Data("mine".utf8).write(to: fixture.store.appending(path: "larder.sqlite-journal"))
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            let names = try FileManager.default.contentsOfDirectory(atPath: fixture.store.path)
            #expect(!names.contains("larder.sqlite-journal"))
            let kept = try #require(names.first { $0.contains(".damaged-") && $0.hasSuffix("-journal") }, "\(names)")
            #expect(try Data(contentsOf: fixture.store.appending(path: kept)) == Data("mine".utf8))
            #expect(try await fixture.mutations() == ids)
        }
    }

    @Test("A mutation that comes back keeps the idempotency key that it had")
    func keptKeys() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            _ = try await fixture.queueByOwnKey()
            let before = try await fixture.withDatabase { try $0.mutations.list().map(\.idempotencyKey) }
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            let after = try await fixture.withDatabase { try $0.mutations.list().map(\.idempotencyKey) }
            #expect(after == before && after.count == 2)
        }
    }

    @Test("A lost database comes back whole, and the caches beside it stay as the backup has them")
    func lostDatabase() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            try await fixture.write(8)
            try fixture.loseDatabase()
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            // What was there were caches alone.
            let made = try FileManager.default.contentsOfDirectory(atPath: fixture.backups.path)
            #expect(made.count == 2, "\(made)")
            #expect(try await fixture.mutations() == ids)
            #expect(try await fixture.number() == 7)
            try await fixture.expectSound()
        }
    }

    @Test("The caches of all partitions come back")
    func allCaches() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.writeInEach()
            let backup = try await fixture.makeBackup()
            let new = MigrationFixture(folder: fixture.folder.appending(path: "new"))
            #expect(try await new.restore(backup).status == 0)
            #expect(try await new.number() == 1)
            #expect(try await new.migrate("env", "use", "staging").status == 0)
            #expect(try await new.number() == 0)
        }
    }

    @Test("What was changed of an environment since the backup stays so")
    func changedEnvironment() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            let backup = try await fixture.makeBackup()
            #expect(try await fixture.add("staging", "--region", "eu-west-1").status == 0)
            let changed = try await fixture.migrate("env", "show", "staging").output
            #expect(changed.contains("eu-west-1"), "\(changed)")
            #expect(try await fixture.restore(backup).status == 0)
            #expect(try await fixture.migrate("env", "show", "staging").output == changed)
        }
    }

    @Test("restore counts in JSON the partitions that came back, whether they have caches or not")
    func countedPartitions() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let other = MigrationFixture(folder: fixture.folder.appending(path: "other"))
            let restored = try result(await other.restore(backup, "--json"))
            #expect(restored["partitions"] as? Int == 1, "\(restored)")
            #expect((restored["caches"] as? [String])?.isEmpty == true, "\(restored)")
        }
    }
}

extension MigrationFixture {
    /// Removes `larder.sqlite` and all that SQLite keeps beside it.
    func loseDatabase() throws {
        for suffix in ["", "-wal", "-shm"] {
            let path = store.path + "/larder.sqlite" + suffix
            if FileManager.default.fileExists(atPath: path) { try FileManager.default.removeItem(atPath: path) }
        }
    }

    private var kept: String { folder.path + "/kept" }

    /// Copies `larder.sqlite` as it is now.
    func keepDatabase() throws {
        try FileManager.default.copyItem(atPath: store.path + "/larder.sqlite", toPath: kept)
    }

    /// Puts the copy in the place of `larder.sqlite`: an earlier state of the store.
    func bringBackKeptDatabase() throws {
        try loseDatabase()
        try FileManager.default.copyItem(atPath: kept, toPath: store.path + "/larder.sqlite")
    }
}
