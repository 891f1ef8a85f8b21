import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// What users of other libraries came to grief over. Others of these are with what answers them: files over 2 GiB in
/// `LoadTests`, uploads that outlast a signature and what is told of a failed end in the tests of the S3 transport.
@Suite("Pitfalls of transfers", .timeLimit(.minutes(10)))
struct TransferPitfallTests {
    @Test("A transfer that could not start and one that did not finish end in one way: no spinner spins for ever")
    func oneWay() async throws {
        try await withTransferFixture { fixture in
            let missing = fixture.folder.appending(path: "none")
            await expectCode(.sourceMissing) {
                try await fixture.app.transfers.upload(missing, to: TransferFixture.location).finished()
            }
            let upload = try await fixture.upload(bytes: 10_000).upload
            fixture.storage.onCall { call throws(ObjectError) in
                if case .beginUpload = call { throw ObjectError(.accessDenied, "for a test") }
            }
            async let shown = upload.progress.reduce(into: [TransferProgress]()) { $0.append($1) }
            try await fixture.drain()
            await expectCode(.init(rawValue: "object.accessDenied")) { try await upload.finished() }
            #expect(await shown.last?.state == .failed)
        }
    }

    @Test("Recovered uploads in parts go on and do not stall, and earlier listeners hear of them")
    func recovered() async throws {
        try await withTemporaryFolder { folder in
            let storage = MemoryStorage()
            let isHeld = Flag()
            storage.onCall { call throws(ObjectError) in
                guard case .putPart(5) = call, !isHeld.isSet else { return }
                isHeld.set()
                do { try await Task.sleep(for: .seconds(60)) } catch { throw ObjectError(.cancelled, "cancelled") }
            }
            var (first, file) = (nil as TransferID?, folder)
            var bytes: [UInt8] = []
            do {
                let (store, app) = try TransferFixture.open(folder)
                let fixture = TransferFixture(folder: folder, store: store, app: app, storage: storage)
                (file, bytes) = try fixture.file(bytes: 10_000)
                first = try await app.transfers.upload(file, to: TransferFixture.location).id
                try await fixture.runner { $0.connectionsPerHost = 1 }.whileRunning { await isHeld.wait() }
                try store.close()
            }
            let (store, app) = try TransferFixture.open(folder)
            let fixture = TransferFixture(folder: folder, store: store, app: app, storage: storage)
            let upload = try #require(try app.transfers.all().first)
            #expect(upload.id == first)
            #expect(try upload.status().arrived == 4096)
            // Before anything is recovered.
            var events = app.transfers.events.makeAsyncIterator()
            async let shown = upload.progress.reduce(into: [TransferProgress]()) { $0.append($1) }
            async let finished = upload.finished(within: .seconds(60))
            try await fixture.drain()
            #expect(try await finished.state == .done)
            #expect(await shown.last == TransferProgress(state: .done, completed: 10_000, total: 10_000))
            #expect(await events.next(isolation: #isolation)?.id == upload.id)
            #expect(storage.object(TransferFixture.location)?.bytes == bytes)
            let sent = storage.calls.compactMap { if case .putPart(let number) = $0 { number } else { nil } }
            #expect(sent.sorted() == Array(1...10))
            try store.close()
        }
    }

    @Test("No part files are made up front, and cancelled parts do not stay")
    func noPartFiles() async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 60_000).upload
            let (isHeld, made) = (Flag(), Names())
            let before = try Names.files(in: fixture.folder)
            fixture.storage.onCall { [folder = fixture.folder] call throws(ObjectError) in
                guard case .putPart(let number) = call else { return }
                made.note((try? Names.files(in: folder)) ?? ["it cannot be looked into"])
                guard number == 50 else { return }
                isHeld.set()
                do { try await Task.sleep(for: .seconds(60)) } catch { throw ObjectError(.cancelled, "cancelled") }
            }
            try await fixture.runner { $0.connectionsPerHost = 1 }.whileRunning {
                await isHeld.wait()
                #expect(fixture.storage.state.withLock { $0.uploads.values.map(\.parts.count) } == [49])
                try await upload.cancel()
                try await eventually { try upload.status().state == .cancelled }
            }
            #expect(made.all.subtracting(before).allSatisfy { $0.hasPrefix("locks/") || $0.hasPrefix("larder.sqlite") })
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            #expect(fixture.partials.isEmpty)
        }
    }

    @Test(
        "Finishing fails and the completion says so",
        arguments: [
            ObjectError.Code.rejected, .accessDenied, .incomplete, .serverFault, .noSuchUpload,
        ])
    func failedEnd(code: ObjectError.Code) async throws {
        try await withTransferFixture { fixture in
            let upload = try await fixture.upload(bytes: 10_000).upload
            fixture.storage.onCall { [storage = fixture.storage] call throws(ObjectError) in
                guard call == .complete else { return }
                if code == .noSuchUpload { storage.state.withLock { $0.uploads = [:] } }
                throw ObjectError(code, "for a test")
            }
            try await fixture.drain { $0.maximumFaults = 3 }
            await expectCode(.init(rawValue: code.rawValue)) { try await upload.finished(within: .seconds(60)) }
            #expect(try upload.status().state == .failed)
            #expect(fixture.storage.object(TransferFixture.location) == nil)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
        }
    }
}

/// Names that were seen.
private final class Names: Sendable {
    private let seen = Mutex<Set<String>>([])

    var all: Set<String> { seen.withLock { $0 } }
    func note(_ names: Set<String>) { seen.withLock { $0.formUnion(names) } }

    /// The files of a store, but for those of the cache.
    static func files(in folder: URL) throws -> Set<String> {
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder.appending(path: "store").path)
        return Set(names.filter { !$0.hasPrefix("records") })
    }
}
