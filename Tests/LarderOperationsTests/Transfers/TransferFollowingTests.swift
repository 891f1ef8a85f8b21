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
    @Test("Noting that one upload was handed back leaves another one handed over")
    func handedBackAlone() async throws {
        try await withOperations { database in
            let table = database.transfers
            let drafts = [upload("a"), upload("b")]
            try await table.enqueue(drafts)
            for draft in drafts {
                let attempt = try #require(try await table.begin(draft.id, owner: "me", now: noon)).attempt
                try await table.note(attempt, [.handedOver(noon)])
                try await table.release(attempt)
            }
            try await table.noteHandedBack(drafts[0].id)
            let found = try table.runnable(in: app, now: after(60), limit: 9, leavingHandedOver: true)
            #expect(found.ids == [drafts[0].id])
        }
    }

    @Test("An upload whose object may still appear holds up no upload of another key")
    func doubtOfOne() async throws {
        try await withOperations { database in
            let table = database.transfers
            let drafts = ["a", "b", "a", "b"].map { upload($0) }
            try await table.enqueue(drafts)
            for draft in drafts.prefix(2) { try await table.pause(draft.id) }
            try await table.noteDoubt(of: drafts[0].id, until: after(60), now: noon)
            #expect(try table.runnable(in: app, now: noon, limit: 9).ids == [drafts[3].id])
        }
    }

    @Test("Two storages can each have a left upload of the same name")
    func leftAtEach() async throws {
        try await withOperations { database in
            let table = database.transfers
            let first = upload("a")
            var second = upload("a")
            second.storage = "archive"
            for draft in [first, second] {
                try await table.enqueue([draft])
                let begun = try #require(try await table.begin(draft.id, owner: "me", now: noon))
                try await table.note(begun.attempt, [.upload("u"), .uploadLeft, .restart])
            }
            let left = try table.remains(named: [])
            #expect(left.map(\.upload) == ["u", "u"] && left.map(\.storage) == [nil, "archive"])
        }
    }

    @Test(
        "Losing, restarting or retrying one transfer leaves the parts of all others",
        arguments: ["lost", "restart", "retry"])
    func partsOfEach(step: String) async throws {
        try await withOperations { database in
            let table = database.transfers
            let drafts = [upload("a"), upload("b")]
            try await table.enqueue(drafts)
            var attempts: [TransferAttempt] = []
            for draft in drafts {
                let attempt = try #require(try await table.begin(draft.id, owner: "me", now: noon)).attempt
                let parts = [StoredPart(number: 1, size: 4), StoredPart(number: 2, size: 4)]
                try await table.note(attempt, [.partSize(4), .upload("u"), .parts(parts)])
                attempts.append(attempt)
            }
            switch step {
            case "lost": try await table.note(attempts[0], [.lost([1])])
            case "restart": try await table.note(attempts[0], [.restart])
            default:
                let refused = TransferFailure(code: "object.accessDenied", message: "no", time: noon)
                try await table.fail(attempts[0], refused, now: noon)
                try await table.retry(
                    drafts[0].id, source: FileIdentity(device: 1, inode: 2, size: 10, modified: 4))
            }
            #expect(try table.parts(of: drafts[0].id).map(\.number) == (step == "lost" ? [2] : []))
            #expect(try table.parts(of: drafts[1].id).map(\.number) == [1, 2])
        }
    }

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

    @Test("A follower reads no transfer of another partition that has changed, or is under way")
    func changesElsewhere() async throws {
        try await withOperations { database in
            let table = database.transfers
            let (paused, begun) = (upload("paused", in: "other"), upload("begun", in: "other"))
            try await table.enqueue([upload("own"), paused, begun])
            let position = try table.position(in: app)
            try await table.pause(paused.id)
            _ = try #require(try await table.begin(begun.id, owner: "me", now: noon))
            #expect(try table.changes(in: app, since: position).transfers.isEmpty)
        }
    }

    @Test("Pruning forgets ended transfers of its own partition, and none of another partition")
    func prunesOwn() async throws {
        try await withOperations { database in
            let table = database.transfers
            let (own, foreign) = (upload("a"), upload("b", in: "other"))
            try await table.enqueue([own, foreign])
            for id in [own.id, foreign.id] { try await table.cancel(id, now: noon) }
            try await table.prune(keeping: 0, in: app)
            #expect(try table.list(in: app).isEmpty)
            #expect(try table.list(in: "other").map(\.id) == [foreign.id])
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

    @Test("A runner says which storage it lacks of the transfers of its own partition, and of none in another")
    func storagesOfOne() async throws {
        try await withOperations { database in
            let table = database.transfers
            var drafts = [upload("v/1"), upload("v/2", in: "other")]
            for index in drafts.indices { drafts[index].storage = "archive" }
            try await table.enqueue(drafts)
            try await table.noteUnserved(in: app, having: [nil], now: noon)
            #expect(try table.list().map { $0.failure != nil } == [true, false])
            try await table.noteUnserved(in: "other", having: [nil], now: noon)
            try await table.noteServed(in: app, having: ["archive"])
            #expect(try table.list().map { $0.failure != nil } == [false, true])
        }
    }

    @Test("The refusal to erase says how many uploads joined the queue meanwhile")
    func countedMeanwhile() async throws {
        try await withOperations { database in
            try await database.transfers.enqueue([upload("a"), upload("b")])
            let refusal = await failure {
                _ = try await database.transfers.erase(in: app, keepsQueued: false, now: noon)
            }
            #expect(refusal?.code == .unsentWork && refusal?.unsent?.uploads == 2)
        }
    }

    @Test("Erasing a partition's transfers forgets none that is being cancelled in another partition")
    func erasedBesideCancelling() async throws {
        try await withOperations { database in
            let table = database.transfers
            let (mine, foreign) = (upload("v/1"), upload("v/2", in: "other"))
            try await table.enqueue([mine, foreign])
            try await table.cancel(mine.id, now: noon)
            let begun = try #require(try await table.begin(foreign.id, owner: "me", now: noon))
            try await table.note(begun.attempt, [.upload("u")])
            try await table.cancel(foreign.id, now: noon)
            _ = try await table.erase(in: app, keepsQueued: false, now: noon)
            try await table.cleared(foreign.id, now: noon)
            #expect(try table.find(foreign.id)?.state == .cancelled)
        }
    }

    @Test("A transfer that is done or cancelled leaves what has arrived of another", arguments: [true, false])
    func endedBesideParts(isDone: Bool) async throws {
        try await withOperations { database in
            let table = database.transfers
            let (ending, other) = (upload("v/1"), upload("v/2"))
            try await table.enqueue([ending, other])
            for draft in [other, ending] {
                let attempt = try #require(try await table.begin(draft.id, owner: "me", now: noon)).attempt
                try await table.note(attempt, [.partSize(4), .parts([StoredPart(number: 1, size: 4)])])
                guard draft.id == ending.id else { continue }
                if isDone {
                    try await table.finish(attempt, etag: nil, now: noon)
                } else {
                    try await table.cancel(draft.id, now: noon)
                }
            }
            #expect(try table.parts(of: ending.id).isEmpty)
            #expect(try table.parts(of: other.id).map(\.number) == [1])
        }
    }
}
