internal import Dispatch
internal import GRDB
internal import Synchronization

/// Makes writes one after the other, those that wait together in one commit.
///
/// A commit costs a wait for the disk, whatever it holds; under load the wait is shared. A write that fails takes
/// nobody with it: the others are made again, each in a savepoint. All are told after the commit, and not before.
final class Writer: Sendable {
    struct Job: Sendable {
        /// Made again where the transaction has to be.
        let work: @Sendable (Database) throws -> Void
        let completion: @Sendable (Result<Void, OperationsError>) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var isClosed = false
        /// Whether a block that takes what is waiting is to run.
        var isScheduled = false
        /// How many wait soon, if those who shared the last commit come again.
        var expected = 0
        var patience = Writer.patience
        /// How often in a row they did not come, and how many commits are still to be made without waiting for them.
        var disappointments = 0
        var hurries = 0
        var commitCount = 0
    }

    /// How long a commit is held up for those who shared the last one: for half of what that took, within these.
    /// Whoever comes too late waits for a whole one.
    private static let patience = Duration.microseconds(60)
    private static let longestPatience = Duration.milliseconds(2)
    private static let mostDisappointments = 6

    private let pool: DatabasePool
    private let isReadOnly: Bool
    private let state = Mutex(State())
    private let arrivals = DispatchSemaphore(value: 0)

    init(pool: DatabasePool, isReadOnly: Bool) {
        self.pool = pool
        self.isReadOnly = isReadOnly
    }

    var commitCount: Int { state.withLock { $0.commitCount } }

    /// Refuses whatever comes from now on.
    func close() { state.withLock { $0.isClosed = true } }

    func perform<Value: Sendable>(
        _ body: @escaping @Sendable (Database) throws -> Value
    ) async throws(OperationsError) -> Value {
        let result = await withCheckedContinuation { continuation in
            let value = Box<Value>()
            enqueue(Job(
                work: { db in value.set(try body(db)) },
                completion: { outcome in
                    continuation.resume(returning: outcome.flatMap {
                        value.get().map(Result.success) ?? .failure(OperationsError(.storage, "a write had no result"))
                    })
                }))
        }
        return try result.get()
    }

    private func enqueue(_ job: Job) {
        if isReadOnly {
            return job.completion(.failure(.readOnly))
        }
        let (isOpen, isFirst) = state.withLock { state in
            guard !state.isClosed else { return (false, false) }
            state.waiting.append(job)
            defer { state.isScheduled = true }
            return (true, !state.isScheduled)
        }
        guard isOpen else { return job.completion(.failure(.closed)) }
        if isFirst { pool.asyncWriteWithoutTransaction { self.run(self.takeWaiting(), $0) } }
        arrivals.signal()
    }

    private func takeWaiting() -> [Job] {
        let patience = state.withLock { state -> Duration? in
            guard state.waiting.count < state.expected else { return nil }
            if state.hurries > 0 {
                state.hurries -= 1
                return nil
            }
            return state.patience
        }
        if let patience { waitForOthers(within: patience) }
        let jobs = state.withLock { state in
            defer { (state.waiting, state.isScheduled) = ([], false) }
            return state.waiting
        }
        // The signals of those that were taken; a later one's that goes with them costs it only the patience.
        for _ in jobs where arrivals.wait(timeout: .now()) == .timedOut { break }
        return jobs
    }

    private func waitForOthers(within patience: Duration) {
        let deadline = DispatchTime.now() + .nanoseconds(Int(patience.components.attoseconds / 1_000_000_000))
        while state.withLock({ $0.waiting.count < $0.expected }) {
            guard arrivals.wait(timeout: deadline) == .timedOut else { continue }
            return state.withLock { state in
                state.disappointments = min(state.disappointments + 1, Self.mostDisappointments)
                state.hurries = 1 << state.disappointments
            }
        }
        state.withLock { $0.disappointments = 0 }
    }

    private func run(_ jobs: [Job], _ db: Database) {
        let start = ContinuousClock.now
        do {
            let outcomes = try commit(jobs, db)
            let time = ContinuousClock.now - start
            // Before anybody is told: whoever comes again then is one of them.
            state.withLock { state in
                state.expected = state.waiting.count + jobs.count
                state.patience = min(max(time / 2, Self.patience), Self.longestPatience)
            }
            for (job, outcome) in zip(jobs, outcomes) { job.completion(outcome) }
        } catch {
            let failure = OperationsError.translated(error)
            // What does not fit together may fit alone. Whatever else prevented the commit would do so again, and
            // each would wait for as long.
            guard failure.code == .full, jobs.count > 1 else {
                for job in jobs { job.completion(.failure(failure)) }
                return
            }
            for job in jobs { run([job], db) }
        }
    }

    /// Makes one commit of the jobs. Throws if nothing was committed.
    private func commit(_ jobs: [Job], _ db: Database) throws -> [Result<Void, OperationsError>] {
        if jobs.count > 1, try commitWhole(jobs, db) { return jobs.map { _ in .success(()) } }
        return try transaction(db) {
            let outcomes = try jobs.count == 1 ? [alone(jobs[0], db)] : jobs.map { try savepoint($0, db) }
            return (outcomes, outcomes.contains { (try? $0.get()) != nil })
        }
    }

    /// Makes the commit if none of the jobs fails. Savepoints cost as much as short writes do, and are for the others.
    private func commitWhole(_ jobs: [Job], _ db: Database) throws -> Bool {
        try transaction(db) {
            do {
                for job in jobs { try job.work(db) }
                return (true, true)
            } catch let error where db.isInsideTransaction && OperationsError.translated(error).code != .full {
                return (false, false)
            }
        }
    }

    private func transaction<Outcome>(
        _ db: Database, _ body: () throws -> (outcome: Outcome, isKept: Bool)
    ) throws -> Outcome {
        try db.beginTransaction(.immediate)
        do {
            let (outcome, isKept) = try body()
            if isKept {
                try db.commit()
                state.withLock { $0.commitCount += 1 }
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

    private func alone(_ job: Job, _ db: Database) throws -> Result<Void, OperationsError> {
        do { return .success(try job.work(db)) } catch { return .failure(OperationsError.translated(error)) }
    }

    private func savepoint(_ job: Job, _ db: Database) throws -> Result<Void, OperationsError> {
        try db.execute(sql: "SAVEPOINT job")
        do {
            try job.work(db)
        } catch {
            let failure = OperationsError.translated(error)
            guard db.isInsideTransaction, failure.code != .full else { throw error }
            try db.execute(sql: "ROLLBACK TRANSACTION TO SAVEPOINT job; RELEASE SAVEPOINT job")
            return .failure(failure)
        }
        try db.execute(sql: "RELEASE SAVEPOINT job")
        return .success(())
    }
}

/// Carries a value out of a closure that runs elsewhere.
private final class Box<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    func set(_ new: Value) { value.withLock { $0 = new } }
    func get() -> Value? { value.withLock { $0 } }
}
