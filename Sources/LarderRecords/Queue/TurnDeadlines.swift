import Dispatch
import LarderFiles

/// Ends waits for the writer's thread at their deadlines: behind other writes, a compaction, or the closure of an
/// update, which may even wait for a write that it began itself.
///
/// One timer serves all that wait, so that a write which is made in time costs none.
final class TurnDeadlines: Sendable {
    private struct Wait {
        var end: SuspendingClock.Instant
        var giveUp: @Sendable () -> Void
    }

    private struct State {
        var waits: [UInt64: Wait] = [:]
        var next: UInt64 = 0
        /// When the timer that counts fires; nil where there is none.
        var due: SuspendingClock.Instant?
    }

    private let state = Locked(State())

    /// A turn may wait for another process's lock, which ends at the same deadline with an error that names the holder:
    /// that error comes first.
    private static let grace = Duration.milliseconds(500)

    /// - Parameter giveUp: Called once, half a second after the deadline, unless `remove` is called before.
    /// - Returns: What to call `remove` with.
    func add(_ deadline: SuspendingClock.Instant, _ giveUp: @escaping @Sendable () -> Void) -> UInt64 {
        let end = deadline + Self.grace
        let (number, isSoonest) = state.withLock { state in
            let isSoonest = state.due.map { end < $0 } ?? true
            if isSoonest { state.due = end }
            state.next += 1
            state.waits[state.next] = Wait(end: end, giveUp: giveUp)
            return (state.next, isSoonest)
        }
        if isSoonest { setTimer(for: end) }
        return number
    }

    func remove(_ number: UInt64) { state.withLock { _ = $0.waits.removeValue(forKey: number) } }

    private func setTimer(for due: SuspendingClock.Instant) {
        // Longer than any caller waits, and short enough for Dispatch.
        let wait = min(max(SuspendingClock.now.duration(to: due), .zero), .seconds(1 << 30))
        let seconds = Double(wait.components.seconds) + Double(wait.components.attoseconds) * 1e-18
        DispatchQueue.global().asyncAfter(deadline: .now() + seconds) { [weak self] in self?.fire(for: due) }
    }

    private func fire(for due: SuspendingClock.Instant) {
        let (late, next) = state.withLock { state -> ([Wait], SuspendingClock.Instant?) in
            // A sooner timer has taken this one's place.
            guard state.due == due else { return ([], nil) }
            let now = SuspendingClock.now
            let late = state.waits.filter { $0.value.end <= now }
            for number in late.keys { state.waits[number] = nil }
            state.due = state.waits.values.map(\.end).min()
            return (Array(late.values), state.due)
        }
        for wait in late { wait.giveUp() }
        if let next { setTimer(for: next) }
    }
}
