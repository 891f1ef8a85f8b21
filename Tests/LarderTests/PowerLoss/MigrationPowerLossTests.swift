import Foundation
import LarderPowerLoss
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite(
    "The power is cut while an older store is migrated",
    .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized, .timeLimit(.minutes(10)))
struct MigrationPowerLossTests {
    /// How many migrations the older version knew.
    private static let oldCount = 2
    private static var all: [Int] { MigrationSet.embedded.migrations.map(\.number) }

    /// Makes a store as an older version of the library has left it, and a watcher in it.
    private func makeOlder(_ store: URL) throws {
        let set = MigrationSet(migrations: Array(MigrationSet.embedded.migrations.prefix(Self.oldCount)))
        try OperationsDatabase(folder: store, options: .init(), migrations: set).close()
        let program = try OtherProgram(store)
        try program.run("INSERT INTO partition (name) VALUES ('main')")
        try program.run(
            """
            INSERT INTO watcher (partition, name, document, variables, created, updated)
            SELECT id, 'list', '{ recipes { id } }', CAST('{}' AS BLOB), 0, 0 FROM partition
            """)
    }

    /// A proof of a program that opens such a store, which migrates it, and closes it.
    private func withProof(_ body: (PowerLossProof, _ scratch: URL) async throws -> Void) async throws {
        try await PowerRecorder.withRoot { root, folder in
            try makeOlder(root.appending(path: "store"))
            try Data().write(to: folder.appending(path: "marks"))
            let existing = try RecordedEntry.existing(in: root, as: root.path)
            let recording = try await PowerRecorder.record(
                root, beside: folder, load: "recover-power", seed: RecordedLoad.seed, lives: 1
            ).beginning(with: existing)
            var proof = PowerLossProof(recording, seed: RecordedLoad.seed)
            proof.beginning = existing.count
            // The migration is one commit, so that there are few places: each is cut at.
            proof.sparsity = 1
            proof.inspect = { await Self.problems($0) }
            #expect(try proof.differences(from: root) == [])
            try await body(proof, folder)
        }
    }

    /// What is not as it must be: the store is migrated as a whole or not at all, and opens, and keeps what it had.
    private static func problems(_ remains: Remains) async -> [String] {
        var problems: [String] = []
        do throws(OperationsError) {
            var options = OperationsDatabase.Options()
            (options.isReadOnly, options.schema) = (true, .asItIs)
            let found = try OperationsDatabase(folder: remains.store, options: options)
            let applied = try found.schemaStatus().applied.map(\.number)
            try found.close()
            let isPromised = remains.marks.contains("closed")
            if applied != all, isPromised || applied != Array(all.prefix(oldCount)) {
                problems.append("migrations \(applied) are applied\(isPromised ? ", and the store was closed" : "")")
            }
            let opened = try OperationsDatabase(folder: remains.store)
            if try opened.schemaStatus().applied.map(\.number) != all { problems.append("it is not migrated") }
            problems += try opened.check().problems.map { "\($0)" }
            if try opened.watchers.list(in: "main").map(\.name) != ["list"] { problems.append("the watcher is lost") }
            try opened.close()
        } catch { problems.append("\(error)") }
        return problems
    }

    @Test("Wherever the power is cut, the store opens, migrated or not yet, with what it had")
    func everywhere() async throws {
        try await withProof { (proof, scratch) throws in
            let result = try await proof.run(in: scratch)
            for problem in result.problems { Issue.record("\(problem); seed \(RecordedLoad.seed)") }
            #expect(result.mapped.allSatisfy(PowerLossProof.meansNothing), "\(result.mapped)")
            #expect(result.variants > 20)
        }
    }

    @Test("Where the database's syncs are lost on their way to the disk, that is noticed")
    func lies() async throws {
        try await withProof { (proof, scratch) throws in
            var proof = proof
            proof.isUnsynced = { $0.contains("/larder.sqlite") }
            proof.patience = 1
            let result = try await proof.run(in: scratch)
            #expect(!result.problems.isEmpty)
        }
    }
}
