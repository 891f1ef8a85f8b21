import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations

@Suite(
    "Mutations after a restoration", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct RestoredMutationTests {
    @Test("A backup restored whole sets all pending mutations aside: the lost store may have sent them")
    func whole() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            try await fixture.settle(ids[0])
            try fixture.loseDatabase()
            let outcome = try await fixture.restore(backup, "--json")
            let restored = try await fixture.mutations(after: outcome)
            #expect(try text(result(outcome)["mutations"]) == #"{"kept":0,"restored":2,"setAside":2,"settledSince":0}"#)
            #expect(restored.map(\.id) == ids && restored.allSatisfy { $0.state == .deadLetter })
            #expect(restored.allSatisfy { $0.failure?.class == .restored })
        }
    }

    @Test("A dead letter of a backup tells that it may have been sent since, unless the caller says that nothing was")
    func deadLetter() async throws {
        for isProven in [false, true] {
            try await MigrationFixture.with { fixture in
                _ = try await fixture.queueDeadLetter()
                let backup = try await fixture.makeBackup()
                try fixture.loseDatabase()
                let outcome =
                    try await isProven
                    ? fixture.restore(backup, "--nothing-sent-since") : fixture.restore(backup)
                let message = try await fixture.mutations(after: outcome)[0].failure?.message
                #expect(message?.hasPrefix("No.") == true)
                #expect(message?.contains("may have been sent since") == !isProven)
            }
        }
    }

    @Test("A dead letter that comes back once more tells only once that it may have been sent since")
    func toldOnce() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.queueDeadLetter()
            var messages: [String?] = []
            for number in 0..<2 {
                let backup = try await fixture.makeBackup(in: fixture.folder.appending(path: "\(number)"))
                try fixture.loseDatabase()
                #expect(try await fixture.restore(backup).status == 0)
                messages.append(try await fixture.withDatabase { try $0.mutations.list()[0].failure?.message })
            }
            #expect(messages[0]?.contains("may have been sent since") == true && messages[1] == messages[0])
        }
    }

    @Test("A dead letter that comes back tells that it may have been sent since where its outcome is forgotten")
    func replayedSince() async throws {
        for isProven in [false, true] {
            try await MigrationFixture.with { fixture in
                let id = try await fixture.queueDeadLetter()
                let backup = try await fixture.makeBackup()
                if isProven {
                    try fixture.execute("DELETE FROM mutation")
                } else {
                    try await fixture.withDatabase { try await $0.mutations.replay(id, now: Date()) }
                    try await fixture.settle(id)
                    _ = try await fixture.withDatabase { try await $0.mutations.prune(before: Date() + 60) }
                }
                let restored = try await fixture.mutations(after: fixture.restore(backup))
                #expect(restored.map(\.state) == [.deadLetter])
                #expect(restored[0].failure?.class == .rejected)
                #expect(restored[0].failure?.message.hasPrefix("No.") == true)
                #expect(restored[0].failure?.message.contains("may have been sent since") == !isProven)
            }
        }
    }

    @Test("A mutation that came back and may have been sent is no repeat once it is edited: its key is another")
    func edited() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            let before = try await fixture.withDatabase { try $0.mutations.list().map(\.idempotencyKey) }
            try fixture.loseDatabase()
            #expect(try await fixture.restore(backup).status == 0)
            try await fixture.withDatabase { database in
                try await database.mutations.edit(ids[0], Revision(variables: Array("{}".utf8)))
                try await database.mutations.replay(ids[1], now: Date())
                let after = try database.mutations.list().map(\.idempotencyKey)
                #expect(after[0] != before[0])
                #expect(after[1] == before[1])
            }
            try await fixture.expectSound()
        }
    }

    @Test("Where the caller says that nothing was sent since, what is unsent in the backup stays pending, and no more")
    func nothingSentSince() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(3)
            try await fixture.begin(ids[1])
            let backup = try await fixture.makeBackup()
            try fixture.loseDatabase()
            let restored = try await fixture.mutations(after: fixture.restore(backup, "--nothing-sent-since"))
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.pending, .deadLetter, .pending])
            #expect(restored[1].failure?.class == .outcomeUnknown)
        }
    }

    @Test("A mutation that took effect before its user was erased does not come back as pending; an unsent one does")
    func erased() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(3)
            let backup = try await fixture.makeBackup()
            try await fixture.settle(ids[0])
            try await fixture.settle(ids[1])
            try await fixture.withPartition { _, app in try await app.erase(unsent: .discard) }
            #expect(try await fixture.mutations() == [])
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.deadLetter, .deadLetter, .pending])
            #expect(restored[0].failure?.class == .restored)
        }
    }

    @Test("A mutation of a forgotten environment that took effect does not come back as pending; an unsent one does")
    func forgotten() async throws { try await expectSetAside { try await $0.settle($1) } }

    @Test("A mutation that may have taken effect when its environment was forgotten does not come back as pending")
    func forgottenInDoubt() async throws {
        try await expectSetAside { try await $0.failOnce($1, as: .outcomeUnknown) }
    }

    /// Makes a backup of two mutations, lets `happening` change the first, forgets the environment and restores. Expects
    /// the first as a dead letter and the second as pending.
    private func expectSetAside(
        after happening: (MigrationFixture, UUID) async throws -> Void,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging(sourceLocation: sourceLocation)
            try await fixture.queueInCurrent(2)
            let ids = try await fixture.mutations()
            let backup = try await fixture.makeBackup(sourceLocation: sourceLocation)
            try await happening(fixture, ids[0])
            let left = try await fixture.migrate("env", "use", "other")
            #expect(left.status == 0, sourceLocation: sourceLocation)
            try await fixture.forget("staging", sourceLocation: sourceLocation)
            let restored = try await fixture.mutations(
                after: fixture.restore(backup), sourceLocation: sourceLocation)
            #expect(restored.map(\.id) == ids, sourceLocation: sourceLocation)
            #expect(restored.map(\.state) == [.deadLetter, .pending], sourceLocation: sourceLocation)
        }
    }

    @Test("A mutation that took effect where it was carried to, which was forgotten, does not come back as pending")
    func carried() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.queueInCurrent(1)
            let ids = try await fixture.mutations()
            let backup = try await fixture.makeBackup()
            #expect(try await fixture.migrate("env", "use", "other", "--carry").status == 0)
            try await fixture.settle(ids[0])
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            try await fixture.forget("other")
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.id) == ids && restored.first?.state == .deadLetter)
        }
    }

    @Test("A mutation does not come back whose key has taken effect since under another id")
    func sameKey() async throws {
        try await MigrationFixture.with { fixture in
            _ = try await fixture.queueByOwnKey()
            let backup = try await fixture.makeBackup()
            try await fixture.withPartition { _, app in try await app.erase(unsent: .discard) }
            try await fixture.settle(fixture.queueByOwnKey())
            let outcome = try await fixture.restore(backup, "--json")
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(try await fixture.mutations() == [])
            try await fixture.expectSound()
        }
    }

    @Test(
        "A temporary id whose real one only the backup knows is replaced in what is queued after the restoration",
        arguments: [0, 1])
    func knownToBackup(comingBack count: Int) async throws {
        try await MigrationFixture.with { fixture in
            func draft(_ variables: String, making tokens: [TemporaryID] = []) -> MutationDraft {
                var draft = MutationDraft.note("mutation($id: ID) { note(id: $id) }", variables)
                draft.temporaryIDs = tokens
                return draft
            }
            try await fixture.queue(1)
            try fixture.keepDatabase()
            let token = TemporaryID()
            try await fixture.withDatabase { database in
                let id = try await database.mutations.enqueue(draft("{}", making: [token])).id
                let attempt = try await database.mutations.begin(id, owner: "test", now: Date()).attempt
                try await database.mutations.answer(
                    attempt, Array("{}".utf8), temporaryIDs: [token: "7"], now: Date())
                try await database.mutations.settle(id, now: Date())
            }
            try await fixture.queue(count, named: "second")
            let backup = try await fixture.makeBackup()
            try fixture.bringBackKeptDatabase()
            #expect(try await fixture.restore(backup).status == 0)
            try await fixture.withDatabase { database in
                let id = try await database.mutations.enqueue(draft(#"{"id":"\#(token.text)"}"#)).id
                let queued = try database.mutations.list().first { $0.id == id }
                #expect(queued?.content.variables == Array(#"{"id":"7"}"#.utf8))
            }
            try await fixture.expectSound()
        }
    }

    @Test(
        "An outcome that was lost with a damaged file is no reason to send its mutation again",
        arguments: ["outcome", "partition", "forgotten_outcome"])
    func lostOutcome(table: String) async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            try await fixture.settle(ids[0])
            if table == "forgotten_outcome" {
                _ = try await fixture.withDatabase { try await $0.mutations.prune(before: Date() + 60) }
            }
            try fixture.damage(table: table)
            let repair = try await fixture.migrate("repair", "--write")
            #expect(repair.status == 0 && !repair.output.contains("row of outcome"))
            #expect(try await fixture.mutations() == [])
            let restored = try await fixture.mutations(after: fixture.restore(backup, "--no-backup"))
            #expect(restored.map(\.id) == ids && restored.first?.state == .deadLetter)
        }
    }

    @Test("A mutation that was in flight and is lost with a damaged file does not come back as pending")
    func lostInFlight() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(1)
            let backup = try await fixture.makeBackup()
            try await fixture.begin(ids[0])
            try fixture.execute("DELETE FROM mutation_content")
            #expect(try await fixture.migrate("repair", "--write").status == 0)
            #expect(try await fixture.mutations() == [])
            let restored = try await fixture.mutations(after: fixture.restore(backup, "--no-backup"))
            #expect(restored.map(\.id) == ids && restored.first?.state == .deadLetter)
        }
    }

    @Test(
        "A later backup of a store that was lost proves as little, brought in after an earlier one was restored whole")
    func twoBackups() async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)
            let earlier = try await fixture.makeBackup(in: fixture.folder.appending(path: "one"))
            let second = try await fixture.queue(1, named: "second")
            let later = try await fixture.makeBackup(in: fixture.folder.appending(path: "two"))
            try fixture.loseDatabase()
            #expect(try await fixture.restore(earlier).status == 0)
            let restored = try await fixture.mutations(after: fixture.restore(later))
            #expect(restored.map(\.id) == first + second && restored.allSatisfy { $0.state == .deadLetter })
        }
    }

    @Test("A mutation that was sent in vain before the backup, and perhaps carried out, does not come back as pending")
    func attempted() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            try await fixture.failOnce(ids[0], as: .outcomeUnknown)
            try await fixture.failOnce(ids[1], as: .offline)
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.state) == [.deadLetter, .pending])
        }
    }

    @Test("A later backup brought into an earlier state of the store proves nothing of what that never knew")
    func earlierState() async throws {
        try await MigrationFixture.with { fixture in
            let first = try await fixture.queue(1)
            try fixture.keepDatabase()
            let second = try await fixture.queue(1, named: "second")
            let backup = try await fixture.makeBackup()
            try fixture.bringBackKeptDatabase()
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.id) == first + second)
            #expect(restored.map(\.state) == [.pending, .deadLetter])
        }
    }

    private func newUpload(_ key: String) -> TransferDraft {
        TransferDraft(
            partition: Store.unnamedPartition, kind: .upload, bucket: "media", key: key, path: "/file",
            source: .init(device: 1, inode: 2, size: 10, modified: 3), created: Date())
    }

    @Test("A mutation waits again for an upload that the store has, and is set aside where the store has none")
    func transfers() async throws {
        try await MigrationFixture.with { fixture in
            let uploads = ["there", "done", "lost", "cancelled", "failed"].map { newUpload($0) }
            let ids = try await fixture.withDatabase { database in
                try await database.transfers.enqueue(uploads)
                var ids: [UUID] = []
                for upload in uploads {
                    var draft = MutationDraft.note(lane: upload.key)
                    draft.transfers = [upload.id]
                    ids.append(try await database.mutations.enqueue(draft).id)
                }
                return ids
            }
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            try fixture.execute("DELETE FROM transfer WHERE key = 'lost'")
            try await fixture.withDatabase { database in
                let begun = try await database.transfers.begin(uploads[1].id, owner: "test", now: Date())
                try await database.transfers.finish(try #require(begun).attempt, etag: "e", now: Date())
                try await database.transfers.cancel(uploads[3].id, now: Date())
                let doomed = try await database.transfers.begin(uploads[4].id, owner: "test", now: Date())
                let failure = TransferFailure(code: "object.accessDenied", message: "no", time: Date())
                try await database.transfers.fail(try #require(doomed).attempt, failure, now: Date())
            }
            let restored = try await fixture.mutations(after: fixture.restore(backup, "--json"))
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.pending, .pending, .deadLetter, .deadLetter, .deadLetter])
            #expect(restored.map(\.transfers) == [[uploads[0].id], [], [], [], [uploads[4].id]])
            #expect(restored[2...].allSatisfy { $0.failure?.class == .transferFailed })
        }
    }

    @Test("A mutation that may have been sent since, and whose upload the store has lost, says both")
    func doubtfulWithLostTransfer() async throws {
        try await MigrationFixture.with { fixture in
            let upload = newUpload("lost")
            try await fixture.withDatabase { database in
                try await database.transfers.enqueue([upload])
                var draft = MutationDraft.note(lane: "main")
                draft.transfers = [upload.id]
                _ = try await database.mutations.enqueue(draft)
            }
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            try fixture.execute("DELETE FROM transfer")
            try fixture.execute("INSERT INTO forgotten_outcome (partition, sequence) VALUES ('', 1000)")
            let failure = try await fixture.mutations(after: fixture.restore(backup)).first?.failure
            #expect(failure?.class == .restored)
            #expect(failure?.message.contains("may have been sent since") == true)
            #expect(failure?.message.contains("transfer that it waited for is not in the store") == true)
        }
    }

    @Test("A mutation whose dependency was discarded since is set aside; one whose dependency took effect is not")
    func dependencies() async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let dependents = try await fixture.withDatabase { database in
                var dependents: [UUID] = []
                for id in ids {
                    var draft = MutationDraft.note(lane: "\(id)")
                    draft.dependencies = [id]
                    dependents.append(try await database.mutations.enqueue(draft).id)
                }
                return dependents
            }
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation WHERE sequence > 2")
            try await fixture.settle(ids[0])
            try await fixture.withDatabase { database in
                let failure = MutationFailure(.rejected, message: "no", time: Date())
                try await database.mutations.setAside(ids[1], expecting: .pending, failure, now: Date())
                try await database.mutations.discard(ids[1], dependents: .release, now: Date())
            }
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.id) == dependents)
            #expect(restored.map(\.state) == [.pending, .deadLetter])
            #expect(restored.last?.failure?.class == .dependencyDiscarded)
        }
    }

    @Test(
        "Where larder.sqlite is gone and its log is left, the backup is restored whole, and the log is kept aside",
        arguments: [nil, "", "x"])
    func leftLog(file: String?) async throws {
        try await MigrationFixture.with { fixture in
            let ids = try await fixture.queue(2)
            let backup = try await fixture.makeBackup()
            let path = fixture.store.path + "/larder.sqlite"
            var log = Data()
            try await fixture.withDatabase { database in
                for _ in 0..<20 {
                    _ = try await database.mutations.enqueue(.note())
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
