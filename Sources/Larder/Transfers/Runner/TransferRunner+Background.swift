import Foundation
import LarderOperations
import Logging

/// What is carried outside of this program.
extension TransferRunner {
    /// Ends the transfers outside of this program, of all partitions, that are not to be carried out any more: they were
    /// paused, cancelled, given up or have expired while no attempt of this runner had them, or the program was killed
    /// between the note of an end and the executor's. Asks the executor only where the database has changed since the
    /// last time, or an end has failed.
    func endStrays(_ table: TransferTable) async throws {
        guard let background = options.background else { return }
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
        guard let background = options.background, transfer.storage == nil else { return }
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
