import Foundation
import LarderOperations
import Logging

/// Takes single transfers through their steps. What is on disk after each, and what a crash there leads to:
///
/// | step | on disk | after a crash |
/// | --- | --- | --- |
/// | begin | running, with its owner | pending again: `TransferTable.recover` |
/// | ask for an upload in parts | which of this key there were before | what was begun of it since is aborted |
/// | the upload has begun | its name | its parts are listed, and count where they are as they should be |
/// | a part has arrived | its number, size, ETag and checksum | it is not sent, or received, again |
/// | all was sent, and no answer came | until when the object may appear | later uploads of the key wait for so long |
/// | the object is made | - | the upload is gone, and the object has the ETag that its parts make: it is done |
/// | the file is in its place | - | it is the partial file, by its inode or its bytes: it is done |
/// | finish | done | nothing left to do |
struct TransferExecutor: Sendable {
    let runner: TransferRunner
    let table: TransferTable
    let owner: String
    let connections: Connections
    let pacer: Pacer

    init(runner: TransferRunner, table: TransferTable, owner: String) {
        self.runner = runner
        self.table = table
        self.owner = owner
        let options = runner.options
        connections = Connections(limit: options.connectionsPerHost) { options.pause(after: $0, asked: $1) }
        pacer = Pacer(bandwidth: runner.options.bandwidth)
    }

    var core: PartitionCore { runner.core }
    var storage: any ObjectTransport { runner.storage }
    var options: TransferRunner.Options { runner.options }
    var deadline: ContinuousClock.Instant { .now + options.timeout }

    /// Whether nothing is to be begun of an object now: its host is left alone, or an upload of the same key that was
    /// paused or cancelled is still under way.
    func isHeld(_ kind: TransferDraft.Kind, _ location: ObjectLocation) -> Bool {
        kind == .upload && runner.isUploading(to: location) || connections.left(of: storage.host(of: location)) != nil
    }

    /// Takes up a transfer that is pending, or clears away what one has left that was cancelled or has failed.
    func carry(_ id: UUID) async throws {
        let begun = ContinuousClock.now
        guard let transfer = try await table.begin(id, owner: owner, now: core.now()) else {
            guard let found = try table.find(id) else { return }
            return try await clear(found)
        }
        runner.noteBegun(transfer)
        options.reached(.begun)
        core.transfers.noteChanges(of: [id])
        let meter = core.transfers.meter(of: id, arrived: transfer.arrived)
        defer { core.transfers.forgetMeter(of: id) }
        let doubt = UploadDoubt()
        do {
            let object =
                switch transfer.kind {
                case .upload:
                    try await UploadAttempt(executor: self, transfer: transfer, meter: meter, doubt: doubt).run()
                case .download: try await DownloadAttempt(executor: self, transfer: transfer, meter: meter).run()
                }
            runner.noteArrival(of: id)
            try await table.finish(
                transfer.attempt, etag: object.etag, version: object.version, crc32c: object.crc32c, now: core.now())
            options.reached(.finished)
            runner.forgetTroubles(of: id)
            core.operationsStore.changeSignal.notify()
            if transfer.kind == .download { try PartialFile.remove(id, in: core.folder, core.files) }
        } catch {
            if let time = doubt.time {
                try await table.noteDoubt(of: id, until: core.now().addingTimeInterval(time.seconds), now: core.now())
            }
            try await end(transfer, error, begun)
        }
    }

    // MARK: Failures

    private enum Consequence {
        /// Tried again after a pause.
        case retry(isFault: Bool, after: Duration?)
        case refused
        case fail
    }

    /// Makes the transition that a failure asks for.
    ///
    /// - Throws: What ends the runner.
    private func end(_ transfer: StoredTransfer, _ error: any Error, _ begun: ContinuousClock.Instant) async throws {
        let error = Self.root(of: error)
        let failure: TransferFailure
        let consequence: Consequence
        switch error {
        case is CancellationError:
            // It goes on with the next who takes it up, unless it is paused or cancelled.
            return try await ifStillOurs { () throws(OperationsError) in try await table.release(transfer.attempt) }
        case let error as OperationsError:
            // Another caller was quicker: the transfer was paused or cancelled.
            if [.wrongState, .notFound].contains(error.code) { return }
            throw error
        case let error as ObjectError:
            failure = TransferFailure(code: error.code.rawValue, message: "\(error)", time: core.now())
            consequence = Self.consequence(of: error)
        case let error as LarderError:
            if error.code == .parked { throw error }
            failure = TransferFailure(code: error.code.rawValue, message: error.message, time: core.now())
            consequence = .fail
        default:
            failure = TransferFailure(code: "transfer.invalid", message: "\(error)", time: core.now())
            consequence = .fail
        }
        core.logger.debug(
            "an attempt of a transfer has failed",
            metadata: [
                "transfer": "\(transfer.id)", "error": "\(failure.message)",
            ])
        try await ifStillOurs { () throws(OperationsError) in
            switch consequence {
            case .retry(let isFault, let asked):
                guard let failures = runner.countFailure(error, isFault: isFault, of: transfer.id) else {
                    return try await fail(transfer, failure)
                }
                var pause = options.pause(after: failures, asked: asked)
                if (error as? ObjectError)?.code == .throttled {
                    let host = storage.host(of: transfer.location)
                    connections.hold(host, for: asked, since: begun)
                    // The host's own pause has grown with all that was asked of it.
                    pause = connections.left(of: host) ?? pause
                }
                try await table.retryLater(
                    transfer.attempt, at: core.now().addingTimeInterval(pause.seconds), failure, now: core.now())
            case .refused:
                runner.noteRefusal()
                try await table.retryLater(transfer.attempt, at: nil, failure, now: core.now())
            case .fail: try await fail(transfer, failure)
            }
        }
    }

    /// Makes a transition, unless another caller was quicker: the transfer was paused or cancelled.
    func ifStillOurs(_ body: () async throws(OperationsError) -> Void) async throws(OperationsError) {
        do throws(OperationsError) { try await body() } catch {
            if ![.wrongState, .notFound].contains(error.code) { throw error }
        }
    }

    /// What a closure of ours has thrown within an exchange is not the exchange's failure.
    private static func root(of error: any Error) -> any Error {
        guard let object = error as? ObjectError else { return error }
        switch object.code {
        case .cancelled: return CancellationError()
        case .local: return object.cause.map(root) ?? object
        default: return object
        }
    }

    /// Whether an exchange that has failed may go well in another at the same time.
    static func mayPass(_ error: any Error) -> Bool {
        guard let error = root(of: error) as? ObjectError else { return false }
        switch consequence(of: error) {
        // Whose credentials have ended since has been let in already.
        case .retry, .refused: return error.code != .noSuchUpload
        case .fail: return false
        }
    }

    private static func consequence(of error: ObjectError) -> Consequence {
        let asked = error.retryAfter
        return switch error.code {
        case .unreachable, .insecure, .notPrepared, .throttled: .retry(isFault: false, after: asked)
        case .expiredCredentials, .invalidCredentials: .refused
        case .timedOut, .interrupted, .serverFault, .checksum, .wrongLength, .unusableAnswer, .incomplete,
            .noSuchUpload:
            .retry(isFault: true, after: asked)
        default: .fail
        }
    }

    /// Nothing of what has failed is left behind, where that can be reached.
    private func fail(_ transfer: StoredTransfer, _ failure: TransferFailure) async throws(OperationsError) {
        runner.forgetTroubles(of: transfer.id)
        if await isCleared(transfer) {
            try await table.note(transfer.attempt, [.restart])
        } else {
            runner.noteRemains(of: transfer.id)
        }
        core.layers.remove(try await table.fail(transfer.attempt, failure, now: core.now()))
        core.operationsStore.changeSignal.notify()
    }
}
