import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Transfers that a switch gives up", .timeLimit(.minutes(10)))
struct GivenUpTransferTests {
    private static let backends = (backend("a"), backend("b"))

    /// Runs `body` with a fixture of a partition that can be left, and one of that which is entered then.
    private func withSwitch(_ body: (TransferFixture, _ leave: () async throws -> TransferFixture) async throws -> Void)
        async throws
    {
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
            let storage = MemoryStorage()
            let fixture = TransferFixture(
                folder: folder, store: store, app: try store.partition(of: Self.backends.0), storage: storage)
            try await body(fixture) {
                let app = try await store.switch(to: Self.backends.1, pending: .discard).partition
                return TransferFixture(folder: folder, store: store, app: app, storage: storage)
            }
            try store.close()
        }
    }

    /// A runner that is held at a call, and ends with the switch.
    private func hold(
        _ fixture: TransferFixture, at held: @escaping @Sendable (MemoryStorage.Call) -> Bool
    ) async throws -> Task<Void, any Error> {
        let isHeld = Flag()
        fixture.storage.onCall { call throws(ObjectError) in
            guard held(call) else { return }
            isHeld.set()
            do { try await Task.sleep(for: .seconds(60)) } catch { throw ObjectError(.cancelled, "cancelled") }
        }
        let running = Task { try await fixture.runner { $0.connectionsPerHost = 1 }.run() }
        await isHeld.wait()
        return running
    }

    /// Queues an upload, holds a runner at the upload's fifth part, and leaves the partition: the runner ends as parked.
    ///
    /// - Returns: The upload, and the fixture of the partition that is entered.
    @discardableResult
    private func parkUpload(
        _ fixture: TransferFixture, _ leave: () async throws -> TransferFixture,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> (upload: Transfer, other: TransferFixture) {
        let upload = try await fixture.upload(bytes: 20_000).upload
        let running = try await hold(fixture) { $0 == .putPart(5) }
        let other = try await leave()
        await expectCode(.parked, sourceLocation: sourceLocation) { try await running.value }
        return (upload, other)
    }

    @Test("The partial file of a download goes with the runner of another partition")
    func download() async throws {
        try await withSwitch { fixture, leave in
            let (_, bytes) = try fixture.file(bytes: 50_000)
            let download = try await fixture.download(of: bytes)
            let running = try await hold(fixture) { $0 == .get(9 * 1024..<10 * 1024) }
            #expect(fixture.partials.count == 1)
            let other = try await leave()
            await expectCode(.parked) { try await running.value }
            #expect(try download.status().state == .cancelling)
            try await other.drain()
            #expect(fixture.partials.isEmpty)
            #expect(try download.status().state == .cancelled)
        }
    }

    @Test("An upload is aborted by a runner of its partition, when there is one again")
    func upload() async throws {
        try await withSwitch { fixture, leave in
            let (upload, other) = try await parkUpload(fixture, leave)
            fixture.storage.onCall { _ in }
            try await other.drain()
            #expect(fixture.storage.state.withLock { $0.uploads.count } == 1)
            let app = try await fixture.store.switch(to: Self.backends.0).partition
            try await TransferFixture(folder: fixture.folder, store: fixture.store, app: app, storage: fixture.storage)
                .drain()
            #expect(fixture.storage.state.withLock { $0.uploads.isEmpty })
            #expect(try upload.status().state == .cancelled)
        }
    }

    @Test("A runner of another partition clears away what a download has left, and aborts no upload")
    func others() async throws {
        try await withSwitch { fixture, leave in
            let upload = try await fixture.upload(bytes: 20_000).upload
            let download = try await fixture.download()
            let table = try fixture.store.operationsDatabase().transfers
            // As a runner leaves them that is killed. A runner looks at the upload first, which was queued first.
            let begun = try #require(try await table.begin(upload.id.uuid, owner: "gone", now: Date()))
            try await table.note(begun.attempt, [.upload("u")])
            _ = try #require(try await table.begin(download.id.uuid, owner: "gone", now: Date()))
            let other = try await leave()
            #expect(try upload.status().state == .cancelling)
            #expect(try download.status().state == .cancelling)
            try await other.runner().run(until: { try download.status().state == .cancelled })
            #expect(!fixture.storage.calls.contains(.abort("u")))
            #expect(try upload.status().state == .cancelling)
        }
    }

    @Test("Collecting garbage aborts an upload of a partition that is not current, without a runner")
    func collected() async throws {
        try await withSwitch { fixture, leave in
            let upload = try await parkUpload(fixture, leave).upload
            let (place, storage) = (fixture.folder.appending(path: "store"), fixture.storage)
            // As `larder transfers gc --write` does it.
            let cleared = try await OperationsDatabase.using(place) { database in
                try await TransferRemains(in: place, database.transfers)
                    .clear(database.transfers, storage: storage, timeout: .seconds(30))
            }
            #expect(cleared.uploads.map(\.id) == [upload.id.uuid])
            #expect(storage.state.withLock { $0.uploads.isEmpty })
            #expect(try upload.status().state == .cancelled)
        }
    }

    @Test("An environment is not forgotten with the names of uploads that the storage has, unless that is said")
    func forgotten() async throws {
        try await withSwitch { fixture, leave in
            try await parkUpload(fixture, leave)
            let refusal = await larderError { try await fixture.store.forget(environment: "a") }
            #expect(refusal?.code == .operationsUploadsLeft && refusal?.unsentUploads == 1)
            let left = try await fixture.store.forget(environment: "a", losingUnsent: true)
            #expect(left.map(\.location) == [TransferFixture.location])
            #expect(left.map(\.id) == fixture.storage.state.withLock { $0.uploads.keys.map { $0 } })
        }
    }

    @Test("A partition with uploads left is forgotten only when the caller says so, and the call returns those uploads")
    func forgottenPartition() async throws {
        try await withSwitch { fixture, leave in
            let partition = try #require(try fixture.store.current())
            try await parkUpload(fixture, leave)
            await expectCode(.init(rawValue: "operations.uploadsLeft")) {
                try await fixture.store.forget(partition)
            }
            let left = try await fixture.store.forget(partition, losingUnsent: true)
            #expect(left.map(\.location) == [TransferFixture.location])
            #expect(left.map(\.id) == fixture.storage.state.withLock { $0.uploads.keys.map { $0 } })
        }
    }

    @Test("Forgetting names the storage of each upload that was left there")
    func forgottenStorage() async throws {
        try await withSwitch { fixture, leave in
            let location = ObjectLocation(bucket: "media", key: "v/1.mov", region: "eu-west-1", storage: "archive")
            let (file, _) = try fixture.file(bytes: 20_000)
            let upload = try await fixture.app.transfers.upload(file, to: location)
            let table = try fixture.store.operationsDatabase().transfers
            // As a runner leaves it that is killed.
            let begun = try #require(try await table.begin(upload.id.uuid, owner: "gone", now: Date()))
            try await table.note(begun.attempt, [.upload("u")])
            _ = try await leave()
            let left = try await fixture.store.forget(environment: "a", losingUnsent: true)
            #expect(left.map(\.location) == [location] && left.map(\.id) == ["u"])
        }
    }

    @Test("Partial files of a forgotten partition's downloads go with it")
    func forgottenFiles() async throws {
        try await withSwitch { fixture, _ in
            let (_, bytes) = try fixture.file(bytes: 50_000)
            fixture.storage.keep(bytes, at: TransferFixture.location)
            _ = try await fixture.app.transfers.download(
                TransferFixture.location, to: fixture.folder.appending(path: "copy"))
            let running = try await hold(fixture) { $0 == .get(9 * 1024..<10 * 1024) }
            _ = try await fixture.store.switch(to: Self.backends.1)
            await expectCode(.parked) { try await running.value }
            #expect(fixture.partials.count == 1)
            // As a killed program leaves it where the destination is on another volume.
            let copy = fixture.folder.appending(path: ".copy.\(fixture.partials[0])")
            try Data("half".utf8).write(to: copy)
            #expect(try await fixture.store.forget(environment: "a", losingUnsent: true).isEmpty)
            #expect(fixture.partials.isEmpty)
            #expect(!FileManager.default.fileExists(atPath: copy.path))
        }
    }

    @Test("The partial files of all downloads of a forgotten partition go with it")
    func forgottenFilesOfAll() async throws {
        try await withSwitch { fixture, _ in
            let folder = fixture.folder.appending(path: "store/transfers")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            for name in ["a", "b", "c"] {
                let download = try await fixture.app.transfers.download(
                    .init(bucket: "media", key: name), to: fixture.folder.appending(path: name))
                try Data("half".utf8).write(to: folder.appending(path: "\(download.id).part"))
            }
            _ = try await fixture.store.switch(to: Self.backends.1)
            #expect(fixture.partials.count == 3)
            #expect(try await fixture.store.forget(environment: "a", losingUnsent: true).isEmpty)
            #expect(fixture.partials.isEmpty)
        }
    }

    @Test("Forgetting names the storage of an upload that it leaves there, and gives no id where none has arrived")
    func forgottenInNamedStorage() async throws {
        try await withSwitch { fixture, leave in
            let partition = try #require(try fixture.store.current()).name
            let transfers = try fixture.store.operationsDatabase().transfers
            let draft = TransferDraft(
                partition: partition, kind: .upload, storage: "archive", bucket: "media", key: "v/1",
                region: "eu-west-1", path: "/file", source: .init(device: 1, inode: 2, size: 10, modified: 3),
                created: Date())
            try await transfers.enqueue([draft])
            let begun = try await transfers.begin(draft.id, owner: "test", now: Date())
            try await transfers.note(try #require(begun).attempt, [.uploadAsked(before: [])])
            _ = try await leave()
            let left = try await fixture.store.forget(environment: "a", losingUnsent: true)
            let place = ObjectLocation(bucket: "media", key: "v/1", region: "eu-west-1", storage: "archive")
            #expect(left.map(\.location) == [place] && left.map(\.id) == [nil])
        }
    }

    @Test("The runner of another partition leaves the bytes that have arrived of a download that was parked")
    func parkedDownload() async throws {
        try await withSwitch { fixture, _ in
            let (_, bytes) = try fixture.file(bytes: 50_000)
            let download = try await fixture.download(of: bytes)
            let running = try await hold(fixture) { $0 == .get(9 * 1024..<10 * 1024) }
            let app = try await fixture.store.switch(to: Self.backends.1).partition
            await expectCode(.parked) { try await running.value }
            try await TransferFixture(folder: fixture.folder, store: fixture.store, app: app, storage: fixture.storage)
                .drain()
            #expect(fixture.partials.count == 1)
            #expect(try download.status().arrived == 9 * 1024)
        }
    }
}
