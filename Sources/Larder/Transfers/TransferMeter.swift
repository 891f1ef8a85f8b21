import LarderFiles

/// Counts the bytes of one transfer as they move.
final class TransferMeter: Sendable {
    private struct State {
        /// Bytes of parts that are whole.
        var arrived: Int64
        /// Bytes of parts that are not, by number.
        var moving: [Int: Int64] = [:]
        /// All bytes that moved, the ones that had to be moved again included.
        var moved: Int64 = 0
        var samples: [(time: SuspendingClock.Instant, moved: Int64)] = []
    }

    private static let window = Duration.seconds(5)
    private static let spacing = Duration.milliseconds(100)

    private let state: Locked<State>

    init(arrived: Int64) { state = Locked(State(arrived: arrived)) }

    func move(_ count: Int, of part: Int, at now: SuspendingClock.Instant = .now) {
        state.withLock { state in
            state.moving[part] = Self.sum(state.moving[part] ?? 0, Int64(count))
            state.moved = Self.sum(state.moved, Int64(count))
            if let last = state.samples.last, last.time.duration(to: now) < Self.spacing { return }
            state.samples.append((now, state.moved))
            state.samples.removeAll { $0.time.duration(to: now) > Self.window }
        }
    }

    /// A part has ended.
    ///
    /// - Parameter size: Its bytes, if it is whole.
    func end(_ part: Int, arrived size: Int64?) {
        state.withLock { state in
            state.moving[part] = nil
            if let size { state.arrived = Self.sum(state.arrived, size) }
        }
    }

    func restart(arrived: Int64) {
        state.withLock { state in
            state.arrived = arrived
            state.moving = [:]
        }
    }

    /// Sizes of parts are a storage's word, and a stored number's: their sum ends at the greatest there is.
    private static func sum(_ left: Int64, _ right: Int64) -> Int64 {
        let (sum, overflows) = left.addingReportingOverflow(right)
        return overflows ? .max : sum
    }

    /// Speed in bytes per second.
    func read(at now: SuspendingClock.Instant = .now) -> (completed: Int64, speed: Double?) {
        state.withLock { state in
            let completed = Self.sum(state.arrived, state.moving.values.reduce(0, Self.sum))
            guard let first = state.samples.first(where: { $0.time.duration(to: now) <= Self.window }) else {
                return (completed, nil)
            }
            let time = first.time.duration(to: now)
            guard time >= Self.spacing else { return (completed, nil) }
            return (completed, Double(state.moved - first.moved) / time.seconds)
        }
    }
}
