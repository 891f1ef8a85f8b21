import Foundation
import GRDB

/// Up to where a follower knows a partition's transfers.
package struct TransferPosition: Sendable, Hashable {
    /// The last that was queued.
    var sequence: Int64
    /// The last change of the transfers that were queued before.
    var change: Int64
    /// How often rows were removed that a caller may still have waited for.
    package var removals: Int64

    /// Before all.
    package static let start = TransferPosition(sequence: 0, change: 0, removals: 0)
}

extension TransferTable {
    /// Behind all that was queued and has changed. O(log n).
    package func position(in partition: String) throws(OperationsError) -> TransferPosition {
        try read { try $0.position(in: partition) }
    }

    /// The transfers that were queued, or went to another state, since a position was read; and transfers under way, of
    /// which more may have arrived. O(log n) and as many.
    ///
    /// - Returns: The position behind them, too.
    package func changes(
        in partition: String, since position: TransferPosition
    ) throws(OperationsError) -> (transfers: [StoredTransfer], position: TransferPosition) {
        try read { transaction in
            guard let number = try transaction.db.partition(partition) else { return ([], position) }
            let transfers = try transaction.changes(in: number, since: position).map(located)
            return (transfers, try transaction.position(in: partition))
        }
    }
}

extension TransferTransaction {
    static let queuedSQL = selection + " WHERE t.sequence > ?2 AND +t.partition = ?1"
    static let changedSQL = selection + " WHERE t.partition = ?1 AND t.changes > ?2 AND t.changes > 0"
    static let underWaySQL = selection + " WHERE t.partition = ?1 AND \(isUnderWay)"
    /// With the condition of the index `transfer_work`.
    static let isUnderWay = "state IN \(transfer: [.running, .cancelling]) AND state = \(transfer: .running)"

    fileprivate func position(in partition: String) throws -> TransferPosition {
        let sequence = try db.integer("SELECT ifnull(max(sequence), 0) FROM transfer") ?? 0
        return try db.row("SELECT transfer_changes, transfer_removals FROM partition WHERE name = ?", [partition]) {
            TransferPosition(sequence: sequence, change: try $0.integer(0), removals: try $0.integer(1))
        } ?? TransferPosition(sequence: sequence, change: 0, removals: 0)
    }

    fileprivate func changes(in partition: Int64, since position: TransferPosition) throws -> [StoredTransfer] {
        var found: [Int64: StoredTransfer] = [:]
        let queries: [(String, Bindings)] = [
            (Self.queuedSQL, [partition, position.sequence]), (Self.changedSQL, [partition, position.change]),
            (Self.underWaySQL, [partition]),
        ]
        for (sql, bindings) in queries {
            for transfer in try db.readableRows(sql, bindings, { try StoredTransfer($0) }) {
                found[transfer.sequence] = transfer
            }
        }
        return found.values.sorted { $0.sequence < $1.sequence }
    }
}
