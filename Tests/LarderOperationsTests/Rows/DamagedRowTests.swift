import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

private let source = FileIdentity(device: 1, inode: 2, size: 10_000, modified: 3)

@Suite("Damaged rows", .timeLimit(.minutes(10)))
struct DamagedRowTests {
    /// Changes rows as no program of ours would. Restrictions of the tables do not hold for it, their types do.
    private func run(_ sql: String, _ database: OperationsDatabase) async throws {
        try await database.pool.writeWithoutTransaction { db in
            try db.execute(sql: "PRAGMA ignore_check_constraints = ON; \(sql); PRAGMA ignore_check_constraints = OFF")
        }
    }

    private func queueUploads(_ count: Int, _ database: OperationsDatabase) async throws -> [UUID] {
        let drafts = (0..<count).map { number in
            TransferDraft(
                partition: app, kind: .upload, bucket: "media", key: "\(number)", path: "/file",
                metadata: json("{}"), source: source, created: noon)
        }
        try await database.transfers.enqueue(drafts)
        for draft in drafts {
            let begun = try #require(try await database.transfers.begin(draft.id, owner: "me", now: noon))
            try await database.transfers.note(
                begun.attempt,
                [
                    .partSize(4096), .upload("u"),
                    .parts([.init(number: 1, size: 4096), .init(number: 3, size: 1808)]),
                ])
            try await database.transfers.release(begun.attempt)
        }
        return drafts.map(\.id)
    }

    @Test("Each table has a reading, so that a check decodes its rows")
    func readings() async throws {
        try await withOperations { database in
            let tables = try await database.pool.read {
                try $0.texts(
                    """
                    SELECT name FROM sqlite_schema
                    WHERE type = 'table' AND (name = 'sqlite_sequence' OR name NOT LIKE 'sqlite%')
                    """)
            }
            #expect(Set(tables) == Set(RowReading.all.map(\.table)))
        }
    }

    @Test(
        "Sizes and numbers of parts that are no plan's are named by a check, and set aside; other transfers go on",
        arguments: [
            "UPDATE transfer SET part_size = 0 WHERE sequence = 1",
            "UPDATE transfer SET part_size = -1 WHERE sequence = 1",
            "UPDATE transfer SET part_size = 1, size = 9223372036854775807 WHERE sequence = 1",
            "UPDATE transfer SET part_size = 9223372036854775807 WHERE sequence = 1",
            "UPDATE transfer SET size = -1 WHERE sequence = 1",
            "UPDATE transfer SET attempts = 9223372036854775807 WHERE sequence = 1",
            "UPDATE transfer SET metadata = x'7b' WHERE sequence = 1",
            "UPDATE transfer SET sha256 = x'00' WHERE sequence = 1",
            "UPDATE transfer SET crc32c = -1 WHERE sequence = 1",
            "UPDATE transfer_part SET size = 9223372036854775807 WHERE sequence = 1",
            "UPDATE transfer_part SET number = -9223372036854775808 WHERE sequence = 1 AND number = 1",
            "UPDATE transfer_part SET number = 4 WHERE sequence = 1 AND number = 3",
            "UPDATE transfer_part SET size = 1 WHERE sequence = 1 AND number = 1",
        ])
    func transfers(damage: String) async throws {
        try await withOperations { database in
            let ids = try await queueUploads(2, database)
            try await run(damage, database)
            #expect(try !database.check().isSound)
            #expect(try database.transfers.list().map(\.id).contains(ids[1]))
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            let failed = try #require(try database.transfers.find(ids[0]))
            #expect(failed.state == .failed && failed.failure?.code == "operations.damagedRow")
            #expect(failed.upload == "u")
            #expect(try database.transfers.runnable(in: app, now: noon, limit: 9).ids == [ids[1]])
            // What was lost of it is not known: it is not tried again.
            await expectFailure(.wrongState) { try await database.transfers.retry(ids[0], source: source) }
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).isEmpty)
        }
    }

    @Test("What has arrived of the other transfers is known as before when a damaged one is set aside")
    func othersParts() async throws {
        try await withOperations { database in
            let ids = try await queueUploads(2, database)
            let arrived = try database.transfers.parts(of: ids[1])
            try await run("UPDATE transfer SET attempts = 9223372036854775807 WHERE sequence = 1", database)
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            #expect(try database.transfers.find(ids[0])?.state == .failed)
            #expect(arrived.count == 2)
            #expect(try database.transfers.parts(of: ids[1]) == arrived)
        }
    }

    @Test(
        "A mutation whose row cannot be read is set aside and never sent again, and others of its lane go on",
        arguments: [
            "UPDATE mutation SET attempts = 9223372036854775807 WHERE sequence = 1",
            "UPDATE mutation SET attempts = -1 WHERE sequence = 1",
            "UPDATE mutation SET id = x'00' WHERE sequence = 1",
            "UPDATE mutation_content SET variables = x'7b' WHERE sequence = 1",
            "DELETE FROM mutation_content WHERE sequence = 1",
        ])
    func mutations(damage: String) async throws {
        try await withOperations { database in
            let first = try await database.enqueue(draft())
            let second = try await database.enqueue(draft())
            try await run(damage, database)
            #expect(try !database.check().isSound)
            #expect(try database.mutations.list().map(\.id) == [second])
            await expectFailure(.damagedRow) { _ = try database.mutations.list(isStrict: true) }
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            let aside = try #require(try database.mutations.list().first)
            #expect(aside.state == .deadLetter && aside.failure?.class == .damaged)
            #expect(aside.id == first || damage.contains("SET id"))
            await expectFailure(.wrongState) { try await database.mutations.replay(aside.id, now: noon) }
            let revision = Revision(variables: json("{}"))
            await expectFailure(.wrongState) { try await database.mutations.edit(aside.id, revision) }
            try await database.mutations.discard(aside.id, dependents: .release, now: noon)
            #expect(try database.heads() == [second])
            try await database.complete(second)
        }
    }

    @Test(
        "A mutation that is set aside for its damage says whether it was sent, and may have taken effect",
        arguments: [MutationState.pending, .inFlight, .acknowledged])
    func sent(state: MutationState) async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            if state != .pending {
                let attempt = try await database.begin(id).attempt
                if state == .acknowledged { try await database.mutations.answer(attempt, json("{}"), now: noon) }
            }
            try await run("UPDATE mutation SET attempts = 9223372036854775807", database)
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            let failure = try #require(try database.mutation(id)?.failure)
            let saysSo = failure.message.hasSuffix("; it was sent, and may have taken effect")
            #expect(saysSo == (state != .pending), "\(failure.message)")
        }
    }

    @Test("A transfer that is being cancelled stays so when its row is damaged, and its upload is still to be aborted")
    func givenUp() async throws {
        try await withOperations { database in
            let id = try await queueUploads(1, database)[0]
            _ = try await database.transfers.cancel(id, now: noon)
            try await run("UPDATE transfer SET attempts = 9223372036854775807", database)
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            let found = try #require(try database.transfers.find(id))
            #expect(found.state == .cancelling && found.upload == "u" && found.failure == nil)
        }
    }

    @Test("A transfer that failed because of its damaged row can be cancelled, and keeps its upload to be aborted")
    func cancelled() async throws {
        try await withOperations { database in
            let id = try await queueUploads(1, database)[0]
            try await run("UPDATE transfer SET attempts = 9223372036854775807", database)
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            #expect(try database.transfers.find(id)?.state == .failed)
            _ = try await database.transfers.cancel(id, now: noon)
            let found = try #require(try database.transfers.find(id))
            #expect(found.state == .cancelling && found.upload == "u")
        }
    }

    @Test("A transfer that has ended stays so when its row is damaged, and is not one that has failed")
    func ended() async throws {
        try await withOperations { database in
            let ids = try await queueUploads(2, database)
            let begun = try #require(try await database.transfers.begin(ids[0], owner: "me", now: noon))
            try await database.transfers.finish(begun.attempt, etag: "e", now: noon)
            _ = try await database.transfers.cancel(ids[1], now: noon)
            try await database.transfers.cleared(ids[1], now: noon)
            try await run("UPDATE transfer SET attempts = 9223372036854775807", database)
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 2)
            let found = try ids.map { try #require(try database.transfers.find($0)) }
            #expect(found.map(\.state) == [.done, .cancelled])
            #expect(found.allSatisfy { $0.failure == nil })
        }
    }

    @Test("Of damaged rows as many are found as are asked for")
    func limited() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            for _ in 0..<3 { _ = try await database.enqueue(draft()) }
            try await run("UPDATE mutation SET attempts = 9223372036854775807", database)
            let counts = try await database.pool.read { db in
                try [1, 2, .max].map { try RowReading.mutations.damaged(in: db, limit: $0).count }
            }
            #expect(counts == [1, 2, 3])
            try database.close()
        }
    }

    @Test("A check names the row that cannot be read, and says what is wrong with it")
    func named() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            for _ in 0..<3 { _ = try await database.enqueue(draft()) }
            try await run("UPDATE mutation SET attempts = 9223372036854775807 WHERE sequence = 2", database)
            let found = try database.check().problems.filter { $0.kind == .row }.map(\.description)
            let name = "row: mutation where sequence = 2: "
            #expect(found.count == 1 && found.first?.hasPrefix(name) == true && found.first != name, "\(found)")
            try database.close()
        }
    }

    @Test("A check names a hundred problems of a kind, and no more")
    func manyProblems() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            _ = try await database.mutations.enqueue((0..<101).map { draft("\($0)") })
            try await run("DELETE FROM mutation_content", database)
            let problems = try database.check().problems
            for kind in [OperationsCheck.Problem.Kind.row, .rule] {
                #expect(problems.count { $0.kind == kind } == 100, "\(kind)")
            }
            try database.close()
        }
    }

    @Test("Where more than one value of a mutation cannot be read, its partition and its place in it are kept")
    func severalValues() async throws {
        try await withOperations { database in
            _ = try await database.enqueue(draft(in: "other"))
            _ = try await database.enqueue(draft())
            try await run(
                """
                UPDATE mutation SET attempts = 9223372036854775807 WHERE sequence = 2;
                UPDATE mutation_content SET variables = x'7b' WHERE sequence = 2
                """, database)
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            let found = try database.mutations.list(MutationFilter(partition: app))
            #expect(found.map(\.sequence) == [2] && found.map(\.state) == [.deadLetter])
            #expect(found.first?.failure?.class == .damaged)
        }
    }

    @Test(
        "Rows of other tables that cannot be read are named by a check",
        arguments: [
            "UPDATE outcome SET sequence = 0", "UPDATE outcome SET id = x'00'", "UPDATE outcome SET result = x'7b'",
            "UPDATE watcher SET variables = x''", "UPDATE pin SET variables = x'7b'",
            "UPDATE partition SET transfer_changes = 9223372036854775807",
            "UPDATE sqlite_sequence SET seq = 9223372036854775807 WHERE name = 'mutation'",
            "UPDATE sqlite_sequence SET seq = 'x' WHERE name = 'mutation'",
        ])
    func others(damage: String) async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            let id = try await database.enqueue(draft())
            let attempt = try await database.begin(id).attempt
            try await database.mutations.answer(attempt, json("{}"), now: noon)
            try await database.mutations.settle(id, result: json("{}"), now: noon)
            _ = try await database.watchers.put("list", in: app, document: "{ a }", now: noon)
            try await database.pins.put("pin", in: app, document: "{ a }", now: noon)
            try expectSound(database)
            try await run(damage, database)
            #expect(try !database.check().isSound)
            try database.close()
        }
    }

    @Test("A row that refers to nothing is a finding of check, also unopened, and a backup that has one is refused")
    func references() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            _ = try await database.enqueue(draft())
            try await database.pool.writeWithoutTransaction { db in
                try db.execute(
                    sql: """
                        PRAGMA foreign_keys = OFF;
                        INSERT INTO session (partition, state, changed) VALUES (99, 'guest', 0);
                        PRAGMA foreign_keys = ON;
                        """)
            }
            #expect(try database.check().problems.map(\.kind) == [.reference])
            try database.close()
            #expect(try OperationsDatabase.check(folder: folder)?.problems.map(\.kind) == [.reference])
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
            defer { lock.release() }
            let file = folder.appending(path: OperationsDatabase.fileName)
            await expectFailure(.damagedBackup) {
                try OperationsDatabase.stage("token", in: folder, holding: lock) { path in
                    try FileManager.default.copyItem(at: file, to: URL(filePath: path))
                }
            }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(!names.contains { $0.hasPrefix("restored-") })
        }
    }

    @Test("A plan of parts has sums that do not overflow, or there is none")
    func plans() throws {
        for (size, partSize) in [(-1, 1), (1, 0), (1, -1), (.max, 1), (.min, .min)] as [(Int64, Int64)] {
            #expect(PartPlan(size: size, partSize: partSize) == nil)
        }
        for (size, partSize) in [(0, 1), (.max, .max), (.max, 1 << 44), (10_000, 4096), (8192, 4096)]
            as [(Int64, Int64)]
        {
            let plan = try #require(PartPlan(size: size, partSize: partSize))
            let sizes = plan.count == 0 ? [] : plan.numbers.map(plan.size(of:))
            #expect(sizes.reduce(0, +) == size)
            #expect(plan.range(of: plan.numbers.upperBound).upperBound == size)
            #expect(!plan.has(StoredPart(number: 0, size: partSize)))
            #expect(!plan.has(StoredPart(number: .min, size: partSize)))
            #expect(!plan.has(StoredPart(number: plan.numbers.upperBound + 1, size: partSize)))
        }
    }

    @Test("Setting damaged rows of a partition aside leaves those of another partition for its own runner")
    func ofOnePartition() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            _ = try await database.enqueue(draft())
            _ = try await database.enqueue(draft(in: "other"))
            try await run("UPDATE mutation SET attempts = 9223372036854775807", database)
            #expect(try await database.setAsideDamagedRows(in: app, now: noon).count == 1)
            #expect(try database.mutations.list(MutationFilter(partition: app)).map(\.state) == [.deadLetter])
            #expect(try database.mutations.list(MutationFilter(partition: "other")).isEmpty)
            try database.close()
        }
    }
}
