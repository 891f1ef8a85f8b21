import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Uploads of the same key")
struct TransferPlaceTests {
    private func upload(_ key: String, bucket: String = "media", priority: Int = 0) -> TransferDraft {
        TransferDraft(
            partition: app, kind: .upload, bucket: bucket, key: key, path: "/file", priority: priority,
            source: .init(device: 1, inode: 2, size: 3, modified: 4), created: noon)
    }

    private func begin(_ id: UUID, _ database: OperationsDatabase) async throws -> TransferAttempt {
        try #require(try await database.transfers.begin(id, owner: "me", now: noon)).attempt
    }

    private func runnable(_ database: OperationsDatabase) throws -> [UUID] {
        try database.transfers.runnable(in: app, now: noon, limit: 99).ids
    }

    @Test("The later waits for the earlier, whatever its priority, until that is over")
    func order() async throws {
        try await withOperations { database in
            let first = upload("a"), urgent = upload("a", priority: 9)
            let download = TransferDraft(
                partition: app, kind: .download, bucket: "media", key: "a", path: "/copy", created: noon)
            let others = [upload("b"), upload("a", bucket: "other"), download]
            try await database.transfers.enqueue([first, urgent] + others)
            #expect(try runnable(database) == [first.id] + others.map(\.id))
            let attempt = try await begin(first.id, database)
            #expect(try runnable(database) == others.map(\.id))
            try await database.transfers.finish(attempt, etag: nil, now: noon)
            #expect(try runnable(database) == [urgent.id] + others.map(\.id))
        }
    }

    @Test("Keys that have the same place by chance do not wait for each other")
    func collision() async throws {
        try await withOperations { database in
            let drafts = [upload("a"), upload("b"), upload("a")]
            try await database.transfers.enqueue(drafts)
            try await database.pool.write { try $0.execute(sql: "UPDATE transfer SET place = 7") }
            #expect(try runnable(database) == [drafts[0].id, drafts[1].id])
        }
    }

    @Test("What was queued before there were places is waited for, and waits")
    func older() async throws {
        try await withTemporaryFolder { folder in
            let first = try OperationsDatabase(
                folder: folder, options: .init(), migrations: .init(migrations: Array(Migration.all.prefix(5))))
            let ids = (0..<3).map { _ in UUID() }
            try await first.pool.write { db in
                try db.execute(sql: "INSERT INTO partition (name) VALUES (?)", arguments: [app])
                for (id, key) in zip(ids, ["a", "b", "a"]) {
                    try db.execute(
                        sql: """
                            INSERT INTO transfer (id, partition, kind, state, priority, bucket, key, path, replaces,
                                attempts, created) VALUES (?, 1, 0, 0, 0, 'media', ?, '/file', 0, 0, 0)
                            """, arguments: [withUnsafeBytes(of: id.uuid) { Data($0) }, key])
                }
            }
            try first.close()
            let database = try OperationsDatabase(folder: folder)
            let late = [upload("a", priority: 1), upload("c")]
            try await database.transfers.enqueue(late)
            #expect(try runnable(database) == [ids[0], ids[1], late[1].id])
            for (id, next) in [(ids[0], ids[2]), (ids[2], late[0].id)] {
                try await database.transfers.finish(begin(id, database), etag: nil, now: noon)
                #expect(try runnable(database).contains(next))
            }
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A place is made as it always was: other versions of the library have stored it", arguments: [
        ("media", "photos/1.jpg", 0xCFCA_1D48), ("", "", 0x7A0B_824E), ("m", "ä\0\u{1F600}", 0x6A9F_FF17),
    ])
    func place(bucket: String, key: String, place: Int64) {
        #expect(upload(key, bucket: bucket).place == place)
    }

    @Test("Those who are waited for are found by an index")
    func plan() async throws {
        try await withOperations { database in
            let plan = try await database.pool.read { db in
                let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + TransferTransaction.turnSQL)
                statement.setUncheckedArguments([])
                return try Row.fetchAll(statement).map { $0["detail"] as String }
            }
            #expect(plan.contains("SEARCH e USING INDEX transfer_place (place=? AND rowid<?)"), "\(plan)")
            let unplaced = plan.contains { $0.contains("transfer_unplaced (partition=? AND bucket=? AND key=?") }
            #expect(unplaced, "\(plan)")
        }
    }
}
