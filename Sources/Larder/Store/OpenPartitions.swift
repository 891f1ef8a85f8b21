import Foundation
import LarderFiles
import LarderOperations
import LarderRecords
import Logging

/// The partitions of a store that were opened in this process, of which at most one is not parked.
///
/// A partition that was left can be used until the store is closed: work that is under way in it ends there. Of those
/// that were left, the caches of the last few stay open; the others are closed, and open again when work needs them.
final class OpenPartitions: Sendable {
    private struct State {
        var open: [String: Partition] = [:]
        /// The parked partitions whose caches are open as far as is known, the one parked first in front.
        var awake: [String] = []
        /// As far as this process knows; nil until an environment was chosen.
        var current: CurrentPartition?
        var listeners: [UUID: AsyncStream<PartitionIdentity?>.Continuation] = [:]
        var following: Task<Void, Never>?
        /// Whether following is to begin again when the store is resumed.
        var followsAgain = false
        /// There was no database to look at. Once opened, it does not tell of changes made before.
        var hasMissed = false
        var isClosed = false
    }

    private let state = Locked(State())
    private let operationsStore: OperationsStore
    private let logger: Logger
    private let openWatch: OpenWatch
    private let lookedAtOthers: @Sendable () -> Void

    /// Watches a store's folder; nil where the system does not.
    typealias OpenWatch = @Sendable (_ folder: String, _ changed: @escaping @Sendable () -> Void) -> CommitWatch?

    /// - Parameter lookedAtOthers: Called after each look at what other processes have committed.
    init(
        operationsStore: OperationsStore, logger: Logger,
        openWatch: @escaping OpenWatch = { CommitWatch($0, $1) },
        lookedAtOthers: @escaping @Sendable () -> Void = {}
    ) {
        self.operationsStore = operationsStore
        self.logger = logger
        self.openWatch = openWatch
        self.lookedAtOthers = lookedAtOthers
    }

    deinit { state.withLock { $0.following?.cancel() } }

    /// The partition of this name, which `open` opens if none has yet.
    ///
    /// - Throws: `.parked` where the store was closed; what `open` throws.
    func partition(_ name: String, open: () throws(LarderError) -> Partition) throws(LarderError) -> Partition {
        let result = state.withLock { state -> Result<Partition, LarderError> in
            guard !state.isClosed else { return .failure(.parked) }
            if let open = state.open[name] { return .success(open) }
            do throws(LarderError) {
                let partition = try open()
                state.open[name] = partition
                return .success(partition)
            } catch { return .failure(error) }
        }
        return try result.get()
    }

    // MARK: The current one

    /// Parks all but the current partition, as the database says that it is.
    ///
    /// - Throws: Where the database cannot be read, or what the current partition shows cannot.
    func lookForCurrent() throws(LarderError) {
        guard let database = try operationsStore.database(making: false) else {
            return state.withLock { $0.hasMissed = true }
        }
        let result = state.withLock { state -> Result<Void, LarderError> in
            do throws(LarderError) {
                // Read under the lock, where no other thread publishes, so that the newest is published last.
                let current: CurrentPartition?
                do { current = try database.environments.current() } catch { throw LarderError(translating: error) }
                guard let current else { return .success(()) }
                let isNews = state.current != current
                state.current = current
                for (name, partition) in state.open where name != current.partition?.name {
                    guard !partition.core.isParked else { continue }
                    partition.core.park()
                    state.awake.append(name)
                }
                state.awake.removeAll { $0 == current.partition?.name }
                rest(&state)
                // Told even if it cannot be shown: it will not be news again.
                if isNews { for listener in state.listeners.values { listener.yield(current.identity) } }
                if let name = current.partition?.name { try state.open[name]?.core.unpark() }
                return .success(())
            } catch { return .failure(error) }
        }
        try result.get()
    }

    /// Caches of parked partitions that stay open: a switch back finds them as they were.
    private static let awakeCaches = 4

    private func rest(_ state: inout State) {
        while state.awake.count > Self.awakeCaches {
            let name = state.awake.removeFirst()
            do throws(RecordError) { try state.open[name]?.core.cache.rest() } catch {
                // It was closed all the same, and the next opening looks at all of the file.
                logger.warning(
                    "a cache was not closed cleanly", metadata: ["partition": "\(name)", "error": "\(error)"])
            }
        }
    }

    /// The current partition now and whenever it is another, until the store is closed.
    func currents() -> AsyncStream<PartitionIdentity?> {
        AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let id = UUID()
            continuation.onTermination = { [weak self] _ in
                self?.state.withLock { _ = $0.listeners.removeValue(forKey: id) }
            }
            let isClosed = state.withLock { state in
                if let current = state.current { continuation.yield(current.identity) }
                if !state.isClosed { state.listeners[id] = continuation }
                return state.isClosed
            }
            if isClosed { continuation.finish() }
        }
    }

    // MARK: Other processes

    /// After each look, so that commits which come together are one.
    private static let pause = Duration.milliseconds(80)
    /// After a look that has failed.
    private static let pauseAfterFailure = Duration.seconds(1)

    /// Shows from now on what other processes queue, no more what they have carried out, and where they have switched.
    ///
    /// It looks after each commit, of whatever process. What a process did not tell of is noticed at the next look, a
    /// minute later at most: on Apple's systems where it was killed just then, elsewhere where it had no descriptor left.
    func followOthers() {
        state.withLock { state in
            guard state.following == nil, !state.isClosed else { return }
            guard !operationsStore.suspension.isAsked else { return state.followsAgain = true }
            let commits = operationsStore.commitSignal
            let watch = openWatch(operationsStore.folder.path, commits.notify)
            state.following = Task { [weak self, longestWait = operationsStore.longestWait] in
                var look = Look()
                while !Task.isCancelled {
                    // Both before the look, so that no commit falls between it and the wait.
                    let count = commits.count
                    watch?.arm()
                    guard await self?.look(&look, at: count) == true else { break }
                    do { try await Task.sleep(for: Self.pause) } catch { break }
                    // Where the system does not tell of commits, it looks again and again.
                    let longest = watch == nil ? Duration.zero : longestWait
                    await commits.wait(past: count, for: look.hasFailed ? Self.pauseAfterFailure : longest)
                }
                await watch?.close()
            }
        }
    }

    /// What is left of a look that has failed.
    private struct Look {
        /// What goes wrong is told once when it begins, and once when it has ended.
        var failing: String?
        /// Until it could be done: the database tells of a change once.
        var mustReload = false
        /// Up to which commit a look has told of everything.
        var count: UInt64?

        var hasFailed: Bool { failing != nil || mustReload }
    }

    /// - Parameter count: How many commits there were before the look, as far as this process was told of them.
    /// - Returns: False where there is nothing more to look for.
    private func look(_ look: inout Look, at count: UInt64) async -> Bool {
        defer { lookedAtOthers() }
        do {
            // A store whose queue was never used has a cache all the same.
            if let database = try operationsStore.database(making: false) {
                if try database.hasChanged() { look.mustReload = true }
                if takeMissed() { look.mustReload = true }
                if look.mustReload {
                    try lookForCurrent()
                    for core in unparked() {
                        try core.layers.reload(database.mutations)
                        core.session.noticeChanges()
                        try core.transfers.noteOthers(core)
                    }
                    (look.mustReload, look.count) = (false, nil)
                }
            }
            // What this process has committed may be what a runner rests for, too.
            if look.count != count {
                operationsStore.changeSignal.notify()
                for core in unparked() { core.transfers.changeSignal.notify() }
                look.count = count
            }
            for core in unparked() { try await core.cache.noticeOtherProcesses() }
            if look.failing != nil { logger.notice("what other processes queue can be read again") }
            look.failing = nil
        } catch is CancellationError { return false } catch {
            let error = LarderError(translating: error)
            // A partition may have been closed by itself.
            if error.code == .parked { return !isClosed }
            guard look.failing != "\(error)" else { return true }
            look.failing = "\(error)"
            logger.warning("what other processes queue cannot be read", metadata: ["error": "\(error)"])
        }
        return true
    }

    /// Looks for nothing more of other processes, until `followAgain`; returns when the look that is under way has ended.
    func endFollowing() async {
        let following = state.withLock { state in
            defer { state.following = nil }
            if state.following != nil { state.followsAgain = true }
            state.following?.cancel()
            return state.following
        }
        await following?.value
    }

    func followAgain() {
        let isDue = state.withLock { state in
            defer { state.followsAgain = false }
            return state.followsAgain
        }
        if isDue { followOthers() }
    }

    /// The partitions that are open, parked ones among them.
    func all() -> [Partition] { state.withLock { Array($0.open.values) } }

    /// Takes a partition out, to be closed; nil where it is not open.
    func remove(_ name: String) -> Partition? { state.withLock { $0.open.removeValue(forKey: name) } }

    private var isClosed: Bool { state.withLock { $0.isClosed } }

    private func takeMissed() -> Bool {
        state.withLock { state in
            defer { state.hasMissed = false }
            return state.hasMissed
        }
    }

    private func unparked() -> [PartitionCore] {
        state.withLock { $0.open.values.map(\.core).filter { !$0.isParked } }
    }

    /// Takes all partitions out, to be closed, and opens no others.
    func close() -> [Partition] {
        let (open, listeners) = state.withLock { state in
            state.following?.cancel()
            defer { state = State(isClosed: true) }
            return (Array(state.open.values), Array(state.listeners.values))
        }
        for listener in listeners { listener.finish() }
        return open
    }
}

extension CurrentPartition {
    fileprivate var identity: PartitionIdentity? { partition.map(PartitionIdentity.init) }
}
