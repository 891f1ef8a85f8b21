import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Transfers that go on after a failure", .timeLimit(.minutes(10)))
struct RetriedTransferTests {
    @Test("An upload that is retried with a changed file leaves none behind at the storage")
    func changedFile() async throws {
        try await withTransferFixture { fixture in
            let (upload, file, bytes) = try await fixture.upload(bytes: 20_000)
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(3):
                    do { try Data(bytes + [1]).write(to: file) } catch {
                        throw ObjectError(.local, "test", cause: error)
                    }
                case .abort: throw ObjectError(.unreachable, "away")
                default: break
                }
            }
            try await fixture.drain { $0.connectionsPerHost = 1 }
            await expectCode(.sourceChanged) { try await upload.finished() }
            fixture.storage.onCall { _ in }
            try await upload.retry()
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes + [1])
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 0)
        }
    }

    @Test("An upload that the storage begins late, when it was looked for already, is aborted in the end")
    func begunLate() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 20_000)
            let (faults, lates) = (Countdown(1), Countdown(1))
            let storage = fixture.storage
            storage.onCall { call throws(ObjectError) in
                switch call {
                case .beginUpload where faults.take(): throw ObjectError(.interrupted, "cut")
                case .putPart where lates.take():
                    storage.state.withLock {
                        $0.uploads["late"] = .init(location: TransferFixture.location, attributes: ObjectAttributes())
                    }
                default: break
                }
            }
            try await fixture.drain()
            try await upload.finished()
            #expect(storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("Faults are counted anew after a retry, also by the runner that has counted them")
    func countedAnew() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let faults = Mutex(Countdown(4))
            fixture.storage.onCall { call throws(ObjectError) in
                if faults.withLock({ $0.take() }) { throw ObjectError(.serverFault, "for a test") }
            }
            try await fixture.runner { $0.maximumFaults = 4 }.whileRunning {
                let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
                await expectCode(.init(rawValue: "object.serverFault")) { try await upload.finished() }
                faults.withLock { $0 = Countdown(3) }
                try await upload.retry()
                #expect(try await upload.finished().state == .done)
            }
        }
    }

    @Test("What arrives of one transfer leaves the faults of another as they are counted")
    func faultsBesideArrivals() async throws {
        try await withTransferFixture { fixture in
            let (small, _) = try fixture.file("small", bytes: 100)
            let (large, _) = try fixture.file("large", bytes: 10_000)
            let bad = try await fixture.app.transfers.upload(small, to: .init(bucket: "bad", key: "bad"))
            let good = try await fixture.app.transfers.upload(large, to: .init(bucket: "good", key: "good"))
            let counts = Mutex((faults: 0, parts: 0))
            fixture.storage.onCall { call throws(ObjectError) in
                let isBad = call == .put("bad")
                let isPart = if case .putPart = call { true } else { false }
                guard isBad || isPart else { return }
                let number = counts.withLock { counts in
                    if isBad { counts.faults += 1 } else { counts.parts += 1 }
                    return isBad ? counts.faults : counts.parts
                }
                // While each fault is under way, a part of the other file arrives, and the next one is sent.
                for _ in 0..<5_000 {
                    let (faults, parts) = counts.withLock { $0 }
                    if isBad ? parts >= min(number + 1, 10) : faults >= min(number, 3) { break }
                    try? await Task.sleep(for: .milliseconds(2))
                }
                if isBad { throw ObjectError(.interrupted, "the connection broke") }
            }
            try await fixture.drain { options in
                (options.maximumFaults, options.connectionsPerHost) = (3, 1)
            }
            #expect(try bad.status().state == .failed)
            #expect(try good.status().state == .done)
            #expect(counts.withLock { $0.faults } == 3)
        }
    }

    @Test("A part that fails and may go better lets the parts beside it arrive")
    func besides() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            _ = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            let faults = Countdown(1)
            let hasFailed = Flag()
            let begun = Mutex(0)
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(1):
                    begun.withLock { $0 += 1 }
                    guard !hasFailed.isSet else { return }
                    await hasFailed.wait()
                    do { try await Task.sleep(for: .milliseconds(50)) } catch {
                        throw ObjectError(.cancelled, "cancelled")
                    }
                case .putPart(2) where faults.take():
                    hasFailed.set()
                    throw ObjectError(.interrupted, "cut")
                default: break
                }
            }
            try await fixture.drain { $0.connectionsPerHost = 2 }
            #expect(begun.withLock { $0 } == 1)
            #expect(fixture.storage.object(TransferFixture.location) != nil)
        }
    }

    @Test("Credentials that are not taken are waited for once, however many transfers were under way")
    func refusals() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let refused = Mutex(Set<String>())
            let reached = Mutex(0)
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .put(let key) = call, refused.withLock({ $0.insert(key).inserted }) else { return }
                reached.withLock { $0 += 1 }
                // All are under way before one is told.
                while reached.withLock({ $0 < 8 }) {
                    do { try await Task.sleep(for: .milliseconds(1)) } catch {
                        throw ObjectError(.cancelled, "cancelled")
                    }
                }
                throw ObjectError(.expiredCredentials, "for a test")
            }
            for number in 0..<8 {
                _ = try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: "\(number)"))
            }
            // Counted eight times, the pause would be of hours.
            try await fixture.drain {
                $0.backoff = Backoff(first: .milliseconds(20), cap: .seconds(100_000))
                $0.connectionsPerHost = 8
            }
            #expect(fixture.storage.state.withLock { $0.objects.count } == 8)
        }
    }

    /// Expects that an upload which is lost as it is completed is sent anew, though an object of its length is there.
    private func expectSentAnew(
        to storage: MemoryStorage, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try await withTransferFixture(storage) { fixture in
            let (old, _) = try fixture.file("old", bytes: 20_000)
            _ = try await fixture.app.transfers.upload(old, to: TransferFixture.location)
            try await fixture.drain()
            let (new, bytes) = try fixture.file("new", bytes: 20_000, seed: 8)
            let upload = try await fixture.app.transfers.upload(new, to: TransferFixture.location)
            let faults = Countdown(1)
            storage.onCall { call in
                // A rule of the bucket's aborts it.
                if call == .complete, faults.take() { storage.state.withLock { $0.uploads = [:] } }
            }
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(storage.object(TransferFixture.location)?.bytes == bytes, sourceLocation: sourceLocation)
        }
    }

    @Test("An object of the same length that was there before is not taken for an encrypted upload")
    func sealed() async throws {
        try await expectSentAnew(to: MemoryStorage(tellsChecksums: true, isSealed: true))
    }

    @Test("A lost upload does not take an older object of the same length for its own")
    func otherObject() async throws {
        try await expectSentAnew(to: MemoryStorage())
    }

    @Test("A retry of an upload that has not failed is refused as that, also where its file is gone")
    func notFailed() async throws {
        try await withTransferFixture { fixture in
            let (upload, file, _) = try await fixture.upload(bytes: 10)
            try FileManager.default.removeItem(at: file)
            await expectCode(.init(rawValue: "operations.wrongState")) { try await upload.retry() }
            #expect(try upload.status().state == .pending)
        }
    }

    @Test(
        "A copy beside the destination that a killed program has left is made anew, or removed with the transfer",
        .enabled(if: canMount, "needs root"))
    func copies() async throws {
        try await withTransferFixture { fixture in
            let (_, bytes) = try fixture.file(bytes: 50_000)
            fixture.storage.keep(bytes, at: TransferFixture.location)
            try await withSmallVolume(400 << 10) { volume in
                let place = volume.appending(path: "copy")
                let download = try await fixture.app.transfers.download(TransferFixture.location, to: place)
                try Data([1]).write(to: volume.appending(path: ".copy.\(download.id).part"))
                try await fixture.drain()
                try await download.finished()
                #expect(try Array(Data(contentsOf: place)) == bytes)

                let other = try await fixture.app.transfers.download(
                    TransferFixture.location, to: volume.appending(path: "other"))
                fixture.storage.onCall { call throws(ObjectError) in
                    if case .get = call { throw ObjectError(.unreachable, "away") }
                }
                let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20)) }
                try await runner.whileRunning {
                    try await eventually { try other.status().failure != nil }
                    try Data([1]).write(to: volume.appending(path: ".other.\(other.id).part"))
                    try await other.cancel()
                    try await eventually { try other.status().state == .cancelled }
                }
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == ["copy"])
            }
        }
    }

    @Test(
        "A volume of the destination's without room is told before anything is received",
        .enabled(if: canMount, "needs root"))
    func destinationRoom() async throws {
        try await withTransferFixture { fixture in
            let (_, bytes) = try fixture.file(bytes: 300_000)
            fixture.storage.keep(bytes, at: TransferFixture.location)
            try await withSmallVolume(100 << 10) { volume in
                let name = String(repeating: "藏", count: 80)
                let download = try await fixture.app.transfers.download(
                    TransferFixture.location, to: volume.appending(path: name))
                try await fixture.drain()
                await expectCode(.diskFull) { try await download.finished() }
                #expect(fixture.storage.calls.allSatisfy { if case .get = $0 { false } else { true } })
            }
            try await withSmallVolume(1 << 20) { volume in
                let file = volume.appending(path: String(repeating: "藏", count: 80))
                let download = try await fixture.app.transfers.download(TransferFixture.location, to: file)
                try await fixture.drain()
                try await download.finished()
                #expect(try Array(Data(contentsOf: file)) == bytes)
            }
        }
    }

    @Test("An upload whose name did not arrive is looked for in the region of its bucket")
    func lookedForInRegion() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 20_000)
            let faults = Countdown(1)
            fixture.storage.onAnswer { call throws(ObjectError) in
                if case .beginUpload = call, faults.take() { throw ObjectError(.interrupted, "cut") }
            }
            try await fixture.drain()
            try await upload.finished(within: .zero)
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            let regions = fixture.storage.state.withLock { $0.listedRegions }
            #expect(regions.count > 1 && regions.allSatisfy { $0 == TransferFixture.location.region }, "\(regions)")
        }
    }
}
