import LarderRecords
import Synchronization

/// Keeps one stream at the newest state of one answer.
///
/// A commit that concerns the answer only marks the watcher; it reads again in a task of its own, once however often it
/// was marked meanwhile, and hands over what is different. A slow reader gets the newest state.
final class Watcher: Sendable {
    private struct Progress {
        var id: WatcherIndex.WatcherID?
        var state = WatchState()
        var hasDelivered = false
        var fetch: Task<Void, Never>?
        /// Of the answer whose dependencies the index has.
        var footprint: Footprint?
        /// The fetch has ended, so, and the next read tells of it.
        var fetchEnd: Result<Void, LarderError>?
        var isEnded = false
    }

    private let core: PartitionCore
    private let operation: BoundOperation
    private let root: RecordCache.Root
    private let continuation: AsyncStream<WatchState>.Continuation
    /// Called between a read and its noting, for tests.
    private let afterReading: @Sendable () -> Void
    private let reading = MarkedReading()
    private let progress = Mutex(Progress())

    init(
        _ core: PartitionCore, _ operation: BoundOperation, _ root: RecordCache.Root,
        _ continuation: AsyncStream<WatchState>.Continuation, afterReading: @escaping @Sendable () -> Void = {}
    ) {
        self.afterReading = afterReading
        self.core = core
        self.operation = operation
        self.root = root
        self.continuation = continuation
    }

    /// Reads at once, on the caller's thread.
    ///
    /// - Parameters:
    ///   - fetch: Brings the answer from the server into the cache, if that is to be tried at first.
    ///   - unlessComplete: Whether to fetch only what the cache does not know.
    func start(fetch: (@Sendable () async throws(LarderError) -> Void)?, unlessComplete: Bool) {
        let id = core.watchers.add { [weak self] commit in
            guard let self else { return }
            if commit == nil { self.end() } else { self.reading.mark(self.read) }
        }
        guard let id else { return end() }
        progress.withLock { progress in
            progress.id = id
            progress.state.isFetching = fetch != nil && !unlessComplete
        }
        reading.run(read)
        guard let fetch else { return }
        let isComplete = progress.withLock { $0.state.complete != nil }
        guard !(unlessComplete && isComplete) else { return }
        if unlessComplete { deliver { $0.isFetching = true } }
        let task = Task { [weak self] in
            var failure: LarderError?
            do throws(LarderError) { try await fetch() } catch { failure = error }
            self?.fetched(failure)
        }
        let isEnded = progress.withLock { progress in
            progress.fetch = task
            return progress.isEnded
        }
        if isEnded { task.cancel() }
    }

    /// Ends the stream and whatever it still does.
    func end() {
        let (id, fetch) = progress.withLock { progress in
            defer { progress.isEnded = true }
            return (progress.id, progress.fetch)
        }
        if let id { core.watchers.remove(id) }
        reading.end()
        fetch?.cancel()
        continuation.finish()
    }

    /// The end of a fetch is told together with the fetched answer, which is read first.
    private func fetched(_ failure: LarderError?) {
        progress.withLock { $0.fetchEnd = failure.map { .failure($0) } ?? .success(()) }
        reading.mark(read)
    }

    /// Reads once and delivers; something that was committed meanwhile asks for another read.
    private func read() {
        guard let id = progress.withLock({ $0.id }) else { return }
        let fetchEnd = progress.withLock { progress in
            defer { progress.fetchEnd = nil }
            return progress.fetchEnd
        }
        let moment = core.watchers.published
        do throws(RecordError) {
            let answer = try core.cache.read(operation, from: root)
            afterReading()
            let footprint = answer.footprint
            let isKnown = progress.withLock { progress in
                defer { progress.footprint = footprint }
                return progress.footprint == footprint
            }
            // The index knows already, unless something was published since.
            let isNewest =
                isKnown
                ? core.watchers.published == moment
                : core.watchers.set(answer.dependencies, of: id, readAt: moment)
            if !isNewest { reading.mark(read) }
            deliver { state in
                state.response = answer.isDeleted ? nil : answer.response
                state.isDeleted = answer.isDeleted
                state.isOptimistic = answer.isOptimistic
                if state.isErrorOfRead { state.setError(nil, ofRead: false) }
                state.endFetch(fetchEnd)
            }
        } catch {
            // What it depends on is not known: any commit may be the one after which it can be read.
            progress.withLock { $0.footprint = nil }
            if error.code != .closed, !core.watchers.setAnything(of: id, readAt: moment) { reading.mark(read) }
            deliver { state in
                state.endFetch(fetchEnd)
                state.setError(LarderError.parking(error), ofRead: true)
            }
        }
    }

    private func deliver(_ change: (inout WatchState) -> Void) {
        progress.withLock { progress in
            guard !progress.isEnded else { return }
            var state = progress.state
            change(&state)
            guard !progress.hasDelivered || !state.isSame(as: progress.state) else { return }
            progress.state = state
            progress.hasDelivered = true
            // Inside the lock, so that states come in their order.
            continuation.yield(state)
        }
    }
}
