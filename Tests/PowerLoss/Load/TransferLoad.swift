package import Foundation
package import Larder
import LarderTestSupport
import Synchronization

/// What a program does with its transfers, in several lives that each end with a clean close: uploads and downloads are
/// queued, carried out, left half-done, and gone on with.
///
/// What it was promised it marks at once:
///
/// ```
/// accepted ID upload|download KEY [NAME]    upload or download has returned; NAME is that of the file to be made
/// begun, part, completed, aborted, wrong    what the storage has done: see ObjectLedger
/// done ID                                   finished has returned
/// ```
package struct TransferLoad: Sendable {
    package static let partSize: Int64 = 1024
    /// Where downloads go, beside the store.
    package static let folderName = "files"
    /// What a file has that a download replaces.
    package static let old = Data("what was there".utf8)

    /// The store's.
    package let folder: URL
    /// Where the files are that are uploaded; nothing of it is recorded.
    package let sources: URL
    package let marks: Marks
    package let seed: UInt64
    package let lives: Int

    package init(folder: URL, sources: URL, marks: Marks, seed: UInt64, lives: Int) {
        (self.folder, self.sources, self.marks, self.seed, self.lives) = (folder, sources, marks, seed, lives)
    }

    // MARK: Objects

    /// The bytes of an object, by its key.
    package static func bytes(of key: String) -> [UInt8] {
        var random = SeededNumbers(seed: 1, key)
        return (0..<2500 + key.utf8.count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    package static func partCount(of key: String) -> Int {
        (bytes(of: key).count + Int(partSize) - 1) / Int(partSize)
    }

    /// The bytes of a part; none where there is no such part.
    package static func part(_ number: Int, of key: String) -> ArraySlice<UInt8> {
        bytes(of: key).dropFirst((number - 1) * Int(partSize)).prefix(Int(partSize))
    }

    /// Whether an object was at the storage before all began.
    package static func isThere(_ key: String) -> Bool { key.hasPrefix("there-") }

    // MARK: Lives

    package func run() async throws {
        let storage = ObjectLedger(losingBySeed: seed) { [marks] effect in marks(effect.words) }
        let files = folder.deletingLastPathComponent().appending(path: Self.folderName)
        try FileManager.default.createDirectory(at: files, withIntermediateDirectories: false)
        try synchronize(folder.deletingLastPathComponent())
        for life in 0..<lives {
            let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
            let app = try store.partition()
            var transfers = try app.transfers.all().filter { try $0.status().state != .done }
            transfers += try await queue(life, app, files)
            let waiting = transfers.map(follow)
            try await carry(app, storage, isCutShort: life < lives - 1)
            try store.close()
            for task in waiting { await task.value }
        }
    }

    /// Opens the store again that was left in the middle of a life, and carries out what is queued.
    ///
    /// - Parameter earlier: What was marked until then.
    package func recover(after earlier: [String]) async throws {
        let effects = earlier.compactMap { ObjectLedger.Effect(words: $0.split(separator: " ").map(String.init)) }
        let storage = ObjectLedger(after: effects) { [marks] effect in marks(effect.words) }
        let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
        let app = try store.partition()
        let transfers = try app.transfers.all()
        // Before anything is written.
        for transfer in transfers where try transfer.status().state == .done { marks("done", "\(transfer.id)") }
        let waiting = transfers.map(follow)
        try await carry(app, storage, isCutShort: false)
        for task in waiting { await task.value }
        try store.close()
        marks("closed")
    }

    private func queue(_ life: Int, _ app: Partition, _ files: URL) async throws -> [Transfer] {
        let source = sources.appending(path: "sent-\(life)")
        try Data(Self.bytes(of: "sent-\(life)")).write(to: source)
        let upload = try await app.transfers.upload(source, to: Self.location("sent-\(life)"))
        marks("accepted", "\(upload.id)", "upload", "sent-\(life)")
        var queued = [upload]
        for name in ["new-\(life)", "old-\(life)"] {
            let (key, file) = ("there-\(name)", files.appending(path: name))
            let isReplaced = name.hasPrefix("old")
            if isReplaced {
                try Self.old.write(to: file)
                try synchronize(file)
                try synchronize(files)
            }
            let download = try await app.transfers.download(
                Self.location(key), to: file, options: .init(replacesFile: isReplaced))
            marks("accepted", "\(download.id)", "download", key, name)
            queued.append(download)
        }
        return queued
    }

    /// Marks it when a transfer is done.
    private func follow(_ transfer: Transfer) -> Task<Void, Never> {
        Task { [marks] in
            if (try? await transfer.finished()) != nil { marks("done", "\(transfer.id)") }
        }
    }

    /// - Parameter isCutShort: Whether the runner is stopped after some parts.
    private func carry(_ app: Partition, _ storage: ObjectLedger, isCutShort: Bool) async throws {
        let parts = Mutex(0)
        let isEnough = AsyncStream<Void>.makeStream()
        let runner = TransferRunner(
            app, storage: storage,
            options: Self.options { step in
                guard isCutShort, step == .partNoted else { return }
                let count = parts.withLock { count in
                    count += 1
                    return count
                }
                if count == 5 { isEnough.continuation.finish() }
            })
        guard isCutShort else { return try await runner.drain() }
        let task = Task { try await runner.run() }
        for await _ in isEnough.stream {}
        task.cancel()
        try await task.value
    }

    package static func options(
        reached: @escaping @Sendable (TransferRunner.KillPoint) -> Void = { _ in }
    ) -> TransferRunner.Options {
        var options = TransferRunner.Options()
        options.multipartThreshold = 0
        options.partSize = partSize
        options.connectionsPerHost = 2
        options.maximumFaults = 1000
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
        options.reached = reached
        return options
    }

    private static func location(_ key: String) -> ObjectLocation { ObjectLocation(bucket: "media", key: key) }

    private func synchronize(_ file: URL) throws {
        let descriptor = open(file.path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw CocoaError(.fileReadUnknown) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw CocoaError(.fileWriteUnknown) }
    }
}
