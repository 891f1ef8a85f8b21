import Dispatch
import LarderFiles

/// Waits that leave nothing behind when they are cancelled.
///
/// What the runtime has begun for `Task.sleep` stays in memory until its time has come, also where the task was
/// cancelled long before. Most limits of time are never reached: each exchange would cost about 700 bytes for as long
/// as it might have lasted.
package final class CancellableTimer: Sendable {
    private enum State {
        case idle
        case waiting(CheckedContinuation<Void, Never>, cancel: @Sendable () -> Void)
        case ended
    }

    /// Timers stand still while a machine sleeps, as deadlines do; what is due by another clock is compared so often.
    static let longest = Duration.seconds(60)

    private let state = Locked(State.idle)

    private init() {}

    /// Waits until then.
    ///
    /// - Returns: False where the task was cancelled before.
    @discardableResult
    package static func wait(until deadline: SuspendingClock.Instant) async -> Bool {
        await wait { deadline - .now }
    }

    /// Waits until then, where the time that a machine sleeps counts.
    ///
    /// - Returns: False where the task was cancelled before.
    @discardableResult
    package static func waitThroughSleep(until due: ContinuousClock.Instant) async -> Bool { await wait { due - .now } }

    /// Asks at least so often how much is left: a machine that slept meanwhile has not woken the timer.
    static func wait(atMost longest: Duration = longest, _ left: () -> Duration) async -> Bool {
        while !Task.isCancelled {
            let left = left()
            guard left > .zero else { return true }
            await CancellableTimer().wait(for: min(left, longest))
        }
        return false
    }

    private func wait(for time: Duration) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                // Safe: a source is cancelled and activated on any thread.
                nonisolated(unsafe) let timer = DispatchSource.makeTimerSource(queue: .global())
                timer.setEventHandler { self.end() }
                timer.schedule(deadline: .now() + time / .seconds(1))
                let mustWait = state.withLock { state in
                    guard case .idle = state else { return false }
                    state = .waiting(continuation, cancel: { timer.cancel() })
                    return true
                }
                // A timer that was never activated must not be released; one that is cancelled by now does nothing.
                timer.activate()
                if !mustWait {
                    timer.cancel()
                    continuation.resume()
                }
            }
        } onCancel: {
            end()
        }
    }

    private func end() {
        let state = state.withLock { state in
            defer { state = .ended }
            return state
        }
        guard case .waiting(let continuation, let cancel) = state else { return }
        // The timer lets go of this object.
        cancel()
        continuation.resume()
    }
}

extension Duration {
    /// What is left until then; negative once it has passed.
    package static func until(_ deadline: SuspendingClock.Instant) -> Duration { deadline - .now }
}
