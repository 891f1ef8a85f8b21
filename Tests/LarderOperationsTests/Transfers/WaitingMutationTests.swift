import Foundation
import Testing

@testable import LarderOperations

private let source = FileIdentity(device: 1, inode: 2, size: 10_000, modified: 3)
private let refused = TransferFailure(code: "object.accessDenied", message: "the storage said no", time: noon)

@Suite("Mutations that wait for transfers", .timeLimit(.minutes(10)))
struct WaitingMutationTests {
    private func newUpload(_ key: String = "1", in partition: String = app, expires: Date? = nil) -> TransferDraft {
        TransferDraft(
            partition: partition, kind: .upload, bucket: "media", key: key, path: "/file", source: source,
            created: noon, expires: expires)
    }

    /// Uploads, and a mutation that waits for all of them.
    private func queue(
        _ count: Int, _ database: OperationsDatabase, expires: Date? = nil
    ) async throws -> (uploads: [UUID], mutation: UUID) {
        let drafts = (0..<count).map { newUpload("\($0)") }
        try await database.transfers.enqueue(drafts)
        let uploads = drafts.map(\.id)
        return (uploads, try await database.enqueue(waiting(for: uploads, expires: expires)))
    }

    private func waiting(for transfers: [UUID], lane: String = "", expires: Date? = nil) -> MutationDraft {
        var waiter = draft(lane, expires: expires)
        waiter.transfers = transfers
        return waiter
    }

    private func fail(_ upload: UUID, _ database: OperationsDatabase) async throws {
        let begun = try #require(try await database.transfers.begin(upload, owner: "me", now: noon))
        try await database.transfers.fail(begun.attempt, refused, now: noon)
    }

    @Test("A mutation whose two uploads failed is pending again when both are retried, and keeps its expiry")
    func twoFailed() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(2, database, expires: after(60))
            for upload in uploads { try await fail(upload, database) }
            try await database.transfers.retry(uploads[0], source: source)
            #expect(try database.state(mutation) == .deadLetter)
            try expectSound(database)
            // Another of its lane is not held up.
            let next = try await database.enqueue(draft())
            #expect(try database.heads() == [next])
            try await database.transfers.retry(uploads[1], source: source)
            let found = try #require(try database.mutation(mutation))
            #expect(found.state == .pending && found.expires == after(60))
        }
    }

    @Test("All mutations that wait for one upload are set aside when it fails, and can be sent once it is done")
    func severalWaiters() async throws {
        try await withOperations { database in
            let (uploads, first) = try await queue(1, database)
            let second = try await database.enqueue(waiting(for: uploads, lane: "other"))
            try await fail(uploads[0], database)
            for mutation in [first, second] { #expect(try database.state(mutation) == .deadLetter) }
            try await database.transfers.retry(uploads[0], source: source)
            for mutation in [first, second] { #expect(try database.state(mutation) == .pending) }
            #expect(try database.heads() == [])
            let begun = try #require(try await database.transfers.begin(uploads[0], owner: "me", now: noon))
            try await database.transfers.finish(begun.attempt, etag: nil, now: noon)
            #expect(try Set(database.heads()) == [first, second])
        }
    }

    @Test("A mutation whose one upload is retried is pending again, though one before it waits for another as well")
    func retriedForOne() async throws {
        try await withOperations { database in
            let (uploads, both) = try await queue(2, database)
            let one = try await database.enqueue(waiting(for: [uploads[0]], lane: "other"))
            for upload in uploads { try await fail(upload, database) }
            try await database.transfers.retry(uploads[0], source: source)
            #expect(try database.state(both) == .deadLetter)
            #expect(try database.state(one) == .pending)
        }
    }

    @Test("The caller is told of all mutations that wait for an upload when it is cancelled")
    func toldOfAllWaiters() async throws {
        try await withOperations { database in
            let (uploads, first) = try await queue(1, database)
            let second = try await database.enqueue(waiting(for: uploads, lane: "other"))
            #expect(try await database.transfers.cancel(uploads[0], now: noon) == [first, second])
        }
    }

    @Test("A mutation that was set aside for another reason is not pending again when its upload is retried")
    func otherReason() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(1, database, expires: after(1))
            try await database.mutations.expire(in: app, now: after(2))
            try await fail(uploads[0], database)
            try await database.transfers.retry(uploads[0], source: source)
            let found = try #require(try database.mutation(mutation))
            #expect(found.state == .deadLetter && found.failure?.class == .expired)
        }
    }

    @Test("A mutation waits for transfers of its own partition alone, and is not queued with another's")
    func foreignTransfer() async throws {
        try await withOperations { database in
            let upload = newUpload(in: "other")
            try await database.transfers.enqueue([upload])
            await expectFailure(.invalid) { _ = try await database.enqueue(waiting(for: [upload.id])) }
            #expect(try database.mutations.list() == [])
        }
    }

    @Test("A transfer that was cancelled is known for as long as a mutation waits for it")
    func cancelledAndWaitedFor() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(1, database)
            try await database.transfers.cancel(uploads[0], now: noon)
            try await database.transfers.prune(keeping: 0, in: app)
            #expect(try database.transfers.find(uploads[0])?.state == .cancelled)
            #expect(try database.mutation(mutation)?.transfers == uploads)
            try await database.mutations.discard(mutation, dependents: .release, now: noon)
            try await database.transfers.prune(keeping: 0, in: app)
            #expect(try database.transfers.find(uploads[0]) == nil)
        }
    }

    @Test("A transfer whose time is over is not begun")
    func overItsTime() async throws {
        try await withOperations { database in
            let upload = newUpload(expires: after(1))
            try await database.transfers.enqueue([upload])
            #expect(try await database.transfers.begin(upload.id, owner: "me", now: after(1)) == nil)
            #expect(try database.transfers.find(upload.id)?.attempts == 0)
            #expect(try await database.transfers.begin(upload.id, owner: "me", now: after(0.5)) != nil)
        }
    }

    @Test("One that waits for the same upload as one that is not carried to another partition is not carried either")
    func sharedUpload() async throws {
        try await withOperations { database in
            try await database.enter(environment("b"), as: "pb")
            _ = try await database.enqueue(draft("theirs", in: "pb", key: "k"))
            try await database.enter(environment("a"), as: app)
            let upload = newUpload()
            try await database.transfers.enqueue([upload])
            var (staying, sharing) = (draft("staying", key: "k"), draft("sharing"))
            (staying.transfers, sharing.transfers) = ([upload.id], [upload.id])
            let ids = [try await database.enqueue(staying), try await database.enqueue(sharing)]
            let free = try await database.enqueue(draft("free"))
            let report = try await database.enter(environment("b"), as: "unused", leaving: .carry)
            #expect(report.carried == 1 && report.carriedTransfers == 0)
            #expect(try database.mutation(free)?.partition == "pb")
            for id in ids { #expect(try database.mutation(id)?.partition == app) }
            #expect(try database.transfers.find(upload.id)?.partition == app)
        }
    }

    @Test("A mutation whose other upload was cancelled stays a dead letter, whatever is retried or replayed")
    func oneCancelled() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(2, database)
            try await fail(uploads[0], database)
            try await database.transfers.cancel(uploads[1], now: noon)
            try await database.transfers.retry(uploads[0], source: source)
            #expect(try database.state(mutation) == .deadLetter)
            await expectFailure(.wrongState) { try await database.mutations.replay(mutation, now: noon) }
            #expect(try database.state(mutation) == .deadLetter)
            try await database.mutations.discard(mutation, dependents: .release, now: noon)
        }
    }

    @Test("A mutation whose upload is being cancelled is not replayed, and none is queued that would wait for it")
    func beingCancelled() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(1, database)
            let begun = try #require(try await database.transfers.begin(uploads[0], owner: "me", now: noon))
            try await database.transfers.note(begun.attempt, [.upload("u")])
            try await database.transfers.cancel(uploads[0], now: noon)
            #expect(try database.transfers.find(uploads[0])?.state == .cancelling)
            #expect(try database.state(mutation) == .deadLetter)
            await expectFailure(.wrongState) { try await database.mutations.replay(mutation, now: noon) }
            #expect(try database.state(mutation) == .deadLetter)
            await expectFailure(.wrongState) { _ = try await database.enqueue(waiting(for: uploads, lane: "late")) }
        }
    }

    @Test(
        "A mutation whose upload has failed is not replayed until the upload is retried, and holds up none of its lane")
    func replayed() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(1, database)
            let next = try await database.enqueue(draft())
            try await fail(uploads[0], database)
            let error = await failure { try await database.mutations.replay(mutation, now: noon) }
            #expect(error?.code == .wrongState)
            #expect(error?.message.contains(uploads[0].uuidString.lowercased()) == true)
            #expect(try database.heads() == [next])
            try await database.transfers.retry(uploads[0], source: source)
            #expect(try database.state(mutation) == .pending)
        }
    }

    @Test("A mutation whose time was over while its upload had failed expires, and the retry does not send it")
    func expired() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(1, database, expires: after(60))
            try await fail(uploads[0], database)
            try await database.transfers.retry(uploads[0], source: source)
            #expect(try await database.mutations.expire(in: app, now: after(61)) == [mutation])
            #expect(try database.mutation(mutation)?.failure?.class == .expired)
        }
    }

    @Test("A replay keeps an expiry that is to come, and drops one that is over")
    func replayedExpiry() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft(expires: after(60)))
            try await database.setAside(id)
            try await database.mutations.replay(id, now: after(59))
            #expect(try database.mutation(id)?.expires == after(60))
            try await database.setAside(id)
            try await database.mutations.replay(id, now: after(60))
            #expect(try database.mutation(id)?.expires == nil)
        }
    }

    @Test("A check names a mutation that is pending though its upload has failed")
    func checked() async throws {
        try await withOperations { database in
            let (uploads, mutation) = try await queue(1, database)
            try await fail(uploads[0], database)
            try await database.pool.write { db in
                try db.run("UPDATE mutation SET state = 0, queued = 1")
            }
            #expect(try database.check().problems.map(\.kind) == [.rule])
            try await database.pool.write { db in try db.run("UPDATE mutation SET queued = 0, state = 3") }
            try await database.mutations.discard(mutation, dependents: .release, now: noon)
        }
    }

    @Test("Expired transfers set aside the mutations that wait for them, and the caller is told which")
    func expiredWaits() async throws {
        try await withOperations { database in
            let upload = newUpload(expires: after(1))
            try await database.transfers.enqueue([upload])
            let mutation = try await database.enqueue(waiting(for: [upload.id]))
            #expect(try await database.transfers.expire(in: app, now: after(1)) == [mutation])
            #expect(try database.state(mutation) == .deadLetter)
        }
    }

    @Test("Erased downloads set aside the mutations that wait for them, and the caller is told which")
    func erasedWaits() async throws {
        try await withOperations { database in
            let download = TransferDraft(
                partition: app, kind: .download, bucket: "media", key: "1", path: "/copy", created: noon)
            try await database.transfers.enqueue([download])
            let mutation = try await database.enqueue(waiting(for: [download.id]))
            let erased = try await database.transfers.erase(in: app, keepsQueued: false, now: noon)
            #expect(erased.setAside == [mutation])
            #expect(try database.state(mutation) == .deadLetter)
        }
    }

    @Test(
        "An upload that fails or is cancelled sets aside what waits for it, and nothing that waits for another upload",
        arguments: [true, false])
    func othersGoOn(isCancelled: Bool) async throws {
        try await withOperations { database in
            let uploads = ["1", "2"].map { newUpload($0) }
            try await database.transfers.enqueue(uploads)
            var ids: [UUID] = []
            for upload in uploads {
                ids.append(try await database.enqueue(waiting(for: [upload.id], lane: upload.key)))
            }
            if isCancelled {
                try await database.transfers.cancel(uploads[0].id, now: noon)
            } else {
                try await fail(uploads[0].id, database)
            }
            #expect(try ids.map { try database.state($0) } == [.deadLetter, .pending])
        }
    }
}
