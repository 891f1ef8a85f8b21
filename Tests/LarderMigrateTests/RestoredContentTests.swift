import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

/// What a restoration into a store that is there brings back beside mutations, and what it leaves alone.
@Suite(
    "What else comes back", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct RestoredContentTests {
    @Test("Watchers and pins that are missing come back, and those that the store has stay as they are")
    func watchersAndPins() async throws {
        try await MigrationFixture.with { fixture in
            func put(_ name: String, _ document: String) async throws {
                try await fixture.withDatabase { database in
                    _ = try await database.watchers.put(name, in: "main", document: document, now: Date())
                    try await database.pins.put(name, in: "main", document: document, now: Date())
                }
            }
            for name in ["kept", "lost"] { try await put(name, "{ before }") }
            let backup = try await fixture.makeBackup()
            for table in ["watcher", "pin"] { try fixture.execute("DELETE FROM \(table) WHERE name = 'lost'") }
            try await put("kept", "{ since }")
            #expect(try await fixture.restore(backup).status == 0)
            try await fixture.withDatabase { (database) throws in
                let expected = ["kept { since }", "lost { before }"]
                #expect(try database.watchers.list(in: "main").map { "\($0.name) \($0.document)" } == expected)
                #expect(try database.pins.list(in: "main").map { "\($0.name) \($0.document)" } == expected)
            }
            try await fixture.expectSound()
        }
    }

    private func signIn(_ token: String, _ fixture: MigrationFixture) async throws {
        let tokens = Credentials.UserPoolTokens(
            idToken: "id \(token)", accessToken: "access \(token)", refreshToken: token, expires: nil)
        try await fixture.withPartition { (_, app) throws in
            try await app.session.signIn(Credentials(userPool: tokens), within: .seconds(300))
        }
    }

    @Test("A user who signed in or out since the backup stays so, with today's credentials", arguments: [true, false])
    func sessions(signsIn: Bool) async throws {
        try await MigrationFixture.with { fixture in
            try await signIn("old", fixture)
            let backup = try await fixture.makeBackup()
            if signsIn {
                try await signIn("new", fixture)
            } else {
                _ = try await fixture.withPartition { (_, app) throws in
                    try await app.session.signOut(within: .seconds(300))
                }
            }
            #expect(try await fixture.restore(backup).status == 0)
            try await fixture.withPartition { (_, app) throws in
                #expect(try app.session.state == (signsIn ? .signedIn : .signedOut))
                guard signsIn else { return }
                #expect(try await app.session.userPoolTokens(within: .seconds(300)).refreshToken == "new")
            }
            try await fixture.expectSound()
        }
    }

    @Test("A forgotten environment comes back with its users and their caches, as protected as it was")
    func environment() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging", "--protected")
            _ = try await fixture.add("other")
            #expect(try await fixture.migrate("env", "use", "staging", "--user", "ada").status == 0)
            try await fixture.write(5)
            let backup = try await fixture.makeBackup()
            let row = "SELECT definition || identity || data || storage FROM environment WHERE name = 'staging'"
            let before = try #require(try fixture.value(row))
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            #expect(try await fixture.migrate("env", "forget", "staging", "--confirm", "staging").status == 0)
            let outcome = try await fixture.restore(backup, "--json")
            #expect(try result(outcome)["partitions"] as? Int == 1, "\(outcome.errors)")
            let list = try await fixture.migrate("env", "list").output
            #expect(list == "* other - 1 partition\n- staging protected 1 partition\n")
            #expect(try fixture.value(row) == before)
            #expect(try await fixture.migrate("env", "use", "staging", "--user", "ada").status == 0)
            #expect(try await fixture.number() == 5)
            try await fixture.expectSound()
        }
    }

    @Test("Credentials of a backup that is restored whole are opened with the program's key, which is not in it")
    func sealedCredentials() async throws {
        try await MigrationFixture.with { fixture in
            try await signIn("r", fixture)
            let backup = try await fixture.makeBackup()
            let new = MigrationFixture(folder: fixture.folder.appending(path: "new"))
            #expect(try await new.restore(backup).status == 0)
            func asked() async throws -> String {
                try await new.withPartition { (_, app) throws in
                    #expect(try app.session.state == .signedIn)
                    do throws(LarderError) {
                        return try await app.session.userPoolTokens(within: .seconds(300)).refreshToken ?? ""
                    } catch { return error.code.rawValue }
                }
            }
            #expect(try await asked() == "keys.missing")
            try FileManager.default.copyItem(atPath: fixture.store.path + ".key", toPath: new.store.path + ".key")
            #expect(try await asked() == "r")
        }
    }

    @Test("What a mutation that came back is to change is shown by a program that has the store open")
    func shown() async throws {
        try await MigrationFixture.with { fixture in
            let schema = """
                type Query { item(id: ID!): Item }
                type Item { id: ID! n: Int }
                type Mutation { set(n: Int!): Item }
                """
            let store = try Store.open(at: fixture.store, schemaText: [schema])
            let app = try store.partition()
            let item = GraphQLOperation("{ item(id: 1) { n } }")
            func expectSoon(_ number: Int64) async throws {
                let deadline = SuspendingClock.now + .seconds(60)
                while try app.read(item)["item"]?["n"]?.int != number, .now < deadline {
                    try await Task.sleep(for: .milliseconds(5))
                }
                #expect(try app.read(item)["item"]?["n"]?.int == number)
            }
            try await app.write(item, ["item": ["id": "1", "n": 1]])
            let expected: Value = ["set": ["__typename": "Item", "id": "1", "n": 2]]
            try await app.enqueue(
                GraphQLOperation("mutation { set(n: 2) { id n } }"), options: .init(optimisticResponse: expected))
            try await expectSoon(2)
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            try await expectSoon(1)
            #expect(try await fixture.restore(backup).status == 0)
            try await expectSoon(2)
            try store.close()
        }
    }

    @Test("A partition whose user has another one by now is left out, with what was queued in it, and named")
    func leftOut() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging("--user", "ada")
            try await fixture.queueInCurrent(1)
            let old = try await fixture.withDatabase { try $0.environments.current()?.partition?.name }
            let backup = try await fixture.makeBackup()
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            try await fixture.forget("staging")
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging", "--user", "ada").status == 0)
            let name = try #require(old)
            #expect(try text(result(await fixture.restore(backup, "--json"))["leftOut"]) == #"["\#(name)"]"#)
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.errors.contains("the partition \(name) was forgotten since, and is left out"))
            #expect(try await fixture.mutations() == [])
            try await fixture.expectSound()
        }
    }

    @Test("A backup is refused whose data would become another backend's, and nothing of it is left")
    func otherBackend() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            let backup = try await fixture.makeBackup()
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            #expect(try await fixture.migrate("env", "forget", "staging", "--confirm", "staging").status == 0)
            #expect(try await fixture.migrate("env", "add", "staging", "--url", "https://another.example/").status == 0)
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"operations.environmentChanged""#), "\(outcome.errors)")
            #expect(try fixture.backup() == backup)
            let list = try await fixture.migrate("env", "list").output
            #expect(list == "* other - 1 partition\n- staging - 0 partitions\n")
            try await fixture.expectSound()
        }
    }

    @Test("A backup comes back though an environment has moved, where the store has all its partitions")
    func movedBackend() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.add("staging")
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            try await fixture.queueInCurrent(1)
            let ids = try await fixture.mutations()
            let backup = try await fixture.makeBackup()
            let moved = try await fixture.migrate(
                "env", "add", "staging", "--url", "https://another.example/", "--succeeds", "staging")
            #expect(moved.status == 0, "\(moved.errors)")
            try fixture.execute("DELETE FROM mutation")
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.mutations() == ids)
            try await fixture.expectSound()
        }
    }

    @Test("The backup of an older version is migrated as it comes back")
    func olderVersion() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 4)
            try fixture.execute(
                """
                INSERT INTO partition (name, created, used) VALUES ('main', 0, 0);
                INSERT INTO watcher SELECT id, 'w', '{ note }', NULL, CAST('{}' AS BLOB), NULL, NULL, 0, 0 FROM partition
                """)
            let backup = try await fixture.makeBackup()
            #expect(try await fixture.migrate("up", "--no-backup").status == 0)
            try fixture.execute("DELETE FROM watcher")
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.withDatabase { try $0.watchers.list().map(\.name) } == ["w"])
            #expect(try await fixture.migrate("status").status == 0)
            try await fixture.expectSound()
        }
    }

    @Test("A backup whose larder.sqlite is of a newer version is refused, and nothing of it is left")
    func newerVersion() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            let copy = MigrationFixture(folder: fixture.folder.appending(path: "copy"))
            try FileManager.default.createDirectory(at: copy.folder, withIntermediateDirectories: true)
            try FileManager.default.copyItem(at: backup, to: copy.store)
            try copy.execute("INSERT INTO migration VALUES (99, 'later', 'x', 0)")
            let file = copy.store.appending(path: "larder.sqlite")
            let manifest = copy.store.appending(path: "manifest.json")
            let (size, sum) = try FileSum.of(file, FileSystem())
            let old = try #require(try StoreBackup(at: backup).manifest.file("larder.sqlite"))
            let text = try String(contentsOf: manifest, encoding: .utf8)
                .replacing(old.sha256, with: sum).replacing("\(old.size)", with: "\(size)")
            try Data(text.utf8).write(to: manifest)
            let before = try await fixture.mutations()
            let outcome = try await fixture.restore(copy.store, "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"operations.newerFormat""#), "\(outcome.errors)")
            #expect(try fixture.leftovers() == [])
            #expect(try fixture.backup() == backup)
            #expect(try await fixture.mutations() == before)
        }
    }

    @Test("A backup of a store that had caches alone brings them back, and tells of no mutations")
    func cachesAlone() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            #expect(!FileManager.default.fileExists(atPath: fixture.store.path + "/larder.sqlite"))
            let backup = try await fixture.makeBackup()
            try await fixture.write(8)
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try Set(result(outcome).keys) == ["backup", "caches"])
            #expect(try result(outcome)["backup"] is String)
            #expect(try await fixture.number() == 7)
            #expect(try fixture.leftovers() == [])
        }
    }

    @Test("A backup of a store that had caches alone is not this store's, once that has a database")
    func withoutIdentity() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let backup = try await fixture.makeBackup()
            try await fixture.write(8)
            let ids = try await fixture.queue(1)
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status != 0)
            #expect(outcome.errors.contains(#""code":"operations.foreignBackup""#), "\(outcome.errors)")
            #expect(try await fixture.number() == 8)
            #expect(try await fixture.mutations() == ids)
            #expect(try fixture.leftovers() == [])
        }
    }

    @Test("A watcher that outlives its process takes a restoration for a change of anything")
    func watched() async throws {
        try await MigrationFixture.with { fixture in
            let operation = GraphQLOperation("{ number(key: 1) }")
            try await fixture.write(7)
            try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            try await fixture.write(8)
            try await fixture.withPartition { (_, app) throws in
                var states = try await app.watch(named: "number", operation).makeAsyncIterator()
                #expect(try await states.next()?.response["number"]?.int == 8)
                #expect(try await fixture.restore(backup).status == 0)
                let state = try await states.next()
                #expect(state?.changes == .anything && state?.response["number"]?.int == 7)
            }
        }
    }

    @Test("A store that was restored whole is no copy to its program, which knows the token of none")
    func deviceToken() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.queue(1)
            var options = Store.Options()
            options.deviceTokens = FileDeviceTokens(folder: fixture.folder.appending(path: "tokens"))
            let store = try Store.open(at: fixture.store, schemaText: ["type Query { n: Int }"], options: options)
            _ = try store.partition()
            try store.close()
            let backup = try await fixture.makeBackup()
            let new = MigrationFixture(folder: fixture.folder.appending(path: "new"))
            #expect(try await new.restore(backup).status == 0)
            #expect(try await fixture.withDatabase { try $0.mayBeCopy(on: nil) })
            #expect(try await !new.withDatabase { try $0.mayBeCopy(on: nil) })
        }
    }

    @Test("What a restoration did is told in a few lines, above all where it has backed up what was there")
    func told() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let ids = try await fixture.queue(4)
            try await fixture.begin(ids[3])
            let backup = try await fixture.makeBackup(in: fixture.folder.appending(path: "to"))
            try await fixture.settle(ids[0])
            try fixture.execute("DELETE FROM mutation WHERE sequence > 2")
            let outcome = try await fixture.restore(backup)
            #expect(
                outcome.output == """
                    restored 1 cache, 2 mutations and 0 partitions
                    set aside: 1 mutation that may have been sent, or wait for what is not there any more
                    settled since, and not sent again: 1 mutation
                    unchanged: 1 mutation
                    what was there is in \(try fixture.backup().path)

                    """, "\(outcome.errors)")
        }
    }
}

/// Mutations that the store has lost, beside what it has learnt since.
@Suite(
    "Lost mutations after a restoration", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct RestoredLinkTests {
    @Test("A mutation that was answered, and whose answer was not stored yet, comes back with its answer")
    func answered() async throws {
        try await MigrationFixture.with { fixture in
            let id = try await fixture.queue(1)[0]
            try await fixture.withDatabase { database in
                let attempt = try await database.mutations.begin(id, owner: "test", now: Date()).attempt
                try await database.mutations.answer(attempt, Array(#"{"data":7}"#.utf8), now: Date())
            }
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.state) == [.acknowledged])
            #expect(try fixture.value("SELECT CAST(answer AS TEXT) FROM mutation_answer") == #"{"data":7}"#)
        }
    }

    @Test("A mutation waits again for one that the store has, and not to be sent where that was set aside")
    func waits() async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)[0]
            let second = try await fixture.queue(in: "second", dependingOn: first)
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation WHERE sequence = 2")
            try await fixture.withDatabase { database in
                let failure = MutationFailure(.rejected, message: "no", time: Date())
                try await database.mutations.setAside(first, expecting: .pending, failure, now: Date())
            }
            let restored = try await fixture.mutations(after: fixture.restore(backup)).last
            #expect(restored?.id == second && restored?.state == .pending)
            #expect(restored?.dependencies == [first] && restored?.isStalled == true)
        }
    }

    @Test("A temporary id whose real one the store has learnt since is replaced in what comes back")
    func temporaryID() async throws {
        try await MigrationFixture.with { fixture in
            let token = TemporaryID()
            let first = try await fixture.withDatabase { database in
                var draft = MutationDraft.note(lane: "first")
                draft.temporaryIDs = [token]
                let first = try await database.mutations.enqueue(draft).id
                let document = "mutation($id: ID) { note(id: $id) }"
                _ = try await database.mutations.enqueue(.note(document, #"{"id":"\#(token.text)"}"#, lane: "second"))
                return first
            }
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation WHERE sequence = 2")
            try await fixture.withDatabase { database in
                let attempt = try await database.mutations.begin(first, owner: "test", now: Date()).attempt
                try await database.mutations.answer(attempt, Array("{}".utf8), temporaryIDs: [token: "7"], now: Date())
                try await database.mutations.settle(first, now: Date())
            }
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.state) == [.pending])
            #expect(restored.first?.content.variables == Array(#"{"id":"7"}"#.utf8))
        }
    }

    @Test("A mutation does not come back whose key is queued again under another id")
    func queuedKey() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.queueByOwnKey()
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            let again = try await fixture.queueByOwnKey()
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.mutations() == [again])
            try await fixture.expectSound()
        }
    }

    @Test("Where nothing was sent since, forgotten mutations come back as pending, and settled ones stay settled")
    func nothingSentSince() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            try await fixture.settle(ids[0])
            #expect(try await fixture.withDatabase { try await $0.mutations.prune(before: Date() + 60) } == 1)
            try await fixture.settle(ids[1])
            let restored = try await fixture.mutations(after: fixture.restore(backup, "--nothing-sent-since"))
            #expect(restored.map(\.id) == [ids[0]] && restored.first?.state == .pending)
        }
    }

    @Test("A whole restore sets aside a mutation in flight as outcomeUnknown, and an unsent one as restored")
    func wholeReasons() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            try await fixture.begin(ids[0])
            let backup = try await fixture.makeBackup()
            try fixture.loseDatabase()
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.id) == ids && restored.allSatisfy { $0.state == .deadLetter })
            #expect(restored.compactMap { $0.failure?.class } == [.outcomeUnknown, .restored])
        }
    }

    @Test("A restore brings back the outcome of a mutation that the store has lost")
    func outcome() async throws {
        try await MigrationFixture.with { fixture in
            let id = try await fixture.queue(1)[0]
            try await fixture.settle(id)
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM outcome")
            #expect(try await fixture.restore(backup).status == 0)
            try await fixture.expectApplied(id)
        }
    }
}
