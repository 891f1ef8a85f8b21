import Foundation
import GRDB
import LarderFiles

extension QueueTransaction {
    /// Changes what a mutation says. The caller has made sure that it is not in flight.
    func revise(_ id: UUID, _ entry: Entry, _ revision: Revision) throws {
        if let variables = revision.variables { try requireObject(variables, of: id) }
        guard let mutation = try mutation(id) else { return }
        var content = mutation.content
        content.variables = revision.variables ?? content.variables
        content.optimisticResponse = revision.optimisticResponse ?? content.optimisticResponse
        try db.run("DELETE FROM temporary_id_use WHERE sequence = ?", [entry.sequence])
        let found = try resolve(
            content, lane: entry.lane, partition: entry.partition, own: Set(mutation.temporaryIDs))
        for dependency in found.dependencies.values {
            guard dependency.sequence < entry.sequence else {
                throw OperationsError(
                    .invalid,
                    "The variables hold a temporary id of a later mutation; discard this one and queue a new one",
                    mutation: id)
            }
            try addDependency(of: entry.sequence, on: dependency.sequence)
        }
        for use in found.uses { try addUse(of: use, by: entry.sequence) }
        try db.run(
            "UPDATE mutation_content SET variables = ?, optimistic_response = ?, list_edits = ? WHERE sequence = ?",
            [
                found.content.variables, found.content.optimisticResponse,
                found.content.listEdits, entry.sequence,
            ])
        try forgetTouched(by: entry.sequence)
        if let key = revision.idempotencyKey {
            try requireUnsettled(key, entry.partition, of: id)
            do {
                try db.run("UPDATE mutation SET idempotency_key = ? WHERE sequence = ?", [key, entry.sequence])
            } catch let error as DatabaseError where error.extendedResultCode == .SQLITE_CONSTRAINT_UNIQUE {
                throw OperationsError.duplicate(id)
            }
        }
        try stall(entry.sequence)
        try stallDependents(of: entry.sequence)
    }

    /// What a mutation shows is different from what it was, and what that touches is unknown.
    func forgetTouched(by sequence: Int64) throws {
        try db.run("UPDATE mutation SET touched = NULL WHERE sequence = ?", [sequence])
    }

    /// Dead letter to pending, at its old place. The caller answers for what its attempts may have done: it is sent
    /// again, and is not provably unsent.
    ///
    /// - Parameter expires: Its new expiry. Nil keeps the old one, unless that is over.
    func replay(_ id: UUID, expires: Date?, now: Date) throws {
        let entry = try entry(id, in: .deadLetter)
        guard let mutation = try mutation(id) else { return }
        let old = mutation.expires.flatMap { now < $0 ? $0 : nil }
        try makePending(mutation, entry, expires: expires ?? old)
    }

    /// Makes pending again what was set aside because of a transfer that is retried, as far as that can be: what waits
    /// for another that has failed goes on when that is retried as well. An expiry is kept, and what is over expires.
    func replayWaiting(for transfer: Int64) throws {
        let waiting = try db.rows(
            """
            SELECT m.id FROM mutation_transfer t JOIN mutation m ON m.sequence = t.sequence
            JOIN mutation_failure f ON f.sequence = m.sequence
            WHERE t.transfer = ? AND m.state = \(mutation: .deadLetter) AND f.class = ? ORDER BY m.sequence
            """, [transfer, MutationFailure.Class.transferFailed.rawValue]
        ) { try $0.uuid(0) }
        for id in waiting {
            guard let mutation = try mutation(id) else { continue }
            do { try makePending(mutation, entry(id), expires: mutation.expires) } catch let error as OperationsError
                where [.wrongState, .unknownTemporaryID].contains(error.code)
            {
                // It stays where it is, with the reason that it has.
            }
        }
    }

    /// The one way back from a dead letter: only where what it holds and waits for may still come.
    private func makePending(_ mutation: Mutation, _ entry: Entry, expires: Date?) throws {
        try requireWhole(mutation)
        if let (transfer, state) = try hopelessTransfer(of: entry.sequence) {
            throw OperationsError(
                .wrongState,
                "The mutation waits for transfer \(transfer.canonicalText), which is \(state); "
                    + (state == .failed ? "retry that" : "discard the mutation, and queue it anew"),
                mutation: mutation.id)
        }
        // What it holds may have been lost while it lay here.
        _ = try resolve(
            mutation.content, lane: entry.lane, partition: entry.partition, own: Set(mutation.temporaryIDs))
        try db.run(
            """
            UPDATE mutation SET state = \(mutation: .pending), queued = NOT stalled, not_before = NULL,
                not_before_set = NULL, expires = ?, telling = NULL, doubt = ?
            WHERE sequence = ?
            """,
            [expires?.milliseconds, mutation.isInDoubt ? KeyDelivery.answeredFor.rawValue : nil, entry.sequence])
        try db.run("DELETE FROM mutation_answer WHERE sequence = ?", [entry.sequence])
        try stallDependents(of: entry.sequence)
    }

    /// - Throws: `.wrongState` where the mutation's row was damaged: parts of its content are lost.
    func requireWhole(_ mutation: Mutation) throws(OperationsError) {
        guard mutation.failure?.class != .damaged else {
            throw OperationsError(
                .wrongState, "The mutation's row was damaged, and parts of it are lost; discard it, and queue it anew",
                mutation: mutation.id)
        }
    }

    /// The first of the transfers that a mutation waits for of which nothing will come; nil where each can still be
    /// done.
    private func hopelessTransfer(of sequence: Int64) throws -> (id: UUID, state: TransferState)? {
        try db.row(
            """
            SELECT t.id, t.state FROM mutation_transfer w JOIN transfer t ON t.sequence = w.transfer
            WHERE w.sequence = ? AND t.state IN \(transfer: TransferState.hopeless) ORDER BY w.transfer LIMIT 1
            """, [sequence]
        ) { (try $0.uuid(0), try TransferState(stored: $0.integer(1))) }
    }

    /// The condition of mutations, as `m`, that must not be pending and are.
    static let isHopelessSQL = """
        m.state = \(mutation: .pending) AND EXISTS (
            SELECT 1 FROM mutation_transfer w JOIN transfer t ON t.sequence = w.transfer
            WHERE w.sequence = m.sequence AND t.state IN \(transfer: TransferState.hopeless))
        """

    /// - Throws: `.unsentWork` where an attempt is under way, which may take effect.
    func requireNoneInFlight(in partition: Int64) throws {
        let count = try db.integer(
            """
            SELECT count(*) FROM mutation INDEXED BY mutation_in_flight
            WHERE partition = ? AND state = \(mutation: .inFlight)
            """, [partition])
        guard count ?? 0 == 0 else {
            throw OperationsError(
                .unsentWork,
                "Under way, and perhaps about to take effect: \((count ?? 0).counted("mutation")); wait for the end",
                unsent: .init(mutations: Int(count ?? 0)))
        }
    }

    /// Gives up what is pending or set aside in a partition, the last first: mutations that depend on one go before it.
    ///
    /// - Returns: How many.
    func discardUnsent(in partition: Int64, now: Date) throws -> Int {
        let ids = try db.rows(
            """
            SELECT id FROM mutation WHERE partition = ? AND state IN \(mutation: [.pending, .deadLetter])
            ORDER BY sequence DESC
            """, [partition]
        ) { try $0.uuid(0) }
        for id in ids { _ = try discard(id, entry(id), .release, now: now) }
        return ids.count
    }

    /// Removes a mutation that is not in flight, and says so in its outcome.
    ///
    /// - Returns: Dependents that were set aside.
    func discard(_ id: UUID, _ entry: Entry, _ dependents: DiscardedDependents, now: Date) throws -> [UUID] {
        let waiting = try db.integers(
            "SELECT sequence FROM mutation_dependency WHERE dependency = ? ORDER BY sequence", [entry.sequence])
        let ids = try waiting.map { sequence -> (Int64, UUID, MutationState) in
            let found = try db.row("SELECT id, state FROM mutation WHERE sequence = ?", [sequence]) { row in
                (sequence, try row.uuid(0), try MutationState(stored: row.integer(1)))
            }
            guard let found else { throw OperationsError.damagedRow("a dependency names a mutation that is not there") }
            return found
        }
        let tokens = try db.texts(
            "SELECT token FROM temporary_id WHERE sequence = ? AND real IS NULL", [entry.sequence])
        for id in tokens.compactMap(TemporaryID.init(_:)) { try lose(id, reservedBy: entry.sequence, now: now) }
        try db.run(
            """
            INSERT INTO outcome (id, partition, sequence, kind, idempotency_key, settled, class, code, message)
            SELECT m.id, m.partition, m.sequence, \(outcome: .discarded), m.idempotency_key, ?, f.class, f.code,
                f.message
            FROM mutation m LEFT JOIN mutation_failure f ON f.sequence = m.sequence WHERE m.sequence = ?
            """, [now.milliseconds, entry.sequence])
        try db.run("DELETE FROM mutation WHERE sequence = ?", [entry.sequence])
        for (sequence, _, state) in ids {
            if case .setAside(let reason) = dependents, state != .deadLetter {
                try setAside(
                    sequence: sequence, MutationFailure(.dependencyDiscarded, message: reason, time: now))
            }
            try stall(sequence)
            try stallDependents(of: sequence)
        }
        return try ids.filter { $0.2 != .deadLetter }.filter { try self.entry($0.1).state == .deadLetter }.map(\.1)
    }
}

/// - Throws: `.invalid` if the bytes are no JSON object.
func requireObject(_ json: [UInt8], of mutation: UUID) throws(OperationsError) {
    guard JSONSyntax.isObject(json) else {
        throw OperationsError(.invalid, "The variables are no JSON object; give them as one", mutation: mutation)
    }
}

/// What becomes of the mutations that wait for one that is discarded.
package enum DiscardedDependents: Sendable, Hashable {
    /// They become dead letters of the class `dependencyDiscarded`, with this reason.
    case setAside(reason: String)
    /// They go on without it. Mutations that hold a temporary id of it are set aside all the same: the server would
    /// not know the id.
    case release
}
