import LarderFiles
import LarderRecords

/// Keeps streams at the newest state of one answer.
///
/// A commit that concerns the answer only marks the watcher; it reads again in a task of its own, once however often it
/// was marked meanwhile, and hands over what is different. A slow reader gets the newest state.
final class Watcher: Sendable {
    private struct Progress {
        var id: WatcherIndex.WatcherID?
        var streams: [UInt64: AsyncStream<WatchState>.Continuation] = [:]
        var lastStream: UInt64 = 0
        /// Streams that were not given a state yet.
        var newStreams: [UInt64] = []
        /// Without the response, which is large and its readers' own.
        var state = WatchState()
        /// The newest response, as long as a reader holds it.
        var response: WeakResponse?
        /// Of the newest response.
        var digest: UInt64?
        var isComplete = false
        /// Of the state that was delivered last.
        var delivered: WatchState.Mark?
        var fetch: Task<Void, Never>?
        /// Whether a fetch was begun that has not told its end.
        var isFetching = false
        /// Of the answer whose dependencies the index has.
        var footprint: Footprint?
        /// The fetch has ended, so, and the next read tells of it.
        var fetchEnd: Result<Void, LarderError>?
        var isEnded = false

        /// Gives all streams a state that is different from the last. Of an equal one only those streams hear that have
        /// none yet.
        mutating func deliver(_ state: WatchState, _ digest: UInt64?) {
            guard !isEnded else { return }
            var state = state
            let mark = state.mark(digest)
            let isSame = mark == delivered
            if isSame, let held = response?.response {
                state.response = held
            } else {
                response = state.response.map(WeakResponse.init)
            }
            let readers = isSame ? newStreams.compactMap { streams[$0] } : Array(streams.values)
            for reader in readers { reader.yield(state) }
            newStreams = []
            delivered = mark
            self.state = state
            self.state.response = nil
        }

        /// Delivers the newest state, changed, with the response that its readers hold.
        ///
        /// - Returns: False if they have let go of it; then nothing is delivered.
        mutating func deliverHeld(_ change: (inout WatchState) -> Void) -> Bool {
            let held = response?.response
            guard held != nil || digest == nil else { return false }
            var state = state
            state.response = held
            change(&state)
            deliver(state, held == nil ? nil : digest)
            return true
        }
    }

    private let core: PartitionCore
    private let operation: BoundOperation
    private let root: RecordCache.Root
    /// Brings the answer from the server into the cache; nil where nothing is fetched.
    private let fetch: (@Sendable () async throws(LarderError) -> Void)?
    /// Called between a read and its noting, for tests.
    private let afterReading: @Sendable () -> Void
    private let reading = MarkedReading()
    private let progress = Locked(Progress())

    init(
        _ core: PartitionCore, _ operation: BoundOperation, _ root: RecordCache.Root,
        afterReading: @escaping @Sendable () -> Void = {},
        fetch: (@Sendable () async throws(LarderError) -> Void)? = nil
    ) {
        self.fetch = fetch
        self.afterReading = afterReading
        self.core = core
        self.operation = operation
        self.root = root
    }

    /// Takes in a stream, which is given the state of the next read, and then whatever is different.
    ///
    /// - Returns: False if the watcher has ended.
    func add(_ continuation: AsyncStream<WatchState>.Continuation) -> Bool {
        let number = progress.withLock { progress -> UInt64? in
            guard !progress.isEnded else { return nil }
            progress.lastStream += 1
            progress.streams[progress.lastStream] = continuation
            progress.newStreams.append(progress.lastStream)
            return progress.lastStream
        }
        guard let number else { return false }
        continuation.onTermination = { _ in self.remove(number) }
        return true
    }

    private func remove(_ number: UInt64) {
        let isUsed = progress.withLock { progress in
            progress.streams[number] = nil
            // From here on none is taken in.
            if progress.streams.isEmpty { progress.isEnded = true }
            return !progress.isEnded
        }
        if !isUsed { end() }
    }

    /// Gives the newest state to streams that were added after the start.
    func readNow() { reading.readNow(read) }

    /// What to fetch at first.
    enum FirstFetch: Sendable { case nothing, whatIsMissing, everything }

    /// Reads at once, on the caller's thread, and fetches.
    func start(_ first: FirstFetch = .nothing) {
        let id = core.watchers.add { [weak self] commit in
            guard let self else { return }
            if commit == nil { self.end() } else { self.reading.mark(self.read) }
        }
        guard let id else { return end() }
        progress.withLock { progress in
            progress.id = id
            progress.state.isFetching = first == .everything
        }
        reading.run(read)
        let isComplete = progress.withLock { $0.isComplete }
        if first == .everything || first == .whatIsMissing && !isComplete { refetch() }
    }

    /// Fetches, unless a fetch is under way.
    func refetch() {
        guard let fetch else { return }
        let (mayBegin, isTold) = progress.withLock { progress in
            guard !progress.isEnded, !progress.isFetching else { return (false, false) }
            (progress.isFetching, progress.state.isFetching) = (true, true)
            return (true, progress.deliverHeld { _ in })
        }
        guard mayBegin else { return }
        // The reading that follows tells of it.
        if !isTold { reading.mark(read) }
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
        let (id, fetch, streams) = progress.withLock { progress in
            defer { (progress.isEnded, progress.streams) = (true, [:]) }
            return (progress.id, progress.fetch, Array(progress.streams.values))
        }
        core.watchers.shared.remove(self, operation, root)
        if let id { core.watchers.remove(id) }
        reading.end()
        fetch?.cancel()
        for stream in streams { stream.finish() }
    }

    /// The end of a fetch is told together with the fetched answer, which is read first.
    private func fetched(_ failure: LarderError?) {
        progress.withLock { progress in
            progress.fetchEnd = failure.map { .failure($0) } ?? .success(())
            progress.isFetching = false
        }
        reading.mark(read)
    }

    /// Reads once and delivers; something that was committed meanwhile asks for another read.
    ///
    /// - Returns: For how long to rest. Readers who take many streams wake together, and would keep writers waiting.
    private func read() -> Duration {
        guard let id = progress.withLock({ $0.id }) else { return .zero }
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
            deliver(answer, fetchEnd)
        } catch {
            // What it depends on is not known: any commit may be the one after which it can be read.
            progress.withLock { $0.footprint = nil }
            if error.code != .closed, !core.watchers.setAnything(of: id, readAt: moment) { reading.mark(read) }
            deliver(error, fetchEnd)
        }
        let count = progress.withLock { $0.streams.count }
        return count > Self.fewStreams ? Self.rest * count : .zero
    }

    private static let fewStreams = 16
    /// For each stream: some ten times of what it takes to wake its reader.
    private static let rest = Duration.microseconds(20)

    private func deliver(_ answer: CacheAnswer, _ fetchEnd: Result<Void, LarderError>?) {
        let response = answer.isDeleted ? nil : answer.response
        let digest = response?.digest
        // Inside the lock, so that states come in their order.
        progress.withLock { progress in
            var state = progress.state
            // Newer data has come by another way than the fetch that failed.
            if digest != progress.digest, response?.isComplete == true { state.setError(nil, ofRead: false) }
            state.response = response
            state.isDeleted = answer.isDeleted
            state.isOptimistic = answer.isOptimistic
            if state.isErrorOfRead { state.setError(nil, ofRead: false) }
            state.endFetch(fetchEnd, isFetching: progress.isFetching)
            (progress.digest, progress.isComplete) = (digest, response?.isComplete ?? false)
            progress.deliver(state, digest)
        }
    }

    private func deliver(_ error: RecordError, _ fetchEnd: Result<Void, LarderError>?) {
        progress.withLock { progress in
            let (isFetching, error) = (progress.isFetching, LarderError.parking(error))
            func change(_ state: inout WatchState) {
                state.endFetch(fetchEnd, isFetching: isFetching)
                state.setError(error, ofRead: true)
            }
            if progress.deliverHeld(change) { return }
            guard error.code != .suspended else {
                // It is read again when the store goes on. Until then a state without the response would be shown.
                if progress.fetchEnd == nil { progress.fetchEnd = fetchEnd }
                return
            }
            var state = progress.state
            change(&state)
            progress.deliver(state, nil)
        }
    }
}

/// The watchers that several streams may have in common: one reading is enough for equal operations.
final class SharedWatchers: Sendable {
    private struct Key: Hashable {
        let operation: ObjectIdentifier
        let root: RecordCache.Root

        init(_ operation: BoundOperation, _ root: RecordCache.Root) {
            (self.operation, self.root) = (ObjectIdentifier(operation), root)
        }
    }

    private let watchers = Locked<[Key: Watcher]>([:])

    /// Keeps a stream at the newest state of an answer, and reads the first at once.
    func watch(
        _ operation: BoundOperation, _ root: RecordCache.Root, _ core: PartitionCore,
        _ continuation: AsyncStream<WatchState>.Continuation
    ) {
        let key = Key(operation, root)
        let (watcher, isNew) = watchers.withLock { watchers in
            if let known = watchers[key], known.add(continuation) { return (known, false) }
            let new = Watcher(core, operation, root)
            _ = new.add(continuation)
            watchers[key] = new
            return (new, true)
        }
        if isNew { watcher.start() } else { watcher.readNow() }
    }

    /// Forgets a watcher that has ended.
    func remove(_ watcher: Watcher, _ operation: BoundOperation, _ root: RecordCache.Root) {
        let key = Key(operation, root)
        watchers.withLock { watchers in
            if watchers[key] === watcher { watchers[key] = nil }
        }
    }
}
