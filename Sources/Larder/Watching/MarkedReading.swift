import Synchronization

/// Reads again whenever it is marked: one read at a time, and one for however many marks came before it began. Marks
/// that come before the first `run` wait for it.
final class MarkedReading: Sendable {
    private struct State {
        /// Whether a read is under way, as the first is from the beginning, and whether it must be followed by another.
        var isReading = true
        var isMarked = false
        var isEnded = false
    }

    private let state = Mutex(State())

    /// Asks for a read. The task that is reading already makes it, or a task of its own.
    func mark(_ read: @escaping @Sendable () -> Void) {
        let mustRead = state.withLock { state in
            state.isMarked = true
            guard !state.isReading, !state.isEnded else { return false }
            state.isReading = true
            return true
        }
        if mustRead { Task { self.run(read) } }
    }

    /// Reads, and reads again until no mark has come since the last read began.
    func run(_ read: () -> Void) {
        state.withLock { $0.isReading = true }
        repeat {
            state.withLock { $0.isMarked = false }
            read()
        } while state.withLock { state in
            state.isReading = state.isMarked && !state.isEnded
            return state.isReading
        }
    }

    /// Begins no more reads.
    func end() { state.withLock { $0.isEnded = true } }
}
