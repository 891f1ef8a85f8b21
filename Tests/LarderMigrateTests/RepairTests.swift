import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite("Repair", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"), .timeLimit(.minutes(10)))
struct RepairTests {
    @Test("A sound store needs none")
    func sound() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let outcome = try await fixture.migrate("repair", "--write")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.output == "the store is sound\n")
        }
    }

    @Test("The readable rows of a damaged database become a new file; the damaged one is kept, byte for byte")
    func salvaged() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.fill()
            let file = fixture.store.appending(path: "larder.sqlite")
            try fixture.damage(pages: 40..<44)
            let damaged = try Data(contentsOf: file)
            #expect(try await fixture.migrate("validate").status == 5)
            let plan = try await fixture.migrate("repair", "--json")
            #expect(plan.status == 3, "\(plan.errors)")
            #expect(plan.output.contains(#""step":"salvageDatabase""#))
            #expect(try Data(contentsOf: file) == damaged)
            let outcome = try await fixture.migrate("repair", "--write", "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            try await fixture.expectSound()
            let saved = try await fixture.mutations()
            #expect(Set(saved).isSubset(of: ids))
            #expect(saved.count > ids.count / 2, "\(saved.count) of \(ids.count)")
            let database = try #require(try result(outcome)["database"] as? [String: Any])
            let kept = try #require(database["kept"] as? String)
            #expect(try Data(contentsOf: fixture.store.appending(path: kept)) == damaged)
            // Whatever was lost, no number is given twice.
            try await fixture.queue(1, named: "later")
            let last = try await fixture.withDatabase { try $0.mutations.list().last?.sequence ?? 0 }
            #expect(last > 1 << 20)
        }
    }

    @Test("Whichever page is damaged, what can be read is saved, and what is saved fits together")
    func anywhere() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.fill(100)
            let sound = try Data(contentsOf: fixture.store.appending(path: "larder.sqlite"))
            var (saved, count, hopeless) = (0, 0, 0)
            for page in Array(1..<45) + Array(stride(from: 45, to: sound.count / 4096, by: 5)) {
                let place = fixture.folder.appending(path: "page\(page)")
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
                var bytes = sound
                bytes.replaceSubrange(page * 4096..<(page + 1) * 4096, with: Data(repeating: 0xA5, count: 4096))
                try bytes.write(to: place.appending(path: "larder.sqlite"))
                let lock = try MigrationLock.take(in: place, for: "a test", within: .zero)
                do {
                    let report = try OperationsDatabase.repair(folder: place, holding: lock)
                    #expect(try Data(contentsOf: place.appending(path: report.kept)) == bytes)
                } catch let error as OperationsError where error.code == .damaged {
                    // Where the first definitions of tables are, SQLite reads none: the file stays as it is.
                    #expect(try Data(contentsOf: place.appending(path: "larder.sqlite")) == bytes)
                    hopeless += 1
                    lock.release()
                    continue
                } catch { Issue.record("page \(page): \(error)") }
                lock.release()
                let database = try OperationsDatabase(folder: place)
                #expect(try database.check().problems == [], "page \(page)")
                let there = try database.mutations.list().map(\.id)
                #expect(Set(there).isSubset(of: ids), "page \(page)")
                saved += there.count
                count += 1
                try database.close()
                try FileManager.default.removeItem(at: place)
            }
            #expect(hopeless <= 1)
            #expect(saved > count * ids.count * 3 / 4, "\(saved) of \(count * ids.count)")
        }
    }

    @Test("Rows between two damaged pages are saved")
    func betweenDamages() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.fill()
            let rows = try await fixture.withDatabase { try $0.mutations.list() }
            let between = try #require(rows.first { $0.sequence == 151 }).id
            let bytes = try Data(contentsOf: fixture.store.appending(path: "larder.sqlite"))
            for number in [100, 200] {
                let place = try #require(bytes.range(of: Data(#"{"text":"\#(number) x"#.utf8)))
                let page = place.lowerBound / 4_096
                try fixture.damage(pages: page..<page + 1)
            }
            let outcome = try await fixture.migrate("repair", "--write")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.mutations().contains(between))
        }
    }

    @Test("No file is swapped under a process that has it open: the process is named, and nothing is done")
    func inUse() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.fill()
            try fixture.damage(pages: 40..<44)
            let user = try MigrateProcess.Running("larder-crash", [fixture.store.path, "use"])
            defer { user.kill() }
            try await user.wait { lines in lines.contains { $0.hasPrefix("queued ") } }
            let outcome = try await fixture.migrate("repair", "--write", "--json")
            #expect(user.process.isRunning)
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains(#""code":"operations.busy""#), "\(outcome.errors)")
            #expect(outcome.errors.contains("Process \(user.process.processIdentifier) has"))
        }
    }

    @Test("Where nothing can be read, that is said, and the file stays")
    func hopeless() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.fill()
            try fixture.damage(pages: 0..<1, after: 100)
            let before = try Data(contentsOf: fixture.store.appending(path: "larder.sqlite"))
            let outcome = try await fixture.migrate("repair", "--write", "--json")
            #expect(outcome.status == 5)
            #expect(outcome.errors.contains(#""code":"operations.damaged""#))
            #expect(try Data(contentsOf: fixture.store.appending(path: "larder.sqlite")) == before)
        }
    }

    @Test(
        "A killed repair leaves the damaged file or the new one, and the next one ends it",
        arguments: OperationsDatabase.KillPoint.allCases)
    func killed(step: OperationsDatabase.KillPoint) async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.fill()
            try fixture.damage(pages: 40..<44)
            let killed = try await MigrateProcess.crash(fixture.store.path, "repair", "\(step)")
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            #expect(try await fixture.migrate("validate").status == (step == .swapped ? 0 : 5))
            #expect(try await fixture.migrate("repair", "--write").status == 0)
            try await fixture.expectSound()
            #expect(try await fixture.mutations().count > ids.count / 2)
            let kept = try FileManager.default.contentsOfDirectory(atPath: fixture.store.path)
                .filter { $0.contains(".damaged-") && !$0.hasSuffix("-wal") }
            #expect(kept.count == 1, "\(kept)")
        }
    }

    @Test("A damaged cache is emptied, said beforehand, and used again")
    func cache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.damageCache()
            let plan = try await fixture.migrate("repair", "--json")
            #expect(plan.status == 3)
            #expect(plan.output.contains(#"{"step":"rebuildCache","partition":"main","finding":"#))
            #expect(try await fixture.migrate("repair", "--write").status == 0)
            #expect(try await fixture.number() == nil)
            try await fixture.write(8)
            #expect(try await fixture.number() == 8)
            try await fixture.expectSound()
        }
    }

    @Test("Each damaged cache is emptied, and a sound one beside them is left as it is")
    func caches() async throws {
        try await MigrationFixture.with { fixture in
            let number = GraphQLOperation("{ number(key: 1) }")
            try await fixture.withPartition { store, _ in
                for name in ["a", "b", "c"] {
                    try await store.partition(named: name, nil).write(number, json: Array(#"{"number":7}"#.utf8))
                }
            }
            for name in ["a", "b"] { try fixture.damageCache(of: name) }
            let plan = try await fixture.migrate("repair", "--json")
            #expect(plan.status == 3)
            for name in ["a", "b"] {
                #expect(plan.output.contains(#"{"step":"rebuildCache","partition":"\#(name)","finding":"#))
            }
            #expect(!plan.output.contains(#""partition":"c""#))
            #expect(try await fixture.migrate("repair", "--write").status == 0)
            try await fixture.expectSound()
            try await fixture.withPartition { store, _ in
                let numbers = try ["a", "b", "c"].map { name in
                    try store.partition(named: name, nil).read(number, allowsPartial: true)["number"]?.int
                }
                #expect(numbers == [nil, nil, 7])
            }
        }
    }
}

@Suite(
    "Mutations after a repair", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct RepairedMutationTests {
    /// Repairs what `damaged` has made of a store, and gives the mutations that it has then.
    private func repaired(_ fixture: MigrationFixture) async throws -> [Mutation] {
        let outcome = try await fixture.migrate("repair", "--write", "--json")
        #expect(outcome.status == 0, "\(outcome.errors)")
        #expect(outcome.output.contains(#""step":"salvageDatabase""#), "\(outcome.output)")
        try await fixture.expectSound()
        return try await fixture.withDatabase { try $0.mutations.list() }
    }

    @Test("Where the rows of dependencies are damaged, what may have waited is set aside, and what cannot have is not")
    func lostDependencies() async throws {
        try await MigrationFixture.with { fixture in
            let (first, free) = (try await fixture.queue(1)[0], try await fixture.queue(3)[2])
            let second = try await fixture.queue(in: "second", dependingOn: first)
            try fixture.damage(table: "mutation_dependency")
            let mutations = try await repaired(fixture)
            let state = Dictionary(uniqueKeysWithValues: mutations.map { ($0.id, $0.state) })
            #expect(state[second] == .deadLetter && state[free] == .pending)
            #expect(mutations.first { $0.id == second }?.failure?.class == .dependencyDiscarded)
        }
    }

    @Test("A mutation whose dependency was lost is set aside, and one that waits for it stays behind it")
    func lostDependency() async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)[0]
            let second = try await fixture.queue(in: "second", dependingOn: first)
            let third = try await fixture.queue(in: "third", dependingOn: second)
            try fixture.executeUnchecked("DELETE FROM mutation WHERE sequence = 1")
            let mutations = try await repaired(fixture)
            #expect(mutations.map(\.id) == [second, third])
            #expect(mutations.first?.state == .deadLetter)
            #expect(mutations.first?.failure?.class == .dependencyDiscarded)
            #expect(mutations.last?.isStalled == true)
        }
    }

    @Test("A mutation that was in flight, or may have taken effect, is set aside; one that failed in vain is not")
    func inFlight() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(4)
            try await fixture.failOnce(ids[1], as: .outcomeUnknown)
            try await fixture.failOnce(ids[2], as: .offline)
            try await fixture.begin(ids[0])
            try fixture.executeUnchecked("DELETE FROM mutation WHERE sequence = 4")
            let mutations = try await repaired(fixture)
            #expect(mutations.map(\.state) == [.deadLetter, .deadLetter, .pending])
            #expect(mutations.prefix(2).allSatisfy { $0.failure?.class == .outcomeUnknown })
        }
    }

    @Test("The damaged file's log is kept beside it, byte for byte")
    func keptLog() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(2)
            try fixture.executeUnchecked("DELETE FROM mutation WHERE sequence = 1")
            let file = fixture.store.appending(path: "larder.sqlite")
            let log = URL(filePath: file.path + "-wal")
            var bytes: [Data] = []
            try await fixture.withDatabase { database in
                _ = try await database.mutations.enqueue(
                    MutationDraft(
                        partition: Store.unnamedPartition,
                        content: MutationContent(document: "mutation { later }", variables: Array("{}".utf8)),
                        created: Date()))
                bytes = [try Data(contentsOf: file), try Data(contentsOf: log)]
            }
            try #require(bytes[1].count > 4096)
            try bytes[0].write(to: file)
            try bytes[1].write(to: log)
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            defer { lock.release() }
            let kept = try OperationsDatabase.repair(folder: fixture.store, holding: lock).kept
            #expect(try Data(contentsOf: fixture.store.appending(path: kept)) == bytes[0])
            #expect(try Data(contentsOf: fixture.store.appending(path: kept + "-wal")) == bytes[1])
        }
    }

    @Test("A repair gives up where another process wrote meanwhile, and leaves the file as that has made it")
    func writtenMeanwhile() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(2)
            try fixture.executeUnchecked("DELETE FROM mutation WHERE sequence = 1")
            let lock = try MigrationLock.take(in: fixture.store, for: "a test", within: .zero)
            defer { lock.release() }
            do {
                _ = try OperationsDatabase.repair(folder: fixture.store, holding: lock) { step in
                    if step == .salvaged { try fixture.executeUnchecked("UPDATE store SET restoration = 'meanwhile'") }
                }
                Issue.record("the file was swapped")
            } catch { #expect((error as? OperationsError)?.code == .busy) }
            #expect(try fixture.value("SELECT restoration FROM store") == "meanwhile")
            let names = try FileManager.default.contentsOfDirectory(atPath: fixture.store.path)
            #expect(!names.contains { $0.contains(".damaged-") })
        }
    }

    @Test("validate names a damaged cache, and its status is 5")
    func validated() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.damageCache()
            let outcome = try await fixture.migrate("validate", "--json")
            #expect(outcome.status == 5)
            #expect(outcome.errors.contains(#""findings":["cache main: "#), "\(outcome.errors)")
        }
    }

    @Test("status tells by its documented names what there is, and who holds the lock")
    func status() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            let free = try result(await fixture.migrate("status", "--json"))
            #expect(Set(free.keys) == ["store", "isCurrent", "schema", "caches", "lockHolder"])
            #expect(free["lockHolder"] is NSNull)
            let holder = try MigrateProcess.Running("larder-crash", [fixture.store.path, "hold"])
            defer { holder.kill() }
            try await holder.wait(forLine: "holding")
            let held = try result(await fixture.migrate("status", "--json"))
            let text = try #require(held["lockHolder"] as? String)
            #expect(text.contains("\(holder.process.processIdentifier)"), "\(text)")
        }
    }
}

@Suite("Baseline", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"), .timeLimit(.minutes(10)))
struct BaselineTests {
    @Test("A database with the tables of a known version and no history gets that history", arguments: [1, 2, 3, 4, 5])
    func recorded(count: Int) async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: count)
            try fixture.execute("DROP TABLE migration; PRAGMA application_id = 0; PRAGMA user_version = 0")
            #expect(try await fixture.migrate("status").status == 4)
            let outcome = try await fixture.migrate("baseline", "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try (result(outcome)["recorded"] as? [Any])?.count == count)
            #expect(try fixture.value("SELECT max(number) FROM migration") == "\(count)")
            #expect(try await fixture.migrate("up", "--no-backup").status == 0)
            try await fixture.expectSound()
            #expect(try text(result(await fixture.migrate("baseline", "--json"))["recorded"]) == "[]")
        }
    }

    @Test(
        "A single row that the history lacks is put down, also between others",
        arguments: [(1, "0001-mutations"), (2, "0002-watchers"), (3, "0003-environments")])
    func row(number: Int, name: String) async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 3)
            try fixture.execute("DELETE FROM migration WHERE number = \(number)")
            #expect(try await fixture.migrate("baseline").output == "recorded \(name)\n")
            #expect(try await fixture.migrate("baseline").output == "the history was there\n")
            try await fixture.expectSound()
        }
    }

    @Test(
        "A schema that no version had is refused, with what differs, and nothing is put down",
        arguments: [
            ("watcher", "ALTER TABLE watcher ADD COLUMN colour TEXT"), ("mutation_lane", "DROP INDEX mutation_lane"),
            ("mine", "CREATE TRIGGER mine AFTER DELETE ON mutation BEGIN DELETE FROM watcher; END"),
        ])
    func refused(name: String, change: String) async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 3)
            try fixture.execute("DROP TABLE migration; \(change)")
            let outcome = try await fixture.migrate("baseline", "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"operations.unknownSchema""#))
            #expect(outcome.errors.contains(name))
            #expect(try fixture.value("SELECT count(*) FROM sqlite_schema WHERE name = 'migration'") == "0")
        }
    }

    @Test("A history that goes further than the tables is refused")
    func further() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 2)
            let third = Migration.all[2]
            try fixture.execute("INSERT INTO migration VALUES (3, '\(third.name)', '\(third.checksum)', 0)")
            let outcome = try await fixture.migrate("baseline", "--json")
            #expect(outcome.status == 4, "\(outcome.output)")
            #expect(outcome.errors.contains(#""code":"operations.unknownSchema""#), "\(outcome.errors)")
        }
    }

    @Test("Another program's database is refused")
    func foreign() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 3)
            try fixture.execute("DROP TABLE migration; PRAGMA application_id = 77")
            let outcome = try await fixture.migrate("baseline", "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"operations.foreign""#))
        }
    }
}

extension MigrationFixture {
    /// Queues mutations, of which two or three fill a page.
    @discardableResult
    func fill(_ count: Int = 300) async throws -> Set<UUID> {
        try await withDatabase { database in
            var ids: Set<UUID> = []
            for number in 0..<count {
                let text = String(repeating: "x", count: 1500)
                let content = MutationContent(
                    document: "mutation { note }", variables: Array(#"{"text":"\#(number) \#(text)"}"#.utf8))
                let draft = MutationDraft(
                    partition: Store.unnamedPartition, lane: "\(number % 7)", content: content, created: Date())
                ids.insert(try await database.mutations.enqueue(draft).id)
            }
            return ids
        }
    }

    /// Queues a mutation that depends on another.
    func queue(in lane: String, dependingOn dependency: UUID) async throws -> UUID {
        try await withDatabase { database in
            let content = MutationContent(document: "mutation { note }", variables: Array("{}".utf8))
            return try await database.mutations.enqueue(
                MutationDraft(
                    partition: Store.unnamedPartition, lane: lane, content: content, dependencies: [dependency],
                    created: Date())
            ).id
        }
    }

    /// Changes the database as damage would: no rule between tables holds it back.
    func executeUnchecked(_ sql: String) throws {
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        let queue = try DatabaseQueue(path: store.appending(path: "larder.sqlite").path, configuration: configuration)
        try queue.write { try $0.execute(sql: sql) }
        try queue.close()
    }

    /// Apple's SQLite keeps the log after closing, and what it holds would take the place of damaged pages.
    private func emptyLog() throws {
        let path = store.appending(path: "larder.sqlite").path
        guard FileManager.default.fileExists(atPath: path + "-wal") else { return }
        let queue = try DatabaseQueue(path: path)
        _ = try queue.writeWithoutTransaction { try $0.checkpoint(.truncate) }
        try queue.close()
    }

    /// Overwrites pages of the database, as a failing disk would.
    func damage(pages: Range<Int>, after offset: Int = 0) throws {
        let path = store.appending(path: "larder.sqlite").path
        try emptyLog()
        let file = try FileHandle(forUpdating: URL(filePath: path))
        defer { try? file.close() }
        try file.seek(toOffset: UInt64(pages.lowerBound * 4096 + offset))
        try file.write(contentsOf: Data(repeating: 0xA5, count: pages.count * 4096 - offset))
    }

    /// Damages the first page of a table, and so all of a small one.
    func damage(table: String) throws {
        let page = try value("SELECT rootpage FROM sqlite_schema WHERE name = '\(table)'").flatMap { Int($0) }
        let first = try #require(page)
        try damage(pages: first - 1..<first)
    }
}
