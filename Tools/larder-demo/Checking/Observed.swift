import Synchronization

/// Takes everything that a stream gives, and when it came.
final class Observed<State: Sendable>: Sendable {
    struct Arrival: Sendable {
        var state: State
        var time: SuspendingClock.Instant
    }

    private struct Seen {
        var arrivals: [Arrival] = []
        var isEnded = false
    }

    private let seen: Mutex<Seen>
    private let task: Mutex<Task<Void, Never>?>

    init(_ stream: some AsyncSequence<State, Never> & Sendable) {
        seen = Mutex(Seen())
        task = Mutex(nil)
        let task = Task { [weak self] in
            for await state in stream {
                let time = SuspendingClock.now
                self?.seen.withLock { $0.arrivals.append(Arrival(state: state, time: time)) }
            }
            self?.seen.withLock { $0.isEnded = true }
        }
        self.task.withLock { $0 = task }
    }

    deinit { task.withLock { $0 }?.cancel() }

    /// How many states came so far.
    var count: Int { seen.withLock { $0.arrivals.count } }

    /// Whether the stream is at its end.
    var isEnded: Bool { seen.withLock { $0.isEnded } }

    /// The first state that fits, of all that came or will come.
    ///
    /// - Parameter start: How many states to pass over.
    func first(
        _ claim: String, after start: Int = 0, where fits: (State) -> Bool = { _ in true }
    ) async throws -> Arrival {
        try await waiting(for: claim) {
            seen.withLock { seen in seen.arrivals.dropFirst(start).first { fits($0.state) } }
        }
    }
}
