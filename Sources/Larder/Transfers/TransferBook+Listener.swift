import Foundation
import LarderFiles

extension TransferBook {
    /// One reader of events.
    final class Listener: Sendable {
        /// What was told last of a transfer: a hash, since a status has more than a kilobyte.
        private struct Told {
            var hash: Int
            /// Whether the transfer is done or cancelled, and does not change any more.
            var isOver: Bool

            init(_ status: TransferStatus) {
                hash = status.hashValue
                isOver = status.state == .done || status.state == .cancelled
            }
        }

        private struct State {
            var waiting: [UUID] = []
            var isWaiting: Set<UUID> = []
            var told: [UUID: Told] = [:]
            /// Transfers that are over, and the place of the one that is forgotten next.
            var over: [UUID] = []
            var oldest = 0

            mutating func note(_ status: TransferStatus) {
                let id = status.id.uuid
                let isNewlyOver = !(told[id]?.isOver ?? false)
                let told = Told(status)
                self.told[id] = told
                guard told.isOver, isNewlyOver else { return }
                guard over.count == Listener.mostOver else { return over.append(id) }
                self.told[over[oldest]] = nil
                over[oldest] = id
                oldest = (oldest + 1) % Listener.mostOver
            }
        }

        /// Of how many transfers that are over it is known that they were told. More than a partition keeps rows of.
        static let mostOver = 4 * TransferRunner.kept

        private let state = Locked(State())

        /// Of how many transfers it is known what was told.
        var knownCount: Int { state.withLock { $0.told.count } }

        /// Takes what there is for told, but for what was told before.
        func know(_ transfers: [TransferStatus]) {
            state.withLock { state in
                for status in transfers where state.told[status.id.uuid] == nil { state.note(status) }
            }
        }

        func add(_ ids: [UUID]) {
            state.withLock { state in
                for id in ids where state.isWaiting.insert(id).inserted { state.waiting.append(id) }
            }
        }

        /// Adds the transfers whose status differs from the one that was told last.
        func compare(_ transfers: [TransferStatus]) {
            add(
                state.withLock { state in
                    transfers.filter { state.told[$0.id.uuid]?.hash != $0.hashValue }.map(\.id.uuid)
                })
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
                guard state.told[status.id.uuid]?.hash != status.hashValue else { return false }
                state.note(status)
                return true
            }
        }
    }
}
