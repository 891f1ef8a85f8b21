import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite(
    "Why a restore sets mutations aside", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct RestoredReasonTests {
    @Test("The outcome of a mutation that an attempt before the backup may have carried out is unknown")
    func attempted() async throws {
        try await MigrationFixture.with { fixture in
            let id = try await fixture.queue(1)[0]
            try await fixture.withDatabase { database in
                let attempt = try await database.mutations.begin(id, owner: "somebody", now: Date()).attempt
                let failure = MutationFailure(.outcomeUnknown, message: "it failed", time: Date())
                try await database.mutations.retryLater(attempt, at: nil, failure, now: Date())
            }
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            #expect(try await fixture.restore(backup).status == 0)
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.state) == [.deadLetter])
            #expect(restored.first?.failure?.class == .outcomeUnknown)
        }
    }

    @Test("A mutation is set aside as restored where an older version may have pruned its outcome without a note")
    func unnoted() async throws {
        try await MigrationFixture.with { fixture in
            try fixture.makeOlder(migrations: 12)
            try fixture.execute(
                """
                INSERT INTO partition (name, created, used) VALUES ('main', 0, 0);
                INSERT INTO mutation (id, partition, lane, state, stalled, queued, attempts, created)
                SELECT randomblob(16), id, '', 0, 0, 1, 0, 0 FROM partition;
                INSERT INTO mutation_content (sequence, document, variables)
                SELECT sequence, 'mutation { note }', CAST('{}' AS BLOB) FROM mutation;
                """)
            let backup = try await fixture.makeBackup()
            // It took effect, and its outcome was pruned.
            try fixture.execute("DELETE FROM mutation")
            #expect(try await fixture.migrate("up", "--no-backup").status == 0)
            let outcome = try await fixture.restore(backup)
            #expect(outcome.status == 0, "\(outcome.errors)")
            let restored = try await fixture.withDatabase { try $0.mutations.list() }
            #expect(restored.map(\.state) == [.deadLetter])
            #expect(restored.first?.failure?.class == .restored)
            try await fixture.expectSound()
        }
    }
}
