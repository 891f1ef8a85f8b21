import Foundation
import LarderFiles
import LarderOperations

/// What this process knows of transfers beside what is stored: the progress of the transfers that it carries out, and
/// the callers that want to know what becomes of them.
///
/// The book tells of this process's own changes at once. Transfers that other processes have changed since the last
/// look are read once for all listeners and waiting callers.
final class TransferBook: Sendable {
    private struct Followers {
        var listeners: [WeakListener] = []
        /// The callers that wait for one transfer, by its id, and how many they are.
        var waiting: [UUID: (changeSignal: ChangeSignal, count: Int)] = [:]
        /// Up to where the followers know what is stored; nil while no caller wants to know.
        var position: TransferPosition?

        var isEmpty: Bool { waiting.isEmpty && listeners.allSatisfy { $0.listener == nil } }
    }

    private struct WeakListener: Sendable {
        weak var listener: Listener?
    }

    /// Notified whenever a transfer's row, or its progress, may have changed.
    let changeSignal = ChangeSignal()
    private let meters = Locked<[UUID: TransferMeter]>([:])
    private let followers = Locked(Followers())
    private let hold = Locked<(@Sendable (ObjectLocation) -> Hold?)?>(nil)

    /// Why a runner begins nothing at a place.
    enum Hold: Sendable {
        /// The storage did not take the credentials.
        case refused
        /// The host is left alone for so long.
        case host(Duration)
    }

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

    /// Why nothing is begun at a place; nil where that is not so, or no runner of this process knows.
    func hold(on location: ObjectLocation) -> Hold? { hold.withLock { $0 }?(location) }

    /// - Parameter reason: What a runner knows; nil when it ends.
    func setHold(_ reason: (@Sendable (ObjectLocation) -> Hold?)?) { hold.withLock { $0 = reason } }

    // MARK: Changes

    func noteChanges(of ids: [UUID]) {
        for listener in followers.withLock({ $0.listeners.compactMap(\.listener) }) { listener.add(ids) }
        wake(ids)
    }

    private func wake(_ ids: [UUID]) {
        for changeSignal in followers.withLock({ followers in ids.compactMap { followers.waiting[$0]?.changeSignal } })
        { changeSignal.notify() }
        changeSignal.notify()
    }

    /// Another process has changed something.
    func noteOthers(_ core: PartitionCore) throws(LarderError) {
        let position = followers.withLock { followers -> TransferPosition? in
            followers.listeners.removeAll { $0.listener == nil }
            if followers.isEmpty {
                followers.position = nil
                return nil
            }
            return followers.position ?? .start
        }
        guard let position, let table = try core.operationsStore.database(making: false)?.transfers else {
            return changeSignal.notify()
        }
        let found: (transfers: [StoredTransfer], position: TransferPosition)
        do { found = try table.changes(in: core.name, since: position) } catch { throw LarderError(error) }
        let listeners = followers.withLock { followers in
            followers.position = found.position
            return followers.listeners.compactMap(\.listener)
        }
        let transfers = found.transfers.map(TransferStatus.init)
        for listener in listeners { listener.compare(transfers) }
        // The changed transfers do not include removed ones: after a removal all waiting callers are woken.
        if found.position.removals == position.removals { wake(found.transfers.map(\.id)) } else { notifyAll() }
    }

    /// Wakes all waiting callers: the partition is parked, or the store closed.
    func notifyAll() {
        for changeSignal in followers.withLock({ $0.waiting.values.map(\.changeSignal) }) { changeSignal.notify() }
        changeSignal.notify()
    }

    // MARK: Following

    func listen(_ core: PartitionCore) -> Listener {
        let listener = Listener()
        followers.withLock { $0.listeners.append(WeakListener(listener: listener)) }
        follow(core)
        listener.know((try? Transfers(core: core).list()) ?? [])
        return listener
    }

    /// A change signal that is notified when a transfer has changed, until the caller gives it back by
    /// `releaseChangeSignal`. The caller looks at the transfer after it has asked for the signal.
    func changeSignal(of id: UUID, _ core: PartitionCore) -> ChangeSignal {
        let changeSignal = followers.withLock { followers in
            followers.waiting[id, default: (ChangeSignal(), 0)].count += 1
            return followers.waiting[id]?.changeSignal ?? ChangeSignal()
        }
        follow(core)
        return changeSignal
    }

    func releaseChangeSignal(of id: UUID) {
        followers.withLock { followers in
            followers.waiting[id]?.count -= 1
            if followers.waiting[id]?.count == 0 { followers.waiting[id] = nil }
        }
    }

    /// Has other processes' changes told from now on. A caller that does not know yet what there is looks after this.
    private func follow(_ core: PartitionCore) {
        core.followOthers()
        guard followers.withLock({ $0.position == nil }),
            // Where it cannot be read, all is new that others change.
            let position = try? core.operationsStore.database(making: false)?.transfers.position(in: core.name)
        else { return }
        followers.withLock { $0.position = $0.position ?? position }
    }
}
