import LarderFiles
import LarderGraphQL
import LarderLMDB
import Synchronization

/// A normalized cache of records: what a server said, by object and field.
///
/// Reads are synchronous, take a snapshot and never wait for a writer. Writes are made one after the other on one
/// thread and durable when they return.
package final class RecordCache: Sendable {
    package let options: Options
    let folder: GenerationFolder
    private let current: Locked<Generation>
    let writer: RecordWriterQueue
    private let deadlines = TurnDeadlines()
    let layers: LayerStack
    private let isClosed = Atomic<Bool>(false)

    /// Opens the cache in a folder, which is made unless `options` says read-only.
    ///
    /// - Parameter stamp: Names what the cache belongs to; one with another stamp is not opened.
    package init(folder path: String, stamp: String, options: Options = Options()) throws(RecordError) {
        self.options = options
        folder = GenerationFolder(path: path, stamp: stamp, options: options)
        let first = try translated { [folder] in try folder.openCurrent() }
        current = Locked(first)
        layers = LayerStack(failed: options.layerFailed)
        writer = RecordWriterQueue(label: options.label, numbering: first.identity)
    }

    /// Closes cleanly, so that the next opening is quick. Reads and writes that are under way end first.
    package func close() throws(RecordError) {
        guard !isClosed.exchange(true, ordering: .sequentiallyConsistent) else { return }
        try translated { try current.withLock { $0 }.environment.close() }
    }

    /// Throws what every write would, so that a caller can ask before it fetches what it will write.
    ///
    /// - Throws: `.closed`, or `.notWritable` where the cache was opened to be read only.
    package func checkWritable() throws(RecordError) {
        guard !isClosed.load(ordering: .relaxed) else { throw Self.closed }
        guard !options.isReadOnly else {
            throw RecordError(.notWritable, "the record cache was opened to be read only; open it for writing")
        }
    }

    private static var closed: RecordError { RecordError(.closed, "the record cache was closed") }

    var generation: Generation { current.withLock { $0 } }

    // MARK: Reading

    /// Where an answer starts.
    package enum Root: Sendable {
        case query
        /// An object, by its cache key.
        case object(key: String)

        var key: String {
            switch self {
            case .query: CacheKey.queryRoot
            case .object(let key): key
            }
        }
    }

    /// Answers an operation from one snapshot and the optimistic layers over it.
    package func read(_ operation: BoundOperation, from root: Root = .query) throws(RecordError) -> CacheAnswer {
        try translated {
            // Before the snapshot: a layer that is gone by now is gone because what is read then knows of its mutation.
            if let layers = layers.current {
                return try withLayers(layers) { generation, snapshot in
                    try generation.answer(operation, from: root, snapshot)
                }
            }
            return try withSnapshot { generation, transaction in
                try generation.answer(operation, from: root, transaction)
            }
        }
    }

    /// Runs `body` with a snapshot of the current generation.
    @inline(__always)
    func withSnapshot<Result>(
        _ body: (Generation, borrowing ReadTransaction) throws -> Result
    ) throws -> Result {
        try takingSnapshot { generation, transaction in try body(generation, transaction) }
    }

    /// Runs `body` with a snapshot of the current generation, and makes it a present of it.
    func takingSnapshot<Result>(
        _ body: (Generation, consuming ReadTransaction) throws -> Result
    ) throws -> Result {
        while true {
            let generation = self.generation
            let transaction: ReadTransaction
            do throws(LMDBError) {
                transaction = try generation.environment.beginRead()
            } catch {
                // Superseded and closed by this process in between, or closed for good: `reopen` tells.
                guard error.code == .closed else { throw error }
                try reopen(after: generation)
                continue
            }
            if try generation.isCurrent(transaction) { return try body(generation, transaction) }
            try reopen(after: generation)
        }
    }

    /// Runs `body` with the current generation, and again with the next as long as it is superseded while `body` waits:
    /// others that compact or clear without pause may be quicker any number of times.
    ///
    /// - Parameters:
    ///   - purpose: What `body` does to the cache, for the error: "write to it".
    ///   - deadline: After which it is not run many more times.
    ///   - body: Gives nil if it finds the generation superseded. A reader may have found out sooner, and closed it.
    /// - Throws: `.busy` at the deadline.
    func inCurrentGeneration<Result>(
        to purpose: String, until deadline: ContinuousClock.Instant, _ body: (Generation) throws -> Result?
    ) throws -> Result {
        var retries = Retries(until: deadline)
        repeat {
            let generation = self.generation
            do {
                if let result = try body(generation) { return result }
            } catch let error as LMDBError where error.code == .closed {}
            try reopen(after: generation)
        } while retries.goOn()
        throw RecordError(.busy, "the record cache was superseded again and again on the way to \(purpose)")
    }

    /// Goes on with the generation that superseded this one.
    func reopen(after old: Generation) throws {
        guard !isClosed.load(ordering: .relaxed) else { throw Self.closed }
        try current.withLock { current in
            guard current === old else { return }
            current = try folder.openCurrent(above: old.number)
            if current.identity != old.identity { writer.entered(current) }
            // Reads under way end first. An error is of no use here: no caller opens that environment again.
            try? old.environment.close()
        }
        guard isClosed.load(ordering: .sequentiallyConsistent) else { return }
        // Closed meanwhile, when the old one was still current.
        try generation.environment.close()
    }

    // MARK: Writing

    /// Runs `work` on the writer's thread, and makes what it worked out durable.
    ///
    /// - Parameters:
    ///   - deadline: For the wait for other writers; the options' own where nil.
    ///   - steps: What is worked out from what `work`, and the steps before, have done to the transaction.
    ///   - synchronizing: Makes it survive power loss too. A failure to do so is thrown, and leaves it committed.
    func write(
        deadline: ContinuousClock.Instant?, synchronizing: Bool = false, then steps: [WriteWork] = [],
        _ work: @escaping WriteWork
    ) async throws(RecordError) -> Commit {
        let outcomes = try await write(deadline: deadline, synchronizing: synchronizing, [(work, steps)])
        guard let outcome = outcomes.first else { throw RecordError(.storage, "a write had no outcome") }
        return try outcome.get()
    }

    /// The same for several writes. One whose content fails does so alone; where one cannot be made for another reason,
    /// later writes are not made either.
    ///
    /// - Parameter turnDeadline: Until which to wait for this process's writer, where that is not `deadline`.
    func write(
        deadline: ContinuousClock.Instant?, turnDeadline: ContinuousClock.Instant? = nil, synchronizing: Bool,
        _ works: [(work: WriteWork, then: [WriteWork])]
    ) async throws(RecordError) -> [Result<Commit, RecordError>] {
        let deadline = deadline ?? .now + options.lockDeadline
        return try await takingTurn(until: turnDeadline ?? deadline) { turn in
            // Each is told by the writer's thread, in order.
            let outcomes = Locked<[Result<Commit, RecordError>]>([])
            let (count, chain) = (works.count, WriteChain())
            let jobs = works.map { (work, steps) in
                let begun: WriteWork = { (generation, transaction, changes) throws in
                    try turn.begin()
                    return try work(generation, transaction, changes)
                }
                return WriteJob(
                    deadline: deadline, synchronizes: synchronizing, steps: [begun] + steps, chain: chain,
                    completion: { outcome in
                        let all = outcomes.withLock { outcomes in
                            outcomes.append(outcome)
                            return outcomes
                        }
                        if all.count == count { turn.end(.success(all)) }
                    })
            }
            writer.enqueue(jobs, for: self)
        }
    }

    /// Waits until the writer's thread has answered.
    ///
    /// - Parameters:
    ///   - deadline: Until which the turn must have begun.
    ///   - enqueue: Hands the turn to the writer's thread.
    /// - Throws: `.busy` at the deadline.
    func takingTurn<Answer: Sendable>(
        until deadline: ContinuousClock.Instant, _ enqueue: (WriterTurn<Answer>) -> Void
    ) async throws(RecordError) -> Answer {
        var number: UInt64?
        let result = await withCheckedContinuation { continuation in
            let turn = WriterTurn<Answer>(continuation)
            number = deadlines.add(deadline) { turn.giveUp() }
            enqueue(turn)
        }
        if let number { deadlines.remove(number) }
        return try result.get()
    }

    /// Calls `observer` with everything that this process commits from now on, in order, on the writer's thread; and
    /// with what optimistic layers make different, which is no commit.
    ///
    /// - Parameter isListening: Whether the observer has listeners. What layers make different is worked out only
    ///   then; once there are listeners again, the observer is told that everything may be different.
    package func observe(
        while isListening: @escaping @Sendable () -> Bool = { true }, _ observer: @escaping @Sendable (Commit) -> Void
    ) {
        writer.observe(Observer(isListening: isListening, tell: observer))
    }
}

extension RecordCache.Root: Hashable {
    /// Keys are compared by their bytes.
    package static func == (left: RecordCache.Root, right: RecordCache.Root) -> Bool {
        switch (left, right) {
        case (.query, .query): true
        case (.object(let left), .object(let right)): left.hasSameBytes(as: right)
        default: false
        }
    }

    package func hash(into hasher: inout Hasher) {
        if case .object(let key) = self { hasher.combineBytes(of: key) }
    }
}
