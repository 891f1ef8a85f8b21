import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

private let source = FileIdentity(device: 1, inode: 2, size: 10_000, modified: 3)
private let refused = TransferFailure(code: "object.accessDenied", message: "the storage said no", time: noon)

private func upload(
    _ key: String = "a", in partition: String = app, priority: Int = 0, expires: Date? = nil
) -> TransferDraft {
    TransferDraft(
        partition: partition, kind: .upload, bucket: "media", key: key, path: "/file", contentType: "text/plain",
        metadata: json(#"{"a":"b"}"#), priority: priority, source: source, created: noon, expires: expires)
}

private func download(_ key: String = "a") -> TransferDraft {
    TransferDraft(
        partition: app, kind: .download, bucket: "media", key: key, path: "/copy", replaces: true,
        sha256: [UInt8](repeating: 9, count: 32), created: noon)
}

extension OperationsDatabase {
    fileprivate func queue(_ draft: TransferDraft) async throws -> UUID {
        try await transfers.enqueue([draft])
        return draft.id
    }

    fileprivate func take(_ id: UUID) async throws -> StoredTransfer {
        try #require(try await transfers.begin(id, owner: "me", now: noon))
    }

    fileprivate func state(ofTransfer id: UUID) throws -> TransferState? { try transfers.find(id)?.state }

    /// A transfer that was brought to a state.
    fileprivate func transfer(_ state: TransferState) async throws -> UUID {
        let id = try await queue(upload(UUID().uuidString))
        switch state {
        case .pending: break
        case .running: _ = try await take(id)
        case .paused: try await transfers.pause(id)
        case .failed: try await transfers.fail(take(id).attempt, refused, now: noon)
        case .cancelling:
            try await transfers.note(take(id).attempt, [.upload("u")])
            try await transfers.cancel(id, now: noon)
        case .done: try await transfers.finish(take(id).attempt, etag: "\"e\"", now: noon)
        case .cancelled: try await transfers.cancel(id, now: noon)
        }
        return id
    }
}

@Suite("The table of transfers", .timeLimit(.minutes(10)))
struct TransferTableTests {
    enum Step: CaseIterable {
        case pause, resume, retry, cancel, cleared, begin, finish, retryLater, fail, release

        /// Where it leads to from each state; nil where it is refused.
        func end(from state: TransferState) -> TransferState? {
            switch (self, state) {
            case (.pause, .pending), (.pause, .running): .paused
            case (.resume, .paused), (.retry, .failed): .pending
            case (.cancel, .pending), (.cancel, .running), (.cancel, .paused), (.cancel, .failed): .cancelled
            case (.cleared, .cancelling): .cancelled
            case (.begin, .pending): .running
            case (.finish, .running): .done
            case (.retryLater, .running), (.release, .running): .pending
            case (.fail, .running): .failed
            default: nil
            }
        }
    }

    @Test("Each step leads where the table of states says, and is refused from elsewhere", arguments: Step.allCases)
    func transitions(step: Step) async throws {
        try await withOperations { database in
            for state in TransferState.allCases {
                let id = try await database.transfer(state)
                #expect(try database.state(ofTransfer: id) == state)
                let attempt = try #require(try database.transfers.find(id)).attempt
                let end = step.end(from: state)
                do {
                    switch step {
                    case .pause: try await database.transfers.pause(id)
                    case .resume: try await database.transfers.resume(id)
                    case .retry: try await database.transfers.retry(id, source: source)
                    case .cancel: try await database.transfers.cancel(id, now: noon)
                    case .cleared: try await database.transfers.cleared(id, now: noon)
                    case .begin: _ = try await database.transfers.begin(id, owner: "me", now: noon)
                    case .finish: try await database.transfers.finish(attempt, etag: nil, now: noon)
                    case .retryLater: try await database.transfers.retryLater(attempt, at: nil, refused, now: noon)
                    case .fail: try await database.transfers.fail(attempt, refused, now: noon)
                    case .release: try await database.transfers.release(attempt)
                    }
                    #expect(end != nil || step == .begin, "\(step) from \(state)")
                } catch let error as OperationsError {
                    #expect(error.code == .wrongState && end == nil, "\(step) from \(state): \(error)")
                }
                #expect(try database.state(ofTransfer: id) == end ?? state, "\(step) from \(state)")
            }
        }
    }

    @Test("A transfer that was handed over is left for a week, and any runner may take it then")
    func handedOver() async throws {
        try await withOperations { database in
            let id = try await database.queue(upload())
            let attempt = try await database.take(id).attempt
            try await database.transfers.note(attempt, [.handedOver(noon)])
            try await database.transfers.release(attempt)
            let week = after(7 * 86_400)
            let left = try database.transfers.runnable(in: app, now: after(60), limit: 9, leavingHandedOver: true)
            #expect(left.ids == [] && left.isEmpty && left.lookAgain == week)
            let found = try database.transfers.runnable(in: app, now: week, limit: 9, leavingHandedOver: true)
            #expect(found.ids == [id] && !found.isEmpty)
        }
    }

    @Test("A clock that is set back by a week ends what an executor was handed, and by less it does not")
    func handedOverLater() {
        let week = StoredTransfer.longestHandOver
        #expect(StoredTransfer.handOverEnd(noon, after(1 - week)) == after(week))
        #expect(StoredTransfer.handOverEnd(noon, after(-week)) == nil)
    }

    @Test("A transfer's notes are read again, and an older attempt adds no more")
    func notes() async throws {
        try await withOperations { database in
            let id = try await database.queue(upload())
            let first = try await database.take(id).attempt
            try await database.transfers.note(
                first,
                [
                    .partSize(4096), .uploadAsked(before: ["x", "y"]),
                    .parts([.init(number: 1, size: 4096, etag: "\"1\"", crc32c: 7), .init(number: 3, size: 1808)]),
                ])
            var found = try #require(try database.transfers.find(id))
            #expect(found.partSize == 4096 && found.uploadsBefore == ["x", "y"] && found.arrived == 5904)
            #expect(found.file == source && found.contentType == "text/plain" && found.metadata == json(#"{"a":"b"}"#))
            try await database.transfers.note(first, [.upload("u"), .lost([3])])
            #expect(try database.transfers.parts(of: id) == [.init(number: 1, size: 4096, etag: "\"1\"", crc32c: 7)])
            try await database.transfers.retryLater(first, at: after(10), refused, now: noon)
            found = try #require(try database.transfers.find(id))
            #expect(found.upload == "u" && found.uploadsBefore == nil && found.notBefore == after(10))
            #expect(found.failure == refused)
            try await database.transfers.pause(id)
            try await database.transfers.resume(id)
            let second = try await database.take(id).attempt
            #expect(second.number == 2)
            await expectFailure(.wrongState) { try await database.transfers.note(first, [.upload("late")]) }
            await expectFailure(.wrongState) { try await database.transfers.finish(first, etag: nil, now: noon) }
            try await database.transfers.note(second, [.restart])
            found = try #require(try database.transfers.find(id))
            #expect(found.upload == nil && found.partSize == nil && found.arrived == 0 && found.size == 10_000)
        }
    }

    @Test("A part that arrives after the transfer was begun anew is of no plan, and is not noted")
    func latePart() async throws {
        try await withOperations { database in
            let id = try await database.queue(download())
            let attempt = try await database.take(id).attempt
            try await database.transfers.note(attempt, [.object(etag: "e", size: 5000, crc32c: nil), .partSize(1000)])
            try await database.transfers.note(attempt, [.restart])
            try await database.transfers.note(attempt, [.parts([.init(number: 2, size: 1000)])])
            #expect(try database.transfers.find(id)?.arrived == 0)
            #expect(try database.transfers.parts(of: id).isEmpty)
            try expectSound(database, "a late part")
        }
    }

    @Test("Turns come by priority and then by age, not before their time, and what is over expires")
    func turns() async throws {
        try await withOperations { database in
            let low = try await database.queue(upload("low"))
            let high = try await database.queue(upload("high", priority: 2))
            let late = try await database.queue(upload("late"))
            let short = try await database.queue(upload("short", priority: 9, expires: after(5)))
            #expect(try database.transfers.runnable(in: app, now: noon, limit: 9).ids == [short, high, low, late])
            #expect(try database.transfers.runnable(in: app, now: noon, limit: 2).ids == [short, high])
            try await database.transfers.retryLater(database.take(low).attempt, at: after(30), refused, now: noon)
            var runnable = try database.transfers.runnable(in: app, now: after(6), limit: 9)
            #expect(runnable.ids == [high, late] && runnable.mustExpire)
            try await database.transfers.expire(in: app, now: after(6))
            #expect(try database.transfers.find(short)?.failure?.code == "transfer.expired")
            runnable = try database.transfers.runnable(in: app, now: after(6), limit: 9)
            #expect(!runnable.mustExpire && runnable.lookAgain == after(30))
            #expect(try database.transfers.runnable(in: app, now: after(30), limit: 9).ids == [high, low, late])
        }
    }

    @Test("A mutation waits for its transfers, and goes when the last is done")
    func waiting() async throws {
        try await withOperations { database in
            let (first, second) = (try await database.queue(upload("1")), try await database.queue(upload("2")))
            let done = try await database.transfer(.done)
            var waiter = draft()
            waiter.transfers = [first, second, done]
            let mutation = try await database.mutations.enqueue(waiter)
            #expect(mutation.transfers == [first, second])
            let next = try await database.enqueue(draft())
            let other = try await database.enqueue(draft("other"))
            #expect(try database.heads() == [other])
            await expectFailure(.notItsTurn) { _ = try await database.begin(mutation.id) }
            for id in [first, second] {
                #expect(!(try database.heads().contains(mutation.id)))
                try await database.transfers.finish(database.take(id).attempt, etag: nil, now: noon)
            }
            #expect(try database.heads() == [mutation.id, other])
            try await database.complete(mutation.id)
            #expect(try database.heads() == [next, other])
        }
    }

    @Test("A transfer that fails or is cancelled sets the mutations that wait for it aside; its retry brings them back")
    func failing() async throws {
        try await withOperations { database in
            let changed = FileIdentity(device: 1, inode: 2, size: 10_001, modified: 4)
            for (isCancelled, retried) in [(false, source), (false, changed), (true, source)] {
                let transfer = try await database.queue(upload(UUID().uuidString))
                var waiter = draft()
                waiter.transfers = [transfer]
                let mutation = try await database.enqueue(waiter)
                if isCancelled {
                    #expect(try await database.transfers.cancel(transfer, now: noon) == [mutation])
                } else {
                    #expect(
                        try await database.transfers.fail(database.take(transfer).attempt, refused, now: noon)
                            == [mutation])
                }
                let found = try #require(try database.mutation(mutation))
                #expect(found.state == .deadLetter && found.failure?.class == .transferFailed)
                guard !isCancelled else { continue }
                try await database.transfers.retry(transfer, source: retried)
                #expect(try database.state(mutation) == .pending)
                try await database.transfers.finish(database.take(transfer).attempt, etag: nil, now: noon)
                #expect(try database.heads() == [mutation])
                try await database.complete(mutation)
            }
            var late = draft()
            late.transfers = [try await database.transfer(.failed)]
            let draft = late
            await expectFailure(.wrongState) { _ = try await database.enqueue(draft) }
        }
    }

    @Test("Ended transfers are forgotten but for the last, and one that a mutation waits for is kept")
    func pruned() async throws {
        try await withOperations { database in
            var ids: [UUID] = []
            for _ in 0..<5 { ids.append(try await database.transfer(.done)) }
            let pending = try await database.transfer(.pending)
            let failed = try await database.transfer(.failed)
            try await database.transfers.prune(keeping: 2, in: app)
            #expect(try database.transfers.list(in: app).map(\.id) == ids.suffix(2) + [pending, failed])
        }
    }

    @Test("The parts of a transfer come by their numbers, in whatever order they arrived")
    func partsByNumber() async throws {
        try await withOperations { database in
            let id = try await database.queue(upload())
            let attempt = try await database.take(id).attempt
            try await database.transfers.note(attempt, [.partSize(4_000)])
            for number in [3, 1, 2] {
                let size: Int64 = number == 3 ? 2_000 : 4_000
                try await database.transfers.note(attempt, [.parts([StoredPart(number: number, size: size)])])
            }
            #expect(try database.transfers.parts(of: id).map(\.number) == [1, 2, 3])
        }
    }

    @Test("The transfers that ended last are kept, in whatever order they were queued")
    func prunedByEnd() async throws {
        try await withOperations { database in
            var ids: [UUID] = []
            for number in 0..<4 { ids.append(try await database.queue(upload("\(number)"))) }
            for (place, id) in ids.enumerated() {
                let attempt = try await database.take(id).attempt
                try await database.transfers.finish(attempt, etag: "\"e\"", now: after(Double(10 - place)))
            }
            try await database.transfers.prune(keeping: 2, in: app)
            #expect(try database.transfers.list(in: app).map(\.id) == Array(ids.prefix(2)))
        }
    }

    @Test("An upload that may not be aborted is noted apart from its transfer once, however often that is said")
    func leftOnce() async throws {
        try await withOperations { database in
            let id = try await database.queue(upload())
            let attempt = try await database.take(id).attempt
            try await database.transfers.note(attempt, [.upload("u"), .uploadLeft])
            try await database.transfers.note(attempt, [.uploadLeft])
            let left = try database.transfers.remains(named: [])
            #expect(left.map(\.upload) == ["u"] && left.map(\.id) != [id])
        }
    }

    @Test("Erasing tells those who wait for a transfer that some are gone")
    func erasedIsTold() async throws {
        try await withOperations { database in
            _ = try await database.transfer(.done)
            let before = try database.transfers.position(in: app)
            #expect(try await database.transfers.erase(in: app, keepsQueued: true, now: noon).transfers.count == 1)
            #expect(try database.transfers.position(in: app).removals > before.removals)
        }
    }

    @Test("An erased download is gone once its partial file is, and those who wait for it are told so")
    func clearedIsTold() async throws {
        try await withOperations { database in
            let id = try await database.queue(download())
            _ = try await database.take(id)
            #expect(try await database.transfers.erase(in: app, keepsQueued: false, now: noon).transfers == [id])
            #expect(try database.state(ofTransfer: id) == .cancelling)
            let before = try database.transfers.position(in: app)
            try await database.transfers.cleared(id, now: noon)
            #expect(try database.state(ofTransfer: id) == nil)
            #expect(try database.transfers.position(in: app).removals > before.removals)
        }
    }

    @Test("That a runner lacks a storage is noted, and taken back once it has it, of paused transfers too")
    func storages() async throws {
        try await withOperations { database in
            let table = database.transfers
            var drafts = ["a", "b", "c"].map { upload($0) }
            for index in drafts.indices.dropFirst() { drafts[index].storage = "archive" }
            try await table.enqueue(drafts)
            try await table.noteUnserved(in: app, having: [nil, "media"], now: noon)
            let message = "The runner has no storage that is named \"archive\"; give it one"
            #expect(try table.list().map(\.failure?.message) == [nil, message, message])
            #expect(try table.list().map { $0.failure?.code == TransferFailure.noStorage } == [false, true, true])
            try await table.pause(drafts[2].id)
            try await table.noteServed(in: app, having: ["media"])
            #expect(try table.list().count { $0.failure != nil } == 2)
            try await table.noteServed(in: app, having: ["archive"])
            #expect(try table.list().map(\.state) == [.pending, .pending, .paused])
            #expect(try table.list().allSatisfy { $0.failure == nil })
        }
    }

    @Test("A cancelled transfer is kept as long as a mutation names it")
    func namedByMutation() async throws {
        try await withOperations { database in
            let transfer = try await database.queue(upload())
            var waiter = draft()
            waiter.transfers = [transfer]
            let mutation = try await database.enqueue(waiter)
            try await database.transfers.cancel(transfer, now: noon)
            try await database.transfers.prune(keeping: 0, in: app)
            #expect(try database.state(ofTransfer: transfer) == .cancelled)
            try await database.mutations.discard(mutation, dependents: .release, now: noon)
            try await database.transfers.prune(keeping: 0, in: app)
            #expect(try database.state(ofTransfer: transfer) == nil)
        }
    }

    @Test("An upload that has failed holds up the next of its key while its object may still appear")
    func doubtAfterFailure() async throws {
        try await withOperations { database in
            let first = try await database.queue(upload())
            let attempt = try await database.take(first).attempt
            try await database.transfers.noteDoubt(of: first, until: after(60), now: noon)
            try await database.transfers.fail(attempt, refused, now: noon)
            let second = try await database.queue(upload())
            #expect(try database.transfers.runnable(in: app, now: after(59), limit: 9).ids == [])
            #expect(try database.transfers.runnable(in: app, now: after(61), limit: 9).ids == [second])
        }
    }

    @Test("An upload in one piece that may still become an object holds up the next of its key when it is cancelled")
    func doubtAfterCancelling() async throws {
        try await withOperations { database in
            let first = try await database.queue(upload())
            let attempt = try await database.take(first).attempt
            try await database.transfers.noteDoubt(of: first, until: after(60), now: noon)
            try await database.transfers.retryLater(attempt, at: nil, refused, now: noon)
            try await database.transfers.cancel(first, now: noon)
            let second = try await database.queue(upload())
            #expect(try database.transfers.runnable(in: app, now: after(59), limit: 9).ids == [])
            #expect(try database.transfers.runnable(in: app, now: after(61), limit: 9).ids == [second])
        }
    }

    @Test("Parts of another file are forgotten when an upload is retried, and those of the same file are kept")
    func retriedParts() async throws {
        try await withOperations { database in
            let changed = FileIdentity(device: 1, inode: 2, size: 10_000, modified: 4)
            for (file, count) in [(source, 1), (changed, 0)] {
                let id = try await database.queue(upload(UUID().uuidString))
                let attempt = try await database.take(id).attempt
                try await database.transfers.note(
                    attempt,
                    [
                        .partSize(4096), .upload("u"), .parts([.init(number: 1, size: 4096, etag: "\"1\"", crc32c: 7)]),
                    ])
                try await database.transfers.fail(attempt, refused, now: noon)
                try await database.transfers.retry(id, source: file)
                #expect(try database.transfers.parts(of: id).count == count)
            }
        }
    }

    @Test("A transfer is not begun at its expiry or later, though nothing has turned it into a failed one yet")
    func begunTooLate() async throws {
        try await withOperations { database in
            let id = try await database.queue(upload(expires: after(5)))
            #expect(try await database.transfers.begin(id, owner: "me", now: after(5)) == nil)
            #expect(try database.state(ofTransfer: id) == .pending)
            #expect(try await database.transfers.begin(id, owner: "me", now: after(4.9))?.state == .running)
        }
    }

    @Test("An id is used once; of several transfers with one that was used none is queued")
    func duplicate() async throws {
        try await withOperations { database in
            let first = upload("a")
            try await database.transfers.enqueue([first])
            await expectFailure(.duplicate) { try await database.transfers.enqueue([upload("b"), first]) }
            #expect(try database.transfers.list().map(\.id) == [first.id])
        }
    }

    @Test("The storage may not have an upload that is pending, under way, paused or failed")
    func unsent() async throws {
        try await withOperations { database in
            for state in TransferState.allCases {
                let before = try database.transfers.unsentUploads(in: app)
                _ = try await database.transfer(state)
                let isUnsent = [.pending, .running, .paused, .failed].contains(state)
                #expect(try database.transfers.unsentUploads(in: app) == before + (isUnsent ? 1 : 0), "\(state)")
            }
        }
    }

    @Test("A transfer that has expired and is retried without another expiry has none")
    func retriedExpired() async throws {
        try await withOperations { database in
            let id = try await database.queue(upload(expires: after(5)))
            try await database.transfers.expire(in: app, now: after(6))
            try await database.transfers.retry(id, source: source)
            #expect(try database.transfers.find(id)?.expires == nil)
            #expect(try database.transfers.runnable(in: app, now: after(7), limit: 9).ids == [id])
        }
    }

    @Test("A transfer that is done says no more why an attempt before had failed")
    func doneAfterFailure() async throws {
        try await withOperations { database in
            let id = try await database.queue(upload())
            try await database.transfers.retryLater(database.take(id).attempt, at: nil, refused, now: noon)
            #expect(try database.transfers.find(id)?.failure == refused)
            try await database.transfers.finish(database.take(id).attempt, etag: nil, now: noon)
            let done = try #require(try database.transfers.find(id))
            #expect(done.state == .done && done.failure == nil)
        }
    }

    @Test("A download begins anew with another object, and keeps what its row says")
    func downloads() async throws {
        try await withOperations { database in
            let id = try await database.queue(download())
            let attempt = try await database.take(id).attempt
            try await database.transfers.note(
                attempt,
                [
                    .object(etag: "\"e\"", size: 5000, crc32c: .max), .partSize(1000),
                    .file(.init(device: 8, inode: 9, size: 5000, modified: 1)), .parts([.init(number: 2, size: 1000)]),
                ])
            var found = try #require(try database.transfers.find(id))
            #expect(found.etag == "\"e\"" && found.crc32c == .max && found.file?.inode == 9 && found.arrived == 1000)
            #expect(found.replaces && found.path == "/copy" && found.sha256?.count == 32)
            try await database.transfers.recover(in: app, now: noon, puttingLasts: 1, completingLasts: 1)
            #expect(try database.state(ofTransfer: id) == .pending)
            let again = try await database.take(id).attempt
            try await database.transfers.note(again, [.restart])
            found = try #require(try database.transfers.find(id))
            #expect(found.etag == nil && found.size == nil && found.file == nil && found.arrived == 0)
            #expect(found.sha256 == [UInt8](repeating: 9, count: 32))
        }
    }
}
