import Foundation
import LarderCommandLine
import LarderOperations

/// What is yet to be told of the transfers that are watched: one, or all.
struct TransferNews {
    /// What was told of a transfer; it is told again when this is another.
    private struct Told: Equatable {
        var state: TransferState
        var attempts: Int
        var failure: TransferFailure?
    }

    /// What a look has found.
    struct Found {
        /// Transfers of which there is something to tell, in the order in which they were queued.
        var news: [StoredTransfer] = []
        var running: [StoredTransfer] = []
        /// Whether all that are watched have ended.
        var isOver = true
    }

    /// Nil for all.
    let id: UUID?
    private var told: [UUID: Told] = [:]
    /// Transfers that had not ended when they were told.
    private var open: Set<UUID> = []

    private static let underWay: Set<TransferState> = Set(TransferState.allCases.filter { !$0.isEnded })

    init(of id: UUID?) { self.id = id }

    mutating func look(_ transfers: TransferTable) throws -> Found {
        var found = Found()
        for transfer in try watched(transfers) {
            if transfer.state == .running { found.running.append(transfer) }
            if !transfer.state.isEnded { found.isOver = false }
            let now = Told(state: transfer.state, attempts: transfer.attempts, failure: transfer.failure)
            guard told.updateValue(now, forKey: transfer.id) != now else { continue }
            if transfer.state.isEnded { open.remove(transfer.id) } else { open.insert(transfer.id) }
            found.news.append(transfer)
        }
        return found
    }

    private mutating func watched(_ transfers: TransferTable) throws -> [StoredTransfer] {
        if let id {
            if let transfer = try transfers.find(id) { return [transfer] }
            // It may be forgotten once it has ended.
            guard told[id] != nil else { throw Failure.unknownTransfer(id) }
            return []
        }
        let now = try transfers.list(states: Self.underWay)
        var ended: [StoredTransfer] = []
        for id in open.subtracting(now.map(\.id)) {
            if let transfer = try transfers.find(id) { ended.append(transfer) } else { open.remove(id) }
        }
        return (ended + now).sorted { $0.sequence < $1.sequence }
    }
}
