import Synchronization

/// When a server was asked. A minute is counted from the first request, however late a busy machine sends that.
final class RequestTimes: Sendable {
    private let times = Mutex<[SuspendingClock.Instant]>([])

    func add() { times.withLock { $0.append(.now) } }

    var count: Int { times.withLock { $0.count } }
    /// The time since the first request.
    var span: Duration { times.withLock { $0.first?.duration(to: .now) ?? .zero } }

    /// How many requests came in the first so long.
    func count(within time: Duration) -> Int {
        times.withLock { times in times.count { $0 < times[0] + time } }
    }
}
