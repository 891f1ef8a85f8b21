import LarderFiles
import LarderLMDB
import Synchronization

/// The generation that a cache works in, and the way to the one that supersedes it.
///
/// Another process may supersede a generation at any time by compacting or clearing. The caller that uses one here
/// finds out by its counters, and goes on with the next.
final class Generations: Sendable {
    let folder: GenerationFolder
    private let held: Locked<Generation>
    private let isClosed = Atomic<Bool>(false)
    private let isSuspended = Atomic<Bool>(false)
    /// Whether the current generation was closed by `rest`. Changes under the lock of `held`.
    private let isResting = Atomic<Bool>(false)
    /// Told where numbers mean something else in the next generation.
    private let observers: CommitObservers

    init(_ first: Generation, in folder: GenerationFolder, _ observers: CommitObservers) {
        self.folder = folder
        self.observers = observers
        held = Locked(first)
    }

    /// Waits for a reopening that is under way: `close` must get the environment that it opens.
    var current: Generation { held.withLock { $0 } }

    /// Closes cleanly. Reads and writes that are under way end first.
    func close() throws {
        guard !isClosed.exchange(true, ordering: .sequentiallyConsistent) else { return }
        try current.environment.close()
    }

    /// Closes the current generation cleanly; its next reader or writer opens it again. Reads and writes that are under
    /// way end first, and none waits for this.
    func rest() throws {
        let environment = held.withLock { current in
            isResting.store(true, ordering: .relaxed)
            return current.environment
        }
        try environment.close()
    }

    /// Closes cleanly, as `close`, until `resume`.
    ///
    /// - Throws: `.busy` where a read or a write is under way past the deadline; then nothing is suspended.
    func suspend(until deadline: SuspendingClock.Instant) throws {
        let environment = held.withLock { current in
            // Under the lock, so that no generation is opened after this.
            isSuspended.store(true, ordering: .sequentiallyConsistent)
            return current.environment
        }
        do throws(LMDBError) { try environment.close(until: deadline) } catch {
            if error.code == .lockTimedOut { isSuspended.store(false, ordering: .sequentiallyConsistent) }
            throw error
        }
    }

    /// Opens again what is current by now, which another process may have changed.
    func resume() throws {
        try held.withLock { current in
            guard isSuspended.load(ordering: .sequentiallyConsistent),
                !isClosed.load(ordering: .sequentiallyConsistent)
            else { return }
            // What was at rest opens when it is used.
            if isResting.load(ordering: .relaxed) {
                return isSuspended.store(false, ordering: .sequentiallyConsistent)
            }
            let next = try folder.openCurrent(above: current.number - 1)
            if next.identity != current.identity { observers.entered(next.identity, self) }
            current = next
            isSuspended.store(false, ordering: .sequentiallyConsistent)
        }
    }

    /// - Throws: `.closed`; `.suspended` where the cache is, for longer than a call waits.
    func checkOpen() throws(RecordError) {
        let awake: Void? = poll(until: .now + folder.options.suspensionWait) {
            isSuspended.load(ordering: .relaxed) && !isClosed.load(ordering: .relaxed) ? nil : ()
        }
        guard awake != nil else {
            throw RecordError(.suspended, "The record cache is suspended; resume the store, and try again")
        }
        guard !isClosed.load(ordering: .relaxed) else { throw RecordError(.closed, "The record cache was closed") }
    }

    /// Runs `body` with a snapshot of the current generation.
    @inline(__always)
    func withSnapshot<Result>(
        _ body: (Generation, borrowing ReadTransaction) throws -> Result
    ) throws -> Result {
        try takingSnapshot { generation, transaction in try body(generation, transaction) }
    }

    /// Runs `body` with a snapshot of the current generation, whose ownership it gets.
    func takingSnapshot<Result>(
        _ body: (Generation, consuming ReadTransaction) throws -> Result
    ) throws -> Result {
        while true {
            let generation = current
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
    func retrying<Result>(
        to purpose: String, until deadline: SuspendingClock.Instant, _ body: (Generation) throws -> Result?
    ) throws -> Result {
        var retries = Retries(until: deadline)
        repeat {
            let generation = current
            do {
                if let result = try body(generation) { return result }
            } catch let error as LMDBError where error.code == .closed {}
            try reopen(after: generation)
        } while retries.goOn()
        throw RecordError(.busy, "The record cache was superseded again and again on the way to \(purpose)")
    }

    /// Goes on with the generation that superseded this one, or with this one where it was closed by `rest`.
    func reopen(after old: Generation) throws {
        try checkOpen()
        try held.withLock { current in
            guard current === old, !isSuspended.load(ordering: .sequentiallyConsistent) else { return }
            // A suspension that was given up had closed it for a moment. Taken for superseded, it would get an empty one
            // above it.
            if try !isResting.load(ordering: .relaxed) && isCurrent(old) { return }
            current = try folder.openCurrent(
                above: isResting.load(ordering: .relaxed) ? old.number - 1 : old.number)
            isResting.store(false, ordering: .relaxed)
            if current.identity != old.identity { observers.entered(current.identity, self) }
            // Reads under way end first. An error is of no use here: no caller opens that environment again.
            try? old.environment.close()
        }
        guard isClosed.load(ordering: .sequentiallyConsistent) else { return }
        // Closed meanwhile, when the old one was still current.
        try current.environment.close()
    }
}

extension Generations {
    /// Whether a generation is open, and not superseded.
    private func isCurrent(_ generation: Generation) throws -> Bool {
        do {
            let transaction = try generation.environment.beginRead()
            return try generation.isCurrent(transaction)
        } catch let error as LMDBError where error.code == .closed { return false }
    }
}

/// How long to try again what other processes were quicker with, who compact or clear meanwhile: some times however
/// long one takes, and then until a deadline.
struct Retries {
    private static let fewest = 8
    private let deadline: SuspendingClock.Instant
    private var count = 1

    init(until deadline: SuspendingClock.Instant) { self.deadline = deadline }

    /// Whether to try once more.
    mutating func goOn() -> Bool {
        count += 1
        return count <= Self.fewest || .now < deadline
    }
}
