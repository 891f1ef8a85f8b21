import Foundation
import GRDB
import LarderMigrations
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Uploads of the same key", .timeLimit(.minutes(10)))
struct TransferPlaceTests {
    private func upload(_ key: String, bucket: String = "media", priority: Int = 0) -> TransferDraft {
        TransferDraft(
            partition: app, kind: .upload, bucket: bucket, key: key, path: "/file", priority: priority,
            source: .init(device: 1, inode: 2, size: 3, modified: 4), created: noon)
    }

    @Test("A home below the two names of /var is one")
    func linkedHome() {
        #expect(HomeFolder("/private/var/mobile/App/").path == "/var/mobile/App")
        #expect(HomeFolder("/var/mobile/App").path == "/var/mobile/App")
        #expect(HomeFolder("/private/various").path == "/private/various")
    }

    @Test("A download has no place; a file is the same whose volume has another number, and none that was written to")
    func identities() {
        var download = upload("a")
        download.kind = .download
        #expect(download.place == nil && upload("a").place != nil)
        let file = FileIdentity(device: 1, inode: 2, size: 3, modified: 4)
        #expect(FileIdentity(device: 9, inode: 2, size: 3, modified: 4).isSame(as: file))
        for other in [(9, 3, 4), (2, 9, 4), (2, 3, 9)] as [(Int64, Int64, Int64)] {
            #expect(!FileIdentity(device: 1, inode: other.0, size: other.1, modified: other.2).isSame(as: file))
        }
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
            let first = upload("a")
            let urgent = upload("a", priority: 9)
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

    @Test("A transfer queued before places were stored waits for others, and others for it")
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

    @Test("While the object of an earlier one may still appear, the later waits, however the clock is set")
    func doubt() async throws {
        try await withOperations { database in
            let table = database.transfers
            let first = upload("a")
            let second = upload("a")
            let other = upload("b")
            try await table.enqueue([first, second, other])
            _ = try await begin(first.id, database)
            try await table.cancel(first.id, now: noon)
            #expect(try runnable(database) == [second.id, other.id])
            try await table.noteDoubt(of: first.id, until: noon.addingTimeInterval(60), now: noon)
            for (seconds, waits) in [(0.0, true), (59, true), (60, false), (-1, false)] {
                let found = try table.runnable(in: app, now: noon.addingTimeInterval(seconds), limit: 99)
                #expect(found.ids == (waits ? [other.id] : [second.id, other.id]), "\(seconds)")
                #expect(found.lookAgain == (waits ? noon.addingTimeInterval(60) : nil), "\(seconds)")
            }
            try expectSound(database)
        }
    }

    @Test("An upload that is retried does not wait for the object of a later one")
    func retriedBesideDoubt() async throws {
        try await withOperations { database in
            let table = database.transfers
            let (first, second) = (upload("a"), upload("a"))
            try await table.enqueue([first, second])
            let refused = TransferFailure(code: "object.accessDenied", message: "no", time: noon)
            try await table.fail(begin(first.id, database), refused, now: noon)
            _ = try await begin(second.id, database)
            try await table.cancel(second.id, now: noon)
            try await table.noteDoubt(of: second.id, until: noon.addingTimeInterval(60), now: noon)
            try await table.retry(first.id, source: nil)
            #expect(try runnable(database) == [first.id])
        }
    }

    @Test(
        "A doubt holds up later uploads for a day at most, whatever is stored of it",
        arguments: [
            "9223372036854775807", "4503599627370496", "1e300", "'never'", "x'ff'",
        ])
    func hostileDoubt(value: String) async throws {
        try await withOperations { database in
            let table = database.transfers
            let first = upload("a")
            let second = upload("a")
            try await table.enqueue([first, second])
            _ = try await begin(first.id, database)
            try await table.cancel(first.id, now: noon)
            try database.writeNow { db in
                try db.execute(sql: "PRAGMA writable_schema = ON; PRAGMA ignore_check_constraints = ON")
                try db.execute(sql: "UPDATE transfer SET doubt_set = \(noon.milliseconds) WHERE state = 6")
                try? db.execute(sql: "UPDATE transfer SET doubt = \(value) WHERE state = 6")
            }
            let isStored = try database.read { db in try db.integer("SELECT count(*) FROM transfer WHERE doubt > 0") }
            guard isStored == 1 else { return }
            let day = noon.addingTimeInterval(86_400)
            let found = try table.runnable(in: app, now: noon, limit: 99)
            #expect(found.ids == [])
            #expect(found.lookAgain == day)
            #expect(try table.runnable(in: app, now: day, limit: 99).ids == [second.id])
        }
    }

    @Test(
        "A stored pause is over after a day at most, and none where it is not said when it began",
        arguments: hostilePauses)
    func hostilePause(pause: HostilePause) async throws {
        try await withOperations { database in
            let draft = upload("a")
            try await database.transfers.enqueue([draft])
            try database.writeNow { try $0.execute(sql: "UPDATE transfer SET \(pause.columns)") }
            let found = try database.transfers.runnable(in: app, now: noon, limit: 9)
            #expect(found.ids == (pause.end == nil ? [draft.id] : []))
            #expect(found.lookAgain == pause.end)
            #expect(try database.transfers.runnable(in: app, now: pause.end ?? noon, limit: 9).ids == [draft.id])
        }
    }

    @Test("An upload that a dead runner may have sent as a whole is in doubt; one sent in part is not")
    func recovered() async throws {
        try await withOperations { database in
            let table = database.transfers
            let drafts = ["piece", "piece", "parts", "parts", "all", "all"].map { upload($0) }
            try await table.enqueue(drafts)
            let piece = try await begin(drafts[0].id, database)
            let parts = [StoredPart(number: 1, size: 2, etag: "e"), StoredPart(number: 2, size: 1, etag: "e")]
            for (index, count) in [(2, 1), (4, 2)] {
                let attempt = try await begin(drafts[index].id, database)
                try await table.note(attempt, [.partSize(2), .upload("u"), .parts(Array(parts.prefix(count)))])
            }
            try await table.recover(in: app, now: noon, puttingLasts: 30, completingLasts: 600)
            await expectFailure(.wrongState) { try await table.finish(piece, etag: nil, now: noon) }
            for index in [0, 2, 4] { try await table.pause(drafts[index].id) }
            func runnable(after seconds: Double) throws -> [UUID] {
                try table.runnable(in: app, now: noon.addingTimeInterval(seconds), limit: 99).ids
            }
            #expect(try runnable(after: 0) == [drafts[3].id])
            #expect(try runnable(after: 30) == [drafts[1].id, drafts[3].id])
            // Done, it makes no second object.
            try await table.resume(drafts[4].id)
            try await table.finish(begin(drafts[4].id, database), etag: nil, now: noon)
            #expect(try runnable(after: 30) == [drafts[1].id, drafts[3].id, drafts[5].id])
        }
    }

    @Test(
        "A place is made as it always was: other versions of the library have stored it",
        arguments: [
            ("media", "photos/1.jpg", 0xCFCA_1D48), ("", "", 0x7A0B_824E), ("m", "ä\0\u{1F600}", 0x6A9F_FF17),
        ])
    func place(bucket: String, key: String, place: Int64) {
        #expect(upload(key, bucket: bucket).place == place)
    }

    @Test("Transfers that others wait for are found by an index")
    func plan() async throws {
        try await withOperations { database in
            let plan = try await database.pool.read { db in
                let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + TransferTransaction.turnSQL)
                statement.setUncheckedArguments([])
                return try Row.fetchAll(statement).map { $0["detail"] as String }
            }
            #expect(plan.contains("SEARCH e USING INDEX transfer_place (place=? AND rowid<?)"), "\(plan)")
            #expect(plan.contains { $0.contains("INDEX transfer_doubt (place=? AND doubt>?)") }, "\(plan)")
            #expect(
                plan.contains { $0.contains("transfer_unplaced (partition=? AND bucket=? AND key=?") }, "\(plan)")
        }
    }

    @Test("An upload that may still become an object holds up no upload of the same key at another storage")
    func doubtElsewhere() async throws {
        try await withOperations { database in
            let table = database.transfers
            let first = upload("a")
            var second = upload("a")
            second.storage = "archive"
            try await table.enqueue([first, second])
            _ = try await begin(first.id, database)
            try await table.cancel(first.id, now: noon)
            try await table.noteDoubt(of: first.id, until: after(60), now: noon)
            let found = try table.runnable(in: app, now: noon, limit: 9, storages: [nil, "archive"])
            #expect(found.ids == [second.id])
        }
    }
}
