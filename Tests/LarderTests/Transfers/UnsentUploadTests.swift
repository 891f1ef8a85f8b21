import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Uploads that have not arrived when everything else goes", .timeLimit(.minutes(10)))
struct UnsentUploadTests {
    private func upload(_ fixture: TransferFixture, _ key: String = "a") async throws -> Transfer {
        let (file, _) = try fixture.file(bytes: 100)
        return try await fixture.app.transfers.upload(file, to: ObjectLocation(bucket: "media", key: key))
    }

    private func download(_ fixture: TransferFixture) async throws -> Transfer {
        try await fixture.app.transfers.download(TransferFixture.location, to: fixture.folder.appending(path: "copy"))
    }

    @Test("Nothing is removed until the caller says what becomes of unsent uploads")
    func refused() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(fixture)
            for isErased in [false, true] {
                let error = await #expect(throws: LarderError.self) {
                    try await isErased ? fixture.app.erase() : fixture.app.clear()
                }
                #expect(error?.code.rawValue == "operations.unsentWork")
                #expect(error?.message.contains("and 1 upload;") == true)
            }
            #expect(try upload.status().state == .pending)
            try await fixture.drain()
            #expect(try await upload.finished().state == .done)
            try await fixture.app.clear()
            try await fixture.app.erase()
            #expect(try fixture.app.transfers.all().isEmpty)
        }
    }

    @Test("The refusal to clear and to erase says how many uploads have not arrived")
    func counted() async throws {
        try await withTransferFixture { fixture in
            for key in ["a", "b"] { _ = try await upload(fixture, key) }
            for isErased in [false, true] {
                let error = await #expect(throws: LarderError.self) {
                    try await isErased ? fixture.app.erase() : fixture.app.clear()
                }
                #expect(error?.unsentUploads == 2 && error?.unsentMutations == 0)
            }
            try await fixture.app.clear(unsent: .discard)
        }
    }

    @Test("An upload that has not arrived is no unsent mutation")
    func noMutation() async throws {
        try await withTransferFixture { fixture in
            _ = try await upload(fixture)
            #expect(try !fixture.app.hasUnsentMutations())
            try await fixture.app.clear(unsent: .discard)
        }
    }

    @Test("A paused upload has not arrived either")
    func paused() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(fixture)
            try await upload.pause()
            await expectCode(.operationsUnsentWork) { try await fixture.app.clear() }
            #expect(try upload.status().state == .paused)
        }
    }

    @Test("A failed upload has not arrived either")
    func failed() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.accessDenied, "for a test") }
            let upload = try await upload(fixture)
            try await fixture.drain()
            #expect(try upload.status().state == .failed)
            let error = await #expect(throws: LarderError.self) { try await fixture.app.clear() }
            #expect(error?.code.rawValue == "operations.unsentWork")
        }
    }

    @Test("Kept uploads are sent")
    func kept() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(fixture)
            try await fixture.app.erase(unsent: .keep)
            try await fixture.drain()
            #expect(try await upload.finished().state == .done)
            let next = try await self.upload(fixture, "b")
            try await fixture.app.erase(unsent: .keep)
            #expect(try fixture.app.transfers.all() == [next])
        }
    }

    @Test("Erasing that keeps what is queued keeps a download as well")
    func keptDownload() async throws {
        try await withTransferFixture { fixture in
            let download = try await download(fixture)
            try await fixture.app.erase(unsent: .keep)
            #expect(try download.status().state == .pending)
            #expect(try fixture.app.transfers.all() == [download])
        }
    }

    @Test("Discarded uploads are given up, and downloads are not; erasing gives up both, and forgets them")
    func discarded() async throws {
        try await withTransferFixture { fixture in
            let (first, second) = (try await upload(fixture), try await download(fixture))
            try await fixture.app.clear(unsent: .discard)
            #expect(try first.status().state == .cancelled)
            #expect(try second.status().state == .pending)
            let third = try await upload(fixture, "b")
            let waiting = Task { try await third.finished() }
            try await fixture.app.erase(unsent: .discard)
            #expect(try fixture.app.transfers.all().isEmpty)
            await #expect(throws: LarderError.self) { try await waiting.value }
            try await fixture.drain()
            #expect(fixture.storage.calls.isEmpty)
        }
    }

    @Test("A caller that discards unsent work gives up a failed upload as well")
    func discardedFailed() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.accessDenied, "for a test") }
            let upload = try await upload(fixture)
            try await fixture.drain()
            #expect(try upload.status().state == .failed)
            try await fixture.app.clear(unsent: .discard)
            #expect(try upload.status().state == .cancelled)
            try await fixture.app.clear()
        }
    }

    @Test("While a mutation is under way neither clear nor erase gives up a transfer")
    func mutationUnderWay() async throws {
        try await withTransferFixture { fixture in
            let app = fixture.app
            let transfers = [try await upload(fixture), try await download(fixture)]
            let receipt = try await app.enqueue(giveStars("1", 5))
            let queue = try app.core.operationsStore.database().mutations
            _ = try await queue.begin(receipt.id.uuid, owner: "another", now: Date())
            await expectCode(.operationsUnsentWork) { try await app.clear(unsent: .discard) }
            await expectCode(.operationsUnsentWork) { try await app.erase(unsent: .discard) }
            #expect(try transfers.map { try $0.status().state } == [.pending, .pending])
        }
    }

    @Test("A caller that waits for a download is told that it was erased, and so is one that follows it")
    func toldOfErased() async throws {
        try await withTransferFixture { fixture in
            let download = try await download(fixture)
            let isFollowed = Flag()
            let following = Task { for await _ in download.progress { isFollowed.set() } }
            let waiting = Task { try await download.finished() }
            await isFollowed.wait()
            try await fixture.app.erase()
            await expectCode(.unknownTransfer) { _ = try await waiting.value }
            await following.value
        }
    }

    @Test("Erasing tells a caller that waits for an upload with sent parts that the upload was cancelled")
    func toldOfGivenUp() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.failedUpload(of: file)
            let waiting = Task { try await upload.finished() }
            try await fixture.app.erase(unsent: .discard)
            await expectCode(.cancelledTransfer) { _ = try await waiting.value }
            #expect(try upload.status().state == .cancelling)
        }
    }

    @Test("Readers of the transfers' changes are told of uploads that a clear has given up")
    func toldOfDiscarded() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(fixture)
            var events = TransferEvents(core: fixture.app.core).makeAsyncIterator()
            try await fixture.app.clear(unsent: .discard)
            let told = try await next(&events, within: .seconds(60))
            #expect(told?.id == upload.id && told?.state == .cancelled)
        }
    }

    @Test("A transfer's parts at the storage are cleared away before it is forgotten")
    func traces() async throws {
        try await withTransferFixture { fixture in
            let isHeld = Flag()
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(3) = call else { return }
                isHeld.set()
                do { try await Task.sleep(for: .seconds(300)) } catch { throw ObjectError(.cancelled, "cancelled") }
            }
            let upload = try await fixture.upload(bytes: 20_000).upload
            try await fixture.runner { $0.connectionsPerHost = 1 }.whileRunning {
                await isHeld.wait()
                try await fixture.app.erase(unsent: .discard)
                await #expect(throws: LarderError.self) { try await upload.finished() }
                try await eventually { fixture.storage.state.withLock { $0.uploads.isEmpty } }
                try await eventually { try fixture.app.transfers.all().isEmpty }
            }
        }
    }

    @Test("A waiter learns as well that another process has erased the transfer")
    func others() async throws {
        try await withTransferFixture { fixture in
            let download = try await download(fixture)
            let progress = Task { for await _ in download.progress {} }
            let waiting = Task { try await download.finished() }
            try await Task.sleep(for: .milliseconds(300))
            try await OperationsDatabase.using(fixture.folder.appending(path: "store")) { other in
                _ = try await other.transfers.erase(in: Store.unnamedPartition, keepsQueued: false, now: Date())
            }
            await expectCode(.unknownTransfer) { _ = try await waiting.value }
            await progress.value
        }
    }
}
