import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Uploads that are handed over", .timeLimit(.minutes(10)))
struct BackgroundUploadTests {
    private let storage = MemoryStorage()
    private let place = ObjectLocation(bucket: "b", key: "k")

    /// Runs `body` with a queued upload.
    private func withUpload(
        _ body: (Partition, Transfer, ScriptedBackground) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "file")
            try Data("some bytes".utf8).write(to: file)
            let (store, app) = try TransferFixture.open(folder)
            try await body(app, try await app.transfers.upload(file, to: place), ScriptedBackground(storage))
            try store.close()
        }
    }

    /// Has a runner hand the upload over, and end.
    private func handOver(_ app: Partition, _ background: ScriptedBackground) async throws {
        try await background.runner(app).run(until: { !background.handedOver.isEmpty })
    }

    @Test("An upload goes on when its runner ends, and the next runner waits for it")
    func rejoined() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            #expect(background.ended.isEmpty)
            let before = background.outcomeCalls
            let next = Task { try await background.runner(app).drain() }
            try await eventually { background.outcomeCalls > before }
            try background.send(upload.id.uuid)
            try await next.value
            #expect(try upload.status().state == .done)
            #expect(background.handedOver == [upload.id.uuid])
            #expect(background.uploads.isEmpty)
        }
    }

    @Test("An upload that the storage does not take in one piece goes in parts by the process")
    func tooLarge() async throws {
        let storage = MemoryStorage(partSize: 4, largestPart: 4, largestPut: 8)
        try await withUpload { app, upload, background in
            var options = TransferRunner.Options()
            options.background = background
            options.partSize = 4
            try await TransferRunner(app, storage: storage, options: options).drain()
            #expect(try upload.status().state == .done)
            #expect(background.handedOver.isEmpty)
            #expect(storage.object(place)?.bytes == Array("some bytes".utf8))
        }
    }

    /// Waits before each answer.
    private struct WaitingBackground: BackgroundTransport {
        let wait: @Sendable () async -> Void

        func known() async throws(ObjectError) -> Set<UUID> {
            await wait()
            return []
        }

        func upload(
            _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
        ) async throws(ObjectError) { await wait() }

        func download(
            _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
        ) async throws(ObjectError) { await wait() }

        func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? {
            await wait()
            return StoredObject(etag: "\"e\"")
        }

        func end(_ id: UUID) async throws(ObjectError) { await wait() }
    }

    @Test("An executor that answers nothing is asked again, and keeps no runner from ending")
    func silent() async throws {
        try await withUpload { app, upload, _ in
            // They wait until the end of the test, also where the calling task is cancelled.
            let calls = Mutex<[UnsafeContinuation<Void, Never>]>([])
            let silent = WaitingBackground {
                await withUnsafeContinuation { continuation in calls.withLock { $0.append(continuation) } }
            }
            var options = TransferRunner.Options()
            options.background = silent
            (options.timeout, options.idle) = (.milliseconds(10), .milliseconds(10))
            options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
            options.maximumFaults = .max
            try await TransferRunner(app, storage: storage, options: options).run(until: {
                calls.withLock { $0.count } >= 4
            })
            #expect(try upload.status().state == .pending)
            for call in calls.withLock({ $0 }) { call.resume() }
        }
    }

    @Test("An executor has `timeout` and `idle` together for each of its calls, and any time for an outcome")
    func patience() async throws {
        func bounded(idle: Duration) throws -> any BackgroundTransport {
            var options = TransferRunner.Options()
            options.background = WaitingBackground { try? await Task.sleep(for: .milliseconds(200)) }
            (options.timeout, options.idle) = (.milliseconds(1), idle)
            return try #require(options.boundedBackground)
        }
        #expect(try await bounded(idle: .seconds(60)).known().isEmpty)
        let hasty = try bounded(idle: .milliseconds(1))
        let error = await #expect(throws: ObjectError.self) { _ = try await hasty.known() }
        #expect(error?.code == .timedOut)
        let object = try await hasty.outcome(of: UUID())
        #expect(object?.etag == "\"e\"")
    }

    @Test("An executor gets no more transfers at a time than the options say")
    func atATime() async throws {
        try await withUpload { app, upload, background in
            let file = try upload.status().file
            var uploads = [upload]
            for key in ["l", "m"] {
                uploads.append(try await app.transfers.upload(file, to: ObjectLocation(bucket: "b", key: key)))
            }
            var options = TransferRunner.Options()
            options.background = background
            options.maximumTransfers = 1
            try await TransferRunner(app, storage: storage, options: options).whileRunning {
                for number in 1...3 {
                    try await eventually { background.handedOver.count >= number }
                    #expect(background.handedOver.count == number)
                    try background.send(background.handedOver[number - 1])
                    try await eventually { try uploads.count { try $0.status().state == .done } >= number }
                }
            }
        }
    }

    @Test("An upload that is paused is broken off, and handed over again once it is resumed")
    func paused() async throws {
        try await withUpload { app, upload, background in
            try await background.runner(app).whileRunning {
                try await eventually { background.handedOver.count == 1 }
                try await upload.pause()
                try await eventually { !background.ended.isEmpty }
                try await upload.resume()
                try await eventually { background.handedOver.count == 2 }
                try background.send(upload.id.uuid)
                try await eventually { try upload.status().state == .done }
            }
        }
    }

    @Test("An upload that was cancelled while no runner worked is broken off by the next")
    func cancelledMeanwhile() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try await upload.cancel()
            try await background.runner(app).drain()
            #expect(background.ended == [upload.id.uuid])
            #expect(try upload.status().state == .cancelled)
        }
    }

    @Test("An upload that was paused while no runner worked is broken off by the next, and stays paused")
    func pausedMeanwhile() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try await upload.pause()
            try await background.runner(app).drain()
            #expect(background.ended == [upload.id.uuid])
            let status = try upload.status()
            #expect(status.state == .paused && status.handedOver == nil)
        }
    }

    /// As its base, but that the partition is left while the outcome is asked for.
    private struct LeftBackground: BackgroundTransport {
        let base: ScriptedBackground
        let leave: @Sendable () async throws -> Void

        func known() async throws(ObjectError) -> Set<UUID> { base.uploads }

        func upload(
            _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
        ) async throws(ObjectError) {
            try await base.upload(file, as: id, to: location, attributes, crc32c: crc32c)
        }

        func download(
            _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
        ) async throws(ObjectError) {
            try await base.download(location, etag: etag, as: id, to: file)
        }

        func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? {
            try? await leave()
            throw ObjectError(.local, "there are no credentials", cause: LarderError.parked)
        }

        func end(_ id: UUID) async throws(ObjectError) { try await base.end(id) }
    }

    @Test(
        "An upload goes on when its partition is left, unless it was paused just before: then it is broken off",
        arguments: [false, true])
    func left(isPaused: Bool) async throws {
        try await withUpload { app, upload, background in
            let table = try app.core.operationsStore.database().transfers
            var options = TransferRunner.Options()
            options.background = LeftBackground(base: background) {
                if isPaused { try await table.pause(upload.id.uuid) }
            }
            let runner = TransferRunner(app, storage: storage, options: options)
            // A runner that notices the pause first has nothing left to do.
            do { try await runner.drain() } catch let error as LarderError where error.code == .parked {}
            #expect(try upload.status().state == (isPaused ? .paused : .pending))
            #expect(Set(background.ended) == (isPaused ? [upload.id.uuid] : []))
        }
    }

    @Test("An upload that was sent and then forgotten is not sent again")
    func forgotten() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try background.send(upload.id.uuid)
            background.forget(upload.id.uuid)
            try await background.runner(app).drain()
            #expect(try upload.status().state == .done)
            #expect(background.handedOver.count == 1)
        }
    }

    @Test(
        "An upload whose object has the file's bytes and other attributes is handed over again",
        arguments: [ObjectAttributes(metadata: ["a": "b"]), ObjectAttributes(contentType: "image/png")])
    func otherAttributes(attributes: ObjectAttributes) async throws {
        try await withUpload { app, upload, background in
            try await upload.cancel()
            let file = try upload.status().file
            let named = try await app.transfers.upload(
                file, to: place, options: UploadOptions(attributes: attributes))
            try await handOver(app, background)
            // Without the attributes.
            try background.send(named.id.uuid)
            background.forget(named.id.uuid)
            try await background.runner(app).run(until: { background.handedOver.count == 2 })
        }
    }

    @Test("An upload is handed over again when the object there has the same length and other bytes")
    func otherBytes() async throws {
        try await withUpload { app, upload, background in
            storage.keep(Array("same bytes".utf8), at: place)
            try await handOver(app, background)
            background.forget(upload.id.uuid)
            try await background.runner(app).whileRunning {
                try await eventually { try background.handedOver.count == 2 || upload.status().isEnded }
                #expect(background.handedOver.count == 2)
            }
        }
    }

    @Test("An upload is handed over again when its executor sent other bytes than the file's")
    func otherBytesSent() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try background.send(upload.id.uuid, as: Array("other".utf8))
            try await background.runner(app).whileRunning {
                try await eventually { try background.handedOver.count == 2 || upload.status().isEnded }
                try background.send(upload.id.uuid)
                try await upload.finished(within: .seconds(60))
                #expect(storage.object(place)?.bytes == Array("some bytes".utf8))
            }
        }
    }

    @Test("An upload that the storage refuses has failed, and nothing is known of it any more")
    func refused() async throws {
        try await withUpload { app, upload, background in
            try await background.runner(app).whileRunning {
                try await eventually { !background.handedOver.isEmpty }
                background.fail(upload.id.uuid, .accessDenied)
                try await eventually { try upload.status().state == .failed }
                #expect(background.uploads.isEmpty)
            }
        }
    }

    @Test("A runner that does not know the executor leaves what was handed over, and says why it waits")
    func unknownExecutor() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try await TransferRunner(app, storage: storage).whileRunning {
                for await progress in upload.progress {
                    guard case .handedOver(let end) = progress.waiting else { continue }
                    #expect(end > Date().addingTimeInterval(600_000))
                    break
                }
            }
            #expect(storage.calls.isEmpty)
            #expect(try upload.status().handedOver != nil)
            try background.send(upload.id.uuid)
            try await background.runner(app).drain()
            #expect(try upload.status().state == .done)
            #expect(try upload.status().handedOver == nil)
        }
    }

    @Test("Draining without the executor ends, and leaves later uploads of the key to their turn")
    func drainedWithout() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            let later = try await app.transfers.upload(try upload.status().file, to: place)
            let other = try await app.transfers.upload(
                try upload.status().file, to: ObjectLocation(bucket: "b", key: "other"))
            try await TransferRunner(app, storage: storage).drain()
            #expect(storage.calls == [.put("other")])
            #expect(try other.status().state == .done)
            #expect(try later.status().state == .pending)
        }
    }

    @Test("What an executor has given back is any runner's")
    func givenBack() async throws {
        try await withUpload { app, upload, background in
            try await background.runner(app).whileRunning {
                try await eventually { !background.handedOver.isEmpty }
                background.fail(upload.id.uuid, .interrupted)
                try await eventually { background.handedOver.count == 2 }
                try await upload.pause()
                try await eventually { background.uploads.isEmpty }
                try await eventually { try upload.status().handedOver == nil }
            }
            try await upload.resume()
            var options = TransferRunner.Options()
            options.idle = .milliseconds(1)
            try await TransferRunner(app, storage: storage, options: options).drain()
            #expect(try upload.status().state == .done)
            #expect(storage.calls.contains(.put("k")))
        }
    }

    @Test("An upload that expired while an executor had it is broken off by the next runner")
    func expired() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try OtherProgram(app.core.folder).run("UPDATE transfer SET expires = 1")
            try await background.runner(app).drain()
            #expect(try upload.status().failure?.code == .expiredTransfer)
            #expect(background.ended == [upload.id.uuid])
        }
    }

    @Test("An upload that was erased while an executor had it is broken off by the next runner")
    func erased() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try await app.erase(unsent: .discard)
            #expect(try app.transfers.all().isEmpty)
            try await background.runner(app).drain()
            #expect(background.ended == [upload.id.uuid])
        }
    }

    /// Options by which later uploads wait for an hour behind one that may have arrived.
    private func patient(_ background: ScriptedBackground) -> TransferRunner.Options {
        var options = TransferRunner.Options()
        options.background = background
        options.idle = .seconds(3_600)
        options.pauseForAnHour()
        return options
    }

    /// Expects that an upload to the same place is not begun for a long time.
    private func expectWait(behind upload: Transfer, _ app: Partition) async throws {
        _ = try await app.transfers.upload(try upload.status().file, to: place)
        let table = try app.core.operationsStore.database().transfers
        let found = try table.runnable(in: app.core.name, now: Date(), limit: 9)
        #expect(found.ids.isEmpty)
        #expect(try #require(found.lookAgain).timeIntervalSinceNow > 600)
    }

    @Test("Later uploads of a key wait behind one that a runner broke off, since the storage may have all of it")
    func behindBrokenOff() async throws {
        try await withUpload { app, upload, background in
            try await handOver(app, background)
            try await upload.cancel()
            try await TransferRunner(app, storage: storage, options: patient(background)).drain()
            #expect(background.ended == [upload.id.uuid])
            try await expectWait(behind: upload, app)
        }
    }

    @Test("Later uploads of a key wait behind one whose executor got no answer")
    func behindUnanswered() async throws {
        try await withUpload { app, upload, background in
            let runner = TransferRunner(app, storage: storage, options: patient(background))
            try await runner.whileRunning {
                try await eventually { !background.handedOver.isEmpty }
                background.fail(upload.id.uuid, .interrupted)
                try await eventually { try upload.status().failure != nil }
            }
            try await upload.pause()
            try await expectWait(behind: upload, app)
        }
    }

    @Test("An upload whose file is written to while an executor has it has failed, whatever the object has")
    func writtenMeanwhile() async throws {
        try await withUpload { app, upload, background in
            try await background.runner(app).whileRunning {
                try await eventually { !background.handedOver.isEmpty }
                let file = try upload.status().file
                try Data("other content".utf8).write(to: file)
                try background.send(upload.id.uuid, as: Array("some bytes".utf8))
                await expectCode(.sourceChanged) { try await upload.finished(within: .seconds(60)) }
            }
        }
    }
}
