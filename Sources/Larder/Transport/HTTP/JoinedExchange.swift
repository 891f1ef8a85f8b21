import LarderFiles

/// Work that several callers wait for. Each of them goes when its deadline or its cancellation says so, at once;
/// the work is cancelled when the last of them has gone.
///
/// The work runs in a task of its own, so that no caller's end is the end of another's.
package final class JoinedExchange<Value: Sendable>: Sendable {
    package typealias Work = @Sendable () async throws(TransportError) -> Value
    private typealias Outcome = Result<Value, TransportError>

    /// A caller's place, from `join` to the end of `value(for:deadline:)`.
    package struct Ticket: Hashable, Sendable {
        fileprivate let number: Int
    }

    private enum Waiter {
        case joined
        case waiting(CheckedContinuation<Outcome, Never>)
        case gone(TransportError)

        var isGone: Bool { if case .gone = self { true } else { false } }
    }

    private struct State {
        var waiters: [Ticket: Waiter] = [:]
        var ticketsGiven = 0
        var outcome: Outcome?
        var isAbandoned = false
        var task: Task<Void, Never>?
    }

    private let state = Locked(State())
    /// Called once the work has an outcome or no caller waits for it any more; possibly twice.
    private let didEnd: @Sendable (JoinedExchange) -> Void

    package init(didEnd: @escaping @Sendable (JoinedExchange) -> Void = { _ in }) {
        self.didEnd = didEnd
    }

    /// Runs `work` for one caller.
    package static func run(
        deadline: SuspendingClock.Instant, _ work: @escaping Work
    ) async throws(TransportError) -> Value {
        let task = JoinedExchange()
        guard let ticket = task.join() else { throw .leftBehind }
        task.start(work)
        // Work that is done at once, such as looking for a credential that is good, needs no timer. Where it is not, or
        // keeps its thread, this goes on by another.
        await Task.yield()
        return try await task.value(for: ticket, deadline: deadline)
    }

    /// How many wait for the value, or are about to.
    package var callers: Int {
        state.withLock { state in state.waiters.values.count { !$0.isGone } }
    }

    /// A place among the waiting callers; nil when the work is over or given up, so that it must be started anew.
    package func join() -> Ticket? {
        state.withLock { state in
            guard state.outcome == nil, !state.isAbandoned else { return nil }
            state.ticketsGiven += 1
            let ticket = Ticket(number: state.ticketsGiven)
            state.waiters[ticket] = .joined
            return ticket
        }
    }

    /// Starts the work. The caller that made the task and joined it calls this once.
    package func start(_ work: @escaping Work) {
        let task = Task {
            do throws(TransportError) {
                finish(.success(try await work()))
            } catch {
                finish(.failure(error))
            }
        }
        let isAbandoned = state.withLock { state in
            state.task = task
            return state.isAbandoned
        }
        if isAbandoned { task.cancel() }
    }

    package func value(for ticket: Ticket, deadline: SuspendingClock.Instant) async throws(TransportError) -> Value {
        if !Task.isCancelled, let outcome = state.withLock({ $0.outcome }) { return try outcome.get() }
        let timer = Task {
            guard await CancellableTimer.wait(until: deadline) else { return }
            leave(ticket, because: .deadlinePassed)
        }
        defer { timer.cancel() }
        let outcome = await withTaskCancellationHandler {
            await withCheckedContinuation { wait(ticket, $0) }
        } onCancel: {
            leave(ticket, because: .waiterCancelled)
        }
        return try outcome.get()
    }

    private func wait(_ ticket: Ticket, _ continuation: CheckedContinuation<Outcome, Never>) {
        let outcome: Outcome? = state.withLock { state in
            // A caller that has gone is told so, even if the work ended in the meantime.
            if case .gone(let error) = state.waiters[ticket] {
                state.waiters[ticket] = nil
                return .failure(error)
            }
            if let outcome = state.outcome { return outcome }
            state.waiters[ticket] = .waiting(continuation)
            return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
    }

    private func leave(_ ticket: Ticket, because error: TransportError) {
        let (continuation, abandoned) = state.withLock { state in
            var continuation: CheckedContinuation<Outcome, Never>?
            switch state.waiters[ticket] {
            case .joined: state.waiters[ticket] = .gone(error)
            case .waiting(let waiting):
                state.waiters[ticket] = nil
                continuation = waiting
            case .gone, nil: return (continuation, Task<Void, Never>?.none)
            }
            guard state.outcome == nil, state.waiters.values.allSatisfy(\.isGone) else { return (continuation, nil) }
            state.isAbandoned = true
            return (continuation, state.task)
        }
        if let abandoned {
            abandoned.cancel()
            didEnd(self)
        }
        continuation?.resume(returning: .failure(error))
    }

    private func finish(_ outcome: Outcome) {
        let waiting = state.withLock { state in
            state.outcome = outcome
            let waiting = state.waiters.compactMap { _, waiter in
                if case .waiting(let continuation) = waiter { continuation } else { nil }
            }
            state.waiters = state.waiters.filter { $0.value.isGone }
            return waiting
        }
        didEnd(self)
        for continuation in waiting { continuation.resume(returning: outcome) }
    }
}

extension TransportError {
    package static var deadlinePassed: TransportError {
        TransportError(.timedOut, "The deadline passed before the server had answered.")
    }

    package static var waiterCancelled: TransportError {
        TransportError(.cancelled, "The task that waited for the answer was cancelled.")
    }

    /// The error for a caller that was given no place; cannot happen while a new task takes its first caller.
    package static var leftBehind: TransportError {
        TransportError(.interrupted, "The exchange ended before it could be waited for.")
    }
}
