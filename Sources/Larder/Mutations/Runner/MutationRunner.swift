import Foundation
import LarderFiles
import LarderOperations
import LarderRecords

/// Sends a partition's queued mutations, each lane in its order, and stores what the server answers.
///
/// Of all runners of a partition, in all processes, one works and the others stand by: it holds a lock of the kernel's
/// that is free as soon as it dies. What a dead one left in flight is sent again where the server can tell a repeat;
/// where it cannot, the mutation's check is asked, and without one it is set aside as `outcomeUnknown`.
package final class MutationRunner: Sendable {
    package typealias Options = RunOptions.Mutations

    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: String, Sendable, CaseIterable {
        /// The attempt has begun; nothing is sent yet.
        case begun
        /// The server has answered; the runner has not noted it yet.
        case received
        /// The answer is noted.
        case acknowledged
        /// The result is in the cache.
        case stored
        /// The outcome is noted, and the mutation is gone.
        case settled
    }

    static let lockSuffix = OperationsDatabase.runnerLockSuffix

    struct Progress {
        var isSignedOut = false
        /// How often a user has signed in since.
        var resumptions = 0
        /// For how long the server is left alone.
        var pause = ServerPause()
        /// Whether something answered last that may not be the GraphQL server.
        var isServerInDoubt = false
        /// How many ask for it at this moment.
        var searches = 0
        /// Whether the last that asked has found none.
        var isServerMissing = false
        /// How often the server was looked for and not found.
        var failedSearches = 0
        /// When to forget old outcomes and keys again; the first time is at the beginning.
        var nextPruning = SuspendingClock.now + MutationRunner.pruningPause
        var busyLanes: Set<String> = []
        /// The last that became busy.
        var lastLane: String?
        /// How many attempts of a mutation have ended in a fault of the server.
        var faults: [UUID: Int] = [:]
        /// Mutations that were refused by a status, or could not be sent, where the server was found thereafter.
        var refused: Set<UUID> = []
    }

    let core: PartitionCore
    let transport: (any GraphQLTransport)?
    let options: Options
    let lifecycle: RunnerLifecycle
    let progress = Locked(Progress())
    /// The executor of the runner's tasks; a transport without an executor of its own runs here too.
    let executor = OutsideExecutor()

    /// - Parameters:
    ///   - partition: Whose mutations are sent, over its transport.
    ///   - options: How the queue is sent.
    package init(_ partition: Partition, options: Options = Options()) {
        core = partition.core
        transport = partition.transport
        self.options = options
        lifecycle = RunnerLifecycle(core, changeSignal: core.operationsStore.changeSignal, lockSuffix: Self.lockSuffix)
        lifecycle.setResumption { [weak self] in self?.resume() }
    }

    /// What it is doing now.
    package var state: RunnerState { lifecycle.state }

    /// Goes on after a user has signed in. A sign-in to the partition's `Session`, in any process, is noticed without
    /// this; call it where the program keeps its sign-ins elsewhere.
    package func resume() {
        progress.withLock { progress in
            progress.isSignedOut = false
            progress.resumptions += 1
        }
        core.operationsStore.changeSignal.notify()
    }
}
