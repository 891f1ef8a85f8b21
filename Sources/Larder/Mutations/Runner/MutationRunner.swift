import Foundation
import LarderRecords
import Synchronization

/// Sends a partition's queued mutations, each lane in its order, and stores what the server answers.
///
/// Of all runners of a partition, in all processes, one works and the others stand by: it holds a lock of the kernel's
/// that is free as soon as it dies. What a dead one left in flight is sent again where the server can tell a repeat;
/// where it cannot, the mutation's check is asked, and without one it is set aside as `outcomeUnknown`.
///
/// ```swift
/// let runner = MutationRunner(app)
/// try await runner.run()              // until its task is cancelled, or a ServiceGroup shuts down
/// ```
public final class MutationRunner: Sendable {
    /// How mutations are sent.
    public struct Options: Sendable {
        /// How long one exchange with the server may take.
        public var timeout = Duration.seconds(30)
        /// How long to wait after a failure.
        package var backoff = Backoff()
        /// How many lanes are sent side by side.
        public var maximumLanes = 8
        /// After so many attempts of one run that ended in a fault of the server, in a conflict after which its
        /// resolver had it sent again, or in a question that its check or resolver did not answer, a mutation is set
        /// aside.
        public var maximumFaults = 20
        /// The query by whose answer the runner finds the server again after an answer that is no GraphQL response. A
        /// server that takes no query but its own, such as one of trusted documents, needs one of those here.
        public var probe = GraphQLOperation("{ __typename }")
        /// Headers of each request.
        public var headers: [GraphQLRequest.Header] = []
        /// Whether the network is there: as the system says.
        public var connectivity: any Connectivity = systemConnectivity()
        /// Functions that decide on conflicts, by the name that a mutation says. They may block: they run on none of
        /// Swift's own threads.
        public var resolvers: [String: @Sendable (MutationInQuestion) async throws -> ConflictResolution] = [:]
        /// Functions that tell whether a mutation took effect whose answer was lost, by the name that a mutation says.
        /// They may block as well.
        public var checks: [String: @Sendable (MutationInQuestion) async throws -> CheckedOutcome] = [:]
        /// How long a resolver or a check may take; one that takes longer has not answered.
        public var questionTimeout = Duration.seconds(30)
        /// A number from 0 to 1, by which pauses are spread; tests hold it.
        package var random: @Sendable () -> Double = { .random(in: 0...1) }

        /// Called after each step; for programs that are killed there.
        package var reached: @Sendable (KillPoint) -> Void = { _ in }

        /// Thirty seconds an exchange, eight lanes, no resolvers and no checks.
        public init() {}
    }

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

    static let lockSuffix = ".runner"

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
        var nextPruning = ContinuousClock.now + MutationRunner.pruningPause
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
    let progress = Mutex(Progress())
    /// The executor of the runner's tasks; a transport without an executor of its own runs here too.
    let executor = OutsideExecutor()

    /// - Parameters:
    ///   - partition: Whose mutations are sent, over its transport.
    ///   - options: How the queue is sent.
    public init(_ partition: Partition, options: Options = Options()) {
        core = partition.core
        transport = partition.transport
        self.options = options
        lifecycle = RunnerLifecycle(core, changeSignal: core.operationsStore.changeSignal, lockSuffix: Self.lockSuffix)
    }

    /// What it is doing now.
    public var state: RunnerState { lifecycle.state }

    /// Goes on after a user has signed in. A sign-in to the partition's `Session`, in any process, is noticed without
    /// this; call it where the program keeps its sign-ins elsewhere.
    public func resume() {
        progress.withLock { progress in
            progress.isSignedOut = false
            progress.resumptions += 1
        }
        core.operationsStore.changeSignal.notify()
    }
}
