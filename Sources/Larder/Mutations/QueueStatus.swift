import LarderFiles
import LarderOperations

/// What is queued in a partition, and how it stands.
public struct QueueStatus: Sendable {
    /// The unsettled mutations: how many are in each state, by lane.
    public var lanes: [MutationLane: [MutationStatus.State: Int]]
    /// What was set aside since the status before, in its order. In the first status, everything that is set aside, by
    /// whatever process and before whatever restart.
    public var newlySetAside: [MutationID]
    /// What the runner of this process does; `standingBy` where another process has the work, `stopped` where the
    /// program runs none.
    public var runner: RunnerState
    /// Why the queue could not be read; the counts are then the last that were.
    public var error: LarderError?

    /// How many mutations of all lanes are in a state.
    public func count(_ state: MutationStatus.State) -> Int { lanes.values.reduce(0) { $0 + ($1[state] ?? 0) } }

    /// How many mutations are pending or in flight: the server may not have them yet.
    public var unsentCount: Int { count(.pending) + count(.inFlight) }
}

/// The status of a partition's queue: now, and whenever it changes, in whatever process.
///
/// After each commit, of whatever process, the iterator reads O(unsettled mutations), ten times a second at most.
struct QueueStates: AsyncSequence, Sendable {
    let core: PartitionCore

    /// Begins with the status of now.
    func makeAsyncIterator() -> Iterator { Iterator(core: core) }

    /// One reader's place.
    struct Iterator: AsyncIteratorProtocol {
        private let core: PartitionCore
        private var last: QueueStatus?
        private var known: Set<SetAside> = []
        /// What `last` was read from; nil where that was nothing, or failed.
        private var version: OperationsDatabase.ContentVersion?
        private var isOver = false

        private static let pause = Duration.milliseconds(100)

        init(core: PartitionCore) {
            self.core = core
            core.followOthers()
        }

        /// The next status that differs from the last; nil when there will be none.
        mutating func next() async -> QueueStatus? {
            if last != nil { await CancellableTimer.wait(until: .now + Self.pause) }
            while !Task.isCancelled {
                _ = await core.operationsStore.suspension.sitOut()
                let count = core.operationsStore.changeSignal.count
                guard !core.isParked else { return nil }
                if let status = changed() { return status }
                guard !isOver else { return nil }
                await core.operationsStore.changeSignal.wait(past: count, for: core.operationsStore.longestWait)
            }
            return nil
        }

        private mutating func changed() -> QueueStatus? {
            var status = QueueStatus(
                lanes: last?.lanes ?? [:], newlySetAside: [], runner: core.runners.state(of: MutationRunner.lockSuffix))
            do throws(LarderError) {
                if let (lanes, deadLetters) = try core.queuedLanes(unless: &version) {
                    status.lanes = lanes
                    status.newlySetAside = deadLetters.filter { !known.contains($0) }.map { MutationID($0.id) }
                    known = Set(deadLetters)
                }
            } catch {
                guard error.code != .parked else {
                    isOver = true
                    return nil
                }
                // Just now; the next look waits for its end.
                if error.code == .suspended { return nil }
                status.error = error
            }
            let isSame =
                last.map {
                    $0.lanes == status.lanes && $0.runner == status.runner && $0.error?.code == status.error?.code
                } ?? false
            guard !isSame || !status.newlySetAside.isEmpty else { return nil }
            last = status
            return status
        }
    }
}

extension PartitionCore {
    /// - Parameter version: What was read last; becomes what is read now.
    /// - Returns: Nil where nothing was committed since.
    fileprivate func queuedLanes(
        unless version: inout OperationsDatabase.ContentVersion?
    ) throws(LarderError) -> (lanes: [MutationLane: [MutationStatus.State: Int]], deadLetters: [SetAside])? {
        let last = version
        version = nil
        guard let database = try operationsStore.database(making: false) else { return ([:], []) }
        do throws(OperationsError) {
            // Before the lanes are read: a commit between the two is read once more.
            let now = try database.contentVersion()
            guard now != last else {
                version = now
                return nil
            }
            let (lanes, deadLetters) = try database.mutations.laneCounts(in: name)
            var counted: [MutationLane: [MutationStatus.State: Int]] = [:]
            for (lane, counts) in lanes {
                for (state, count) in counts { counted[MutationLane(lane), default: [:]][.init(state)] = count }
            }
            version = now
            return (counted, deadLetters)
        } catch { throw LarderError(error) }
    }
}

extension Partition {
    /// What is queued: now, and whenever that changes. It is what a banner shows ("3 changes wait for the network"),
    /// and how a program learns of mutations that were set aside. A slow reader gets the newest status only; there are ten
    /// a second at most. The sequence ends when the partition is parked or the store closed.
    ///
    /// ```swift
    /// for await queue in app.queue {
    ///     banner.text = queue.unsentCount > 0 ? "\(queue.unsentCount) changes wait" : nil
    ///     for id in queue.newlySetAside { try ask(app.mutation(id).status()) }
    /// }
    /// ```
    public var queue: some AsyncSequence<QueueStatus, Never> & Sendable { QueueStates(core: core) }
}
