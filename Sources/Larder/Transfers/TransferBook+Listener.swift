internal import Foundation
internal import Synchronization

extension TransferBook {
    /// One reader of events.
    final class Listener: Sendable {
        private struct State {
            var waiting: [UUID] = []
            var isWaiting: Set<UUID> = []
            /// What was told last.
            var told: [UUID: TransferStatus] = [:]
        }

        private let state = Mutex(State())

        /// Takes what there is for told, but for what was told before.
        func know(_ transfers: [TransferStatus]) {
            state.withLock { state in
                for status in transfers where state.told[status.id.uuid] == nil { state.told[status.id.uuid] = status }
            }
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
