import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Remains of a runner that the next one finds", .timeLimit(.minutes(10)))
struct LeftoverTests {
    @Test("Partial files of transfers that are not known are removed; what goes on and what is no transfer's stays")
    func strayFiles() async throws {
        try await withTransferFixture { fixture in
            let paused = try await fixture.download()
            try await paused.pause()
            let folder = fixture.folder.appending(path: "store/transfers")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let kept = ["\(paused.id).part", "notes.part", "notes"]
            for name in kept + ["\(TransferID(UUID())).part"] {
                try Data([1]).write(to: folder.appending(path: name))
            }
            let others = (0..<2).map { _ in "\(TransferID(UUID())).part" }
            try FileManager.default.createSymbolicLink(
                at: folder.appending(path: others[0]), withDestinationURL: folder.appending(path: "notes"))
            try FileManager.default.createDirectory(
                at: folder.appending(path: others[1]), withIntermediateDirectories: false)
            try await fixture.drain()
            #expect(Set(fixture.partials) == Set(kept + others))
        }
    }

    @Test("An upload that could not be aborted when its transfer failed is aborted by the next runner")
    func failedUpload() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 20_000).upload
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(3): throw ObjectError(.accessDenied, "not here")
                case .abort: throw ObjectError(.unreachable, "away")
                default: break
                }
            }
            try await fixture.drain()
            await expectCode(.init(rawValue: "object.accessDenied")) { try await upload.finished() }
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 1)

            fixture.storage.onCall { _ in }
            try await fixture.drain()
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            #expect(try upload.status().state == .failed)
        }
    }

    @Test("A transfer that is cleared away takes the place of none that is carried out")
    func clearingBeside() async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 10_000)
            let cancelled = try await fixture.failedUpload(of: file)
            try await cancelled.cancel()
            let (asked, answers) = (Flag(), Flag())
            fixture.storage.onCall { call in
                guard case .abort = call else { return }
                asked.set()
                while !answers.isSet, !Task.isCancelled { try? await Task.sleep(for: .milliseconds(2)) }
            }
            try await fixture.runner { $0.maximumTransfers = 1 }.whileRunning {
                try await eventually { asked.isSet }
                let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
                try await upload.finished(within: .seconds(60))
                #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
                #expect(try cancelled.status().state == .cancelling)
                answers.set()
                try await eventually { try cancelled.status().state == .cancelled }
            }
        }
    }

    @Test(
        "A name in a damaged row that no request can bear is cleared away without asking",
        arguments: [
            "key = printf('%.70000c', 'k')", "upload = printf('%.70000c', 'u')", "bucket = printf('%.70000c', 'b')",
            "upload = NULL, uploads_before = CAST('[]' AS BLOB), key = printf('%.70000c', 'k')",
        ])
    func unnameable(change: String) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.failedUpload(of: file)
            try OtherProgram(fixture.folder.appending(path: "store")).run("UPDATE transfer SET \(change)")
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .abort, .uploads: throw ObjectError(.unusableRequest, "the head is too large")
                default: break
                }
            }
            try await upload.cancel()
            try await fixture.drain()
            #expect(try upload.status().state == .cancelled)
        }
    }

    @Test(
        "An upload that the storage does not know for a moment is aborted before another is begun",
        arguments: [
            true, false,
        ])
    func forgottenForAMoment(mayAbort: Bool) async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            fixture.storage.forgetForAMoment(refusing: mayAbort ? 0 : .max)
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.state.withLock { $0.uploads.count } == (mayAbort ? 0 : 1))
            #expect(try fixture.app.transfers.all(in: [.cancelling]).count == (mayAbort ? 0 : 1))

            // The right to abort is given later, to another process or after a restart.
            fixture.storage.onCall { _ in }
            try await fixture.drain()
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            #expect(try fixture.app.transfers.all().map(\.id) == [upload.id])
        }
    }

    @Test("An upload goes on under its name when the storage denies knowing it and the abort fails")
    func abortedLater() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            fixture.storage.forgetForAMoment(refusing: 1, .unreachable)
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { if case .beginUpload = $0 { true } else { false } } == 1)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("The log warns of an upload that the storage does not know and that the user may not abort")
    func warned() async throws {
        try await withTemporaryFolder { folder in
            let log = RecordedLog(from: .warning)
            var options = Store.Options()
            options.logger = log.logger
            let (store, app) = try TransferFixture.open(folder, options)
            let fixture = TransferFixture(folder: folder, store: store, app: app, storage: MemoryStorage())
            let upload = try await fixture.upload(bytes: 10_000).upload
            fixture.storage.forgetForAMoment()
            try await fixture.drain()
            try await upload.finished(within: .zero)
            let texts = log.texts.withLock { $0 }
            #expect(texts.contains { $0.contains("may not be aborted") }, "\(texts)")
            try store.close()
        }
    }

    @Test("What a transfer has left in a bucket that is gone is gone with it")
    func bucketGone() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.failedUpload(of: file)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .abort = call { throw ObjectError(.noSuchBucket, "there is none", status: 404) }
            }
            try await upload.cancel()
            try await fixture.drain()
            #expect(try upload.status().state == .cancelled)
        }
    }

    @Test("Where an upload's name did not arrive, those of the key from before it go on, and those of longer keys")
    func fromBefore() async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 10_000)
            let (place, storage) = (TransferFixture.location, fixture.storage)
            let longer = ObjectLocation(bucket: place.bucket, key: place.key + ".part", region: place.region)
            storage.state.withLock { $0.uploads["before"] = .init(location: place, attributes: .init()) }
            let lost = Countdown(1)
            storage.onAnswer { call throws(ObjectError) in
                guard case .beginUpload = call, lost.take() else { return }
                storage.state.withLock { $0.uploads["longer"] = .init(location: longer, attributes: .init()) }
                throw ObjectError(.interrupted, "the answer is lost")
            }
            let upload = try await fixture.app.transfers.upload(file, to: place)
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(storage.object(place)?.bytes == bytes)
            #expect(storage.state.withLock { Set($0.uploads.keys) } == ["before", "longer"])
        }
    }

    @Test("An upload whose abort is denied stays in cancelling, and is aborted once the user may")
    func deniedAbort() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.failedUpload(of: file)
            try await upload.cancel()
            try await fixture.drain()
            #expect(try upload.status().state == .cancelling)
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 1)

            fixture.storage.onCall { _ in }
            try await fixture.drain()
            #expect(try upload.status().state == .cancelled)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("An upload whose completion was answered by nobody, and that is then not known, is done by its object")
    func lostCompletion() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 10_000)
            let (lost, denied) = (Countdown(1), Countdown(1))
            fixture.storage.onAnswer { call throws(ObjectError) in
                if call == .complete, lost.take() { throw ObjectError(.timedOut, "the answer is lost") }
            }
            fixture.storage.onCall { call throws(ObjectError) in
                if case .abort = call, denied.take() { throw ObjectError(.accessDenied, "not you", status: 403) }
            }
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { $0 == .complete } == 1)
            #expect(fixture.storage.calls.count { if case .beginUpload = $0 { true } else { false } } == 1)
            // The storage knows no such upload, and is asked to forget it all the same.
            try await fixture.drain()
            #expect(try fixture.app.transfers.all().map(\.id) == [upload.id])
        }
    }

    @Test("An upload that another transfer of the key has noted is not taken for one whose name did not arrive")
    func notedByAnother() async throws {
        try await withTransferFixture { fixture in
            let (first, file, bytes) = try await fixture.upload(bytes: 10_000)
            let second = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let (lost, isStuck) = (Countdown(1), Countdown(1))
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .beginUpload = call, lost.take() { throw ObjectError(.unreachable, "the answer is lost") }
            }
            fixture.storage.onCall { call throws(ObjectError) in
                if call == .putPart(5), isStuck.take() { throw ObjectError(.unreachable, "away") }
            }
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(600), cap: .seconds(600)) }
            try await runner.whileRunning {
                try await eventually { try first.status().failure != nil }
                try await first.pause()
                try await eventually { try second.status().failure != nil }
                try await second.pause()
            }
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 2)

            try await first.resume()
            try await fixture.drain()
            try await first.finished(within: .zero)
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 1)
            try await second.resume()
            try await fixture.drain()
            try await second.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(fixture.storage.calls.count { if case .beginUpload = $0 { true } else { false } } == 3)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("A clearing that failed is tried again while the runner runs, after pauses that grow")
    func pauses() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 20_000).upload
            let tries = Mutex<[SuspendingClock.Instant]>([])
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(3): throw ObjectError(.accessDenied, "not here")
                case .abort:
                    let count = tries.withLock { tries in
                        tries.append(.now)
                        return tries.count
                    }
                    if count < 5 { throw ObjectError(.unreachable, "away") }
                default: break
                }
            }
            let runner = fixture.runner {
                $0.backoff = Backoff(first: .milliseconds(30), cap: .seconds(100))
                $0.random = { 1 }
            }
            try await runner.whileRunning {
                await expectCode(.init(rawValue: "object.accessDenied")) { try await upload.finished() }
                try await eventually { fixture.storage.state.withLock { $0.uploads.isEmpty } }
            }
            let times = tries.withLock { $0 }
            try #require(times.count == 5)
            for (number, (earlier, later)) in zip(times, times.dropFirst()).enumerated() {
                #expect(later - earlier >= .milliseconds(30 << number))
            }
        }
    }

    @Test("An upload that expires between two tries is aborted by the runner that expires it")
    func expired() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            fixture.storage.onCall { call throws(ObjectError) in
                if call == .putPart(10) { throw ObjectError(.unreachable, "away") }
            }
            let runner = fixture.runner { $0.backoff = Backoff(first: .milliseconds(200), cap: .milliseconds(200)) }
            try await runner.whileRunning {
                let upload = try await fixture.app.transfers.upload(
                    file, to: TransferFixture.location, options: .init(expires: Date(timeIntervalSinceNow: 1.5)))
                await expectCode(.expiredTransfer) { try await upload.finished() }
                try await eventually { fixture.storage.state.withLock { $0.uploads.isEmpty } }
            }
        }
    }

    @Test("The partial file of a download that expires between two tries is removed by the runner that expires it")
    func expiredDownload() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: [UInt8](repeating: 7, count: 20_000))
            fixture.storage.onCall { call throws(ObjectError) in
                if case .get = call { throw ObjectError(.unreachable, "away") }
            }
            try await fixture.runner { $0.pauseForAnHour() }.run(untilFailureOf: download)
            #expect(fixture.partials.count == 1)
            try OtherProgram(fixture.folder.appending(path: "store")).run("UPDATE transfer SET expires = 1")
            try await fixture.drain()
            await expectCode(.expiredTransfer) { try await download.finished() }
            #expect(fixture.partials.isEmpty)
        }
    }

    @Test("Draining ends although there is what cannot be cleared away, and tries each once")
    func drained() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let uploads = try await fixture.stuckUploads(3, of: file)
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20)) }
            try await runner.run(until: { try uploads.allSatisfy { try $0.status().failure != nil } })
            for upload in uploads { try await upload.cancel() }
            let tries = Mutex<[MemoryStorage.Call]>([])
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .abort = call else { return }
                tries.withLock { $0.append(call) }
                throw ObjectError(.accessDenied, "not you")
            }
            try await fixture.drain { $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20)) }
            #expect(tries.withLock { ($0.count, Set($0).count) } == (3, 3))
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 3)
            #expect(try uploads.allSatisfy { try $0.status().state == .cancelling })
            fixture.storage.onCall { _ in }
            try await fixture.drain()
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            #expect(try uploads.allSatisfy { try $0.status().state == .cancelled })
        }
    }

    @Test(
        "While the storage refuses to list an upload whose name did not arrive, no other is begun, nor is it forgotten",
        arguments: [ObjectError.Code.rejected, .interrupted])
    func listingRefused(code: ObjectError.Code) async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .beginUpload = call { throw ObjectError(code, "the answer makes no sense") }
            }
            let isRefusing = Mutex(false)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .beginUpload = call { isRefusing.withLock { $0 = true } }
                guard call == .uploads, isRefusing.withLock({ $0 }) else { return }
                throw ObjectError(.accessDenied, "not now", status: 403)
            }
            try await fixture.drain()
            #expect(try upload.status().state == .failed)
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 1)
            isRefusing.withLock { $0 = false }
            fixture.storage.onCall { _ in }
            try await fixture.drain()
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("A file that was put in its place before a kill is the download's: it is neither refused nor received again")
    func placedFile() async throws {
        try await withTransferFixture { fixture in
            let (_, bytes) = try fixture.file(bytes: 10_000)
            let download = try await fixture.download(of: bytes)
            let (store, left) = (fixture.folder.appending(path: "store"), fixture.folder.appending(path: "left"))
            try FileManager.default.createDirectory(at: left, withIntermediateDirectories: true)
            try await fixture.drain { options in
                options.reached = { step in
                    guard step == .fileMoved else { return }
                    // What a kill would leave of the store here.
                    try? FileManager.default.copyItem(at: store, to: left.appending(path: "store"))
                }
            }
            try await download.finished(within: .zero)
            let asked = fixture.storage.calls.count
            let (reopened, app) = try TransferFixture.open(left)
            #expect(try app.transfers[download.id].status().state == .running)
            try await TransferRunner(app, storage: fixture.storage).drain()
            #expect(try app.transfers[download.id].status().state == .done)
            #expect(fixture.storage.calls.count == asked)
            #expect(try Array(Data(contentsOf: fixture.copy)) == bytes)
            try reopened.close()
        }
    }

    @Test("An upload that is cancelled before its name arrived is found at the storage, and aborted there")
    func cancelledUnnamed() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .beginUpload = call { throw ObjectError(.unreachable, "the answer is lost") }
            }
            try await fixture.runner { $0.pauseForAnHour() }.run(untilFailureOf: upload)
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 1)
            try await upload.cancel()
            #expect(try upload.status().state == .cancelling)
            try await fixture.drain()
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            #expect(try upload.status().state == .cancelled)
        }
    }
}
