import LarderFiles

/// Wakes tasks that wait for something to happen, in the order in which they came. A notification that comes while no
/// task waits is not lost for a task that noted the count before it looked.
///
/// Safe: each continuation is put into `waiting` once, and the caller that takes it out, under the lock, resumes it.
final class ChangeSignal: Sendable {
    private struct Waiter {
        let continuation: UnsafeContinuation<Void, Never>
        /// Nil where it waits for as long as it takes.
        let deadline: SuspendingClock.Instant?
    }

    private struct State {
        var count: UInt64 = 0
        var next = 0
        var waiting: [Int: Waiter] = [:]
        /// One for all that wait, for the deadline that comes first.
        var timer: (deadline: SuspendingClock.Instant, task: Task<Void, Never>)?

        /// No timer stays for waiters that are gone.
        mutating func endIdleTimer() {
            guard waiting.isEmpty else { return }
            timer?.task.cancel()
            timer = nil
        }
    }

    private let state = Locked(State())

    /// How often it has notified.
    var count: UInt64 { state.withLock { $0.count } }

    func notify() {
        let waiting = state.withLock { state in
            state.count += 1
            defer {
                state.waiting = [:]
                state.endIdleTimer()
            }
            return state.waiting
        }
        for number in waiting.keys.sorted() { waiting[number]?.continuation.resume() }
    }

    /// Waits until it has notified more often than `count`, the time is over, or the task is cancelled.
    ///
    /// - Parameter time: Nil for as long as it takes.
    func wait(past count: UInt64, for time: Duration?) async {
        let deadline = time.map { SuspendingClock.now + $0 }
        if let time, time <= .zero { return }
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard state.count <= count, !Task.isCancelled else { return false }
                    state.waiting[number] = Waiter(continuation: continuation, deadline: deadline)
                    if let deadline { setTimer(for: deadline, in: &state) }
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                defer { state.endIdleTimer() }
                return state.waiting.removeValue(forKey: number)
            }
            waiter?.continuation.resume()
        }
    }

    private func setTimer(for deadline: SuspendingClock.Instant, in state: inout State) {
        if let timer = state.timer, timer.deadline <= deadline { return }
        state.timer?.task.cancel()
        let task = Task.detached { [weak self] in
            if await CancellableTimer.wait(until: deadline) { self?.endWaits(at: deadline) }
        }
        state.timer = (deadline, task)
    }

    /// Ends the waits whose time is over, and sets the timer for the next one.
    private func endWaits(at deadline: SuspendingClock.Instant) {
        let ended = state.withLock { state in
            let ended = state.waiting.filter { $0.value.deadline.map { $0 <= deadline } ?? false }
            for number in ended.keys { state.waiting[number] = nil }
            // Another timer may have taken the place of this one meanwhile.
            if state.timer?.deadline == deadline { state.timer = nil }
            if let next = state.waiting.values.compactMap(\.deadline).min() { setTimer(for: next, in: &state) }
            return ended
        }
        for waiter in ended.values { waiter.continuation.resume() }
    }
}
