import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Waiters for transfers, and the rows that are kept", .timeLimit(.minutes(10)))
struct FollowedTransferTests {
    /// What another program has open.
    private func others(_ fixture: TransferFixture) throws -> OperationsDatabase {
        try OperationsDatabase(folder: fixture.folder.appending(path: "store"))
    }

    @Test("An end that another program brings about reaches waiters and listeners")
    func others() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let uploads = try await fixture.app.transfers.upload(
                (0..<50).map { (file, ObjectLocation(bucket: "media", key: "\($0)"), UploadOptions()) })
            var events = fixture.app.transfers.events.makeAsyncIterator()
            let waiting = uploads.map { upload in Task { try await upload.finished() } }
            async let progress = uploads[7].progress.reduce(into: []) { $0.append($1.state) }
            let others = try others(fixture)
            for upload in uploads {
                let begun = try await others.transfers.begin(upload.id.uuid, owner: "other", now: Date())
                let attempt = try #require(begun).attempt
                try await others.transfers.finish(attempt, etag: "\"e\"", now: Date())
            }
            try others.close()
            for task in waiting { #expect(try await task.value.state == .done) }
            #expect(await progress.last == .done)
            var ended: Set<TransferID> = []
            while ended.count < uploads.count {
                let event = try #require(await events.next(isolation: #isolation))
                if event.state == .done { ended.insert(event.id) }
            }
            #expect(ended == Set(uploads.map(\.id)))
        }
    }

    @Test("Transfers that another program queues are told, and closing the store releases the waiters")
    func closed() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            var events = fixture.app.transfers.events.makeAsyncIterator()
            let others = try others(fixture)
            let draft = TransferDraft(
                partition: Store.unnamedPartition, kind: .download, bucket: "media", key: "k", path: "/copy",
                created: Date())
            try await others.transfers.enqueue([draft])
            #expect(await events.next(isolation: #isolation)?.id.uuid == draft.id)
            try others.close()
            let waiting = Task { _ = try await upload.finished(within: .seconds(3600)) }
            try await Task.sleep(for: .milliseconds(50))
            try fixture.store.close()
            await expectCode(.parked) { try await waiting.value }
        }
    }

    @Test("The events of transfers end when the store is closed")
    func endedEvents() async throws {
        try await withTransferFixture { fixture in
            let (events, hasEnded) = (fixture.app.transfers.events, Flag())
            let reading = Task {
                for await _ in events {}
                hasEnded.set()
            }
            defer { reading.cancel() }
            try fixture.store.close()
            try await eventually { hasEnded.isSet }
        }
    }

    @Test("Events tell that a transfer's time was over before a runner began it")
    func toldOfExpired() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: .init(expires: Date(timeIntervalSinceNow: -1)))
            var events = TransferEvents(core: fixture.app.core).makeAsyncIterator()
            try await fixture.drain()
            let told = try await next(&events, within: .seconds(20))
            #expect(told?.id == upload.id && told?.state == .failed)
        }
    }

    @Test("Events tell that a transfer which a killed runner had is pending again, though nothing can be begun yet")
    func toldOfRecovered() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            var events = TransferEvents(core: fixture.app.core).makeAsyncIterator()
            let others = try others(fixture)
            _ = try await others.transfers.begin(upload.id.uuid, owner: "other", now: Date())
            try others.close()
            #expect(try await next(&events, within: .seconds(20))?.state == .running)
            let network = SwitchedConnectivity()
            network.set(false)
            let runner = fixture.runner { $0.connectivity = network }
            let running = Task { try await runner.run() }
            #expect(try await next(&events, within: .seconds(20))?.state == .pending)
            running.cancel()
            try await running.value
        }
    }

    @Test("The reader of a transfer's progress is told what moves while no part becomes whole")
    func progressWithinPart() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 8 * 1024).upload
            let (isBegun, mayMove, mayEnd, isSeen, isTold) = (Flag(), Flag(), Flag(), Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(1) = call else { return }
                isBegun.set()
                await mayMove.wait()
            }
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .putPart(1) = call { await mayEnd.wait() }
            }
            let draining = Task { try await fixture.drain { $0.connectionsPerHost = 1 } }
            await isBegun.wait()
            let reading = Task {
                for await progress in upload.progress {
                    isSeen.set()
                    if progress.completed == 1_024 { isTold.set() }
                }
            }
            await isSeen.wait()
            // Longer than the pause between two that differ: from then on the reader waits for a change.
            try await Task.sleep(for: .milliseconds(300))
            mayMove.set()
            await isTold.wait()
            #expect(isTold.isSet)
            mayEnd.set()
            try await draining.value
            await reading.value
        }
    }

    @Test("Parking the partition releases the waiters")
    func parked() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            let waiting = Task { _ = try await upload.finished(within: .seconds(3600)) }
            try await Task.sleep(for: .milliseconds(50))
            _ = try await fixture.store.switch(to: backend("b"))
            await expectCode(.parked) { try await waiting.value }
        }
    }

    @Test("A wait for a transfer ends as cancelled with its task, and the transfer goes on")
    func cancelledTask() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            let waiting = Task { _ = try await upload.outcome(within: .seconds(5)) }
            waiting.cancel()
            await expectCode(.cancelled) { try await waiting.value }
            try await fixture.drain()
            #expect(try upload.status().state == .done)
        }
    }

    @Test("A cancelled wait for a transfer, or a mutation, ends as such while the store is suspended, too")
    func cancelledWait() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 100).upload
            let receipt = try await fixture.app.enqueue(giveStars("1", 5))
            let waits = [
                Task { _ = try await upload.outcome(within: .seconds(3600)) },
                Task { _ = try await receipt.outcome(within: .seconds(3600)) },
            ]
            try await fixture.store.suspend(within: .seconds(300))
            for wait in waits {
                wait.cancel()
                #expect(await larderError { try await wait.value }?.code == .cancelled)
            }
            try fixture.store.resume()
        }
    }

    @Test("No more than the last thousand or so are kept while the runner runs, whatever a killed one has left")
    func kept() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            func upload(_ count: Int) async throws -> [Transfer] {
                try await fixture.app.transfers.upload(
                    (0..<count).map { (file, ObjectLocation(bucket: "media", key: "\($0)"), UploadOptions()) })
            }
            let many = try await upload(1300)
            try await withThrowingTaskGroup { group in
                for upload in many { group.addTask { try await upload.cancel() } }
                try await group.waitForAll()
            }
            #expect(try fixture.app.transfers.all().count == 1300)
            try await fixture.runner().whileRunning {
                try await eventually { try fixture.app.transfers.all().count == 1000 }
                for upload in try await upload(250) { try await upload.finished() }
                try await eventually { try fixture.app.transfers.all().count < 1100 }
            }
        }
    }
}
