import Dispatch
import GRDB
import LarderFiles

/// Makes writes one after the other. Writes that wait together share one commit.
///
/// A commit costs a wait for the disk, whatever it holds; under load the wait is shared. A write that comes while a
/// commit is made waits for the next one; a write that comes while the writes of a commit are carried out goes with
/// them. A write that fails does not fail the others: they are made again, each in a savepoint. All callers are told
/// after the commit, not before.
final class Writer: Sendable {
    struct Job: Sendable {
        /// Made again where the transaction has to be.
        let work: @Sendable (Database) throws -> Void
        let completion: @Sendable (Result<Void, OperationsError>) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var isClosed = false
        /// Whether a block is scheduled that takes what is waiting.
        var isScheduled = false
        /// Whether that block sleeps until more jobs come, and must be woken.
        var isAsleep = false
        /// How many jobs wait soon, if the callers that shared the last commit come again.
        var expected = 0
        var batchDelay = Writer.batchDelay
        /// How often in a row they did not come, and how many commits are still to be made without waiting for them.
        var missedBatches = 0
        var skippedDelays = 0
        var commitCount = 0
        /// How many transactions are still to be begun before it is looked again whether the log has room.
        var hasRoomFor = 0

        mutating func takeWaiting() -> [Job] {
            defer { waiting = [] }
            return waiting
        }
    }

    /// How long a commit waits for the callers that shared the last one: for half of what that took, within these
    /// bounds. A job that comes too late waits for a whole commit.
    private static let batchDelay = Duration.microseconds(60)
    private static let maximumBatchDelay = Duration.milliseconds(2)
    private static let maximumMissedBatches = 6
    /// How long the thread that makes commits spins for the next job before it sleeps: waking it takes about as long.
    private static let spinDuration = DispatchTimeInterval.microseconds(60)
    /// So many are enough for a commit, where more come all the time.
    private static let mostJobs = 1_000
    /// So often the log is not looked at once it is long: it is short again only where it was emptied.
    private static let looklessCount = 16

    private let pool: DatabasePool
    private let log: SyncedLog
    private let isReadOnly: Bool
    private let state = Locked(State())
    private let alarm = DispatchSemaphore(value: 0)
    /// Where commits are made for callers that must not wait for the disk themselves.
    private let queue = DispatchQueue(label: "larder.writer", qos: .userInitiated)
    /// The callers that make commits on their own threads.
    private let callers = DispatchGroup()

    init(pool: DatabasePool, log: SyncedLog, isReadOnly: Bool) {
        self.pool = pool
        self.log = log
        self.isReadOnly = isReadOnly
    }

    var commitCount: Int { state.withLock { $0.commitCount } }

    /// Refuses whatever comes from now on, and waits for what has come before.
    func close() {
        state.withLock { $0.isClosed = true }
        queue.sync {}
        callers.wait()
    }

    /// - Parameter isBlocking: Whether the commit may be made on the caller's thread, with what others want written.
    func perform<Value: Sendable>(
        isBlocking: Bool, _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(OperationsError) -> Value {
        let result = await withCheckedContinuation { continuation in
            let value = Box<Value>()
            let job = Job(
                work: { db in value.set(try body(db)) },
                completion: { outcome in
                    continuation.resume(
                        returning: outcome.flatMap {
                            value.take().map(Result.success)
                                ?? .failure(OperationsError(.storage, "A write had no result"))
                        })
                })
            enqueue(job, isBlocking: isBlocking)
        }
        return try result.get()
    }

    private func enqueue(_ job: Job, isBlocking: Bool) {
        if isReadOnly {
            return job.completion(.failure(.readOnly))
        }
        let (isOpen, isFirst, mustWake) = state.withLock { state in
            guard !state.isClosed else { return (false, false, false) }
            state.waiting.append(job)
            defer { (state.isScheduled, state.isAsleep) = (true, false) }
            // At the same moment, so that a later `close` waits for it.
            if !state.isScheduled {
                if isBlocking { callers.enter() } else { queue.async { self.serve() } }
            }
            return (true, !state.isScheduled, state.isAsleep)
        }
        guard isOpen else { return job.completion(.failure(.closed)) }
        if mustWake { alarm.signal() }
        if isFirst, isBlocking {
            defer { callers.leave() }
            pool.writeWithoutTransaction { run($0) }
        }
    }

    /// Makes commits until no more jobs come, and lets others to the connection between them.
    private func serve() {
        repeat {
            pool.writeWithoutTransaction { db in
                var round = Round(jobs: state.withLock { $0.takeWaiting() }, isServed: true)
                run(&round, db)
            }
        } while lookOut(until: .now() + Self.spinDuration) || takeNoMore()
    }

    /// Makes commits of what waits, until no job waits for this block.
    private func run(_ db: Database) {
        var round = Round()
        repeat {
            round = Round(jobs: state.withLock { $0.takeWaiting() })
            run(&round, db)
        } while round.isAnyLeft ?? takeNoMore()
    }

    /// The content of one commit.
    private struct Round {
        var jobs: [Job] = []
        /// Whether this block also serves the jobs that come too late for this commit.
        var isServed = false
        /// Nil while jobs are added; then, whether other jobs wait for which this block must make the next commit.
        var isAnyLeft: Bool?
        /// When the expected jobs are given up.
        var deadline: DispatchTime?
    }

    /// Makes one commit of what waits, and of what comes while that is being written down.
    private func run(_ round: inout Round, _ db: Database) {
        do {
            let outcomes = try commit(&round, db)
            // Before any caller is told: one that comes again then is among the expected.
            state.withLock { $0.expected = $0.waiting.count + outcomes.count }
            for (job, outcome) in zip(round.jobs, outcomes) { job.completion(outcome) }
        } catch {
            fail(round.jobs, with: OperationsError.translated(error), db)
        }
    }

    /// The jobs that have come meanwhile; waits a little for the expected ones. Nil where the commit is to be made:
    /// jobs that come from now on wait for the next.
    private func more(_ round: inout Round) -> [Job]? {
        let count = round.jobs.count
        while count < Self.mostJobs {
            let (jobs, batchDelay) = state.withLock { state -> ([Job], Duration?) in
                if !state.waiting.isEmpty { return (state.takeWaiting(), nil) }
                guard count < state.expected else {
                    if round.deadline != nil { state.missedBatches = 0 }
                    return ([], nil)
                }
                if round.deadline == nil, state.skippedDelays > 0 {
                    state.skippedDelays -= 1
                    return ([], nil)
                }
                return ([], state.batchDelay)
            }
            if !jobs.isEmpty {
                round.jobs += jobs
                return jobs
            }
            guard let batchDelay else { break }
            let end = round.deadline ?? .now() + .nanoseconds(Int(batchDelay.components.attoseconds / 1_000_000_000))
            round.deadline = end
            guard lookOut(until: min(end, .now() + Self.spinDuration)) || sleep(until: end) else { break }
        }
        round.isAnyLeft = round.isServed ? false : takeNoMore()
        return nil
    }

    /// False where no job came in time. The processor is left to other threads that can use it.
    private func lookOut(until deadline: DispatchTime) -> Bool {
        while true {
            if state.withLock({ !$0.waiting.isEmpty }) { return true }
            guard DispatchTime.now() < deadline else { return false }
            yieldProcessor()
        }
    }

    /// False where no job came in time.
    private func sleep(until deadline: DispatchTime) -> Bool {
        let mustSleep = state.withLock { state in
            state.isAsleep = state.waiting.isEmpty
            return state.isAsleep
        }
        guard mustSleep else { return true }
        if alarm.wait(timeout: deadline) == .success { return true }
        let isLate = state.withLock { state in
            defer { state.isAsleep = false }
            guard state.isAsleep else { return false }
            state.missedBatches = min(state.missedBatches + 1, Self.maximumMissedBatches)
            state.skippedDelays = 1 << state.missedBatches
            return true
        }
        // A job came at the last moment, and the signal is on its way.
        if !isLate { alarm.wait() }
        return !isLate
    }

    /// Jobs that come from now on wait for another block, unless a job waits for this one already.
    ///
    /// - Returns: Whether a job does.
    private func takeNoMore() -> Bool {
        state.withLock { state in
            state.isScheduled = !state.waiting.isEmpty
            return state.isScheduled
        }
    }

    private func fail(_ jobs: [Job], with failure: OperationsError, _ db: Database) {
        // What does not fit together may fit alone. Whatever else prevented the commit would do so again, and each
        // would wait for as long.
        guard failure.code == .full, jobs.count > 1 else {
            for job in jobs { job.completion(.failure(failure)) }
            return
        }
        for job in jobs {
            do {
                for outcome in try separately([job], db) { job.completion(outcome) }
            } catch { job.completion(.failure(OperationsError.translated(error))) }
        }
    }

    /// Makes one commit of the jobs, and of further jobs that come in time. Throws if nothing was committed.
    private func commit(_ round: inout Round, _ db: Database) throws -> [Result<Void, OperationsError>] {
        var failure: OperationsError?
        let isWhole = try transaction(db) {
            do {
                for job in round.jobs { try job.work(db) }
                while let others = more(&round) {
                    for job in others { try job.work(db) }
                }
                return (true, true)
            } catch let error where db.isInsideTransaction && OperationsError.translated(error).code != .full {
                failure = OperationsError.translated(error)
                return (false, false)
            }
        }
        if isWhole { return round.jobs.map { _ in .success(()) } }
        if round.jobs.count == 1, let failure { return [.failure(failure)] }
        // Savepoints cost as much as short writes do: only jobs that are made again after a failure get them.
        return try separately(round.jobs, db)
    }

    /// Makes one commit of the jobs that do not fail.
    private func separately(_ jobs: [Job], _ db: Database) throws -> [Result<Void, OperationsError>] {
        try transaction(db) {
            let outcomes = try jobs.map { try savepoint($0, db) }
            return (outcomes, outcomes.contains { (try? $0.get()) != nil })
        }
    }

    private func transaction<Outcome>(
        _ db: Database, _ body: () throws -> (outcome: Outcome, isKept: Bool)
    ) throws -> Outcome {
        try log.begin(db)
        reserveLogSpace(db)
        do {
            let (outcome, isKept) = try body()
            if isKept {
                let start = SuspendingClock.now
                try log.commit(db)
                let time = SuspendingClock.now - start
                state.withLock { state in
                    state.commitCount += 1
                    state.batchDelay = min(max(time / 2, Self.batchDelay), Self.maximumBatchDelay)
                }
            } else if db.isInsideTransaction {
                try db.rollback()
            }
            return outcome
        } catch {
            // SQLite has ended the transaction by itself after some failures.
            if db.isInsideTransaction { try? db.rollback() }
            throw error
        }
    }

    private func reserveLogSpace(_ db: Database) {
        let hasRoom = state.withLock { state in
            guard state.hasRoomFor > 0 else { return false }
            state.hasRoomFor -= 1
            return true
        }
        if !hasRoom, LogSpace.reserve(db, log.files) { state.withLock { $0.hasRoomFor = Self.looklessCount } }
    }

    private func savepoint(_ job: Job, _ db: Database) throws -> Result<Void, OperationsError> {
        try db.run("SAVEPOINT job")
        do {
            try job.work(db)
        } catch {
            let failure = OperationsError.translated(error)
            guard db.isInsideTransaction, failure.code != .full else { throw error }
            try db.run("ROLLBACK TRANSACTION TO SAVEPOINT job")
            try db.run("RELEASE SAVEPOINT job")
            return .failure(failure)
        }
        try db.run("RELEASE SAVEPOINT job")
        return .success(())
    }
}

/// Carries a value out of a closure that runs elsewhere.
private final class Box<Value: Sendable>: Sendable {
    private let value = Locked<Value?>(nil)
    func set(_ new: Value) { value.withLock { $0 = new } }
    func take() -> Value? { value.withLock { $0.take() } }
}
