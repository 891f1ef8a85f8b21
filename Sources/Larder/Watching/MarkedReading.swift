import LarderFiles

/// Reads again whenever it is marked: one read at a time, and one for however many marks came before it began. Marks
/// that come before the first `run` wait for it.
final class MarkedReading: Sendable {
    private struct State {
        /// Whether a read is under way or waits for its time, as the first is from the beginning, and whether it must
        /// be followed by another.
        var isReading = true
        var isMarked = false
        var isEnded = false
        /// Whether the read that is under way waits for its time.
        var isResting = false
        /// Before which marks do not begin a read.
        var rested = SuspendingClock.now
    }

    private let state = Locked(State())

    /// Asks for a read. The task that is reading already makes it, or a task of its own.
    ///
    /// - Parameter read: Answers for how long to rest before the next read.
    func mark(_ read: @escaping @Sendable () -> Duration) {
        let (mustRead, rested) = state.withLock { state in
            state.isMarked = true
            guard !state.isReading, !state.isEnded else { return (false, state.rested) }
            state.isReading = true
            state.isResting = true
            return (true, state.rested)
        }
        if mustRead { readLater(rested, read) }
    }

    /// Reads at once, unless another thread is reading: then that reads again.
    func readNow(_ read: @escaping @Sendable () -> Duration) {
        let mustRead = state.withLock { state in
            state.isMarked = true
            guard !state.isReading || state.isResting, !state.isEnded else { return false }
            (state.isReading, state.isResting) = (true, false)
            return true
        }
        if mustRead { run(read) }
    }

    /// Reads, and reads again until no mark has come since the last read began.
    func run(_ read: @escaping @Sendable () -> Duration) {
        state.withLock { $0.isReading = true }
        while true {
            state.withLock { $0.isMarked = false }
            let rest = read()
            let now = SuspendingClock.now
            let isMarked = state.withLock { state in
                state.isReading = state.isMarked && !state.isEnded
                state.isResting = state.isReading && rest > .zero
                state.rested = now + rest
                return state.isReading
            }
            guard isMarked else { return }
            if rest > .zero { return readLater(now + rest, read) }
        }
    }

    private func readLater(_ time: SuspendingClock.Instant, _ read: @escaping @Sendable () -> Duration) {
        Task {
            if time > .now { try? await Task.sleep(until: time, clock: .suspending) }
            let mustRead = self.state.withLock { state in
                defer { state.isResting = false }
                return state.isResting
            }
            if mustRead { self.run(read) }
        }
    }

    /// Begins no more reads.
    func end() { state.withLock { $0.isEnded = true } }
}
