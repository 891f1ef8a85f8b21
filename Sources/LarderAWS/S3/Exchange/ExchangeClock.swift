import Larder
import LarderFiles

/// When an exchange has to end: at a deadline, or when no bytes have moved for too long.
final class ExchangeClock: Sendable {
    private enum Limit {
        case deadline(SuspendingClock.Instant)
        case idle(Duration)
    }

    private struct State {
        var moved: SuspendingClock.Instant
        /// How many wait for leave to go on: while any does, nothing is idle.
        var held = 0
    }

    private let limit: Limit
    private let state = Locked(State(moved: .now))

    init(deadline: SuspendingClock.Instant) { limit = .deadline(deadline) }
    init(idle: Duration) { limit = .idle(idle) }

    /// When it ends unless bytes move.
    var deadline: SuspendingClock.Instant {
        switch limit {
        case .deadline(let deadline): deadline
        case .idle(let idle): state.withLock { $0.held > 0 ? .now : $0.moved } + idle
        }
    }

    /// Says that bytes have moved.
    func moved() { state.withLock { $0.moved = .now } }

    /// Waits for leave of the caller's, however long that takes.
    func held(_ wait: () async throws -> Void) async throws {
        state.withLock { $0.held += 1 }
        defer {
            state.withLock { state in
                state.held -= 1
                state.moved = .now
            }
        }
        try await wait()
    }

    /// Runs an exchange, which is cancelled when it has to end.
    func limiting<Result: Sendable>(
        _ exchange: @escaping @Sendable () async throws(ObjectError) -> Result
    ) async throws(ObjectError) -> Result {
        let outcome = await withTaskGroup(of: Swift.Result<Result, ObjectError>?.self) { group in
            group.addTask {
                do throws(ObjectError) {
                    return .success(try await exchange())
                } catch {
                    return .failure(error)
                }
            }
            group.addTask { await self.hasEnded() ? .failure(self.timedOut) : nil }
            var first: Swift.Result<Result, ObjectError>?
            while first == nil, let next = await group.next() { first = next }
            group.cancelAll()
            return first
        }
        switch outcome {
        case .success(let result): return result
        case .failure(let error) where error.code != .local && error.code != .timedOut && Task.isCancelled:
            throw .exchangeCancelled
        case .failure(let error): throw error
        case nil: throw .exchangeCancelled
        }
    }

    /// Waits until it has to end; false when cancelled before.
    private func hasEnded() async -> Bool {
        while true {
            let deadline = deadline
            guard deadline > .now else { return true }
            guard await CancellableTimer.wait(until: deadline) else { return false }
        }
    }

    private var timedOut: ObjectError {
        switch limit {
        case .deadline: ObjectError(.timedOut, "The deadline passed before the storage had answered.")
        case .idle(let idle): ObjectError(.timedOut, "No bytes have moved for \(idle).")
        }
    }
}
