internal import Dispatch
internal import GRDB
internal import Synchronization

/// Makes writes one after the other, those that wait together in one commit.
///
/// A commit costs a wait for the disk, whatever it holds; under load the wait is shared. Each write is alone in a
/// savepoint, so that one which fails takes nobody with it. All are told after the commit, and not before.
final class Writer: Sendable {
    struct Job: Sendable {
        let work: @Sendable (Database) throws -> Void
        let completion: @Sendable (Result<Void, OperationsError>) -> Void
    }

    private struct State {
        var waiting: [Job] = []
        var isClosed = false
        /// How many shared the last commit: as many may be about to come again.
        var lastCount = 0
    }

    /// How long a commit is held up for those who shared the last one. Two orders below what a synced commit takes
    /// on a disk; without it, one in two commits would hold a single write while all others just miss it.
    private static let patience = DispatchTimeInterval.microseconds(60)

    private let pool: DatabasePool
    private let isReadOnly: Bool
    private let state = Mutex(State())
    private let arrivals = DispatchSemaphore(value: 0)

    init(pool: DatabasePool, isReadOnly: Bool) {
        self.pool = pool
        self.isReadOnly = isReadOnly
    }

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
            let message = "the store of intent was opened for reading only; open it for writing"
            return job.completion(.failure(OperationsError(.notWritable, message)))
        }
        let isOpen = state.withLock { state in
            guard !state.isClosed else { return false }
            state.waiting.append(job)
            return true
        }
        guard isOpen else { return job.completion(.failure(.closed)) }
        arrivals.signal()
        pool.asyncWriteWithoutTransaction { db in
            let jobs = self.takeWaiting()
            // An earlier block has taken all.
            if !jobs.isEmpty { self.run(jobs, db) }
        }
    }

    private func takeWaiting() -> [Job] {
        let deadline = DispatchTime.now() + Self.patience
        while state.withLock({ !$0.waiting.isEmpty && $0.waiting.count < $0.lastCount }) {
            if arrivals.wait(timeout: deadline) == .timedOut { break }
        }
        let jobs = state.withLock { state in
            defer { state.waiting = [] }
            if !state.waiting.isEmpty { state.lastCount = state.waiting.count }
            return state.waiting
        }
        // The signals of those that were taken; a later one's that goes with them costs it only the patience.
        for _ in jobs where arrivals.wait(timeout: .now()) == .timedOut { break }
        return jobs
    }

    private func run(_ jobs: [Job], _ db: Database) {
        do {
            for (job, outcome) in zip(jobs, try commit(jobs, db)) { job.completion(outcome) }
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
        try db.beginTransaction(.immediate)
        do {
            let outcomes = try jobs.count == 1 ? [alone(jobs[0], db)] : jobs.map { try savepoint($0, db) }
            if outcomes.contains(where: { (try? $0.get()) != nil }) {
                try db.commit()
            } else if db.isInsideTransaction {
                try db.rollback()
            }
            return outcomes
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
        try db.cachedStatement(sql: "SAVEPOINT job").execute()
        do {
            try job.work(db)
        } catch {
            let failure = OperationsError.translated(error)
            guard db.isInsideTransaction, failure.code != .full else { throw error }
            try db.execute(sql: "ROLLBACK TRANSACTION TO SAVEPOINT job; RELEASE SAVEPOINT job")
            return .failure(failure)
        }
        try db.cachedStatement(sql: "RELEASE SAVEPOINT job").execute()
        return .success(())
    }
}

/// Carries a value out of a closure that runs elsewhere.
private final class Box<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    func set(_ new: Value) { value.withLock { $0 = new } }
    func get() -> Value? { value.withLock { $0 } }
}
