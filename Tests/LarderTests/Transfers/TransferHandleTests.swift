import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Handles of transfers", .timeLimit(.minutes(10)))
struct TransferHandleTests {
    @Test("Tasks are all there after a restart, and their handles need nothing to be attached")
    func restart() async throws {
        try await withTemporaryFolder { folder in
            let storage = MemoryStorage()
            var ids: [TransferID] = []
            do {
                let (store, app) = try TransferFixture.open(folder)
                let fixture = TransferFixture(folder: folder, store: store, app: app, storage: storage)
                for number in 0..<3 {
                    let (file, _) = try fixture.file("\(number)", bytes: 3000 * number)
                    ids.append(try await app.transfers.upload(file, to: .init(bucket: "media", key: "\(number)")).id)
                }
                try store.close()
            }
            let (store, app) = try TransferFixture.open(folder)
            let fixture = TransferFixture(folder: folder, store: store, app: app, storage: storage)
            let all = try app.transfers.all()
            #expect(all.map(\.id) == ids)
            #expect(all[1] == app.transfers[ids[1]])
            async let last = all[2].progress.reduce(into: [TransferProgress]()) { $0.append($1) }
            try await fixture.drain()
            for transfer in all { try await transfer.finished() }
            let progress = await last
            #expect(progress.last == TransferProgress(state: .done, completed: 6000, total: 6000))
            #expect(progress.last?.fraction == 1)
            try store.close()
        }
    }

    @Test("A paused one stops at once, keeps what has arrived, and goes on from there")
    func paused() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 20_000)
            let isHeld = Flag()
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(10) = call, !isHeld.isSet else { return }
                isHeld.set()
                do { try await Task.sleep(for: .seconds(60)) } catch { throw ObjectError(.cancelled, "cancelled") }
            }
            try await fixture.runner { $0.connectionsPerHost = 1 }.whileRunning {
                await isHeld.wait()
                try await upload.pause()
                #expect(try upload.status().state == .paused)
                try await eventually { fixture.storage.state.withLock { $0.busy } == 0 }
                #expect(try upload.status().arrived == 9 * 1024)
                await expectCode(.init(rawValue: "operations.wrongState")) { try await upload.pause() }
                await expectCode(.unfinishedTransfer) { try await upload.finished(within: .milliseconds(10)) }
                try await upload.resume()
                try await upload.finished()
            }
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { if case .putPart = $0 { true } else { false } } == 20)
        }
    }

    @Test(
        "A cancelled one leaves nothing at the storage or in the folder, and its end is told", arguments: [true, false])
    func cancelled(isUpload: Bool) async throws {
        try await withTransferFixture { fixture in
            let transfer = try await fixture.transfer(isUpload: isUpload, bytes: 20_000)
            let isHeld = Flag()
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(10), .get(9216..<10_240): break
                default: return
                }
                isHeld.set()
                do { try await Task.sleep(for: .seconds(60)) } catch { throw ObjectError(.cancelled, "cancelled") }
            }
            try await fixture.runner().whileRunning {
                await isHeld.wait()
                try await transfer.cancel()
                await expectCode(.cancelledTransfer) { try await transfer.finished() }
                try await eventually { try transfer.status().state == .cancelled }
                #expect(fixture.partials.isEmpty)
                #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
                await expectCode(.init(rawValue: "operations.wrongState")) { try await transfer.cancel() }
            }
        }
    }

    @Test("A download that no runner has begun is cancelled at once, since there is nothing to clear away")
    func cancelledBeforeItBegan() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download()
            try await download.cancel()
            #expect(try download.status().state == .cancelled)
        }
    }

    @Test("A wait ends when a transfer is given up, also while what it has left is not cleared away")
    func givenUp() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.failedUpload(of: file)
            try await upload.cancel()
            #expect(try upload.status().state == .cancelling)
            await expectCode(.cancelledTransfer) { try await upload.finished(within: .seconds(60)) }
        }
    }

    @Test("A transfer has the id that its options say, which can be used once", arguments: [true, false])
    func givenID(isUpload: Bool) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let (id, location) = (TransferID(UUID()), TransferFixture.location)
            var (up, down) = (UploadOptions(), DownloadOptions())
            (up.id, down.id) = (id, id)
            func queue() async throws -> Transfer {
                isUpload
                    ? try await fixture.app.transfers.upload(file, to: location, options: up)
                    : try await fixture.app.transfers.download(
                        location, to: fixture.folder.appending(path: "copy"), options: down)
            }
            #expect(try await queue().id == id)
            #expect(try fixture.app.transfers.all().map(\.id) == [id])
            await expectCode(.init(rawValue: "operations.duplicate")) { _ = try await queue() }
        }
    }

    @Test("Progress that does not change is told once")
    func progressOnce() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            let told = Mutex(0)
            let reading = Task { for await _ in upload.progress { told.withLock { $0 += 1 } } }
            try await eventually { told.withLock { $0 } > 0 }
            // Longer than the pause between two that differ.
            try await Task.sleep(for: .milliseconds(250))
            #expect(told.withLock { $0 } == 1)
            reading.cancel()
            await reading.value
        }
    }

    @Test("Progress is told at most ten times a second, however often it changes")
    func progressRate() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            let told = Mutex<[SuspendingClock.Instant]>([])
            let reading = Task { for await _ in upload.progress { told.withLock { $0.append(.now) } } }
            let changing = Task {
                while !Task.isCancelled {
                    try await upload.pause()
                    try await upload.resume()
                }
            }
            try await eventually { told.withLock { $0.count } >= 4 }
            reading.cancel()
            await reading.value
            changing.cancel()
            _ = await changing.result
            let times = told.withLock { $0 }
            let pauses = zip(times, times.dropFirst()).map { $0.duration(to: $1) }
            #expect(pauses.allSatisfy { $0 >= .milliseconds(99) }, "\(pauses)")
        }
    }

    @Test("The progress of an upload under way counts its whole parts, and what has moved of the others")
    func progressOfParts() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            let (isBegun, mayBeSent, isSent, mayEnd) = (Flag(), Flag(), Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(5) = call else { return }
                isBegun.set()
                await mayBeSent.wait()
            }
            fixture.storage.onAnswer { call throws(ObjectError) in
                guard case .putPart(5) = call else { return }
                isSent.set()
                await mayEnd.wait()
            }
            let draining = Task { try await fixture.drain { $0.connectionsPerHost = 1 } }
            await isBegun.wait()
            #expect(await upload.progress.first { _ in true }?.completed == 4_096)
            mayBeSent.set()
            await isSent.wait()
            #expect(await upload.progress.first { _ in true }?.completed == 5_120)
            mayEnd.set()
            try await draining.value
            try await upload.finished()
        }
    }

    @Test("The progress of a download counts the bytes of a part that is not yet whole")
    func progressWithinPart() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: [UInt8](repeating: 7, count: 10_000))
            let (isReceived, mayEnd) = (Flag(), Flag())
            fixture.storage.onAnswer { call throws(ObjectError) in
                guard case .get = call else { return }
                isReceived.set()
                await mayEnd.wait()
            }
            try await fixture.expectProgress(of: download, 1_024, once: isReceived, thenSetting: mayEnd) {
                $0.connectionsPerHost = 1
            }
        }
    }

    @Test("The progress of a cancelled transfer ends, and the last of it is that")
    func cancelledProgress() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            let states = Mutex<[TransferStatus.State]>([])
            let hasEnded = Flag()
            let reading = Task {
                for await progress in upload.progress { states.withLock { $0.append(progress.state) } }
                hasEnded.set()
            }
            defer { reading.cancel() }
            try await upload.cancel()
            try await fixture.drain()
            try await eventually { hasEnded.isSet }
            #expect(states.withLock { $0.last } == .cancelled)
        }
    }

    @Test("Events tell what the program does to a transfer, also where no runner works", .timeLimit(.minutes(1)))
    func toldWithoutRunner() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            var events = fixture.app.transfers.events.makeAsyncIterator()
            try await upload.pause()
            #expect(await events.next(isolation: #isolation)?.state == .paused)
            try await upload.resume()
            #expect(await events.next(isolation: #isolation)?.state == .pending)
        }
    }

    @Test("Each of two readers of the events is told what the program does to a transfer", .timeLimit(.minutes(1)))
    func toldToEachReader() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            var first = fixture.app.transfers.events.makeAsyncIterator()
            var second = fixture.app.transfers.events.makeAsyncIterator()
            try await upload.pause()
            #expect(await first.next(isolation: #isolation)?.state == .paused)
            #expect(await second.next(isolation: #isolation)?.state == .paused)
        }
    }

    @Test("Pausing an upload leaves another one that is under way as it is")
    func pausedAlone() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            var uploads: [Transfer] = []
            for key in ["a", "b"] {
                uploads.append(try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: key)))
            }
            let (isFree, isBrokenOff) = (Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .put = call else { return }
                do { while !isFree.isSet { try await Task.sleep(for: .milliseconds(2)) } } catch {
                    if call == .put("b") { isBrokenOff.set() }
                    throw ObjectError(.cancelled, "cancelled")
                }
            }
            try await fixture.runner().whileRunning {
                try await eventually { fixture.storage.state.withLock { $0.busy } == 2 }
                try await uploads[0].pause()
                try await eventually { fixture.storage.state.withLock { $0.busy } == 1 }
                isFree.set()
                #expect(try await uploads[1].finished().attempts == 1)
                #expect(!isBrokenOff.isSet)
                #expect(try uploads[0].status().state == .paused)
            }
        }
    }

    @Test("Starting and finishing say what went wrong by one and the same way")
    func unknown() async throws {
        try await withTransferFixture { fixture in
            let none = fixture.app.transfers[TransferID(UUID())]
            await expectCode(.unknownTransfer) { _ = try none.status() }
            await expectCode(.unknownTransfer) { try await none.finished() }
            await expectCode(.unknownTransfer) { try await none.cancel() }
            var count = 0
            for await _ in none.progress { count += 1 }
            #expect(count == 0)
        }
    }

    @Test("Events tell of each change of each transfer, the last of them its end")
    func events() async throws {
        try await withTransferFixture { fixture in
            var events = fixture.app.transfers.events.makeAsyncIterator()
            var ids: Set<TransferID> = []
            for number in 0..<3 {
                let (file, _) = try fixture.file("\(number)", bytes: 3000)
                ids.insert(
                    try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: "\(number)")).id)
            }
            let first = try #require(await events.next(isolation: #isolation))
            #expect(first.state == .pending && ids.contains(first.id))
            try await fixture.drain()
            var ended: Set<TransferID> = []
            while ended != ids {
                let event = try #require(await events.next(isolation: #isolation))
                if event.state == .done { ended.insert(event.id) }
            }
        }
    }

    @Test("Events tell that a transfer has begun while it is under way")
    func toldBegun() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            var events = fixture.app.transfers.events.makeAsyncIterator()
            let isTold = Flag()
            fixture.storage.onCall { _ in await isTold.wait() }
            let draining = Task { try await fixture.drain() }
            let first = await events.next(isolation: #isolation)
            isTold.set()
            try await draining.value
            #expect(first?.id == upload.id && first?.state == .running)
        }
    }

    /// Runs `body` with an upload whose time was over before it was begun.
    private func withExpired(_ body: (TransferFixture, Transfer) async throws -> Void) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: .init(expires: Date(timeIntervalSinceNow: -1)))
            try await fixture.drain()
            await expectCode(.expiredTransfer) { try await upload.finished() }
            try await body(fixture, upload)
        }
    }

    @Test("A transfer whose time is over before it is begun fails as expired")
    func expired() async throws {
        try await withExpired { fixture, upload in
            #expect(fixture.storage.calls.isEmpty)
            try await upload.retry()
            try await fixture.drain()
            try await upload.finished()
        }
    }

    @Test("A transfer that is retried has the expiry that the retry says")
    func renewed() async throws {
        try await withExpired { fixture, upload in
            let later = Date(timeIntervalSince1970: 4_000_000_000)
            try await upload.retry(expires: later)
            let status = try upload.status()
            #expect(status.expires == later && status.ended == nil)
            try await fixture.drain()
            try await upload.finished()
        }
    }

    @Test("The status says what was asked for and when, when the transfer ended, and when it failed and why")
    func said() async throws {
        let clock = TestClock()
        try await withTransferFixture(at: clock) { fixture in
            let (transfers, (file, _)) = (fixture.app.transfers, try fixture.file(bytes: 10))
            let (id, queued, later) = (TransferID(UUID()), clock.now, clock.now + 3_600)
            let upload = try await transfers.upload(
                file, to: TransferFixture.location, options: .init(id: id, priority: 3, expires: later))
            clock.advance(by: .seconds(60))
            fixture.storage.state.withLock { $0.version = "v7" }
            try await fixture.drain()
            let status = try await upload.finished()
            #expect(upload.id == id && status.id == id && status.kind == .upload && status.priority == 3)
            #expect(status.location == TransferFixture.location && status.file.path == file.path)
            #expect(status.version == "v7")
            #expect(status.created == queued && status.expires == later && status.ended == queued + 60)

            let copy = fixture.folder.appending(path: "copy")
            let download = try await transfers.download(
                TransferFixture.location, to: copy, options: .init(priority: -2, expires: later))
            let waiting = try download.status()
            #expect(waiting.kind == .download && waiting.priority == -2 && waiting.expires == later)
            #expect(waiting.file.path == copy.path && waiting.ended == nil)
            #expect(try transfers.list(in: [.done]).map(\.id) == [id])
            #expect(try transfers.all(in: [.pending]) == [download])

            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.accessDenied, "not you") }
            clock.advance(by: .seconds(60))
            try await fixture.drain()
            #expect(try download.status().ended == clock.now)
            let failure = try download.status().failure
            #expect(failure?.code == .objectAccessDenied && failure?.message.contains("not you") == true)
            #expect(failure?.time == clock.now)
            let told = try await download.outcome(within: .zero).failure
            #expect(told?.code == failure?.code && told?.message == failure?.message)
        }
    }

    @Test("The time of a wait for a transfer passes also while the store's own clock stands still")
    func realTime() async throws {
        let clock = TestClock()
        try await withTransferFixture(at: clock) { fixture in
            let upload = try await fixture.upload(bytes: 10).upload
            let isOver = Flag()
            let waiting = Task {
                defer { isOver.set() }
                return try await upload.outcome(within: .milliseconds(20))
            }
            try await eventually { isOver.isSet }
            await expectCode(.unfinishedTransfer) { _ = try await waiting.value }
        }
    }

    @Test("A transfer does not expire while it is paused, and fails as expired once it is resumed")
    func pausedBeyondExpiry() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            let options = UploadOptions(expires: Date(timeIntervalSinceNow: -1))
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location, options: options)
            try await upload.pause()
            let other = try await fixture.app.transfers.upload(
                file, to: .init(bucket: "media", key: "other"), options: options)
            try await fixture.drain()
            await expectCode(.expiredTransfer) { try await other.finished() }
            try #require(try upload.status().state == .paused)
            try await upload.resume()
            try await fixture.drain()
            await expectCode(.expiredTransfer) { try await upload.finished() }
        }
    }
}
