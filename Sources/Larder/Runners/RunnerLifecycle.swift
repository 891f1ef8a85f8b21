import Foundation
import LarderFiles
import ServiceLifecycle

/// How a runner begins, stands by and ends: it works once at a time, alone among all of its kind that the partition has
/// in all processes, until it is stopped or something goes wrong.
final class RunnerLifecycle: Sendable {
    private struct Progress {
        var state = RunnerState.stopped
        var isWorking = false
        var isStopping = false
        /// The session that the server was last tried with, as far as this runner knows.
        var session: SessionStanding?
        /// The failure that came first, and ends the work.
        var failure: (any Error)?
    }

    private static let standbyPause = Duration.milliseconds(100)
    private static let longestPause = Duration.milliseconds(250)

    private let core: PartitionCore
    /// Notifies when there may be something to begin, or a reason to end.
    private let changeSignal: ChangeSignal
    private let lockSuffix: String
    private let progress = Locked(Progress())
    /// Has the runner go on that waits for a sign-in; set before it begins.
    private let resumption = Locked<(@Sendable () -> Void)?>(nil)

    /// - Parameter lockSuffix: Of the file that tells which process works: `RunnerLock`.
    init(_ core: PartitionCore, changeSignal: ChangeSignal, lockSuffix: String) {
        self.core = core
        self.changeSignal = changeSignal
        self.lockSuffix = lockSuffix
    }

    var state: RunnerState { progress.withLock { $0.state } }

    func setResumption(_ resume: @escaping @Sendable () -> Void) { resumption.withLock { $0 = resume } }
    func resume() { resumption.withLock { $0 }?() }

    private var isStopped: Bool { progress.withLock { $0.isStopping } }
    /// Whether nothing more is to be begun, for good or until the store is resumed.
    var isStopping: Bool { isStopped || core.operationsStore.suspension.isAsked }
    var hasFailed: Bool { progress.withLock { $0.failure != nil } }

    func set(_ state: RunnerState) {
        progress.withLock { $0.state = state }
        note(state)
    }

    /// Tells who follows the queue what the runner does now, and who waits for a transfer why it waits.
    private func note(_ state: RunnerState) {
        guard core.runners.note(state, of: self, lockSuffix) else { return }
        core.operationsStore.changeSignal.notify()
        if lockSuffix == TransferRunner.lockSuffix { core.transfers.notifyAll() }
    }

    // MARK: Beginning and ending

    // Each wait is for a change since the count was noted. It is noted before the runner looks whether it is stopped or
    // its partition parked: a stop between such a look and the count would not end the wait.

    /// Works until that ends by itself; it is asked to when the task is cancelled, or the service is to shut down.
    func run(_ work: () async throws -> Void) async throws(LarderError) {
        do {
            try await withTaskCancellationOrGracefulShutdownHandler {
                try await workOnce(work)
            } onCancelOrGracefulShutdown: {
                self.stop()
            }
        } catch { throw LarderError(translating: error) }
    }

    /// As `run`, but that a service which is to shut down waits for it.
    func drain(_ work: () async throws -> Void) async throws(LarderError) {
        do {
            try await withTaskCancellationHandler {
                try await workOnce(work)
            } onCancel: {
                self.stop()
            }
        } catch { throw LarderError(translating: error) }
    }

    private func workOnce(_ work: () async throws -> Void) async throws {
        let isFirst = progress.withLock { progress in
            defer { progress.isWorking = true }
            return !progress.isWorking
        }
        guard isFirst else {
            throw LarderError(.notRunnable, "This runner works already; wait for it, or make another")
        }
        defer {
            progress.withLock { $0 = Progress() }
            note(.stopped)
        }
        try await whileAwake(work)
        if let failure = progress.withLock({ $0.failure }) { throw failure }
    }

    /// Work that began while the store was suspended begins anew when it is resumed: it has done nothing yet.
    private func whileAwake(_ work: () async throws -> Void) async throws {
        let suspension = core.operationsStore.suspension
        while true {
            let signals = changeSignal.count
            guard !isStopped else { return }
            do { return try await work() } catch {
                guard LarderError(translating: error).code == .suspended else { throw error }
                try core.requireCurrent()
                set(.suspended)
                if suspension.isAsked { await changeSignal.wait(past: signals, for: nil) }
            }
        }
    }

    private func stop() {
        progress.withLock { $0.isStopping = true }
        changeSignal.notify()
    }

    /// Begins nothing more. What went wrong first is what `run` throws.
    func end(because error: any Error) {
        progress.withLock { progress in
            progress.failure = progress.failure ?? error
            progress.isStopping = true
        }
        changeSignal.notify()
    }

    // MARK: Working

    /// Works as soon as no other runner does; not at all where it is stopped before. Where the store is suspended, the
    /// work ends, and begins anew when the store is resumed.
    ///
    /// - Parameter work: Is given what stands beside all that is under way: `RunnerLock.owner`.
    func alone(
        _ connectivity: any Connectivity, _ work: @escaping @Sendable (_ owner: String) async throws -> Void
    ) async throws {
        // Only so is the runner told of what other processes queue.
        core.followOthers()
        let session = try core.sessionStanding()
        progress.withLock { $0.session = session }
        let observation = connectivity.observe { [changeSignal] _ in changeSignal.notify() }
        defer { observation.stop() }
        let suspension = core.operationsStore.suspension
        while true {
            let (count, signals) = (suspension.count, changeSignal.count)
            guard !isStopped else { return }
            let breaker = Breaker()
            guard let number = suspension.begin({ breaker.breakOff() }) else {
                try core.requireCurrent()
                set(.suspended)
                await changeSignal.wait(past: signals, for: nil)
                continue
            }
            let result: Result<Void, any Error>
            do { result = .success(try await lockedWork(work, breaker)) } catch { result = .failure(error) }
            suspension.end(number)
            try result.get()
            guard suspension.count != count else { return }
        }
    }

    private func lockedWork(
        _ work: @escaping @Sendable (_ owner: String) async throws -> Void, _ breaker: Breaker
    ) async throws {
        let lock = try RunnerLock(folder: core.folder, partition: core.name, suffix: lockSuffix, core.files)
        defer { lock.close() }
        guard try await acquire(lock) else { return }
        let task = Task { [owner = lock.owner] in try await work(owner) }
        breaker.set { task.cancel() }
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    /// Breaks off work that may not have begun yet.
    private final class Breaker: Sendable {
        private let state = Locked<(isBroken: Bool, cancel: (@Sendable () -> Void)?)>((false, nil))

        func set(_ cancel: @escaping @Sendable () -> Void) {
            let isBroken = state.withLock { state in
                state.cancel = cancel
                return state.isBroken
            }
            if isBroken { cancel() }
        }

        func breakOff() {
            let cancel = state.withLock { state in
                state.isBroken = true
                return state.cancel
            }
            cancel?()
        }
    }

    private func acquire(_ lock: RunnerLock) async throws -> Bool {
        while true {
            let count = changeSignal.count
            guard !isStopping else { return false }
            try core.requireCurrent()
            if try lock.tryAcquire() { return true }
            set(.standingBy)
            await changeSignal.wait(past: count, for: Self.standbyPause)
        }
    }

    /// Whether a user or a guest has been signed in since the last look, by whatever process.
    func hasNewSession() throws(LarderError) -> Bool {
        guard let session = try core.sessionStanding(), session.state.hasCredentials else { return false }
        return progress.withLock { progress in
            defer { progress.session = session }
            return progress.session != session
        }
    }

    /// What a look at the stored work has shown.
    enum Look<Found> {
        case begin(Found)
        /// Nothing that could be begun now; look again when `changeSignal` notifies, and after so long.
        case wait(Duration?)
        /// Nothing that has a time; look again when `changeSignal` notifies.
        case rest
        /// Nothing that will be begun.
        case end

        static func wait(until time: Date?, now: Date) -> Self {
            .wait(time.map { max(.milliseconds(1), .seconds($0.timeIntervalSince(now))) })
        }
    }

    /// What to begin now; waits until there is something. Nil when the work is to end. A failure ends it, as it does in
    /// work that was begun; damaged rows are set aside.
    func next<Found>(_ look: () async throws -> Look<Found>) async -> Found? {
        do {
            while true {
                let count = changeSignal.count
                guard !isStopping else { return nil }
                try core.requireCurrent()
                switch try await core.settingDamagedAside(look) {
                case .begin(let found): return found
                case .end: return nil
                case .rest: await changeSignal.wait(past: count, for: core.operationsStore.longestWait)
                case .wait(let pause):
                    // The clock by which a time was noted may have been set meanwhile.
                    await changeSignal.wait(past: count, for: min(pause ?? Self.longestPause, Self.longestPause))
                }
            }
        } catch { end(because: error) }
        return nil
    }
}
