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
            try await fixture.failOnce(id, as: .outcomeUnknown)
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            let restored = try await fixture.mutations(after: fixture.restore(backup))
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
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.state) == [.deadLetter])
            #expect(restored.first?.failure?.class == .restored)
        }
    }

    @Test("Of mutations that were carried away and took effect there, which was forgotten, none comes back as pending")
    func severalCarried() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.queueInCurrent(2)
            let ids = try await fixture.mutations()
            let backup = try await fixture.makeBackup()
            #expect(try await fixture.migrate("env", "use", "other", "--carry").status == 0)
            for id in ids { try await fixture.settle(id) }
            #expect(try await fixture.migrate("env", "use", "staging").status == 0)
            try await fixture.forget("other")
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.id) == ids)
            #expect(restored.map(\.state) == [.deadLetter, .deadLetter])
            #expect(restored.allSatisfy { $0.failure?.class == .restored })
        }
    }

    @Test("A mutation is not set aside whose dependency took effect since under another id with the same key")
    func sameKeyOfDependency() async throws {
        try await MigrationFixture.with { fixture in
            let dependency = try await fixture.queueByOwnKey()
            let id = try await fixture.queue(in: "dependent", dependingOn: dependency)
            let backup = try await fixture.makeBackup()
            try fixture.execute("DELETE FROM mutation")
            try await fixture.settle(fixture.queueByOwnKey())
            let restored = try await fixture.mutations(after: fixture.restore(backup))
            #expect(restored.map(\.id) == [id])
            #expect(restored.map(\.state) == [.pending])
        }
    }
}
