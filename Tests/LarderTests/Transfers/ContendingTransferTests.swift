import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Transfers that get in each other's way", .timeLimit(.minutes(10)))
struct ContendingTransferTests {
    @Test("Of two uploads of one key the later stays, however long the earlier takes", arguments: [0, 10])
    func sameKey(priority: Int) async throws {
        try await withTransferFixture { fixture in
            let (old, _) = try fixture.file("old", bytes: 20_000)
            let (new, bytes) = try fixture.file("new", bytes: 100, seed: 8)
            let faults = Countdown(3)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .putPart = call, faults.take() { throw ObjectError(.interrupted, "cut") }
            }
            let first = try await fixture.app.transfers.upload(old, to: TransferFixture.location)
            let second = try await fixture.app.transfers.upload(
                new, to: TransferFixture.location, options: UploadOptions(priority: priority))
            try await fixture.drain()
            try await first.finished()
            try await second.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }

    @Test("An upload that is paused does not hold up the next of its key")
    func pausedBefore() async throws {
        try await withTransferFixture { fixture in
            let (first, file, bytes) = try await fixture.upload(bytes: 100)
            try await first.pause()
            _ = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            try await fixture.drain()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(try first.status().state == .paused)
        }
    }

    @Test("Cancelled uploads that cannot be cleared away do not keep the others waiting")
    func stuck() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let (small, _) = try fixture.file("small", bytes: 100)
            let uploads = try await fixture.stuckUploads(12, of: file)
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20)) }
            try await runner.whileRunning {
                try await eventually { fixture.storage.state.withLock { $0.uploads.count } == 12 }
                for upload in uploads { try await upload.cancel() }
                let other = try await fixture.app.transfers.upload(small, to: TransferFixture.location)
                #expect(try await other.finished().state == .done)
                #expect(try uploads.contains { try $0.status().state == .cancelling })
            }
        }
    }

    @Test("Parts in a bucket that is gone count as cleared away")
    func goneBucket() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 20_000).upload
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(5): throw ObjectError(.unreachable, "away")
                case .abort: throw ObjectError(.noSuchBucket, "it is gone")
                default: break
                }
            }
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20)) }
            try await runner.whileRunning {
                try await eventually { try upload.status().failure != nil }
                try await upload.cancel()
                try await eventually { try upload.status().state == .cancelled }
            }
        }
    }

    @Test("An upload waits for a paused one of its key that is under way still, whatever region either names")
    func pausedUnderWay() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let (isAsked, isReleased, times) = (Flag(), Flag(), Countdown(1))
            fixture.storage.onCall { call in
                guard case .put = call, times.take() else { return }
                isAsked.set()
                // As a storage that does not end the exchange with its caller.
                await Task.detached { await isReleased.wait() }.value
            }
            try await fixture.runner().whileRunning {
                let transfers = fixture.app.transfers
                let first = try await transfers.upload(file, to: TransferFixture.location)
                await isAsked.wait()
                try await first.pause()
                var elsewhere = TransferFixture.location
                elsewhere.region = "us-west-2"
                let second = try await transfers.upload(file, to: elsewhere)
                let third = try await transfers.upload(file, to: ObjectLocation(bucket: "media", key: "other"))
                try await third.finished()
                #expect(try second.status().attempts == 0)
                isReleased.set()
                try await second.finished()
            }
        }
    }

    @Test("An upload whose name did not arrive is aborted, and none of the key that another transfer has noted")
    func notedByAnother() async throws {
        try await withTransferFixture { fixture in
            let (old, bytes) = try fixture.file("old", bytes: 20_000)
            let (new, _) = try fixture.file("new", bytes: 10_000, seed: 8)
            let storage = fixture.storage
            let first = try await fixture.app.transfers.upload(old, to: TransferFixture.location)
            let second = try await fixture.app.transfers.upload(new, to: TransferFixture.location)
            try await first.pause()
            storage.onAnswer { call throws(ObjectError) in
                guard case .beginUpload = call else { return }
                try? await second.pause()
                throw ObjectError(.interrupted, "its name does not arrive")
            }
            try await fixture.drain()
            let lost = storage.state.withLock { Set($0.uploads.keys) }
            #expect(lost.count == 1)
            storage.onAnswer { call in
                if case .putPart(5) = call { try? await first.pause() }
            }
            try await first.resume()
            try await fixture.drain { $0.connectionsPerHost = 1 }
            #expect(try first.status().state == .paused)
            let noted = storage.state.withLock { Set($0.uploads.keys) }.subtracting(lost)
            #expect(noted.count == 1)
            storage.onAnswer { _ in }
            try await second.resume()
            try await fixture.drain()
            #expect(try second.status().state == .done)
            #expect(storage.state.withLock { Set($0.uploads.keys) } == noted)
            try await first.resume()
            try await fixture.drain()
            #expect(storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }
}
