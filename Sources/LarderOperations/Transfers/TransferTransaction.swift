import Foundation
import GRDB

/// What is done to transfers, inside one transaction.
struct TransferTransaction {
    let db: Database

    struct Entry {
        var sequence: Int64
        var partition: Int64
        var state: TransferState
        var attempts: Int
    }

    /// - Throws: `.notFound`, `.wrongState`.
    func entry(_ id: UUID, in states: Set<TransferState>) throws -> Entry {
        let entry = try db.row("SELECT sequence, partition, state, attempts FROM transfer WHERE id = ?", [id]) { row in
            Entry(
                sequence: try row.integer(0), partition: try row.integer(1),
                state: try TransferState(stored: row.integer(2)), attempts: try row.count(3))
        }
        guard let entry else { throw OperationsError.noTransfer(id) }
        guard states.contains(entry.state) else {
            throw OperationsError(
                .wrongState,
                "Transfer \(id.uuidString.lowercased()) is \(entry.state), and would have to be "
                    + states.map { "\($0)" }.sorted().joined(separator: " or ") + "; look again")
        }
        return entry
    }

    /// - Throws: `.notFound`; `.wrongState` if the attempt is not under way, or another is.
    func sequence(_ attempt: TransferAttempt) throws -> Int64 {
        let entry = try entry(attempt.transfer, in: [.running])
        guard entry.attempts == attempt.number else {
            throw OperationsError(
                .wrongState,
                "Attempt \(attempt.number) of transfer \(attempt.transfer.uuidString.lowercased()) is over, attempt "
                    + "\(entry.attempts) is under way; look again")
        }
        return entry.sequence
    }

    func set(_ state: TransferState, of sequence: Int64) throws {
        try db.run(
            "UPDATE transfer SET state = ?, owner = NULL, not_before = NULL, not_before_set = NULL WHERE sequence = ?",
            [state.rawValue, sequence])
    }

    func enqueue(_ draft: TransferDraft, in partition: Int64) throws {
        do {
            try db.run(
                """
                INSERT INTO transfer (id, partition, kind, state, priority, bucket, key, region, path, replaces,
                    content_type, metadata, attempts, created, expires, size, device, inode, modified, sha256, place,
                    storage)
                VALUES (?, ?, ?, \(transfer: .pending), ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """
            ) { row in
                row.bind(draft.id)
                row.bind(partition)
                row.bind(draft.kind.rawValue)
                row.bind(draft.priority)
                row.bind(draft.bucket)
                row.bind(draft.key)
                row.bind(draft.region)
                row.bind(draft.path)
                row.bind(draft.replaces ? 1 : 0)
                row.bind(draft.contentType)
                row.bind(draft.metadata)
                row.bind(draft.created.milliseconds)
                row.bind(draft.expires?.milliseconds)
                row.bind(draft.source?.size)
                row.bind(draft.source?.device)
                row.bind(draft.source?.inode)
                row.bind(draft.source?.modified)
                row.bind(draft.sha256)
                row.bind(draft.place)
                row.bind(draft.storage)
            }
        } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE {
            throw OperationsError(.duplicate, "The transfer's id was used before; ask what became of that one")
        }
    }
}

extension OperationsError {
    static func noTransfer(_ id: UUID) -> OperationsError {
        OperationsError(.notFound, "There is no transfer \(id.uuidString.lowercased()), or it was forgotten")
    }
}
