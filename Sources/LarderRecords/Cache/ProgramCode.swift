internal import Synchronization

/// Tells whether the writer's thread is in a program's own code, as it is while the closure of an `update` runs.
///
/// Only there can the writer come to wait for itself: for a write that the closure began.
final class ProgramCode: Sendable {
    private let state = Mutex((runs: UInt64(0), isRunning: false))

    /// The number of the closure that is running; nil where none is.
    var current: UInt64? { state.withLock { $0.isRunning ? $0.runs : nil } }

    func run<Result>(_ body: () throws -> Result) rethrows -> Result {
        state.withLock { state in
            state.runs += 1
            state.isRunning = true
        }
        defer { state.withLock { $0.isRunning = false } }
        return try body()
    }
}
