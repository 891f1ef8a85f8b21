import Dispatch
import LarderFiles
import LarderLMDB

/// Makes writes one after the other. Writes that wait together share one commit.
///
/// A commit costs a wait for the disk, whatever it holds; under load the wait is shared. A commit takes the writes that
/// came while the one before it was made, and waits for no others. A part that fails does so alone: then all are written
/// anew, each in a transaction of its own inside the one that is committed. Large writes share none, because LMDB keeps
/// in memory all pages that a commit changes.
final class WriteQueue: Sendable {
    /// One block runs at a time, and each from begin to commit on one thread, as LMDB's write transactions must.
    private let thread: DispatchQueue
    private let generations: Generations
    private let observers: CommitObservers
    private let layers: LayerPublisher
    private let idle: IdleStamp
    private let deadlines = TurnDeadlines()
    private let committed: (@Sendable (Duration) -> Void)?
    /// Whose watchers are told of commits.
    private let watchedFolder: String?
    private let waiting = Locked<[PendingWrite]>([])
    /// Memory that goes from commit to commit. Safe: blocks of `thread` alone use it, of which one runs at a time.
    private nonisolated(unsafe) let scratch = ByteBuffer()
    /// More than this is given back after a commit.
    private static let scratchLimit = 4 << 20

    init(
        on thread: DispatchQueue, _ generations: Generations, telling observers: CommitObservers,
        _ layers: LayerPublisher, stampingAfter delay: Duration,
        timing committed: (@Sendable (Duration) -> Void)?, watched folder: String?
    ) {
        self.committed = committed
        watchedFolder = folder
        idle = IdleStamp(on: thread, generations, after: delay)
        self.thread = thread
        self.generations = generations
        self.observers = observers
        self.layers = layers
    }

    // MARK: Waiting for a turn

    /// Writes the parts and makes them durable.
    ///
    /// - Parameters:
    ///   - parts: The steps of each, as `PendingWrite.parts`.
    ///   - synchronizing: Makes them survive power loss too. A failure to do so is thrown, and leaves them committed.
    ///   - deadline: For the wait for other processes' writers.
    ///   - turnDeadline: For the wait for this process's, where that is another.
    /// - Returns: The outcome of each part.
    func write(
        _ parts: [[WriteStep]], synchronizing: Bool = false, deadline: SuspendingClock.Instant,
        turnDeadline: SuspendingClock.Instant? = nil
    ) async throws(RecordError) -> [Result<Commit, RecordError>] {
        try await takingTurn(until: turnDeadline ?? deadline) { turn in
            let write = PendingWrite(parts: parts, synchronizes: synchronizing, deadline: deadline, turn: turn)
            waiting.withLock { $0.append(write) }
            thread.async { self.makeWaiting() }
        }
    }

    /// How many writes wait for a commit to be begun.
    var waitingCount: Int { waiting.withLock { $0.count } }

    /// Runs `body` between two commits, where no other write of this process is made meanwhile.
    ///
    /// - Throws: `.busy` where its turn has not come at the deadline.
    func betweenWrites<Answer: Sendable>(
        until deadline: SuspendingClock.Instant, _ body: @escaping @Sendable () throws -> Answer
    ) async throws(RecordError) -> Answer {
        try await takingTurn(until: deadline) { turn in
            thread.async {
                do throws(RecordError) {
                    try turn.begin()
                    turn.end(.success(try translated(body)))
                } catch { turn.end(.failure(error)) }
            }
        }
    }

    private func takingTurn<Answer: Sendable>(
        until deadline: SuspendingClock.Instant, _ enqueue: (WriterTurn<Answer>) -> Void
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

    // MARK: On the writer's thread

    /// A part of a write that waits, and the write.
    private typealias Part = (steps: [WriteStep], write: PendingWrite)

    /// As many pages as all writes of one commit together may change, at worst: 16 MiB of memory, and 64 MiB where a page
    /// has 16 KiB. One write may change more.
    private static let sharedPages = 4_096

    /// Makes the writes that wait, in one commit if that can be. What is too much for it has a later block.
    private func makeWaiting() {
        let writes = waiting.withLock { waiting in
            var pages = 0
            let count = waiting.firstIndex { write in
                let isFirst = pages == 0
                pages += write.pages
                return !isFirst && pages > Self.sharedPages
            }
            let taken = Array(waiting.prefix(count ?? waiting.count))
            waiting.removeFirst(taken.count)
            return taken
        }
        let parts: [Part] = writes.flatMap { write in write.parts.map { (steps: $0, write: write) } }
        // An earlier block may have taken all. Why a shared commit failed, each part then finds out for itself.
        if parts.count > 1, var outcomes = ((try? commit(parts)) ?? (try? commit(parts, isolated: true)))?[...] {
            for write in writes {
                write.turn.end(.success(Array(outcomes.prefix(write.parts.count))))
                outcomes = outcomes.dropFirst(write.parts.count)
            }
        } else {
            for write in writes { write.turn.end(.success(separately(write))) }
        }
    }

    /// Makes a commit of each part.
    private func separately(_ write: PendingWrite) -> [Result<Commit, RecordError>] {
        var chain = WriteChain()
        return write.parts.flatMap { steps -> [Result<Commit, RecordError>] in
            if let failure = chain.isBroken { return [.failure(failure)] }
            do { return try commit([(steps, write)]) } catch {
                let failure = RecordError.translated(error)
                chain.noteFailure(failure)
                return [.failure(failure)]
            }
        }
    }

    /// Makes one commit of the parts, and tells the observers of it. Throws if nothing could be committed.
    ///
    /// - Parameter isolated: Whether a part may fail alone. That costs each part a copy of every page that it shares with
    ///   others.
    private func commit(_ parts: [Part], isolated: Bool = false) throws -> [Result<Commit, RecordError>] {
        let start = committed.map { _ in SuspendingClock.now }
        let deadline = parts.map(\.write.deadline).min() ?? .now
        let notice = FolderNotice(watchedFolder)
        let (generation, outcomes) = try generations.retrying(to: "write to it", until: deadline) { generation in
            try generation.environment.repeating {
                try write(parts, isolated: isolated, generation, deadline).map { (generation, $0) }
            }
        }
        // What changed nothing asks for it as well: it relies on a commit that came before.
        let failure = parts.contains { $0.write.synchronizes } ? synchronize(generation) : nil
        let commits = outcomes.map { outcome in outcome.map { Commit($0, generation) } }
        for case .success(let commit) in commits { observers.publish(commit) }
        layers.tell()
        notice.tell()
        idle.noteWrite()
        if let start { committed?(.now - start) }
        guard let failure else { return commits }
        // Everything is committed, and must not be written again.
        return zip(parts, commits).map { part, commit -> Result<Commit, RecordError> in
            part.write.synchronizes ? commit.flatMap { _ in .failure(failure) } : commit
        }
    }

    /// Makes what was committed survive power loss, or says why not.
    private func synchronize(_ generation: Generation) -> RecordError? {
        do throws(LMDBError) {
            try generation.environment.synchronize()
            return nil
        } catch { return RecordError.translated(error) }
    }

    /// Writes the parts in one transaction. Nil if the generation is superseded.
    private func write(
        _ parts: [Part], isolated: Bool, _ generation: Generation, _ deadline: SuspendingClock.Instant
    ) throws -> [Result<RecordChanges, RecordError>]? {
        var transaction = try generation.environment.beginWrite(deadline: deadline)
        var state = try GenerationState.stored(transaction, generation.tables)
        guard !state.isSuperseded else { return nil }
        let startsEpoch = generation.mayHaveLostCommits.load(ordering: .relaxed)
        if startsEpoch {
            state.startEpoch()
            try transaction.clear(generation.tables.changes)
        }
        var outcomes: [Result<RecordChanges, RecordError>] = []
        for part in parts {
            guard isolated else {
                let changes = try write(part, generation, &transaction, state)
                state = changes.state
                outcomes.append(.success(changes))
                continue
            }
            do {
                let changes = try transaction.nested { child in try write(part, generation, &child, state) }
                state = changes.state
                outcomes.append(.success(changes))
            } catch {
                let failure = RecordError.translated(error)
                // The next would fail as well, and the whole may yet fit without this one.
                if failure.code == .full { throw failure }
                outcomes.append(.failure(failure))
            }
        }
        // What changes nothing costs no commit.
        let changed = outcomes.compactMap { try? $0.get() }.filter { !$0.isEmpty }
        if !changed.isEmpty {
            try transaction.commit()
            if startsEpoch { generation.hasBegunEpoch() }
            for changes in changed { generation.names.learn(changes.newNames) }
        }
        return outcomes
    }

    /// Makes the commit by which an epoch begins where one is due, so that a clean close can be stamped. On the writer's
    /// thread.
    func beginEpochIfDue(until deadline: SuspendingClock.Instant) throws {
        try generations.retrying(to: "begin an epoch", until: deadline) { generation -> Void? in
            guard generation.mayHaveLostCommits.load(ordering: .relaxed) else { return () }
            var transaction = try generation.environment.beginWrite(deadline: deadline)
            var state = try GenerationState.stored(transaction, generation.tables)
            guard !state.isSuperseded else { return nil }
            state.startEpoch()
            try transaction.clear(generation.tables.changes)
            try state.store(&transaction, generation.tables)
            try transaction.commit()
            generation.hasBegunEpoch()
            return ()
        }
    }

    /// Runs the steps of a part, each on what the steps before it have written.
    private func write(
        _ part: Part, _ generation: Generation, _ transaction: inout WriteTransaction, _ state: GenerationState
    ) throws -> RecordChanges {
        try part.write.turn.begin()
        defer { unsafe scratch.removeAll(keeping: Self.scratchLimit) }
        var all: RecordChanges?
        for step in part.steps where all?.earlier == nil {
            let empty = unsafe RecordChanges(all?.state ?? state, scratch: scratch)
            var changes = try step.run(generation, transaction, empty, after: all?.changes ?? ChangeSet())
            try changes.store(generation, &transaction)
            if all == nil { all = changes } else { all?.join(changes) }
        }
        var changes = unsafe all ?? RecordChanges(state, scratch: scratch)
        try changes.finish(generation.tables, &transaction)
        return changes
    }
}

extension Commit {
    init(_ changes: RecordChanges, _ generation: Generation) {
        self.init(
            generation: generation.identity, changes: changes.changes, position: changes.state.position,
            earlier: changes.earlier)
    }
}

/// Parts whose order matters: where one could not be made, later ones are not made either.
struct WriteChain {
    private(set) var isBroken: RecordError?

    /// Takes note of a failure, unless it is that of what was to be written, which would fail at every further try.
    mutating func noteFailure(_ error: RecordError) {
        if isBroken == nil, !RecordError.Code.ofContent.contains(error.code) { isBroken = error }
    }
}

extension RecordError.Code {
    /// The codes that concern the content, and not the cache: the same write would fail in the same way at every try.
    package static let ofContent: Set<RecordError.Code> = [
        .responseMalformed, .responseMismatch, .schemaMismatch, .tooLarge,
    ]
}
