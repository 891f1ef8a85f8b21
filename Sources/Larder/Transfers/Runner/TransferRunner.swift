import Foundation
import LarderFiles
import LarderOperations

/// Carries out a partition's transfers: several side by side, each in parts where it is large.
///
/// Of all runners of a partition, in all processes, one works and the others stand by: it holds a lock of the kernel's
/// that is free as soon as it dies. What a dead one left goes on where it was: an upload with the parts that the
/// storage lists, a download with the ranges that are in its partial file and have their checksums.
///
/// What fails and may go better is tried again after a pause that grows; what will not go better on its own is failed,
/// with the reason, and nothing of it is left at the storage or in the store's folder.
package final class TransferRunner: Sendable {
    package typealias Options = RunOptions.Transfers

    static let lockSuffix = ".transfers"

    /// What has gone wrong with a transfer.
    fileprivate struct Troubles {
        /// In a row, with nothing that arrived between.
        var failures = 0
        /// Failures among them that are the server's or the connection's.
        var faults = 0
        /// How often it has begun anew because the storage had forgotten it, whatever has arrived since.
        var restarts = 0
        /// How often what it has left behind could not be cleared away, and when that is tried again.
        var leavings = 0
        var clearAgain: SuspendingClock.Instant?
    }

    struct Progress {
        /// How often hosts had asked to be left alone, and the storages that did not take the credentials.
        struct Holds: Equatable {
            var count = 0
            var refused: Set<String?> = []
        }

        /// Transfers under way, and the ones among them that are cleared away.
        var busy: Set<UUID> = []
        var clearing: Set<UUID> = []
        /// The content of the database at which the uploads outside of this program were looked through last.
        var strayVersion: OperationsDatabase.ContentVersion?
        /// What carries them out.
        var tasks: [UUID: Task<Void, Never>] = [:]
        /// Transfers among them that are noted as running.
        var begun: [UUID: (kind: TransferDraft.Kind, location: ObjectLocation)] = [:]
        fileprivate var troubles: [UUID: Troubles] = [:]
        /// How many have ended, well or not.
        var ended = 0
        /// What was left alone at the last look.
        var holds = Holds()
        /// Since when there is nothing to carry out.
        var restSince: SuspendingClock.Instant?
        /// The storages that did not take the credentials: how often in a row, and until when nothing is begun there.
        var refusals: [String?: (count: Int, until: SuspendingClock.Instant)] = [:]

        /// Whether it was tried in vain to clear away what a transfer has left.
        func wasTried(_ transfer: UUID) -> Bool { troubles[transfer]?.clearAgain != nil }
        func mayClear(_ transfer: UUID) -> Bool { troubles[transfer]?.clearAgain.map { $0 <= .now } ?? true }
    }

    let core: PartitionCore
    /// By name.
    let storages: [String?: any ObjectTransport]
    let options: Options
    let lifecycle: RunnerLifecycle
    let progress = Locked(Progress())

    /// - Parameters:
    ///   - partition: Whose transfers are carried out.
    ///   - storage: The way to where the objects are whose location names no storage; nil where there are none.
    ///   - named: The ways to others, by the names that `ObjectLocation.storage` has. A transfer whose storage is not
    ///     among these waits, and says so.
    ///   - options: How the files are transferred.
    package init(
        _ partition: Partition, storage: (any ObjectTransport)?, named: [String: any ObjectTransport] = [:],
        options: Options = Options()
    ) {
        core = partition.core
        var storages: [String?: any ObjectTransport] = [:]
        for (name, storage) in named { storages[name] = storage }
        storages[.none] = storage
        self.storages = storages
        self.options = options
        lifecycle = RunnerLifecycle(core, changeSignal: core.transfers.changeSignal, lockSuffix: Self.lockSuffix)
        lifecycle.setResumption { [weak self] in self?.resume() }
    }

    /// What it is doing now.
    package var state: RunnerState { lifecycle.state }

    /// Goes on at once after a user has signed in. A sign-in to the partition's `Session`, in any process, is noticed
    /// without this; call it where the program keeps its sign-ins elsewhere.
    package func resume() {
        progress.withLock { $0.refusals = [:] }
        core.transfers.changeSignal.notify()
    }

    // MARK: What attempts have shown

    func noteBegun(_ transfer: StoredTransfer) {
        progress.withLock { $0.begun[transfer.id] = (transfer.kind, transfer.location) }
    }

    /// Whether an upload to a place is under way.
    func isUploading(to location: ObjectLocation) -> Bool {
        progress.withLock { progress in
            progress.begun.values.contains { $0.kind == .upload && $0.location.isSamePlace(as: location) }
        }
    }

    /// - Parameter isFault: Whether it is the server's or the connection's.
    /// - Returns: How many failures there were in a row; nil where these were too many faults.
    func countFailure(_ error: any Error, isFault: Bool, of transfer: UUID) -> Int? {
        progress.withLock { progress in
            var troubles = progress.troubles[transfer] ?? Troubles()
            defer { progress.troubles[transfer] = troubles }
            troubles.failures += 1
            guard isFault else { return troubles.failures }
            troubles.faults += 1
            if (error as? ObjectError)?.code == .noSuchUpload { troubles.restarts += 1 }
            return max(troubles.faults, troubles.restarts) < options.maximumFaults ? troubles.failures : nil
        }
    }

    /// Something has arrived.
    func noteArrival(of transfer: UUID) {
        progress.withLock { progress in
            progress.troubles[transfer]?.failures = 0
            progress.troubles[transfer]?.faults = 0
            if let begun = progress.begun[transfer] { progress.refusals[begun.location.storage]?.count = 0 }
        }
    }

    /// The transfer has ended: a retry begins to count anew.
    func forgetTroubles(of transfer: UUID) { progress.withLock { _ = $0.troubles.removeValue(forKey: transfer) } }

    /// What a transfer has left behind could not be cleared away: not at once again.
    func noteRemains(of transfer: UUID) {
        progress.withLock { progress in
            var troubles = progress.troubles[transfer] ?? Troubles()
            troubles.leavings += 1
            troubles.clearAgain = .now + options.pause(after: troubles.leavings)
            progress.troubles[transfer] = troubles
        }
    }

    /// A storage did not take the credentials. Exchanges under way that get the same answer count once.
    func noteRefusal(by storage: String?) {
        progress.withLock { progress in
            let old = progress.refusals[storage]
            if let old, old.until > .now { return }
            let count = (old?.count ?? 0) + 1
            progress.refusals[storage] = (count, .now + options.backoff.pause(after: count, fraction: 1))
        }
    }
}
