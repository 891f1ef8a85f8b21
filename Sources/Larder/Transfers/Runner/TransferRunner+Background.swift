import Foundation
import LarderOperations
import Logging

extension TransferRunner.Options {
    /// `background`, which may ask the storage before it takes a file over, with calls that end.
    var boundedBackground: (any BackgroundTransport)? {
        background.map { BoundedBackground(transport: $0, timeout: timeout + idle) }
    }
}

/// An executor whose calls end in time, and when the calling task is cancelled.
private struct BoundedBackground: BackgroundTransport {
    let transport: any BackgroundTransport
    /// For each call that waits for no exchange with a file.
    let timeout: Duration

    func known() async throws(ObjectError) -> Set<UUID> {
        try await answer(within: timeout) { try await $0.known() }
    }

    func upload(
        _ file: URL, as id: UUID, to location: ObjectLocation, _ attributes: ObjectAttributes, crc32c: UInt32
    ) async throws(ObjectError) {
        try await answer(within: timeout) {
            try await $0.upload(file, as: id, to: location, attributes, crc32c: crc32c)
        }
    }

    func download(
        _ location: ObjectLocation, etag: String, as id: UUID, to file: URL
    ) async throws(ObjectError) {
        try await answer(within: timeout) { try await $0.download(location, etag: etag, as: id, to: file) }
    }

    func outcome(of id: UUID) async throws(ObjectError) -> StoredObject? {
        try await answer(within: nil) { try await $0.outcome(of: id) }
    }

    func end(_ id: UUID) async throws(ObjectError) { try await answer(within: timeout) { try await $0.end(id) } }

    private func answer<Answer: Sendable>(
        within time: Duration?, _ call: @escaping @Sendable (any BackgroundTransport) async throws -> Answer
    ) async throws(ObjectError) -> Answer {
        do { return try await answering(within: time) { [transport] in try await call(transport) } } catch {
            if let error = error as? ObjectError { throw error }
            guard !Task.isCancelled else { throw ObjectError(.cancelled, "The wait for the executor was cancelled") }
            throw ObjectError(.timedOut, "The executor did not answer; the next attempt asks it again", cause: error)
        }
    }
}

/// What is carried outside of this program.
extension TransferRunner {
    /// Ends the transfers outside of this program, of all partitions, that are not to be carried out any more: they were
    /// paused, cancelled, given up or have expired while no attempt of this runner had them, or the program was killed
    /// between the note of an end and the executor's. Asks the executor only where the database has changed since the
    /// last time, or an end has failed.
    func endStrays(_ table: TransferTable) async throws {
        guard let background = options.boundedBackground else { return }
        let version = try core.operationsStore.database().contentVersion()
        guard progress.withLock({ $0.strayVersion != version }) else { return }
        let known: [UUID]
        do { known = try await Array(background.known()) } catch { return warn(of: error) }
        var hasFailed = false
        for id in known {
            do {
                let transfer = try table.find(id)
                if let transfer, [.pending, .running].contains(transfer.state) { continue }
                try await background.end(id)
                try await table.noteHandedBack(id)
                guard let transfer, transfer.state != .done else { continue }
                // The storage may have had all of it.
                let now = core.now()
                try await table.noteDoubt(of: id, until: now.addingTimeInterval(options.idle.seconds), now: now)
            } catch {
                warn(of: error)
                hasFailed = true
            }
        }
        if !hasFailed { progress.withLock { $0.strayVersion = version } }
    }

    /// Ends a transfer outside of this program whose attempt has ended. Where only the runner ends, the executor goes on
    /// for the next runner.
    ///
    /// - Parameter error: How the attempt ended; nil where that is noted as done.
    func endOutside(_ transfer: StoredTransfer, after error: (any Error)?, _ table: TransferTable) async {
        guard let background = options.boundedBackground, transfer.storage == nil else { return }
        switch error.map(TransferConsequence.root) {
        case is CancellationError, is OperationsError:
            guard let state = try? table.find(transfer.id)?.state, state != .running else { return }
        case let error as LarderError where error.code == .parked:
            guard let state = try? table.find(transfer.id)?.state, ![.pending, .running].contains(state) else { return }
        default: break
        }
        // The calling task may have been cancelled.
        let end = Task {
            try await background.end(transfer.id)
            try await table.noteHandedBack(transfer.id)
        }
        do { try await end.value } catch { warn(of: error) }
    }

    private func warn(of error: any Error) {
        core.logger.warning(
            "transfers outside of this program cannot be ended; the next runner tries again",
            metadata: ["error": "\(error)"])
    }
}
