package import Foundation
import GRDB

/// A row that cannot be read.
package struct DamagedRow: Sendable, Hashable, CustomStringConvertible {
    package var table: String
    /// The columns by which it is found, as SQL writes them: `sequence = 7`.
    package var key: String
    /// What is wrong with it.
    package var reason: String

    package var description: String { "\(table) where \(key): \(reason)" }
}

extension OperationsDatabase {
    /// Sets aside the mutations and transfers of a partition whose rows cannot be read, in one transaction: they become
    /// dead letters of the class `damaged`, and transfers that have failed because of it, with what can be read of
    /// them. None is sent again. Mutations that wait for them are treated as for others that are set aside.
    ///
    /// - Returns: Which, and why. O(rows of the partition).
    package func setAsideDamagedRows(in partition: String, now: Date) async throws(OperationsError) -> [DamagedRow] {
        try await write { db in
            guard let number = try db.partition(partition) else { return [] }
            return try DamagedRows(db: db, now: now).setAside("partition = \(number)")
        }
    }
}

/// Sets aside mutations and transfers that cannot be read, inside one transaction.
struct DamagedRows {
    let db: Database
    let now: Date

    /// What rows that are set aside have in their columns. What a transfer has agreed on with the storage stays, so
    /// that it can be cleared away; what has arrived of it cannot be relied on.
    static let forced: [String: [String: StoredValue]] = [
        "mutation": [
            "state": .integer(Int64(MutationState.deadLetter.rawValue)), "queued": .integer(0), "owner": .null,
        ],
        "transfer": [
            "state": .integer(Int64(TransferState.failed.rawValue)), "owner": .null, "not_before": .null,
            "not_before_set": .null, "part_size": .null,
        ],
    ]

    /// Sets aside the rows that cannot be read.
    ///
    /// - Parameter condition: On columns that both tables have.
    func setAside(_ condition: String) throws -> [DamagedRow] {
        var found: [DamagedRow] = []
        // Mutations wait for transfers, and later ones for earlier ones: each is looked at after what it refers to.
        for sequence in try db.integers("SELECT sequence FROM transfer WHERE \(condition) ORDER BY sequence") {
            let row = "t.sequence = \(sequence)"
            let damaged =
                try RowReading.transfers.damaged(in: db, where: row, limit: 1)
                + RowReading.parts.damaged(in: db, where: row, limit: 1)
            guard let first = damaged.first else { continue }
            try setAside(transfer: sequence, first.reason)
            found.append(first)
        }
        for sequence in try db.integers("SELECT sequence FROM mutation WHERE \(condition) ORDER BY sequence") {
            let damaged = try RowReading.mutations.damaged(in: db, where: "m.sequence = \(sequence)", limit: 1)
            guard let first = damaged.first else { continue }
            try setAside(mutation: sequence, first.reason)
            found.append(first)
        }
        return found
    }

    /// One that has ended, or is being cancelled, stays where it is.
    func setAside(transfer sequence: Int64, _ reason: String) throws {
        let state = try db.row("SELECT state FROM transfer WHERE sequence = ?", [sequence]) { $0.value(0) }
        let isGivenUp = [TransferState.cancelling, .done, .cancelled].contains { .integer(Int64($0.rawValue)) == state }
        try db.run("DELETE FROM transfer_part WHERE sequence = ?", [sequence])
        var place = RowMending.Place(table: "transfer", condition: "sequence = \(sequence)", kept: ["partition"])
        place.forced = Self.forced["transfer"] ?? [:]
        if isGivenUp { place.forced["state"] = state }
        let (isReadable, lost) = try RowMending(db: db).mend([place]) {
            try RowReading.transfers.isReadable(in: db, where: "t.sequence = \(sequence)")
        }
        guard isReadable else { throw OperationsError.damagedRow(reason) }
        guard !isGivenUp else { return }
        let failure = TransferFailure(code: TransferFailure.damagedRow, message: message(reason, lost), time: now)
        _ = try TransferTransaction(db: db).fail(sequence, failure, now: now)
    }

    func setAside(mutation sequence: Int64, _ reason: String) throws {
        let wasSent = try db.exists(
            "SELECT 1 FROM mutation WHERE sequence = ? AND state IN \(mutation: [.inFlight, .acknowledged])",
            [sequence])
        try db.run(
            "INSERT OR IGNORE INTO mutation_content (sequence, document, variables) VALUES (?, '', x'7b7d')", [sequence]
        )
        // That it is damaged takes the place of the reason that it had, which may be what is damaged.
        try db.run("DELETE FROM mutation_failure WHERE sequence = ?", [sequence])
        var place = RowMending.Place(table: "mutation", condition: "sequence = \(sequence)", kept: ["partition"])
        place.forced = Self.forced["mutation"] ?? [:]
        let places =
            [place]
            + ["mutation_content", "mutation_answer"].map {
                RowMending.Place(table: $0, condition: "sequence = \(sequence)")
            }
        let (isReadable, lost) = try RowMending(db: db).mend(places) {
            try RowReading.mutations.isReadable(in: db, where: "m.sequence = \(sequence)")
        }
        guard isReadable else { throw OperationsError.damagedRow(reason) }
        let queue = QueueTransaction(db: db)
        let effect = wasSent ? "; it was sent, and may have taken effect" : ""
        try queue.setAside(
            sequence: sequence, MutationFailure(.damaged, message: message(reason, lost) + effect, time: now))
        try queue.forgetTouched(by: sequence)
    }

    private func message(_ reason: String, _ lost: [String]) -> String {
        let what = lost.isEmpty ? "" : "; lost is \(Set(lost).sorted().joined(separator: ", "))"
        return "Its row in larder.sqlite was damaged: \(reason)\(what)"
    }
}
