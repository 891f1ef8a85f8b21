package import Foundation
import GRDB

/// Transfers that wait for a storage which the runner does not have. The statements set the state to what it is: so the
/// followers in all processes hear of the change.
extension TransferTable {
    /// Notes why transfers wait whose storage the runner does not have, where that is not noted.
    ///
    /// - Parameter storages: Those that it has, by name.
    package func noteUnserved(in partition: String, having storages: Set<String?>, now: Date)
        async throws(OperationsError)
    {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return }
            try transaction.db.run(
                """
                UPDATE transfer SET state = state, failure_code = ?4, failure_time = ?5,
                    failure_message = iif(storage IS NULL,
                    'The runner has no storage without a name, as this transfer wants; give it one',
                    'The runner has no storage that is named "' || storage || '"; give it one')
                WHERE sequence IN (\(TransferTransaction.unservedSQL))
                """,
                [number] + TransferTransaction.bindings(of: storages) + [TransferFailure.noStorage, now.milliseconds])
        }
    }

    /// Takes back what was noted of transfers whose storage the runner has.
    package func noteServed(in partition: String, having storages: Set<String?>) async throws(OperationsError) {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return }
            try transaction.db.run(
                """
                UPDATE transfer SET state = state, failure_code = NULL, failure_message = NULL, failure_time = NULL
                WHERE partition = ?1 AND state IN \(transfer: [.pending, .paused]) AND failure_code = ?4
                    AND (storage IS NULL AND ?3 OR storage IN (SELECT value FROM json_each(?2)))
                """,
                [number] + TransferTransaction.bindings(of: storages) + [TransferFailure.noStorage])
        }
    }
}

extension TransferTransaction {
    /// The parameters: the partition, the names of the runner's storages, and whether it has the one that has none.
    static let unservedSQL = """
        SELECT sequence FROM transfer INDEXED BY transfer_storage
        WHERE partition = ?1 AND state = \(transfer: .pending) AND storage IS NOT NULL
            AND storage NOT IN (SELECT value FROM json_each(?2)) AND failure_code IS NOT '\(TransferFailure.noStorage)'
        UNION ALL SELECT sequence FROM transfer INDEXED BY transfer_turn
        WHERE NOT ?3 AND partition = ?1 AND state = \(transfer: .pending) AND storage IS NULL
            AND failure_code IS NOT '\(TransferFailure.noStorage)'
        """

    /// The names of storages, as SQLite takes a list, and whether there is the one that has none.
    static func bindings(of storages: Set<String?>) throws -> Bindings {
        let names = try JSONEncoder().encode(storages.compactMap(\.self).sorted())
        return [String(decoding: names, as: UTF8.self), storages.contains(nil) ? 1 : 0]
    }
}
