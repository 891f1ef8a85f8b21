import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import LarderOperations

private func upload(_ key: String, in partition: String = app) -> TransferDraft {
    TransferDraft(
        partition: partition, kind: .upload, bucket: "media", key: key, path: "/file",
        source: .init(device: 1, inode: 2, size: 10, modified: 3), created: noon)
}

@Suite("Transfers that are followed, or forgotten", .timeLimit(.minutes(10)))
struct TransferFollowingTests {
    @Test("A follower reads transfers that were queued, have changed or are under way, and no other")
    func changes() async throws {
        try await withOperations { database in
            let table = database.transfers
            let drafts = (0..<6).map { upload("\($0)") }
            try await table.enqueue(drafts)
            let ids = drafts.map(\.id)
            var position = try table.position(in: app)
            #expect(try table.changes(in: app, since: position).transfers.isEmpty)

            func changed() throws -> [UUID] {
                let found = try table.changes(in: app, since: position)
                position = found.position
                return found.transfers.map(\.id)
            }
            try await table.pause(ids[4])
            try await table.cancel(ids[1], now: noon)
            #expect(try changed() == [ids[1], ids[4]])
            let running = try #require(try await table.begin(ids[2], owner: "me", now: noon))
            let late = upload("late")
            try await table.enqueue([late, upload("another's", in: "other")])
            #expect(try changed() == [ids[2], late.id])
            // More may have arrived of it.
            #expect(try changed() == [ids[2]])
            try await table.finish(running.attempt, etag: nil, now: noon)
            #expect(try changed() == [ids[2]])
            #expect(try changed().isEmpty)
            // The one that has changed last goes, and no number comes twice.
            try await table.prune(keeping: 0, in: app)
            try await table.resume(ids[4])
            #expect(try changed() == [ids[4]])
            #expect(try table.changes(in: app, since: .start).transfers.count == 5)
        }
    }

    @Test("Frequent queries walk through no whole table and sort nothing")
    func plans() async throws {
        try await withOperations { database in
            try await database.transfers.enqueue([upload("a")])
            for (sql, index) in [
                (TransferTransaction.remainsSQL, "transfer_remains"),
                (TransferTransaction.allRemainsSQL, "transfer_remains"),
                (TransferTransaction.changedSQL, "transfer_changed"),
                (TransferTransaction.underWaySQL, "transfer_work"),
                (TransferTransaction.queuedSQL, "INTEGER PRIMARY KEY (rowid>?)"),
                (TransferTransaction.turnSQL, "transfer_turn"),
                (TransferTransaction.unservedSQL, "transfer_storage"),
            ] {
                let plan = try await database.pool.read { db in
                    let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
                    statement.setUncheckedArguments([])
                    return try Row.fetchAll(statement).map { $0["detail"] as String }
                }
                // That index is of nothing else than what is asked for, and the names of storages are a parameter.
                let scans = plan.filter {
                    $0.hasPrefix("SCAN") && !$0.hasSuffix("INDEX transfer_remains") && !$0.hasPrefix("SCAN json_each")
                }
                #expect(scans.isEmpty && !plan.contains { $0.contains("TEMP B-TREE") }, "\(sql): \(plan)")
                #expect(plan.contains { $0.contains(index) }, "\(sql): \(plan)")
            }
        }
    }

    @Test("Remains are found, of cancelled transfers and of failed ones that have left something")
    func remains() async throws {
        try await withOperations { database in
            let table = database.transfers
            let failure = TransferFailure(code: "object.rejected", message: "no", time: noon)
            var ids: [UUID] = []
            for notes in [[], [TransferNote.upload("u")], [.uploadAsked(before: [])]] {
                let draft = upload("\(ids.count)")
                try await table.enqueue([draft])
                let attempt = try #require(try await table.begin(draft.id, owner: "me", now: noon)).attempt
                try await table.note(attempt, notes)
                try await table.fail(attempt, failure, now: noon)
                ids.append(draft.id)
            }
            var runnable = try table.runnable(in: app, now: noon, limit: 9)
            #expect(runnable.isEmpty && runnable.remains == Array(ids.suffix(2)))
            #expect(try table.remains(named: []).map(\.id) == Array(ids.suffix(2)))
            #expect(try table.remains(named: [ids[0], UUID()]).map(\.id) == ids)
            let waiting = upload("waiting")
            try await table.enqueue([waiting])
            #expect(try table.remains(named: [waiting.id]).map(\.id) == Array(ids.suffix(2)))
            try await table.cancel(waiting.id, now: noon)
            try await table.cancel(ids[1], now: noon)
            try await table.forgetUpload(of: ids[2])
            runnable = try table.runnable(in: app, now: noon, limit: 9)
            #expect(runnable.remains == [ids[1]])
            try await table.cleared(ids[1], now: noon)
            #expect(try table.runnable(in: app, now: noon, limit: 9).remains.isEmpty)
        }
    }

    @Test("An upload that is queued while everything else is erased is not lost")
    func queuedMeanwhile() async throws {
        try await withOperations { database in
            let table = database.transfers
            let late = upload("a")
            try await table.enqueue([late])
            await expectFailure(.unsentWork) { _ = try await table.erase(in: app, keepsQueued: false, now: noon) }
            #expect(try table.find(late.id)?.state == .pending)
            #expect(try await table.erase(in: app, keepsQueued: true, now: noon).transfers == [late.id])
            #expect(try table.find(late.id)?.state == .pending)
        }
    }

    @Test("Transfers whose object is held are passed over")
    func held() async throws {
        try await withOperations { database in
            let drafts = ["a", "b", "c"].map { upload($0) }
            try await database.transfers.enqueue(drafts)
            let runnable = try database.transfers.runnable(in: app, now: noon, limit: 9) { _, _, bucket, key, _ in
                bucket == "media" && key == "b"
            }
            #expect(runnable.ids == [drafts[0].id, drafts[2].id] && !runnable.isEmpty)
        }
    }

    @Test("A partition whose uploads the storage has parts of is not forgotten without a word, nor without their names")
    func forgotten() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "first")
            let (draft, unnamed) = (upload("v/1", in: "first"), upload("v/2", in: "first"))
            try await database.transfers.enqueue([draft, unnamed])
            for (id, note) in [(draft.id, TransferNote.upload("u")), (unnamed.id, .uploadAsked(before: []))] {
                let attempt = try #require(try await database.transfers.begin(id, owner: "me", now: noon)).attempt
                try await database.transfers.note(attempt, [note])
            }
            try await database.enter(environment("b"), as: "second", leaving: .discard)
            await expectFailure(.uploadsLeft) {
                try await database.environments.forget(environment: "a", losingUnsent: false)
            }
            await expectFailure(.uploadsLeft) {
                try await database.environments.forget(partitions: ["first"], losingUnsent: false)
            }
            #expect(try database.transfers.list(in: "first").count == 2)
            let left = try await database.environments.forget(partitions: ["first"], losingUnsent: true)
            #expect(
                left.uploads == [
                    LeftUpload(bucket: "media", key: "v/1", region: nil, upload: "u"),
                    LeftUpload(bucket: "media", key: "v/2", region: nil, upload: nil),
                ])
            #expect(try database.transfers.list(in: "first").isEmpty)
        }
    }

    @Test("Forgetting an environment names the uploads of all its users that the storage has parts of")
    func forgottenOfAllUsers() async throws {
        try await withOperations { database in
            for user in ["ada", "bob"] {
                try await database.enter(environment("a"), .user(user), as: user)
                let draft = upload("v/\(user)", in: user)
                try await database.transfers.enqueue([draft])
                let begun = try await database.transfers.begin(draft.id, owner: "me", now: noon)
                try await database.transfers.note(try #require(begun).attempt, [.upload("of \(user)")])
            }
            try await database.enter(environment("b"), as: "other")
            let left = try await database.environments.forget(environment: "a", losingUnsent: true)
            #expect(Set(left.partitions) == ["ada", "bob"])
            #expect(
                Set(left.uploads) == [
                    LeftUpload(bucket: "media", key: "v/ada", region: nil, upload: "of ada"),
                    LeftUpload(bucket: "media", key: "v/bob", region: nil, upload: "of bob"),
                ])
        }
    }

    @Test("Forgetting a partition names its downloads, of which partial files may be left, and no upload")
    func forgottenDownloads() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "first")
            let download = TransferDraft(
                partition: "first", kind: .download, bucket: "media", key: "v/1", path: "/copy", created: noon)
            try await database.transfers.enqueue([upload("v/2", in: "first"), download])
            try await database.enter(environment("b"), as: "second")
            let left = try await database.environments.forget(partitions: ["first"], losingUnsent: true)
            #expect(left.downloads.map(\.id) == [download.id] && left.uploads.isEmpty)
        }
    }

    @Test("Forgetting names the storage that has the parts of an upload")
    func forgottenAtNamedStorage() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "first")
            var draft = upload("v/1", in: "first")
            draft.storage = "archive"
            let id = draft.id
            try await database.transfers.enqueue([draft])
            let attempt = try #require(try await database.transfers.begin(id, owner: "me", now: noon)).attempt
            try await database.transfers.note(attempt, [.upload("u")])
            try await database.enter(environment("b"), as: "second", leaving: .discard)
            let left = try await database.environments.forget(partitions: ["first"], losingUnsent: true)
            #expect(left.uploads.map(\.storage) == ["archive"])
        }
    }

    @Test("The refusal to forget uploads that the storage has parts of says how many there are")
    func countedLeft() async throws {
        try await withOperations { database in
            try await database.enter(environment("a"), as: "first")
            let draft = upload("v/1", in: "first")
            try await database.transfers.enqueue([draft])
            let attempt = try #require(try await database.transfers.begin(draft.id, owner: "me", now: noon)).attempt
            try await database.transfers.note(attempt, [.upload("u")])
            try await database.enter(environment("b"), as: "second", leaving: .discard)
            let error = await failure {
                try await database.environments.forget(partitions: ["first"], losingUnsent: false)
            }
            #expect(error?.code == .uploadsLeft && error?.unsent?.uploads == 1)
        }
    }

    @Test("Erasing a partition's transfers leaves the transfers of another partition, which do not hinder it")
    func erasedOfOne() async throws {
        try await withOperations { database in
            let download = TransferDraft(
                partition: app, kind: .download, bucket: "media", key: "v/1", path: "/copy", created: noon)
            let foreign = upload("v/2", in: "other")
            try await database.transfers.enqueue([download, foreign])
            let erased = try await database.transfers.erase(in: app, keepsQueued: false, now: noon)
            #expect(erased.transfers == [download.id])
            #expect(try database.transfers.list().map(\.id) == [foreign.id])
            #expect(try database.transfers.find(foreign.id)?.state == .pending)
        }
    }

    @Test("What a runner makes pending again is of its own partition, and what is under way in another stays so")
    func recoveredOfOne() async throws {
        try await withOperations { database in
            let drafts = [upload("v/1"), upload("v/2", in: "other")]
            try await database.transfers.enqueue(drafts)
            for draft in drafts {
                _ = try #require(try await database.transfers.begin(draft.id, owner: "me", now: noon))
            }
            try await database.transfers.recover(in: app, now: noon, puttingLasts: 1, completingLasts: 1)
            #expect(try drafts.map { try database.transfers.find($0.id)?.state } == [.pending, .running])
        }
    }

    @Test("A runner has the transfers of its own partition fail whose time is over, and none of another")
    func expiredOfOne() async throws {
        try await withOperations { database in
            var drafts = [upload("v/1"), upload("v/2", in: "other")]
            for index in drafts.indices { drafts[index].expires = after(1) }
            try await database.transfers.enqueue(drafts)
            try await database.transfers.expire(in: app, now: after(2))
            #expect(try database.transfers.list().map(\.state) == [.failed, .pending])
        }
    }

    @Test("A runner is given the transfers of its own partition, and none that wait in another")
    func runnableOfOne() async throws {
        try await withOperations { database in
            let drafts = [upload("v/1"), upload("v/2", in: "other")]
            try await database.transfers.enqueue(drafts)
            #expect(try database.transfers.runnable(in: app, now: noon, limit: 9).ids == [drafts[0].id])
        }
    }

    @Test("Forgetting an environment names no upload that the storage has of another environment")
    func forgottenBesideLeft() async throws {
        try await withOperations { database in
            for name in ["a", "b"] {
                try await database.enter(environment(name), as: "p\(name)", leaving: .discard)
                let draft = upload("v/\(name)", in: "p\(name)")
                try await database.transfers.enqueue([draft])
                let begun = try await database.transfers.begin(draft.id, owner: "me", now: noon)
                try await database.transfers.note(try #require(begun).attempt, [.upload("of \(name)")])
            }
            let left = try await database.environments.forget(environment: "a", losingUnsent: true)
            #expect(left.uploads == [LeftUpload(bucket: "media", key: "v/a", region: nil, upload: "of a")])
            #expect(try database.transfers.list().map(\.upload) == ["of b"])
        }
    }

    @Test("Erasing a partition's transfers forgets none that has ended in another partition")
    func erasedBesideEnded() async throws {
        try await withOperations { database in
            let (mine, foreign) = (upload("v/1"), upload("v/2", in: "other"))
            try await database.transfers.enqueue([mine, foreign])
            let begun = try #require(try await database.transfers.begin(foreign.id, owner: "me", now: noon))
            try await database.transfers.finish(begun.attempt, etag: nil, now: noon)
            _ = try await database.transfers.erase(in: app, keepsQueued: true, now: noon)
            #expect(try database.transfers.find(foreign.id)?.state == .done)
        }
    }
}
