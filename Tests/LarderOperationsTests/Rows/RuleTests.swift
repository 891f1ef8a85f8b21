import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("The rules of a check", .timeLimit(.minutes(5)))
struct RuleTests {
    /// What breaks each rule and no other, by the rule's name: where two mutations are pending in lanes of their own,
    /// and an upload is.
    private static let breaks: [String: String] = [
        "a mutation has content":
            "DELETE FROM mutation_content WHERE sequence = 1",
        "one that is acknowledged has an answer":
            "UPDATE mutation SET state = 2, queued = 0, attempts = 1 WHERE sequence = 1",
        "one that the server has not answered has no answer":
            "INSERT INTO mutation_answer (sequence, answer) VALUES (1, x'7B7D')",
        "one that is set aside has a reason":
            "UPDATE mutation SET state = 3, queued = 0 WHERE sequence = 1",
        "one that was sent has attempts":
            "UPDATE mutation SET state = 1, owner = 'me' WHERE sequence = 1",
        "one that was sent waits for nothing": """
        UPDATE mutation SET state = 1, owner = 'me', attempts = 1 WHERE sequence = 2;
        INSERT INTO mutation_dependency (sequence, dependency) VALUES (2, 1)
        """,
        "of a lane one is in flight":
            "UPDATE mutation SET lane = 'a', state = 1, owner = 'me', attempts = 1",
        "stalled is who waits for a dead letter":
            "UPDATE mutation SET stalled = 1, queued = 0 WHERE sequence = 1",
        "a dependency is of the same partition": """
        UPDATE mutation SET partition = (SELECT id FROM partition WHERE name = 'other')
        WHERE sequence = 2;
        INSERT INTO mutation_dependency (sequence, dependency) VALUES (2, 1)
        """,
        "who holds a temporary id waits for its real one": """
        INSERT INTO temporary_id (token, partition, sequence) SELECT 't', partition, 1 FROM mutation
        WHERE sequence = 1;
        INSERT INTO temporary_id_use (token, sequence) VALUES ('t', 2)
        """,
        "a temporary id has a mutation or a real id": """
        INSERT INTO temporary_id (token, partition) SELECT 't', partition FROM mutation
        WHERE sequence = 1
        """,
        "a mutation is there or settled, not both": """
        INSERT INTO outcome (id, partition, sequence, kind, settled) SELECT id, partition, 9, 0, 0 FROM
        mutation WHERE sequence = 1
        """,
        "who was sent waits for no transfer": """
        UPDATE mutation SET state = 1, owner = 'me', attempts = 1 WHERE sequence = 1;
        INSERT INTO mutation_transfer (sequence, transfer) VALUES (1, 1)
        """,
        "a mutation waits for no transfer that is done, and for none of another partition": """
        UPDATE transfer SET state = 5;
        INSERT INTO mutation_transfer (sequence, transfer) VALUES (1, 1)
        """,
        "no mutation is pending whose transfer has failed, or was given up": """
        UPDATE transfer SET state = 3, failure_code = 'x', failure_message = 'y', failure_time = 0;
        INSERT INTO mutation_transfer (sequence, transfer) VALUES (1, 1)
        """,
        "a transfer that has failed has a reason":
            "UPDATE transfer SET state = 3",
        "a transfer that has ended has no parts": """
        UPDATE transfer SET state = 5;
        INSERT INTO transfer_part (sequence, number, size) VALUES (1, 1, 1)
        """,
        "a sequence is from 1 to \(Columns.greatest)": """
        INSERT INTO outcome (id, partition, sequence, kind, settled) SELECT randomblob(16), partition,
        0, 0, 0 FROM mutation WHERE sequence = 1
        """,
        "a sequence is used once": """
        INSERT INTO outcome (id, partition, sequence, kind, settled) SELECT randomblob(16), partition,
        1, 0, 0 FROM mutation WHERE sequence = 1
        """,
    ]

    @Test("A check names the rule that a database breaks, and no other", arguments: Rule.all.map(\.name))
    func named(rule: String) async throws {
        let sql = try #require(Self.breaks[rule], "no statement here breaks it")
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            for lane in ["a", "b"] { _ = try await database.enqueue(draft(lane)) }
            let upload = TransferDraft(partition: app, kind: .upload, bucket: "b", key: "k", path: "/p", created: noon)
            try await database.transfers.enqueue([upload])
            _ = try await database.watchers.put("w", in: "other", document: "{ a }", now: noon)
            try database.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA foreign_keys = OFF; \(sql); PRAGMA foreign_keys = ON")
            }
            let broken = try database.check().problems.filter { $0.kind == .rule }.map(\.what)
            #expect(!broken.isEmpty && broken.allSatisfy { $0.hasPrefix("\(rule): ") }, "\(broken)")
            try database.close()
        }
    }

    @Test("A mutation whose number is above the last that was given breaks a rule")
    func numberNotGiven() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            _ = try await database.mutations.enqueue([draft("a"), draft("b")])
            try database.writeWithoutTransaction {
                try $0.run("UPDATE sqlite_sequence SET seq = seq - 1 WHERE name = 'mutation'")
            }
            let broken = try database.check().problems.filter { $0.kind == .rule }.map(\.what)
            #expect(broken.count == 1 && broken[0].hasPrefix("a sequence is used once: "), "\(broken)")
            try database.close()
        }
    }

    @Test("Lanes of one name are two where they are of two partitions: of each a mutation may be in flight")
    func lanesOfPartitions() async throws {
        try await withOperations { database in
            for partition in [app, "other"] {
                _ = try await database.begin(database.enqueue(draft("lane", in: partition)))
            }
            try expectSound(database)
        }
    }
}
