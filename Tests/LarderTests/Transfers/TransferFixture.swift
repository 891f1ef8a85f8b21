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

    static func open(_ folder: URL, _ options: Store.Options = Store.Options()) throws -> (Store, Partition) {
        let store = try Store.open(
            at: folder.appending(path: "store"), schema: try Schema(parsing: fixtureSchema), options: options)
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

    /// Queues an upload of a new file of so many bytes to `location`.
    func upload(bytes count: Int) async throws -> (upload: Transfer, file: URL, bytes: [UInt8]) {
        let (source, bytes) = try file(bytes: count)
        return (try await app.transfers.upload(source, to: Self.location), source, bytes)
    }

    /// Where `download` puts its file.
    var copy: URL { folder.appending(path: "copy") }

    /// Queues a download of the object at `location` to `copy`.
    ///
    /// - Parameter bytes: What the storage is to have there; nil: nothing is changed at the storage.
    func download(of bytes: [UInt8]? = nil, options: DownloadOptions = DownloadOptions()) async throws -> Transfer {
        if let bytes { storage.keep(bytes, at: Self.location) }
        return try await app.transfers.download(Self.location, to: copy, options: options)
    }

    /// Queues an upload of so many bytes, or a download of an object that has them.
    func transfer(isUpload: Bool, bytes count: Int) async throws -> Transfer {
        if isUpload { return try await upload(bytes: count).upload }
        return try await download(of: try file(bytes: count).1)
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

    /// Carries out all that can be.
    func drain(_ change: (inout TransferRunner.Options) -> Void = { _ in }) async throws {
        try await runner(change).drain()
    }

    /// Drains, and expects how far a transfer says that it has come while the storage holds one of its calls.
    ///
    /// - Parameters:
    ///   - isHeld: What the storage sets when it holds the call.
    ///   - mayGoOn: What the storage waits for.
    func expectProgress(
        of transfer: Transfer, _ completed: Int64, once isHeld: Flag, thenSetting mayGoOn: Flag,
        sourceLocation: SourceLocation = #_sourceLocation, _ change: (inout TransferRunner.Options) -> Void = { _ in }
    ) async throws {
        let runner = runner(change)
        let draining = Task { try await runner.drain() }
        await isHeld.wait()
        let shown = await transfer.progress.first { _ in true }
        #expect(shown?.state == .running && shown?.completed == completed, sourceLocation: sourceLocation)
        mayGoOn.set()
        try await draining.value
        try await transfer.finished()
    }

    var partials: [String] {
        (try? FileManager.default.contentsOfDirectory(
            atPath: folder.appending(path: "store/transfers").path)) ?? []
    }
}

/// Runs `body` with a fixture of a storage in memory; see `withTransferFixture(_:_:_:)`.
func withTransferFixture(
    tellsChecksums: Bool = false, _ body: (TransferFixture) async throws -> Void
) async throws {
    try await withTransferFixture(MemoryStorage(tellsChecksums: tellsChecksums), Store.Options(), body)
}

/// Runs `body` with a fixture whose store goes by this clock.
func withTransferFixture(at clock: TestClock, _ body: (TransferFixture) async throws -> Void) async throws {
    var options = Store.Options()
    options.now = { clock.now }
    try await withTransferFixture(MemoryStorage(), options, body)
}

/// Runs `body` with a fixture of this storage, whose store is closed and looked through afterwards.
func withTransferFixture(
    _ storage: MemoryStorage, _ options: Store.Options = Store.Options(),
    _ body: (TransferFixture) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let (store, app) = try TransferFixture.open(folder, options)
        let fixture = TransferFixture(folder: folder, store: store, app: app, storage: storage)
        do { try await body(fixture) } catch {
            try? store.close()
            throw error
        }
        try store.close()
        try expectSound(folder.appending(path: "store"))
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
        try await runner { $0.pauseForAnHour() }.run(untilFailureOf: uploads[0])
        return uploads[0]
    }
}

extension MemoryStorage {
    /// Interrupts the first sending of part 5, and answers the first listing of parts that there is no such upload.
    ///
    /// - Parameters:
    ///   - aborts: How many aborts the storage refuses.
    ///   - code: The error of a refused abort.
    func forgetForAMoment(refusing aborts: Int = .max, _ code: ObjectError.Code = .accessDenied) {
        let (cuts, lies, refusals) = (Countdown(1), Countdown(1), Countdown(aborts))
        onCall { call throws(ObjectError) in
            switch call {
            case .putPart(5) where cuts.take(): throw ObjectError(.interrupted, "cut")
            case .parts where lies.take(): throw ObjectError(.noSuchUpload, "there is none", status: 404)
            case .abort where refusals.take(): throw ObjectError(code, "not you")
            default: break
            }
        }
    }
}

extension RunOptions.Transfers {
    /// The runner tries a failed transfer again after an hour, which is longer than any test lasts.
    mutating func pauseForAnHour() {
        backoff = Backoff(first: .seconds(3_600), cap: .seconds(3_600))
        random = { 1 }
    }
}

extension TransferRunner {
    /// Runs the runner while `body` runs, then cancels it and waits for its end.
    func whileRunning(_ body: () async throws -> Void) async throws {
        let running = Task { try await run() }
        do { try await body() } catch {
            running.cancel()
            _ = await running.result
            throw error
        }
        running.cancel()
        try await running.value
    }

    /// Runs until something is so.
    func run(sourceLocation: SourceLocation = #_sourceLocation, until isSo: () throws -> Bool) async throws {
        try await whileRunning { try await eventually(fileID: sourceLocation.fileID, line: sourceLocation.line, isSo) }
    }

    /// Runs until an attempt at a transfer has failed.
    func run(untilFailureOf transfer: Transfer, sourceLocation: SourceLocation = #_sourceLocation) async throws {
        try await run(sourceLocation: sourceLocation, until: { try transfer.status().failure != nil })
    }
}
