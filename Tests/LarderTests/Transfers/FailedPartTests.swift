import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// What becomes of an attempt's other parts when one of them fails.
@Suite("A part fails beside others", .timeLimit(.minutes(10)))
struct FailedPartTests {
    private let recipes = Array(
        #"{"recipes":[{"__typename":"Recipe","id":"1","title":"Soup","author":null}]}"#.utf8)

    /// Which parts the storage was sent, in ascending order.
    private func sentParts(_ storage: MemoryStorage) -> [Int] {
        storage.calls.compactMap { if case .putPart(let number) = $0 { number } else { nil } }.sorted()
    }

    @Test("After a failure that may pass no further part is begun, and a part under way arrives and is noted")
    func noFurtherPart() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 8 * 1024).upload
            let (isSecondBegun, hasSecondFailed) = (Flag(), Flag())
            let wasAsked = Mutex<Set<Int>>([])
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(let number) = call else { return }
                wasAsked.withLock { _ = $0.insert(number) }
                if number == 2 {
                    isSecondBegun.set()
                    throw ObjectError(.interrupted, "the connection broke")
                }
                if number == 1 {
                    await isSecondBegun.wait()
                    await hasSecondFailed.wait()
                }
            }
            let runner = fixture.runner { options in
                options.connectionsPerHost = 2
                options.pauseForAnHour()
            }
            try await runner.whileRunning {
                await isSecondBegun.wait()
                // The failed part has given its place back by the time at which the first one is let go.
                try await eventually { fixture.storage.state.withLock { $0.busy } <= 1 }
                for _ in 0..<20 { try await fixture.app.write(recipeList, json: recipes) }
                hasSecondFailed.set()
                try await eventually { try upload.status().failure != nil }
                #expect(wasAsked.withLock(\.self) == [1, 2])
                #expect(sentParts(fixture.storage) == [1])
                #expect(try upload.status().arrived == 1024)
            }
        }
    }

    @Test("The progress of a transfer leaves out the bytes of a part that failed while another part is under way")
    func progressWithoutFailedPart() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 8 * 1024).upload
            let (isFailing, mayGoOn) = (Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                if case .putPart(1) = call { await mayGoOn.wait() }
            }
            fixture.storage.onAnswer { call throws(ObjectError) in
                guard case .putPart(2) = call else { return }
                isFailing.set()
                throw ObjectError(.interrupted, "the connection broke")
            }
            let runner = fixture.runner { options in
                options.connectionsPerHost = 2
                options.pauseForAnHour()
            }
            try await runner.whileRunning {
                await isFailing.wait()
                let core = fixture.app.core
                for _ in 0..<10_000 {
                    if try core.progress(of: upload.status()).completed == 0 { break }
                    try await Task.sleep(for: .milliseconds(2))
                }
                let progress = try core.progress(of: upload.status())
                #expect(progress.state == .running && progress.completed == 0)
                mayGoOn.set()
                try await eventually { try upload.status().failure != nil }
            }
        }
    }

    @Test("A download has no more parts than ten thousand, however small they are to be")
    func manyParts() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: [UInt8](repeating: 7, count: 20_001))
            fixture.storage.onCall { call throws(ObjectError) in
                if case .get = call { throw ObjectError(.unreachable, "away") }
            }
            let runner = fixture.runner { options in
                options.partSize = 1
                options.pauseForAnHour()
            }
            try await runner.run(untilFailureOf: download)
            let table = try fixture.app.core.operationsStore.database().transfers
            #expect(try table.find(download.id.uuid)?.partSize == 3)
        }
    }

    @Test("No more transfers are under way than may be")
    func maximum() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10)
            var uploads: [Transfer] = []
            for number in 0..<4 {
                uploads.append(
                    try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: "\(number)")))
            }
            let isLetGo = Flag()
            fixture.storage.onCall { call throws(ObjectError) in if case .put = call { await isLetGo.wait() } }
            let connectivity = CountedConnectivity()
            let runner = fixture.runner { options in
                options.maximumTransfers = 2
                options.connectivity = connectivity
            }
            let draining = Task { try await runner.drain() }
            try await eventually { fixture.storage.state.withLock { $0.busy } == 2 }
            try await connectivity.someLooks()
            #expect(try uploads.filter { try $0.status().state == .running }.count == 2)
            isLetGo.set()
            try await draining.value
            #expect(fixture.storage.state.withLock { $0.mostBusy } == 2)
            #expect(try uploads.allSatisfy { try $0.status().state == .done })
        }
    }

    @Test("What cannot be cleared away is not waited for beyond the time of an exchange", .timeLimit(.minutes(2)))
    func clearing() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 8 * 1024)
            let upload = try await fixture.failedUpload(of: file)
            try await upload.cancel()
            #expect(try upload.status().state == .cancelling)
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .abort = call else { return }
                while !Task.isCancelled { try? await Task.sleep(for: .seconds(60)) }
                throw ObjectError(.cancelled, "the caller has gone")
            }
            try await fixture.drain { $0.timeout = .milliseconds(50) }
            #expect(try upload.status().state == .cancelling)
        }
    }

    @Test("What a cancelled download has left here is cleared away also by a runner that does not have its storage")
    func withoutStorage() async throws {
        try await withTransferFixture { fixture in
            let other = MemoryStorage()
            let location = ObjectLocation(bucket: "media", key: "far", storage: "other")
            other.keep([UInt8](repeating: 7, count: 4096), at: location)
            other.onCall { call throws(ObjectError) in
                if case .get = call { throw ObjectError(.unreachable, "away") }
            }
            let download = try await fixture.app.transfers.download(location, to: fixture.copy)
            let runner = fixture.runner(storage: nil, named: ["other": other]) { $0.pauseForAnHour() }
            try await runner.run(untilFailureOf: download)
            #expect(fixture.partials.count == 1)
            try await download.cancel()
            try await fixture.drain()
            #expect(try download.status().state == .cancelled)
            #expect(fixture.partials.isEmpty)
        }
    }

    @Test("What a failed upload has left is not cleared away once the upload is retried")
    func retriedMeanwhile() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 8 * 1024).upload
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(5), .abort: throw ObjectError(.accessDenied, "nobody may")
                default: break
                }
            }
            try await fixture.drain()
            #expect(try upload.status().state == .failed)
            let table = try fixture.app.core.operationsStore.database().transfers
            let remains = try TransferRemains(in: fixture.folder.appending(path: "store"), table)
            #expect(remains.transfers.map(\.id) == [upload.id.uuid])
            try await upload.retry()
            fixture.storage.onCall { _ throws(ObjectError) in }
            let before = fixture.storage.calls.count
            let cleared = try await remains.clear(table, storage: fixture.storage, timeout: .seconds(30))
            #expect(cleared.transfers.isEmpty && cleared.uploads.isEmpty)
            #expect(fixture.storage.calls.count == before)
            try await fixture.drain()
            #expect(try upload.status().state == .done)
        }
    }

    @Test("A failure that will not pass breaks off the parts that are under way")
    func breaksOffOthers() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 8 * 1024).upload
            let hasBegun = Flag()
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart(1):
                    hasBegun.set()
                    do { try await Task.sleep(for: .seconds(60)) } catch {
                        throw ObjectError(.cancelled, "broken off")
                    }
                case .putPart(2):
                    await hasBegun.wait()
                    throw ObjectError(.accessDenied, "not here")
                default: break
                }
            }
            let begun = SuspendingClock.now
            try await fixture.drain()
            #expect(try upload.status().failure?.code == .objectAccessDenied)
            try requireNear(begun)
        }
    }

    @Test("An upload in parts goes on in parts of the size that it was begun with, though another runner wants others")
    func keepsPartSize() async throws {
        try await withTransferFixture { fixture in
            let (upload, _, bytes) = try await fixture.upload(bytes: 5_000)
            let isStopped = Flag()
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .putPart(3) = call else { return }
                isStopped.set()
                throw ObjectError(.unreachable, "away")
            }
            try await fixture.runner { $0.connectionsPerHost = 1 }.whileRunning { await isStopped.wait() }
            fixture.storage.onCall { _ in }
            try await fixture.drain { $0.partSize = 2_048 }
            try await upload.finished()
            #expect(sentParts(fixture.storage) == [1, 2, 3, 4, 5])
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }

    @Test("A file that has more bytes than the storage takes in one piece goes in parts, however few they are")
    func beyondOnePiece() async throws {
        try await withTransferFixture(MemoryStorage(partSize: 4, largestPart: 4, largestPut: 8)) { fixture in
            for count in [8, 9] {
                let (file, bytes) = try fixture.file("\(count)", bytes: count)
                let location = ObjectLocation(bucket: "media", key: "\(count)")
                let upload = try await fixture.app.transfers.upload(file, to: location)
                try await fixture.drain()
                try await upload.finished()
                #expect(fixture.storage.object(location)?.bytes == bytes)
                #expect(fixture.storage.calls.contains(.put("\(count)")) == (count == 8))
            }
        }
    }
}
