import Synchronization

/// Wakes tasks that wait for something to happen.
typealias ChangeSignal = Signal<Void>

/// Gives news to tasks that wait for them, in the order in which they came. Those that come while no task waits are not
/// lost for a task that noted the count before it looked.
final class Signal<News: Sendable>: Sendable {
    private struct Waiter {
        /// Gets nil where the wait ends without news.
        let continuation: CheckedContinuation<News?, Never>
        /// Nil where it waits for as long as it takes.
        let deadline: ContinuousClock.Instant?
    }

    private struct State {
        var count: UInt64 = 0
        var next = 0
        var waiting: [Int: Waiter] = [:]
        /// One for all that wait, for the deadline that comes first.
        var timer: (deadline: ContinuousClock.Instant, task: Task<Void, Never>)?

        /// No timer stays for waiters that are gone.
        mutating func endIdleTimer() {
            guard waiting.isEmpty else { return }
            timer?.task.cancel()
            timer = nil
        }
    }

    private let state = Mutex(State())

    /// How often it has notified.
    var count: UInt64 { state.withLock { $0.count } }

    func notify(_ news: News) {
        let waiting = state.withLock { state in
            state.count += 1
            defer {
                state.waiting = [:]
                state.endIdleTimer()
            }
            return state.waiting
        }
        for number in waiting.keys.sorted() { waiting[number]?.continuation.resume(returning: news) }
    }

    /// Waits until it has notified more often than `count`, the time is over, or the task is cancelled.
    ///
    /// - Parameter time: Nil for as long as it takes.
    /// - Returns: What it was notified of meanwhile; nil where that was before, or not at all.
    @discardableResult
    func wait(past count: UInt64, for time: Duration?) async -> News? {
        let deadline = time.map { ContinuousClock.now + $0 }
        if let time, time <= .zero { return nil }
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard state.count <= count, !Task.isCancelled else { return false }
                    state.waiting[number] = Waiter(continuation: continuation, deadline: deadline)
                    if let deadline { setTimer(for: deadline, in: &state) }
                    return true
                }
                if !mustWait { continuation.resume(returning: nil) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                defer { state.endIdleTimer() }
                return state.waiting.removeValue(forKey: number)
            }
            waiter?.continuation.resume(returning: nil)
        }
    }

    private func setTimer(for deadline: ContinuousClock.Instant, in state: inout State) {
        if let timer = state.timer, timer.deadline <= deadline { return }
        state.timer?.task.cancel()
        let task = Task.detached { [weak self] in
            if await CancellableTimer.wait(until: deadline) { self?.endWaits(at: deadline) }
        }
        state.timer = (deadline, task)
    }

    /// Ends the waits whose time is over, and sets the timer for the next one.
    private func endWaits(at deadline: ContinuousClock.Instant) {
        let ended = state.withLock { state in
            let ended = state.waiting.filter { $0.value.deadline.map { $0 <= deadline } ?? false }
            for number in ended.keys { state.waiting[number] = nil }
            // Another timer may have taken the place of this one meanwhile.
            if state.timer?.deadline == deadline { state.timer = nil }
            if let next = state.waiting.values.compactMap(\.deadline).min() { setTimer(for: next, in: &state) }
            return ended
        }
        for waiter in ended.values { waiter.continuation.resume(returning: nil) }
    }
}

extension Signal<Void> {
    func notify() { notify(()) }
}
