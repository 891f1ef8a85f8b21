import Synchronization

/// Wakes tasks that wait for something to happen. A notification that comes while no task waits is not lost for a task
/// that noted the count before it looked.
final class ChangeSignal: Sendable {
    private struct State {
        var count: UInt64 = 0
        var next = 0
        var waiting: [Int: CheckedContinuation<Void, Never>] = [:]
    }

    private let state = Mutex(State())

    /// How often it has notified.
    var count: UInt64 { state.withLock { $0.count } }

    func notify() {
        let waiting = state.withLock { state in
            state.count += 1
            defer { state.waiting = [:] }
            return state.waiting.values.map { $0 }
        }
        for continuation in waiting { continuation.resume() }
    }

    /// Waits until it has notified more often than `count`, the time is over, or the task is cancelled.
    ///
    /// - Parameter time: Nil for as long as it takes.
    func wait(past count: UInt64, for time: Duration?) async {
        guard let time else { return await wait(past: count) }
        guard time > .zero else { return }
        await withTaskGroup { group in
            group.addTask { await self.wait(past: count) }
            group.addTask { await CancellableTimer.wait(until: .now + time) }
            await group.next()
            group.cancelAll()
        }
    }

    private func wait(past count: UInt64) async {
        let number = state.withLock { state in
            state.next += 1
            return state.next
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let mustWait = state.withLock { state in
                    guard state.count <= count, !Task.isCancelled else { return false }
                    state.waiting[number] = continuation
                    return true
                }
                if !mustWait { continuation.resume() }
            }
        } onCancel: {
            state.withLock { $0.waiting.removeValue(forKey: number) }?.resume()
        }
    }
}
