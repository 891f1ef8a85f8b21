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
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.settle(ids[0])
            let later = try await fixture.queue(1, named: "later")
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try text(result(outcome)["mutations"]) == #"{"kept":2,"restored":0,"setAside":0,"settledSince":1}"#)
            // What was queued since is not lost either.
            #expect(try await fixture.mutations() == [ids[1], ids[2]] + later)
            try await fixture.withDatabase { database in
                guard case .settled(let outcome) = try database.mutations.find(ids[0]) else {
                    Issue.record("the outcome is gone")
                    return
                }
                #expect(outcome.kind == .applied)
            }
            try await fixture.expectSound()
        }
    }

    @Test("What the store has lost comes back, at its place; what was in flight is set aside, as nobody knows its end")
    func lost() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(3)
            try await fixture.withDatabase { database in
                _ = try await database.mutations.begin(ids[1], owner: "somebody", now: Date())
            }
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try fixture.execute("DELETE FROM mutation")
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            try await fixture.withDatabase { database in
                let restored = try database.mutations.list()
                #expect(restored.map(\.id) == ids)
                #expect(restored.map(\.state) == [.pending, .deadLetter, .pending])
                #expect(restored[1].failure?.class == .outcomeUnknown)
            }
            try await fixture.expectSound()
        }
    }

    @Test("A mutation that was settled so long ago that its outcome is forgotten is not sent again, but set aside")
    func forgottenOutcome() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.settle(ids[0])
            // As if as many had been queued meanwhile.
            try fixture.execute("UPDATE sqlite_sequence SET seq = seq + \(Outcome.kept) WHERE name = 'mutation'")
            let later = try await fixture.queue(1, named: "later")
            try await fixture.settle(later[0])
            let pruned = try await fixture.withDatabase {
                try await $0.mutations.prune(keeping: Outcome.kept, in: Store.unnamedPartition)
            }
            #expect(pruned == 1)
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(
                try text(result(outcome)["mutations"])
                    == #"{"kept":1,"restored":1,"setAside":1,"settledSince":0}"#)
            try await fixture.withDatabase { database in
                let restored = try database.mutations.list()
                #expect(restored.map(\.id) == ids)
                #expect(restored.map(\.state) == [.deadLetter, .pending])
                #expect(restored[0].failure?.class == .restored)
            }
            try await fixture.expectSound()
        }
    }

    @Test("The cache becomes what it was while another process reads and writes; nothing that it queued is lost")
    func whileUsed() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.write(8)
            let user = try MigrateProcess.Running("larder-migrate-crash", [fixture.store.path, "use"])
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
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
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
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
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

    @Test("What is there is backed up before, so that a restoration can be taken back")
    func takenBack() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            #expect(try await fixture.migrate("backup", "--to", fixture.folder.path + "/first").status == 0)
            try await fixture.write(8)
            let first = fixture.folder.appending(path: "first")
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: first.path).first)
            #expect(try await fixture.restore(first.appending(path: name)).status == 0)
            #expect(try await fixture.number() == 7)
            #expect(try await fixture.restore(try fixture.backup()).status == 0)
            #expect(try await fixture.number() == 8)
        }
    }

    @Test("A lost database comes back whole, and the caches beside it stay as the backup has them")
    func lostDatabase() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let ids = try await fixture.queue(2)
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.write(8)
            try fixture.loseDatabase()
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.mutations() == ids)
            #expect(try await fixture.number() == 7)
            try await fixture.expectSound()
        }
    }
}

@Suite(
    "What a restoration sends again", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct RestoredMutationTests {
    @Test("What the lost store had sent is not sent again: restored whole, all that is pending is set aside")
    func whole() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.settle(ids[0])
            try fixture.loseDatabase()
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try text(result(outcome)["mutations"]) == #"{"kept":0,"restored":2,"setAside":2,"settledSince":0}"#)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == ids && restored.allSatisfy { $0.state == .deadLetter })
            #expect(restored.allSatisfy { $0.failure?.class == .restored })
            try await fixture.expectSound()
        }
    }

    @Test("Where the caller says that nothing was sent since, what is unsent in the backup stays pending, and no more")
    func nothingSentSince() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(3)
            try await fixture.withDatabase { database in
                _ = try await database.mutations.begin(ids[1], owner: "somebody", now: Date())
            }
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try fixture.loseDatabase()
            let outcome = try await fixture.restore(backup, "--nothing-sent-since")
            #expect(outcome.status == 0, "\(outcome.errors)")
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.pending, .deadLetter, .pending])
            #expect(restored[1].failure?.class == .outcomeUnknown)
            try await fixture.expectSound()
        }
    }

    @Test("What took effect before the user's data was erased does not come back as pending; what was unsent does")
    func erased() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(3)
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.settle(ids[0])
            try await fixture.settle(ids[1])
            try await fixture.withPartition { _, app in try await app.erase(unsent: .discard) }
            #expect(try await fixture.mutations() == [])
            #expect(try await fixture.restore(backup).status == 0)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.deadLetter, .deadLetter, .pending])
            #expect(restored[0].failure?.class == .restored)
            try await fixture.expectSound()
        }
    }

    @Test("What took effect before its environment was forgotten does not come back as pending; what was unsent does")
    func forgotten() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "other"] { _ = try await fixture.add(name) }
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            try await fixture.queueInCurrent(2)
            let ids = try await fixture.mutations()
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.settle(ids[0])
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            let gone = try await fixture.migrate("env", "forget", "staging", "--confirm", "staging", "--discard")
            #expect(gone.status == 0, "\(gone.errors)")
            #expect(try await fixture.restore(backup).status == 0)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.deadLetter, .pending])
            try await fixture.expectSound()
        }
    }

    @Test("An outcome that was lost with a damaged file is no reason to send its mutation again")
    func lostOutcome() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(1)
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try await fixture.settle(ids[0])
            let page = try #require(
                try fixture.value(
                    "SELECT rootpage FROM sqlite_schema WHERE name = 'outcome'"
                ).flatMap { Int($0) })
            try fixture.damage(pages: page - 1..<page)
            #expect(try await fixture.migrate("repair", "--write").status == 0)
            #expect(try await fixture.mutations() == [])
            #expect(try await fixture.restore(backup, "--no-backup").status == 0)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == ids && restored.first?.state == .deadLetter)
            try await fixture.expectSound()
        }
    }

    @Test(
        "A later backup of a store that was lost proves as little, brought in after an earlier one was restored whole")
    func twoBackups() async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)
            let folders = ["one", "two"].map { fixture.folder.appending(path: $0) }
            #expect(try await fixture.migrate("backup", "--to", folders[0].path).status == 0)
            let second = try await fixture.queue(1, named: "second")
            #expect(try await fixture.migrate("backup", "--to", folders[1].path).status == 0)
            try fixture.loseDatabase()
            for folder in folders {
                let name = try #require(try FileManager.default.contentsOfDirectory(atPath: folder.path).first)
                let outcome = try await fixture.restore(folder.appending(path: name))
                #expect(outcome.status == 0, "\(outcome.errors)")
            }
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == first + second && restored.allSatisfy { $0.state == .deadLetter })
            try await fixture.expectSound()
        }
    }

    @Test("A mutation that was sent in vain before the backup, and perhaps carried out, does not come back as pending")
    func attempted() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            try await fixture.withDatabase { database in
                for (id, kind) in zip(ids, [MutationFailure.Class.outcomeUnknown, .offline]) {
                    let attempt = try await database.mutations.begin(id, owner: "somebody", now: Date()).attempt
                    let failure = MutationFailure(kind, message: "it failed", time: Date())
                    try await database.mutations.retryLater(attempt, at: nil, failure, now: Date())
                }
            }
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try fixture.execute("DELETE FROM mutation")
            #expect(try await fixture.restore(backup).status == 0)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.state) == [.deadLetter, .pending])
            try await fixture.expectSound()
        }
    }

    @Test("A later backup brought into an earlier state of the store proves nothing of what that never knew")
    func earlierState() async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)
            let (file, earlier) = (fixture.store.path + "/larder.sqlite", fixture.folder.path + "/earlier")
            try FileManager.default.copyItem(atPath: file, toPath: earlier)
            let second = try await fixture.queue(1, named: "second")
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try fixture.loseDatabase()
            try FileManager.default.copyItem(atPath: earlier, toPath: file)
            #expect(try await fixture.restore(backup).status == 0)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == first + second)
            #expect(restored.map(\.state) == [.pending, .deadLetter])
            try await fixture.expectSound()
        }
    }

    @Test("A mutation waits again for an upload that the store has, and is set aside where the store has none")
    func transfers() async throws {
        try await MigrationFixture.with { fixture in
            let uploads = ["there", "done", "lost", "cancelled"].map { key in
                TransferDraft(
                    partition: Store.unnamedPartition, kind: .upload, bucket: "media", key: key, path: "/file",
                    source: .init(device: 1, inode: 2, size: 10, modified: 3), created: Date())
            }
            let ids = try await fixture.withDatabase { database in
                try await database.transfers.enqueue(uploads)
                var ids: [UUID] = []
                for upload in uploads {
                    var draft = MutationDraft(
                        partition: Store.unnamedPartition, lane: upload.key,
                        content: MutationContent(document: "mutation { note }", variables: Array("{}".utf8)),
                        created: Date())
                    draft.transfers = [upload.id]
                    ids.append(try await database.mutations.enqueue(draft).id)
                }
                return ids
            }
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try fixture.execute("DELETE FROM mutation")
            try fixture.execute("DELETE FROM transfer WHERE key = 'lost'")
            try await fixture.withDatabase { database in
                let begun = try await database.transfers.begin(uploads[1].id, owner: "test", now: Date())
                try await database.transfers.finish(try #require(begun).attempt, etag: "e", now: Date())
                try await database.transfers.cancel(uploads[3].id, now: Date())
            }
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.pending, .pending, .deadLetter, .deadLetter])
            #expect(restored.map(\.transfers) == [[uploads[0].id], [], [], []])
            #expect(restored[2...].allSatisfy { $0.failure?.class == .transferFailed })
            try await fixture.expectSound()
        }
    }

    @Test("A mutation whose dependency was discarded since is set aside; one whose dependency took effect is not")
    func dependencies() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let dependents = try await fixture.withDatabase { database in
                var dependents: [UUID] = []
                for id in ids {
                    let draft = MutationDraft(
                        partition: Store.unnamedPartition, lane: "\(id)",
                        content: MutationContent(document: "mutation { note }", variables: Array("{}".utf8)),
                        dependencies: [id], created: Date())
                    dependents.append(try await database.mutations.enqueue(draft).id)
                }
                return dependents
            }
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            try fixture.execute("DELETE FROM mutation WHERE sequence > 2")
            try await fixture.settle(ids[0])
            try await fixture.withDatabase { database in
                let failure = MutationFailure(.rejected, message: "no", time: Date())
                try await database.mutations.setAside(ids[1], expecting: .pending, failure, now: Date())
                try await database.mutations.discard(ids[1], dependents: .release, now: Date())
            }
            #expect(try await fixture.restore(backup).status == 0)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.id) == dependents)
            #expect(restored.map(\.state) == [.pending, .deadLetter])
            #expect(restored.last?.failure?.class == .dependencyDiscarded)
            try await fixture.expectSound()
        }
    }

    @Test(
        "Where larder.sqlite is gone and its log is left, the backup is restored whole, and the log is kept aside",
        arguments: [nil, ""])
    func leftLog(file: String?) async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            #expect(try await fixture.migrate("backup").status == 0)
            let backup = try fixture.backup()
            let path = fixture.store.path + "/larder.sqlite"
            var log = Data()
            try await fixture.withDatabase { database in
                for _ in 0..<20 {
                    _ = try await database.mutations.enqueue(
                        MutationDraft(
                            partition: Store.unnamedPartition,
                            content: MutationContent(document: "mutation { later }", variables: Array("{}".utf8)),
                            created: Date()))
                }
                log = try Data(contentsOf: URL(filePath: path + "-wal"))
            }
            try #require(log.count > 4096)
            try fixture.loseDatabase()
            try log.write(to: URL(filePath: path + "-wal"))
            if let file { try Data(file.utf8).write(to: URL(filePath: path)) }
            #expect(try await fixture.migrate("validate").status == 5)
            let outcome = try await fixture.restore(backup, "--nothing-sent-since")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.mutations() == ids)
            try await fixture.expectSound()
            let kept = try FileManager.default.contentsOfDirectory(atPath: fixture.store.path)
                .filter { $0.contains(".damaged-") && $0.hasSuffix("-wal") }
            try #require(kept.count == 1, "\(kept)")
            #expect(try Data(contentsOf: fixture.store.appending(path: kept[0])) == log)
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
}
