import Larder
import LarderFiles

/// Work under way by what it answers: a caller that asks for the same joins it.
final class JoinedExchanges<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private let tasks = Locked<[Key: JoinedExchange<Value>]>([:])

    /// How many callers wait for any of it.
    var callers: Int {
        tasks.withLock { tasks in tasks.values.reduce(0) { $0 + $1.callers } }
    }

    func run(
        _ key: Key, deadline: SuspendingClock.Instant, _ work: @escaping JoinedExchange<Value>.Work
    ) async throws(TransportError) -> Value {
        typealias Place = (task: JoinedExchange<Value>, ticket: JoinedExchange<Value>.Ticket, isNew: Bool)
        // Locks are taken in this order only: the table's, then a task's. `didEnd` is called without a task's.
        let place = tasks.withLock { tasks -> Place? in
            if let running = tasks[key], let ticket = running.join() { return (running, ticket, false) }
            let task = JoinedExchange<Value> { [weak self] ended in self?.remove(ended, for: key) }
            guard let ticket = task.join() else { return nil }
            tasks[key] = task
            return (task, ticket, true)
        }
        guard let place else { throw .leftBehind }
        if place.isNew { place.task.start(work) }
        return try await place.task.value(for: place.ticket, deadline: deadline)
    }

    private func remove(_ ended: JoinedExchange<Value>, for key: Key) {
        tasks.withLock { tasks in
            // Another may have taken its place already.
            if tasks[key] === ended { tasks[key] = nil }
        }
    }
}
