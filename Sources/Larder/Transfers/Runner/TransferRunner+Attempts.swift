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
/// | a whole file is handed over | when; the executor knows the id | what the executor says of the id counts |
/// | a part has arrived | its number, size, ETag and checksum | it is not sent, or received, again |
/// | all was sent, and no answer came | until when the object may appear | later uploads of the key wait for so long |
/// | the object is made | - | the upload is gone, and the object has the ETag that its parts make: it is done |
/// | the file is in its place | - | it is the partial file, by its inode or its bytes: it is done |
/// | finish | done | nothing left to do |
///
/// An attempt reports its steps and how it ended. What follows is decided here, where the ends of all attempts are
/// known.
extension TransferRunner {
    /// Takes up a transfer that is pending, or clears away what one has left that was cancelled or has failed.
    func carryOut(_ id: UUID, _ context: TransferContext, owner: String) async throws {
        let table = context.table
        let begun = SuspendingClock.now
        guard let transfer = try await table.begin(id, owner: owner, now: core.now()) else {
            guard let found = try table.find(id) else { return }
            return try await clear(found, context)
        }
        guard let context = context.with(storages[transfer.storage]) else {
            return try await table.release(transfer.attempt)
        }
        noteBegun(transfer)
        options.reached(.begun)
        core.transfers.noteChanges(of: [id])
        let meter = core.transfers.meter(of: id, arrived: transfer.arrived)
        defer { core.transfers.forgetMeter(of: id) }
        let doubt = UploadDoubt()
        do {
            let object =
                switch transfer.kind {
                case .upload:
                    try await UploadAttempt(context: context, transfer: transfer, meter: meter, doubt: doubt).run()
                case .download: try await DownloadAttempt(context: context, transfer: transfer, meter: meter).run()
                }
            noteArrival(of: id)
            try await table.finish(
                transfer.attempt, etag: object.etag, version: object.version, crc32c: object.crc32c, now: core.now())
            options.reached(.finished)
            core.instruments?.noteTransfer(.init(transfer.kind), .now - begun, isDone: true)
            await endOutside(transfer, after: nil, table)
            forgetTroubles(of: id)
            core.operationsStore.changeSignal.notify()
            if transfer.kind == .download { try PartialFile.remove(id, in: core.folder, core.files) }
        } catch {
            core.instruments?.noteTransfer(.init(transfer.kind), .now - begun, isDone: false)
            if let time = doubt.time {
                try await table.noteDoubt(of: id, until: core.now().addingTimeInterval(time.seconds), now: core.now())
            }
            await endOutside(transfer, after: error, table)
            try await end(transfer, error, begun, context)
        }
    }

    /// Clears away what a transfer has left that was cancelled or has failed; tried again after a pause, and by the
    /// next runner, where that cannot be done.
    private func clear(_ transfer: StoredTransfer, _ context: TransferContext) async throws {
        guard [.cancelling, .failed].contains(transfer.state) else { return }
        // A file beside a download's destination is removed without the storage.
        guard let context = context.with(storages[transfer.storage]) ?? (transfer.kind == .download ? context : nil),
            await context.isCleared(transfer)
        else { return noteRemains(of: transfer.id) }
        forgetTroubles(of: transfer.id)
        // It may have been retried since.
        try await context.table.ifStillOurs { table in
            if transfer.state == .failed {
                try await table.forgetUpload(of: transfer.id)
            } else {
                try await table.cleared(transfer.id, now: core.now())
            }
        }
    }

    // MARK: Failures

    /// Makes the transition that a failure asks for.
    ///
    /// - Throws: What ends the runner.
    private func end(
        _ transfer: StoredTransfer, _ error: any Error, _ begun: SuspendingClock.Instant, _ context: TransferContext
    ) async throws {
        let error = TransferConsequence.root(of: error)
        let failure: TransferFailure
        let consequence: TransferConsequence
        switch error {
        case is CancellationError:
            // The next runner goes on with it, unless it is paused or cancelled.
            return try await context.table.ifStillOurs { try await $0.release(transfer.attempt) }
        case let error as OperationsError:
            // Another caller was quicker: the transfer was paused or cancelled.
            if [.wrongState, .notFound].contains(error.code) { return }
            throw error
        case let error as ObjectError:
            failure = TransferFailure(code: error.code.rawValue, message: error.told, time: core.now())
            consequence = TransferConsequence(of: error)
        case let error as LarderError:
            if error.code == .parked { throw error }
            failure = TransferFailure(code: error.code.rawValue, message: error.message, time: core.now())
            consequence = TransferConsequence(of: error)
        default:
            failure = TransferFailure(
                code: "transfer.invalid",
                message: "The attempt failed in a way that is not known; the log has the error",
                time: core.now())
            consequence = .fail
        }
        core.logger.debug(
            "an attempt of a transfer has failed",
            metadata: [
                "transfer": "\(transfer.id)", "error": "\(error)",
            ])
        try await context.table.ifStillOurs { table in
            switch consequence {
            case .retry(let isFault, let asked):
                guard let failures = countFailure(error, isFault: isFault, of: transfer.id) else {
                    return try await fail(transfer, failure, context)
                }
                var pause = options.pause(after: failures, asked: asked)
                if (error as? ObjectError)?.code == .throttled {
                    let host = context.storage.host(of: transfer.location)
                    context.connections.hold(host, for: asked, since: begun)
                    // The host's own pause has grown with all that was asked of it.
                    pause = context.connections.left(of: host) ?? pause
                }
                try await table.retryLater(
                    transfer.attempt, at: core.now().addingTimeInterval(pause.seconds), failure, now: core.now())
            case .refused:
                noteRefusal(by: transfer.storage)
                try await table.retryLater(transfer.attempt, at: nil, failure, now: core.now())
            case .fail: try await fail(transfer, failure, context)
            }
        }
    }

    /// Nothing of what has failed is left behind, where that can be reached.
    private func fail(
        _ transfer: StoredTransfer, _ failure: TransferFailure, _ context: TransferContext
    ) async throws(OperationsError) {
        forgetTroubles(of: transfer.id)
        if await context.isCleared(transfer) {
            try await context.table.note(transfer.attempt, [.restart])
        } else {
            noteRemains(of: transfer.id)
        }
        core.layers.remove(try await context.table.fail(transfer.attempt, failure, now: core.now()))
        core.operationsStore.changeSignal.notify()
    }
}

extension TransferTable {
    /// Makes a transition, unless another caller was quicker: the transfer was paused or cancelled.
    func ifStillOurs(_ body: (TransferTable) async throws -> Void) async throws {
        do { try await body(self) } catch let error as OperationsError
            where [.wrongState, .notFound].contains(error.code)
        {}
    }
}
