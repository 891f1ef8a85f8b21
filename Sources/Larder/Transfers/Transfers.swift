public import Foundation
import LarderOperations

/// A partition's files on their way to and from object storage.
///
/// Queued transfers survive restarts and the loss of power; a `TransferRunner` carries them out. Nothing has to be
/// attached again after a restart: `all()` has every transfer there is, and their handles are as good as the first
/// ones.
///
/// ```swift
/// let upload = try await app.transfers.upload(video, to: .init(bucket: "media", key: "v/1.mov"))
/// for await progress in upload.progress { show(progress) }
/// let outcome = try await upload.outcome(within: .seconds(600))
/// ```
public struct Transfers: Sendable {
    let core: PartitionCore

    /// Queues the upload of a file, which is read when it is sent: it must stay there, and as it is, until then.
    ///
    /// When this returns, the transfer is on disk.
    ///
    /// - Throws: `.sourceMissing`, `.sourceUnreadable`, `.sourceNotFile`; `.invalidTransfer`, also for metadata or a
    ///   content type of more than 2 KiB; `operations.duplicate`
    ///   where the id was used before; `.parked`; `operations.full`, `operations.busy` and others where it cannot be
    ///   stored.
    public func upload(
        _ file: URL, to location: ObjectLocation, options: UploadOptions = UploadOptions()
    ) async throws(LarderError) -> Transfer {
        let queued = try await upload([(file, location, options)])
        guard let transfer = queued.first else { throw .parked }
        return transfer
    }

    /// Queues many uploads, all of them or none, in one commit.
    ///
    /// - Throws: As for one.
    public func upload(
        _ uploads: [(file: URL, location: ObjectLocation, options: UploadOptions)]
    ) async throws(LarderError) -> [Transfer] {
        let now = core.now()
        var drafts: [TransferDraft] = []
        drafts.reserveCapacity(uploads.count)
        for ((file, location, options), id) in zip(uploads, UUID.ascending(uploads.count, at: now)) {
            try Self.check(location, sha256: options.sha256)
            try options.attributes.check()
            let path = try Self.path(of: file)
            drafts.append(
                TransferDraft(
                    id: options.id?.uuid ?? id, partition: core.name, kind: .upload, storage: location.storage,
                    bucket: location.bucket, key: location.key, region: location.region, path: path,
                    contentType: options.attributes.contentType,
                    metadata: try options.attributes.storedMetadata, priority: options.priority,
                    source: try SourceFile.identity(at: path, core.files), sha256: options.sha256, created: now,
                    expires: options.expires))
        }
        return try await queue(drafts)
    }

    /// Queues the download of an object to a file, which appears there when all of it has arrived.
    ///
    /// - Throws: `.destinationExists`, `.destinationUnusable`; otherwise as `upload`.
    public func download(
        _ location: ObjectLocation, to file: URL, options: DownloadOptions = DownloadOptions()
    ) async throws(LarderError) -> Transfer {
        try Self.check(location, sha256: options.sha256)
        try DestinationFile(file: file, replaces: options.replacesFile, core.files).check()
        let queued = try await queue([
            TransferDraft(
                id: options.id?.uuid, partition: core.name, kind: .download, storage: location.storage,
                bucket: location.bucket, key: location.key, region: location.region, path: try Self.path(of: file),
                replaces: options.replacesFile, priority: options.priority, sha256: options.sha256,
                created: core.now(), expires: options.expires)
        ])
        guard let transfer = queued.first else { throw .parked }
        return transfer
    }

    /// All transfers of the partition that are known, in the order in which they were queued. Of the transfers that are
    /// done or cancelled, the last thousand are kept.
    ///
    /// - Parameter states: Nil for any.
    public func all(in states: Set<TransferStatus.State>? = nil) throws(LarderError) -> [Transfer] {
        try list(in: states).map { Transfer(id: $0.id, core: core) }
    }

    /// What is known of each, at one moment. As `all`.
    public func list(in states: Set<TransferStatus.State>? = nil) throws(LarderError) -> [TransferStatus] {
        guard let database = try core.operationsStore.database(making: false) else { return [] }
        let stored = states.map { states in Set(TransferState.allCases.filter { states.contains(.init($0)) }) }
        do {
            return try database.transfers.list(in: core.name, states: stored).map(TransferStatus.init)
        } catch { throw LarderError(error) }
    }

    /// A transfer that was queued before, in this process or another; whether it is known, its status tells.
    public subscript(id: TransferID) -> Transfer { Transfer(id: id, core: core) }

    /// The status of each transfer that has changed, in this process or another, since the iteration began. Of
    /// a transfer that changes often, only the newest status is told. Ends when the partition is parked or the store
    /// closed.
    public var events: some AsyncSequence<TransferStatus, Never> & Sendable { TransferEvents(core: core) }

    private func queue(_ drafts: [TransferDraft]) async throws(LarderError) -> [Transfer] {
        try await core.requireAwake()
        let table = try core.operationsStore.database().transfers
        do { try await table.enqueue(drafts) } catch { throw LarderError(error) }
        core.transfers.noteChanges(of: drafts.map(\.id))
        core.followOthers()
        return drafts.map { Transfer(id: TransferID($0.id), core: core) }
    }

    private static func path(of file: URL) throws(LarderError) -> String {
        let path = file.path
        guard file.isFileURL, !path.isEmpty, !path.utf8.contains(0) else {
            throw LarderError(.invalidTransfer, "\(file) is no file's URL")
        }
        // Most are as they should be, and standardizing takes longer than all the rest of queueing.
        let (slash, dot) = (UInt8(ascii: "/"), UInt8(ascii: "."))
        var isStandard = path.utf8.first == slash
        var last: UInt8 = 0
        for byte in path.utf8 {
            if last == slash, byte == slash || byte == dot { isStandard = false }
            last = byte
        }
        return isStandard ? path : file.absoluteURL.standardizedFileURL.path
    }

    private static func check(_ location: ObjectLocation, sha256: [UInt8]?) throws(LarderError) {
        guard !location.bucket.isEmpty else { throw LarderError(.invalidTransfer, "The bucket has no name") }
        guard (1...1024).contains(location.key.utf8.count) else {
            throw LarderError(.invalidTransfer, "A key has 1 to 1,024 bytes, this has \(location.key.utf8.count)")
        }
        if let storage = location.storage, !(1...255).contains(storage.utf8.count) || storage.utf8.contains(0) {
            throw LarderError(.invalidTransfer, "A storage's name has 1 to 255 bytes, none of which is 0")
        }
        if let sha256, sha256.count != 32 {
            throw LarderError(.invalidTransfer, "A SHA-256 has 32 bytes, this has \(sha256.count)")
        }
    }
}

extension Partition {
    /// The files on their way to and from object storage.
    public var transfers: Transfers { Transfers(core: core) }
}
