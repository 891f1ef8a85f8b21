import Foundation
import Larder
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Uploads in parts that are collected without a runner", .timeLimit(.minutes(10)))
struct CollectedUploadTests {
    /// An upload whose name was left to a transfer of its own, and one that failed and has its name.
    private func withLeftUploads(_ body: (TransferFixture, _ sent: Transfer, _ failed: Transfer) async throws -> Void)
        async throws
    {
        try await withTransferFixture { fixture in
            let (sent, file, _) = try await fixture.upload(bytes: 10_000)
            let failing = ObjectLocation(bucket: TransferFixture.location.bucket, key: "failing")
            fixture.storage.forgetForAMoment()
            try await fixture.drain()
            try await sent.finished(within: .zero)

            let failed = try await fixture.app.transfers.upload(file, to: failing)
            fixture.storage.onCall { call throws(ObjectError) in
                switch call {
                case .putPart, .abort: throw ObjectError(.accessDenied, "not you")
                default: break
                }
            }
            try await fixture.drain()
            #expect(try failed.status().state == .failed)
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 2)
            try await body(fixture, sent, failed)
        }
    }

    /// As `larder transfers gc --write` does it.
    private func collect(_ fixture: TransferFixture, _ storage: (any ObjectTransport)?) async throws
        -> TransferRemains.Cleared
    {
        let store = fixture.folder.appending(path: "store")
        return try await OperationsDatabase.using(store) { database in
            try await TransferRemains(in: store, database.transfers)
                .clear(database.transfers, storage: storage, timeout: .seconds(30))
        }
    }

    @Test("Each is aborted, then forgotten, and a row that was only there for a name goes with it")
    func aborted() async throws {
        try await withLeftUploads { fixture, sent, failed in
            let names = fixture.storage.state.withLock { Set($0.uploads.keys) }
            fixture.storage.onCall { _ in }
            let cleared = try await collect(fixture, fixture.storage)
            #expect(Set(cleared.uploads.compactMap(\.upload)) == names)
            #expect(cleared.left.isEmpty)
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            #expect(try fixture.app.transfers.all().map(\.id) == [sent.id, failed.id])
            #expect(try failed.status().state == .failed)
            #expect(try await collect(fixture, nil).left.isEmpty)
        }
    }

    @Test(
        "None is forgotten while the storage does not abort it",
        arguments: [ObjectError.Code.accessDenied, .unreachable, .interrupted, .serverFault, nil])
    func kept(code: ObjectError.Code?) async throws {
        try await withLeftUploads { fixture, sent, failed in
            let names = fixture.storage.state.withLock { Set($0.uploads.keys) }
            fixture.storage.onCall { call throws(ObjectError) in
                if let code, case .abort = call { throw ObjectError(code, "not now") }
            }
            for _ in 0..<2 {
                let cleared = try await collect(fixture, code == nil ? nil : fixture.storage)
                #expect(cleared.uploads.isEmpty && cleared.transfers.isEmpty && cleared.left.count == 2)
                #expect(fixture.storage.state.withLock { Set($0.uploads.keys) } == names)
                #expect(try fixture.app.transfers.all(in: [.cancelling]).count == 1)
                #expect(try fixture.app.transfers.all().count == 3)
            }
            fixture.storage.onCall { _ in }
            #expect(Set(try await collect(fixture, fixture.storage).uploads.compactMap(\.upload)) == names)
            #expect(try fixture.app.transfers.all().map(\.id) == [sent.id, failed.id])
        }
    }

    /// A download that was cancelled when a part of it had arrived.
    private func cancelledDownload(_ fixture: TransferFixture) async throws -> Transfer {
        let download = try await fixture.download(of: [UInt8](repeating: 7, count: 10_000))
        fixture.storage.onAnswer { call in
            if case .get = call { try? await download.pause() }
        }
        try await fixture.drain { $0.connectionsPerHost = 1 }
        try await download.cancel()
        return download
    }

    @Test("The copy that a killed program has left beside a download's place is removed with the rest")
    func copyBeside() async throws {
        try await withTransferFixture { fixture in
            let download = try await cancelledDownload(fixture)
            #expect(try download.status().state == .cancelling)
            let copy = fixture.folder.appending(path: ".copy.\(download.id).part")
            try Data([1]).write(to: copy)
            let cleared = try await collect(fixture, nil)
            #expect(cleared.left.isEmpty && cleared.transfers.map(\.id) == [download.id.uuid])
            #expect(!FileManager.default.fileExists(atPath: copy.path))
            #expect(try download.status().state == .cancelled && fixture.partials.isEmpty)
        }
    }

    @Test("The partial file of a failed download is left to the runner that works")
    func leftToRunner() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download()
            try await fixture.drain()
            #expect(try download.status().state == .failed)
            let store = fixture.folder.appending(path: "store")
            let folder = store.appending(path: "transfers")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            try Data([1]).write(to: folder.appending(path: "\(download.id).part"))
            let lock = try LockFile(making: store.appending(path: "locks/main.transfers").path)
            #expect(try lock.tryLock(.exclusive))
            let left = try await collect(fixture, nil).left
            #expect(left.map(\.transfer) == [download.id.uuid] && fixture.partials.count == 1)
            lock.close()
            #expect(try await collect(fixture, nil).left.isEmpty && fixture.partials.isEmpty)
        }
    }

    @Test("Partial files are told in the order of their names, each with what it takes on the volume")
    func filesByName() async throws {
        try await withTransferFixture { fixture in
            let store = fixture.folder.appending(path: "store")
            let folder = store.appending(path: "transfers")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let ids = (0..<4).map { _ in UUID() }.sorted { $0.uuidString < $1.uuidString }
            for id in ids {
                let part = folder.appending(path: "\(TransferID(id)).part")
                try Data().write(to: part)
                // All of it is a hole.
                let handle = try FileHandle(forWritingTo: part)
                try handle.truncate(atOffset: 1 << 20)
                try handle.close()
            }
            let files = try TransferRemains(in: store, nil).files
            #expect(files.map(\.transfer) == ids && files.allSatisfy { $0.bytes < 1 << 20 })
        }
    }

    @Test("A transfer that is being cancelled, and has left nothing any more, is noted as cancelled")
    func notedOnly() async throws {
        try await withTransferFixture { fixture in
            let download = try await cancelledDownload(fixture)
            let folder = fixture.folder.appending(path: "store/transfers")
            for name in fixture.partials { try FileManager.default.removeItem(at: folder.appending(path: name)) }
            #expect(try download.status().state == .cancelling)
            let cleared = try await collect(fixture, nil)
            #expect(cleared.left.isEmpty && cleared.files.isEmpty)
            #expect(cleared.transfers.map(\.id) == [download.id.uuid])
            #expect(try download.status().state == .cancelled)
        }
    }

    @Test("An upload that was retried after the look keeps what the storage has of it")
    func retriedSince() async throws {
        try await withLeftUploads { fixture, _, failed in
            let store = fixture.folder.appending(path: "store")
            let remains = try await OperationsDatabase.using(store) { try TransferRemains(in: store, $0.transfers) }
            #expect(remains.transfers.count == 2)
            fixture.storage.onCall { _ in }
            try await failed.retry()
            let cleared = try await OperationsDatabase.using(store) { database in
                try await remains.clear(database.transfers, storage: fixture.storage, timeout: .seconds(30))
            }
            #expect(cleared.uploads.count == 1 && cleared.left.isEmpty)
            #expect(fixture.storage.state.withLock { $0.uploads.values.map(\.location.key) } == ["failing"])
            #expect(try failed.status().state == .pending)
        }
    }

    @Test("An upload that the storage does not abort keeps no other from being aborted")
    func oneRefused() async throws {
        try await withLeftUploads { fixture, _, _ in
            let uploads = fixture.storage.state.withLock { $0.uploads.mapValues(\.location.key) }
            let refused = try #require(uploads.first { $0.value == TransferFixture.location.key }?.key)
            fixture.storage.onCall { call throws(ObjectError) in
                if call == .abort(refused) { throw ObjectError(.accessDenied, "not you") }
            }
            let cleared = try await collect(fixture, fixture.storage)
            #expect(cleared.left.count == 1 && cleared.uploads.count == 1)
            #expect(fixture.storage.state.withLock { Array($0.uploads.keys) } == [refused])
        }
    }

    /// A store's folder with two partial files that no transfer knows, by their names.
    private func withStrayFiles(_ body: (_ store: URL, _ ids: [UUID]) async throws -> Void) async throws {
        try await withTransferFixture { fixture in
            let store = fixture.folder.appending(path: "store")
            let folder = store.appending(path: "transfers")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let ids = (0..<2).map { _ in UUID() }.sorted { $0.uuidString < $1.uuidString }
            for id in ids { try Data([1]).write(to: folder.appending(path: "\(TransferID(id)).part")) }
            try await body(store, ids)
        }
    }

    @Test("A partial file that is gone already is not told as removed")
    func goneSince() async throws {
        try await withStrayFiles { store, ids in
            let remains = try TransferRemains(in: store, nil)
            #expect(remains.files.map(\.transfer) == ids)
            let file = store.appending(path: "transfers/\(TransferID(ids[0])).part")
            try FileManager.default.removeItem(at: file)
            let cleared = try await remains.clear(nil, storage: nil, timeout: .zero)
            #expect(cleared.files.map(\.transfer) == [ids[1]] && cleared.left.isEmpty)
        }
    }

    @Test("A partial file that cannot be removed is told with its transfer, and the others are removed")
    func oneStuck() async throws {
        try await withStrayFiles { store, ids in
            let name = "\(TransferID(ids[0])).part"
            let system = FileSystem(injecting: { call in
                call.kind == .remove && call.path.hasSuffix(name) ? .failure(EIO) : nil
            })
            let cleared = try await TransferRemains(in: store, nil, system).clear(nil, storage: nil, timeout: .zero)
            #expect(cleared.files.map(\.transfer) == [ids[1]])
            #expect(cleared.left.map(\.transfer) == [ids[0]])
        }
    }
}
