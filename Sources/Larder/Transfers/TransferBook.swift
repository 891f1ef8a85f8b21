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
}
