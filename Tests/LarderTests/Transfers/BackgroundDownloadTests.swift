import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Downloads that are handed over", .timeLimit(.minutes(10)))
struct BackgroundDownloadTests {
    private let storage = MemoryStorage()
    private let place = ObjectLocation(bucket: "b", key: "k")
    private let bytes = Array("some bytes".utf8)

    /// Runs `body` with a queued download.
    private func withDownload(
        _ body: (Partition, Transfer, ScriptedBackground) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            storage.keep(bytes, at: place)
            let (store, app) = try TransferFixture.open(folder)
            let download = try await app.transfers.download(place, to: folder.appending(path: "file"))
            try await body(app, download, ScriptedBackground(storage))
            let partials = folder.appending(path: "store/transfers").path
            if FileManager.default.fileExists(atPath: partials) {
                #expect(try FileManager.default.contentsOfDirectory(atPath: partials).isEmpty)
            }
            try store.close()
        }
    }

    /// Runs a runner until the executor has been handed a download so often.
    private func handOver(_ app: Partition, _ background: ScriptedBackground, times: Int = 1) async throws {
        try await background.runner(app).run(until: { background.handedOver.count == times })
    }

    private func expectArrived(_ download: Transfer, sourceLocation: SourceLocation = #_sourceLocation) throws {
        let status = try download.status()
        #expect(status.state == .done, sourceLocation: sourceLocation)
        #expect(try Array(Data(contentsOf: status.file)) == bytes, sourceLocation: sourceLocation)
    }

    /// Has the executor receive the object, and expects that the next runner puts it in its place.
    private func expectPlaced(
        _ download: Transfer, _ app: Partition, _ background: ScriptedBackground,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        try background.receive(download.id.uuid, as: bytes)
        try await background.runner(app).drain()
        try expectArrived(download, sourceLocation: sourceLocation)
    }

    @Test("A download goes on when its runner ends, and the next runner puts the file in its place")
    func rejoined() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            #expect(background.ended.isEmpty)
            try await expectPlaced(download, app, background)
            #expect(background.handedOver.count == 1 && background.uploads.isEmpty)
        }
    }

    @Test(
        "What is not the object, or not there, is received anew, and is never put in its place",
        arguments: [nil, "some", "some bytez", "some bytes and more"])
    func lies(received: String?) async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            try background.receive(download.id.uuid, as: received.map { Array($0.utf8) })
            try await handOver(app, background, times: 2)
            #expect(!FileManager.default.fileExists(atPath: try download.status().file.path))
            try await expectPlaced(download, app, background)
        }
    }

    @Test("A download that its executor failed to forget is ended there before it is handed over again")
    func unforgotten() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            background.failEnds(1)
            try background.receive(download.id.uuid, as: Array("some bytez".utf8))
            try await handOver(app, background, times: 2)
            #expect(background.takenTwice.isEmpty)
            try await expectPlaced(download, app, background)
        }
    }

    @Test("A download whose executor has forgotten it is handed over again")
    func forgotten() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            background.forget(download.id.uuid)
            try await handOver(app, background, times: 2)
            try await expectPlaced(download, app, background)
        }
    }

    @Test("An object that has become another is received as it is now, and not as it was")
    func changed() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            storage.keep(Array("other".utf8), at: place)
            background.fail(download.id.uuid, .changed)
            try await background.runner(app).drain()
            #expect(try download.status().state == .failed)
            #expect(try download.status().failure?.code.rawValue == "object.changed")
            #expect(background.uploads.isEmpty)
        }
    }

    @Test("What was received is not put in its place where the executor says the ETag of another object")
    func otherETag() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            try background.receive(download.id.uuid, as: bytes, etag: "\"other\"")
            try await background.runner(app).drain()
            #expect(try download.status().failure?.code.rawValue == "object.changed")
            #expect(!FileManager.default.fileExists(atPath: try download.status().file.path))
        }
    }

    @Test("A runner that does not know the executor leaves a download, and receives nothing itself")
    func unknownExecutor() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            let calls = storage.calls.count
            try await TransferRunner(app, storage: storage).drain()
            #expect(storage.calls.count == calls)
            #expect(try download.status().state == .pending)
            try await expectPlaced(download, app, background)
        }
    }

    @Test("A download that is cancelled while it was handed over is broken off, and leaves no file")
    func cancelled() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            try background.receive(download.id.uuid, as: bytes)
            try await download.cancel()
            try await background.runner(app).drain()
            #expect(try download.status().state == .cancelled)
            #expect(background.ended == [download.id.uuid])
            #expect(!FileManager.default.fileExists(atPath: try download.status().file.path))
        }
    }

    @Test("A download that this process has begun, it goes on with")
    func begun() async throws {
        try await withDownload { app, download, background in
            storage.keep([UInt8](repeating: 7, count: 5_000), at: place)
            let failures = Countdown(2)
            storage.onCall { call throws(ObjectError) in
                guard case .get(let range) = call, range.lowerBound > 0, failures.take() else { return }
                throw ObjectError(.interrupted, "as the test says")
            }
            var options = TransferRunner.Options()
            options.partSize = 1_000
            options.connectionsPerHost = 1
            options.pauseForAnHour()
            try await TransferRunner(app, storage: storage, options: options).run(untilFailureOf: download)
            #expect(try download.status().arrived > 0)
            try await download.pause()
            try await download.resume()
            storage.onCall { _ in }
            try await background.runner(app).drain()
            #expect(try download.status().state == .done)
            #expect(background.handedOver.isEmpty)
        }
    }

    @Test("A download that the disk has no room for fails, and is handed over to no executor")
    func noRoom() async throws {
        try await withDownload { app, download, background in
            storage.saidSizes.withLock { $0 = [1 << 60] }
            try await background.runner(app).run(until: {
                try !background.handedOver.isEmpty || download.status().isEnded
            })
            #expect(background.handedOver.isEmpty)
            #expect(try download.status().failure?.code == .diskFull)
        }
    }

    @Test("A file that a killed runner has put in its place is the download's, though the executor still knows it")
    func placedBefore() async throws {
        try await withDownload { app, download, background in
            try await handOver(app, background)
            try background.receive(download.id.uuid, as: bytes)
            try Data(bytes).write(to: try download.status().file)
            try await background.runner(app).drain()
            try expectArrived(download)
            #expect(background.handedOver.count == 1)
        }
    }

    @Test("An object of 0 bytes that an executor has received is put in its place")
    func empty() async throws {
        try await withDownload { app, download, background in
            storage.keep([], at: place)
            try await handOver(app, background)
            try background.receive(download.id.uuid, as: [])
            try await background.runner(app).run(until: {
                try download.status().isEnded || background.handedOver.count > 1
            })
            #expect(try download.status().state == .done)
            #expect(try Data(contentsOf: download.status().file).isEmpty)
            #expect(background.handedOver.count == 1)
        }
    }
}
