import Dispatch
import LarderFiles

/// Stamps the cache's file once nothing was written for a moment: phones kill programs without a word, and the next
/// opening is then as quick as after a clean close.
///
/// One timer waits at a time, so that a write which comes soon after another costs none.
final class IdleStamp: Sendable {
    private struct State {
        var writes: UInt64 = 0
        var isWaiting = false
    }

    private let thread: DispatchQueue
    private let generations: Generations
    private let delay: DispatchTimeInterval
    private let state = Locked(State())

    /// - Parameter thread: The writer's: no write of this process is made meanwhile.
    init(on thread: DispatchQueue, _ generations: Generations, after delay: Duration) {
        self.thread = thread
        self.generations = generations
        let (seconds, attoseconds) = delay.components
        self.delay = .milliseconds(Int(clamping: min(seconds, 1 << 30) * 1000 + attoseconds / 1_000_000_000_000_000))
    }

    func noteWrite() {
        let mustWait = state.withLock { state in
            state.writes += 1
            defer { state.isWaiting = true }
            return !state.isWaiting
        }
        if mustWait { wait() }
    }

    private func wait() {
        let writes = state.withLock { $0.writes }
        thread.asyncAfter(deadline: .now() + delay) { [weak self] in self?.fire(after: writes) }
    }

    private func fire(after writes: UInt64) {
        let isIdle = state.withLock { state in
            state.isWaiting = state.writes != writes
            return !state.isWaiting
        }
        guard isIdle else { return wait() }
        // What fails leaves no stamp that fits, and the next opening walks the file. A closed cache was stamped then.
        try? generations.current.environment.stamp()
    }
}
