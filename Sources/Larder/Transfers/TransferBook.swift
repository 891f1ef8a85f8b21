internal import Foundation
internal import LarderOperations
internal import Synchronization

/// What this process knows of transfers beside what is stored: how far those have come that it carries out, and who
/// listens.
final class TransferBook: Sendable {
    /// Rung whenever a transfer's row, or what has moved of it, may have changed.
    let bell = Bell()
    private let meters = Mutex<[UUID: TransferMeter]>([:])
    private let listeners = Mutex<[WeakListener]>([])

    // MARK: Progress

    func meter(of id: UUID, arrived: Int64) -> TransferMeter {
        let meter = TransferMeter(arrived: arrived)
        meters.withLock { $0[id] = meter }
        return meter
    }

    func forgetMeter(of id: UUID) { meters.withLock { _ = $0.removeValue(forKey: id) } }

    func progress(of status: TransferStatus) -> TransferProgress {
        var progress = TransferProgress(state: status.state, completed: status.arrived, total: status.size)
        guard status.state == .running, let meter = meters.withLock({ $0[status.id.uuid] }) else { return progress }
        let reading = meter.read()
        progress.completed = status.size.map { min($0, reading.completed) } ?? reading.completed
        progress.speed = reading.speed
        return progress
    }

    // MARK: Events

    func noteChanges(of ids: [UUID]) {
        let listening = listeners.withLock { $0.compactMap(\.listener) }
        for listener in listening { listener.add(ids) }
        bell.ring()
    }

    /// Another process has changed something.
    func noteOthers(_ core: PartitionCore) {
        let listening = listeners.withLock { listeners in
            listeners.removeAll { $0.listener == nil }
            return listeners.compactMap(\.listener)
        }
        if !listening.isEmpty, let transfers = try? Transfers(core: core).list() {
            for listener in listening { listener.compare(transfers) }
        }
        bell.ring()
    }

    func listen(_ core: PartitionCore) -> Listener {
        let known = (try? Transfers(core: core).list()) ?? []
        let listener = Listener(known)
        listeners.withLock { $0.append(WeakListener(listener: listener)) }
        return listener
    }

    private struct WeakListener: Sendable {
        weak var listener: Listener?
    }

    /// One reader of events.
    final class Listener: Sendable {
        private struct State {
            var waiting: [UUID] = []
            var isWaiting: Set<UUID> = []
            /// What was told last.
            var told: [UUID: TransferStatus] = [:]
        }

        private let state: Mutex<State>

        init(_ known: [TransferStatus]) {
            state = Mutex(State(told: Dictionary(known.map { ($0.id.uuid, $0) }) { $1 }))
        }

        func add(_ ids: [UUID]) {
            state.withLock { state in
                for id in ids where state.isWaiting.insert(id).inserted { state.waiting.append(id) }
            }
        }

        /// Adds those that are not as they were told last.
        func compare(_ transfers: [TransferStatus]) {
            add(state.withLock { state in transfers.filter { state.told[$0.id.uuid] != $0 }.map(\.id.uuid) })
        }

        func take() -> UUID? {
            state.withLock { state in
                guard !state.waiting.isEmpty else { return nil }
                let id = state.waiting.removeFirst()
                state.isWaiting.remove(id)
                return id
            }
        }

        /// Whether a status is another than was told last, and notes that it is told.
        func isNews(_ status: TransferStatus) -> Bool {
            state.withLock { state in
                defer { state.told[status.id.uuid] = status }
                return state.told[status.id.uuid] != status
            }
        }
    }
}
