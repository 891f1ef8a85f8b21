import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Columns that few mutations use", .timeLimit(.minutes(10)))
struct MutationLinkTests {
    private func links(_ database: OperationsDatabase) async throws -> [Int64] {
        try await database.pool.read { try $0.integers("SELECT sequence FROM mutation_link ORDER BY sequence") }
    }

    private func counts(_ database: OperationsDatabase) async throws -> [Int64] {
        try await database.pool.read { db in
            try [
                "mutation_link", "mutation_failure", "mutation_dependency", "mutation_transfer", "temporary_id",
                "temporary_id_use",
            ].map { try db.integer("SELECT count(*) FROM \($0)") ?? -1 }
        }
    }

    @Test("Hangs on a row that others do not have, and goes with it")
    func gone() async throws {
        try await withOperations { database in
            let token = TemporaryID()
            let plain = try await database.enqueue(draft("plain"))
            let failing = try await database.enqueue(draft("failing"))
            try await database.mutations.retryLater(
                database.begin(failing).attempt, at: nil, offline, now: noon)
            let maker = try await database.enqueue(draft("maker", temporaryIDs: [token]))
            let user = try await database.enqueue(
                draft("user", variables: #"{"id":"\#(token.text)"}"#, dependencies: [failing]))
            let sequences = try [failing, maker, user].map { try #require(try database.mutation($0)).sequence }
            #expect(try await links(database) == sequences.sorted())
            #expect(try await counts(database) == [3, 1, 2, 0, 1, 1])
            try await database.complete(plain)
            try await database.complete(failing)
            try await database.complete(maker, temporaryIDs: [token: "7"])
            #expect(try await counts(database) == [1, 0, 0, 0, 1, 0])
            try await database.complete(user)
            #expect(try await counts(database) == [0, 0, 0, 0, 1, 0])
        }
    }

    @Test("Is kept where a database is brought from the version before, and goes on as it was")
    func older() async throws {
        try await withTemporaryFolder { folder in
            let first = try OperationsDatabase(
                folder: folder, options: .init(), migrations: .init(migrations: Array(Migration.all.prefix(9))))
            let ids = (0..<5).map { _ in UUID() }
            try await first.pool.write { db in
                try db.execute(sql: "INSERT INTO partition (name) VALUES (?)", arguments: [app])
                for (number, id) in ids.enumerated() {
                    let id = withUnsafeBytes(of: id.uuid) { Data($0) }
                    try db.execute(
                        sql: """
                            INSERT INTO mutation (id, partition, lane, state, stalled, queued, attempts, created)
                            VALUES (?, 1, ?, 0, 0, 1, 0, 0)
                            """, arguments: [id, "\(number)"])
                    try db.execute(
                        sql: "INSERT INTO mutation_content (sequence, document, variables) VALUES (?, '', x'7b7d')",
                        arguments: [number + 1])
                    try db.execute(
                        sql: """
                            INSERT INTO transfer (id, partition, kind, state, priority, bucket, key, path, replaces,
                                attempts, created) VALUES (?, 1, 0, 0, 0, 'media', 'a', '/file', 0, 0, 0)
                            """, arguments: [id])
                }
                try db.execute(
                    sql: """
                        UPDATE mutation SET state = 3, queued = 0 WHERE sequence = 1;
                        INSERT INTO mutation_failure (sequence, class, code, message, details, time)
                        VALUES (1, 'rejected', 'BAD', 'no', x'5b5d', 5);
                        INSERT INTO mutation_dependency (sequence, dependency) VALUES (4, 2);
                        INSERT INTO mutation_transfer (sequence, transfer) VALUES (5, 3);
                        INSERT INTO temporary_id (token, partition, sequence) VALUES ('larder-a', 1, 2);
                        INSERT INTO temporary_id (token, partition, real, resolved) VALUES ('larder-b', 1, '7', 5);
                        INSERT INTO temporary_id_use (token, sequence) VALUES ('larder-a', 4);
                        """)
            }
            // Rows of mutations that are not there, as damage leaves them, keep nobody from opening it.
            try await first.pool.writeWithoutTransaction { db in
                try db.execute(
                    sql: """
                        PRAGMA foreign_keys = OFF;
                        INSERT INTO mutation_failure (sequence, class, message, time) VALUES (98, 'rejected', 'no', 5);
                        INSERT INTO mutation_dependency (sequence, dependency) VALUES (98, 2), (99, 97);
                        INSERT INTO mutation_transfer (sequence, transfer) VALUES (98, 3);
                        INSERT INTO temporary_id (token, partition, sequence, real, resolved)
                        VALUES ('larder-c', 1, 98, '8', 5);
                        INSERT INTO temporary_id_use (token, sequence) VALUES ('larder-a', 98), ('larder-z', 4);
                        PRAGMA foreign_keys = ON;
                        """)
            }
            try first.close()
            let database = try OperationsDatabase(folder: folder)
            #expect(try await links(database) == [1, 2, 4, 5])
            #expect(try await counts(database) == [4, 1, 1, 1, 3, 1])
            let dead = try #require(try database.mutation(ids[0])?.failure)
            #expect(dead.code == "BAD" && dead.message == "no" && dead.details == json("[]"))
            #expect(try database.mutation(ids[3])?.dependencies == [ids[1]])
            #expect(try database.mutation(ids[4])?.transfers == [ids[2]])
            try expectSound(database)
            try await database.complete(ids[1])
            try await database.complete(ids[2])
            #expect(try await links(database) == [1, 4, 5])
            #expect(try database.heads() == [ids[3]])
            try database.close()
        }
    }
}
