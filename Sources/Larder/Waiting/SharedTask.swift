import LarderFiles

/// Work that is under way, for which any number of callers wait, each up to its own deadline. None of them ends it.
final class SharedTask<Value: Sendable>: Sendable {
    /// The time by which the work is to be done.
    let deadline: SuspendingClock.Instant
    private let result = Locked<Value?>(nil)
    private let changeSignal = ChangeSignal()

    /// Begins the work, where it may block its thread. It goes ahead of the callers, who can only wait for it.
    init(
        on executor: OutsideExecutor, until deadline: SuspendingClock.Instant,
        _ work: @escaping @Sendable () async -> Value
    ) {
        self.deadline = deadline
        Task.detached(executorPreference: executor, priority: .high) { self.finish(await work()) }
    }

    var isFinished: Bool { result.withLock { $0 != nil } }

    /// The result; nil once the deadline has passed or the calling task was cancelled.
    func value(until deadline: SuspendingClock.Instant) async -> Value? {
        while true {
            if let value = result.withLock({ $0 }) { return value }
            guard .now < deadline, !Task.isCancelled else { return nil }
            // It notifies once.
            await changeSignal.wait(past: 0, for: deadline - .now)
        }
    }

    private func finish(_ value: Value) {
        result.withLock { $0 = value }
        changeSignal.notify()
    }
}

/// Does work that is cancelled at its deadline, and returns when it has really ended: a caller that went on before that
/// could do the same thing a second time. Returns nil only where the work was not begun.
func cancelled<Value: Sendable>(
    at deadline: SuspendingClock.Instant, _ work: @escaping @Sendable () async -> Value
) async -> Value? {
    await withTaskGroup(of: Value?.self) { group in
        group.addTask { await work() }
        group.addTask {
            await CancellableTimer.wait(until: deadline)
            return nil
        }
        while let ended = await group.next() {
            group.cancelAll()
            if let ended { return ended }
        }
        return nil
    }
}
