import Foundation
import Synchronization

/// Whether a store is suspended, or is about to be, and the work that has to end before: exchanges with a server, and
/// whatever holds a lock of the kernel.
final class Suspension: Sendable {
    private struct State {
        var isAsked = false
        /// How often it was asked for.
        var count = 0
        var isClosed = false
        var next = 0
        /// What breaks off each work that is under way.
        var works: [Int: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())
    private let changeSignal = ChangeSignal()
    /// How long a call waits while the store is suspended.
    private let wait: Duration

    init(wait: Duration = .zero) { self.wait = wait }

    /// Whether work is to end, and none is to begin.
    var isAsked: Bool { state.withLock { $0.isAsked } }
    /// How often that was asked for.
    var count: Int { state.withLock { $0.count } }

    // MARK: Work

    /// Takes note of work that a suspension has to wait for; nil where it must not begin.
    ///
    /// - Parameter breakOff: Ends the work where it stands.
    func begin(_ breakOff: @escaping @Sendable () -> Void = {}) -> Int? {
        state.withLock { state in
            guard !state.isAsked else { return nil }
            state.next += 1
            state.works[state.next] = breakOff
            return state.next
        }
    }

    func end(_ work: Int) {
        state.withLock { _ = $0.works.removeValue(forKey: work) }
        changeSignal.notify()
    }

    // MARK: Suspending

    /// Has all work end at its next safe point.
    ///
    /// - Throws: `.suspended` where that was asked for already; `.parked` after `close`.
    func ask() throws(LarderError) {
        let failure = state.withLock { state -> LarderError? in
            guard !state.isClosed else { return .parked }
            guard !state.isAsked else { return .suspended }
            state.isAsked = true
            state.count += 1
            return nil
        }
        if let failure { throw failure }
    }

    /// Waits until all work has ended; breaks off what has not by half of the time.
    ///
    /// - Returns: False where some has not by three quarters of it.
    func workHasEnded(within time: Duration) async -> Bool {
        let start = ContinuousClock.now
        if await isIdle(until: start + time / 2) { return true }
        for breakOff in state.withLock({ Array($0.works.values) }) { breakOff() }
        return await isIdle(until: start + time * 3 / 4)
    }

    private func isIdle(until deadline: ContinuousClock.Instant) async -> Bool {
        while true {
            let count = changeSignal.count
            if state.withLock({ $0.works.isEmpty }) { return true }
            guard .now < deadline else { return false }
            await changeSignal.wait(past: count, for: deadline - .now)
        }
    }

    /// Lets work go on.
    func withdraw() {
        state.withLock { $0.isAsked = false }
        changeSignal.notify()
    }

    /// Lets work find out that the store was closed, and suspends no more.
    func close() {
        state.withLock { $0.isClosed = true }
        withdraw()
    }

    // MARK: Waiting

    /// Waits until the store is not suspended any more, or the task is cancelled.
    ///
    /// - Returns: For how long it was: deadlines are to be moved by as much.
    func sitOut() async -> Duration {
        let start = ContinuousClock.now
        while !Task.isCancelled {
            let count = changeSignal.count
            guard isAsked else { break }
            await changeSignal.wait(past: count, for: nil)
        }
        return .now - start
    }

    /// Waits as long as a call may, without keeping its thread.
    ///
    /// - Throws: `.suspended`.
    func requireAwake() async throws(LarderError) {
        let deadline = ContinuousClock.now + wait
        while true {
            let count = changeSignal.count
            guard isAsked else { return }
            guard .now < deadline, !Task.isCancelled else { throw .suspended }
            await changeSignal.wait(past: count, for: deadline - .now)
        }
    }
}

extension LarderError {
    static var suspended: LarderError {
        LarderError(.suspended, "The store is suspended, or about to be; resume it, and try again")
    }
}
