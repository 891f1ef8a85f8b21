import Dispatch
import LarderLMDB
import Synchronization

/// Works out what a write changes, from the transaction in which it will be written.
///
/// The changes that it is given are empty. It returns them with the changes that it worked out.
typealias WriteWork = @Sendable (Generation, borrowing WriteTransaction, RecordChanges) throws -> RecordChanges

/// What a write did.
package struct Commit: Sendable {
    /// The generation whose numbers `changes` holds.
    package let generation: UInt64
    /// Empty where nothing was different.
    package let changes: ChangeSet
    package let position: ChangePosition
    /// What was known of the mutation already, where the write was made for one; then it changed nothing.
    package var earlier: AppliedEntry?
    /// Whether nothing was committed: what optimistic layers do to the answers is different. The position is the last
    /// commit's.
    package var isOfLayers = false
}

/// Who is told of commits.
struct Observer: Sendable {
    /// Whether it has listeners.
    let isListening: @Sendable () -> Bool
    let tell: @Sendable (Commit) -> Void
}

/// Writes whose order matters: where one could not be made, later ones are not made either.
final class WriteChain: Sendable {
    private let failure = Mutex<RecordError?>(nil)

    var isBroken: RecordError? { failure.withLock { $0 } }

    /// Takes note of a failure, unless it is that of what was to be written, which would fail at every further try.
    func noteFailure(_ error: RecordError) {
        guard !RecordError.Code.ofContent.contains(error.code) else { return }
        failure.withLock { $0 = $0 ?? error }
    }
}

extension RecordError.Code {
    /// The codes that concern the content, and not the cache: the same write would fail in the same way at every try.
    package static let ofContent: Set<RecordError.Code> = [
        .responseMalformed, .responseMismatch, .schemaMismatch, .tooLarge,
    ]
}

struct WriteJob: Sendable {
    let deadline: ContinuousClock.Instant
    /// Whether the commit must survive power loss, whatever the cache's durability.
    var synchronizes = false
    /// The steps of the write, in order. Each sees what the steps before it have done.
    let steps: [WriteWork]
    /// The jobs that it belongs with.
    var chain: WriteChain?
    let completion: @Sendable (Result<Commit, RecordError>) -> Void
}

/// Makes writes one after the other. Writes that wait together share one commit.
///
/// A commit costs a wait for the disk, whatever it holds; under load the wait is shared. Work that fails does so alone:
/// each has a transaction of its own inside the one that is committed.
final class RecordWriterQueue: Sendable {
    /// One block runs at a time, and each from begin to commit on one thread, as LMDB's write transactions must.
    private let queue: DispatchQueue
    private let waiting = Mutex<[WriteJob]>([])
    private let observers = Mutex<[Observer]>([])
    private let others = OtherProcesses()
    /// Memory that goes from commit to commit. Unsafe: used by blocks of `queue` alone, of which one runs at a time.
    private nonisolated(unsafe) let scratch = ByteBuffer()
    /// More than this is given back after a commit.
    private static let scratchLimit = 4 << 20
    /// Many layers take long to work out. Then it is done less often after commits, so that it takes half of the
    /// writer's time at most.
    private struct Telling {
        var due = ContinuousClock.now
        var isScheduled = false
    }

    private let telling = Mutex(Telling())
    private static let shortTelling = Duration.milliseconds(2)
    /// The numbering of the generation that the observers were told of last.
    private let toldNumbering: Mutex<UInt64>

    /// - Parameter numbering: Of the generation that the cache begins with.
    init(label: String, numbering: UInt64) {
        toldNumbering = Mutex(numbering)
        queue = DispatchQueue(label: "\(label).records.writer")
    }

    func observe(_ observer: Observer) { observers.withLock { $0.append(observer) } }

    func enqueue(_ jobs: [WriteJob], for cache: RecordCache) {
        waiting.withLock { $0 += jobs }
        queue.async {
            let jobs = self.waiting.withLock { waiting in
                defer { waiting = [] }
                return waiting
            }
            // An earlier block has taken all.
            if !jobs.isEmpty { self.run(jobs, cache) }
        }
    }

    /// Runs `body` between two commits, where no other write is made meanwhile.
    func perform(_ body: @escaping @Sendable () -> Void) { queue.async(execute: body) }

    private func run(_ jobs: [WriteJob], _ cache: RecordCache) {
        // Why a shared commit failed, each job then finds out for itself.
        if jobs.count > 1, let outcomes = try? commit(jobs, cache) {
            tellLayers(of: cache)
            for (job, outcome) in zip(jobs, outcomes) { job.completion(outcome) }
            return
        }
        for job in jobs {
            if let failure = job.chain?.isBroken {
                job.completion(.failure(failure))
                continue
            }
            do {
                let outcomes = try commit([job], cache)
                tellLayers(of: cache)
                for outcome in outcomes { job.completion(outcome) }
            } catch {
                let failure = RecordError.translated(error)
                job.chain?.noteFailure(failure)
                job.completion(.failure(failure))
            }
        }
    }

    /// Makes one commit of the jobs. Throws if nothing could be committed.
    private func commit(_ jobs: [WriteJob], _ cache: RecordCache) throws -> [Result<Commit, RecordError>] {
        let deadline = jobs.map(\.deadline).min() ?? .now
        return try cache.inCurrentGeneration(to: "write to it", until: deadline) { generation in
            let outcomes: [Result<RecordChanges, RecordError>]?
            do {
                outcomes = try write(jobs, generation, deadline)
            } catch let error as LMDBError where error.isWorthRepeating {
                outcomes = try write(jobs, generation, deadline)
            }
            return outcomes?.map { outcome in outcome.map { publish($0, generation) } }
        }
    }

    /// Nil if the generation is superseded.
    private func write(
        _ jobs: [WriteJob], _ generation: Generation, _ deadline: ContinuousClock.Instant
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
        for job in jobs {
            if jobs.count == 1 {
                outcomes.append(.success(try perform(job, generation, &transaction, state)))
                break
            }
            do {
                let changes = try transaction.nested { child in try perform(job, generation, &child, state) }
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
            if startsEpoch {
                generation.mayHaveLostCommits.store(false, ordering: .relaxed)
                generation.environment.withholdStamp(false)
            }
            for changes in changed { generation.names.learn(changes.newNames) }
        }
        return synchronized(outcomes, of: jobs, generation)
    }

    /// Makes what was committed survive power loss where a job asks for that. What changed nothing asks for it as well:
    /// it relies on a commit that came before.
    ///
    /// A failure is that of the jobs that asked: everything is committed, and must not be written again.
    private func synchronized(
        _ outcomes: [Result<RecordChanges, RecordError>], of jobs: [WriteJob], _ generation: Generation
    ) -> [Result<RecordChanges, RecordError>] {
        guard jobs.contains(where: \.synchronizes) else { return outcomes }
        do throws(LMDBError) {
            try generation.environment.synchronize()
            return outcomes
        } catch {
            let failure = RecordError.translated(error)
            return zip(jobs, outcomes).map { job, outcome in
                guard job.synchronizes, let changes = try? outcome.get() else { return outcome }
                publish(changes, generation)
                return .failure(failure)
            }
        }
    }

    private func perform(
        _ job: WriteJob, _ generation: Generation, _ transaction: inout WriteTransaction, _ state: GenerationState
    ) throws -> RecordChanges {
        defer { scratch.removeAll(keeping: Self.scratchLimit) }
        var changes = RecordChanges(state, scratch: scratch)
        for (index, step) in job.steps.enumerated() {
            if index == 0 {
                changes = try step(generation, transaction, changes)
                try changes.store(generation, &transaction)
            } else if changes.earlier == nil {
                var later = try step(generation, transaction, RecordChanges(changes.state, scratch: scratch))
                try later.store(generation, &transaction)
                changes.join(later)
            }
        }
        try changes.finish(generation.tables, &transaction)
        return changes
    }

    @discardableResult
    private func publish(_ changes: RecordChanges, _ generation: Generation) -> Commit {
        let commit = Commit(
            generation: generation.identity, changes: changes.changes, position: changes.state.position,
            earlier: changes.earlier)
        publish(commit)
        return commit
    }

    /// Tells the observers of a commit of this process. On the writer's thread, in the order of the commits.
    func publish(_ commit: Commit) {
        guard !commit.changes.isEmpty else { return }
        others.committed(commit)
        if commit.changes.isEverything {
            toldNumbering.withLock { $0 = commit.generation }
        } else {
            tellIfRenumbered(commit.generation)
        }
        tell(commit)
    }

    /// Tells the observers that numbers mean something else now, where another process has cleared the cache: what they
    /// know of records is of no use any more, and commits from now on would not reach them by it.
    func entered(_ generation: Generation) {
        queue.async { self.tellIfRenumbered(generation.identity) }
    }

    private func tellIfRenumbered(_ numbering: UInt64) {
        let isNew = toldNumbering.withLock { told in
            defer { told = numbering }
            return told != numbering
        }
        guard isNew else { return }
        tell(Commit(generation: numbering, changes: .everything, position: ChangePosition(epoch: 0, number: 0)))
    }

    /// Tells the observers if the layers do something else to the answers than when they were told last: the mutation
    /// of one has become known, or what they were laid over has changed. On the writer's thread.
    private func tellLayers(of cache: RecordCache) {
        guard isHeard else { return cache.layers.nobodyListens() }
        let now = ContinuousClock.now
        let (isDue, isScheduled) = telling.withLock { telling in
            guard telling.due > now else { return (true, false) }
            defer { telling.isScheduled = true }
            return (false, telling.isScheduled)
        }
        guard isDue else {
            if !isScheduled { tellLayersLater(of: cache) }
            return
        }
        if let commit = cache.layers.untold(of: cache) { tell(commit) }
        let time = ContinuousClock.now - now
        if time > Self.shortTelling { telling.withLock { $0.due = .now + time } }
    }

    private func tellLayersLater(of cache: RecordCache) {
        let wait = telling.withLock { ContinuousClock.now.duration(to: $0.due) }.components
        let nanoseconds = max(wait.seconds, 0) * 1_000_000_000 + wait.attoseconds / 1_000_000_000
        queue.asyncAfter(deadline: .now() + .nanoseconds(Int(nanoseconds))) { [weak cache] in
            self.telling.withLock { $0.isScheduled = false }
            if let cache { self.tellLayers(of: cache) }
        }
    }

    /// Tells the observers that other layers were set, on the writer's thread. What to tell is worked out at once, so
    /// that nothing reads the cache after this returns.
    func layersWereSet(in cache: RecordCache) {
        guard isHeard else { return cache.layers.nobodyListens() }
        guard let commit = cache.layers.untold(of: cache) else { return }
        queue.async { self.tell(commit) }
    }

    private var isHeard: Bool { observers.withLock { $0 }.contains { $0.isListening() } }

    private func tell(_ commit: Commit) {
        for observer in observers.withLock({ $0 }) { observer.tell(commit) }
    }

    /// Tells the observers what other processes have committed, between commits of this one.
    func notice(for cache: RecordCache, _ completion: @escaping @Sendable (Result<Void, RecordError>) -> Void) {
        perform {
            do throws(RecordError) {
                for commit in try self.others.look(cache) { self.tell(commit) }
                self.tellLayers(of: cache)
                completion(.success(()))
            } catch { completion(.failure(error)) }
        }
    }
}
