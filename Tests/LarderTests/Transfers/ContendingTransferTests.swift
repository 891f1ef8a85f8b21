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
            let (file, bytes) = try fixture.file(bytes: 100)
            let first = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
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
            let running = Task { try await runner.run() }
            try await eventually { fixture.storage.state.withLock { $0.uploads.count } == 12 }
            for upload in uploads { try await upload.cancel() }
            let other = try await fixture.app.transfers.upload(small, to: TransferFixture.location)
            #expect(try await other.finished().state == .done)
            #expect(try uploads.contains { try $0.status().state == .cancelling })
            running.cancel()
            try await running.value
        }
    }

    @Test("Parts in a bucket that is gone count as cleared away")
    func goneBucket() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.app.transfers.upload(file, to: TransferFixture.location)
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(5): throw ObjectError(.unreachable, "away")
                case .abort: throw ObjectError(.noSuchBucket, "it is gone")
                default: break
                }
            }
            let runner = fixture.runner { $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20)) }
            let running = Task { try await runner.run() }
            try await eventually { try upload.status().failure != nil }
            try await upload.cancel()
            try await eventually { try upload.status().state == .cancelled }
            running.cancel()
            try await running.value
        }
    }
}
