import Foundation
import Larder
import LarderTestSupport
import Testing

/// A store, a storage in memory, and files.
struct TransferFixture: Sendable {
    let folder: URL
    let store: Store
    let app: Partition
    let storage: MemoryStorage

    static let location = ObjectLocation(bucket: "media", key: "v/1.mov", region: "eu-west-1")

    static func open(_ folder: URL) throws -> (Store, Partition) {
        let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema))
        return (store, try store.partition())
    }

    /// A file of so many bytes that do not repeat.
    func file(_ name: String = "source", bytes count: Int, seed: UInt64 = 7) throws -> (URL, [UInt8]) {
        var random = SeededNumbers(seed: seed)
        let bytes = (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
        let file = folder.appending(path: name)
        try Data(bytes).write(to: file)
        return (file, bytes)
    }

    func runner(_ change: (inout TransferRunner.Options) -> Void = { _ in }) -> TransferRunner {
        runner(storage: storage, change)
    }

    func runner(
        storage: MemoryStorage?, named: [String: MemoryStorage] = [:],
        _ change: (inout TransferRunner.Options) -> Void = { _ in }
    ) -> TransferRunner {
        var options = TransferRunner.Options()
        options.multipartThreshold = 4000
        options.partSize = 1024
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
        change(&options)
        return TransferRunner(app, storage: storage, named: named, options: options)
    }

    /// Carries out all that can be, and looks whether everything fits together.
    func drain(_ change: (inout TransferRunner.Options) -> Void = { _ in }) async throws {
        try await runner(change).drain()
    }

    var partials: [String] {
        (try? FileManager.default.contentsOfDirectory(
            atPath: folder.appending(path: "store/transfers").path)) ?? []
    }
}

/// Runs `body` with a fixture; nothing may be left of it but what was asked for.
func withTransferFixture(
    tellsChecksums: Bool = false, _ body: (TransferFixture) async throws -> Void
) async throws {
    try await withTransferFixture(MemoryStorage(tellsChecksums: tellsChecksums), body)
}

/// Runs `body` with a fixture whose store goes by this clock.
func withTransferFixture(at clock: TestClock, _ body: (TransferFixture) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        var options = Store.Options()
        options.now = { clock.now }
        let store = try Store.open(
            at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
        try await body(
            TransferFixture(folder: folder, store: store, app: try store.partition(), storage: MemoryStorage()))
        try store.close()
    }
}

/// Runs `body` with a fixture of this storage.
func withTransferFixture(_ storage: MemoryStorage, _ body: (TransferFixture) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        let (store, app) = try TransferFixture.open(folder)
        let fixture = TransferFixture(folder: folder, store: store, app: app, storage: storage)
        do { try await body(fixture) } catch {
            try? store.close()
            throw error
        }
        try store.close()
    }
}

extension TransferFixture {
    /// Queues uploads in parts which the storage takes no further than their fifth, and nobody may abort.
    func stuckUploads(_ count: Int, of file: URL) async throws -> [Transfer] {
        var uploads: [Transfer] = []
        for number in 0..<count {
            let location = ObjectLocation(bucket: "media", key: "\(number)")
            uploads.append(try await app.transfers.upload(file, to: location))
        }
        storage.onCall { call throws(ObjectError) in
            switch call {
            case .putPart(5): throw ObjectError(.unreachable, "away")
            case .abort: throw ObjectError(.accessDenied, "nobody may")
            default: break
            }
        }
        return uploads
    }

    /// An upload of which the storage has parts that nobody may abort, after an attempt that failed; no runner works.
    func failedUpload(of file: URL) async throws -> Transfer {
        let uploads = try await stuckUploads(1, of: file)
        let runner = runner { $0.backoff = Backoff(first: .seconds(3600), cap: .seconds(3600)) }
        let running = Task { try await runner.run() }
        try await eventually { try uploads[0].status().failure != nil }
        running.cancel()
        try await running.value
        return uploads[0]
    }
}
