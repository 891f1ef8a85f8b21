internal import Foundation
internal import GRDB

extension QueueTransaction {
    /// Changes what a mutation says. Whoever calls this has made sure that it is not in flight.
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
                    "the variables hold a temporary id of a later mutation; discard this one and queue a new one",
                    mutation: id)
            }
            try addDependency(of: entry.sequence, on: dependency.sequence)
        }
        for use in found.uses { try addUse(of: use, by: entry.sequence) }
        try db.run(
            "UPDATE mutation_content SET variables = ?, optimistic_response = ?, list_edits = ? WHERE sequence = ?",
            [found.content.variables, found.content.optimisticResponse,
                found.content.listEdits, entry.sequence])
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

    /// What a mutation shows is different from what it was: nobody knows what that touches.
    func forgetTouched(by sequence: Int64) throws {
        try db.run("UPDATE mutation SET touched = NULL WHERE sequence = ?", [sequence])
    }

    /// Dead letter to pending, at its old place.
    func replay(_ id: UUID, expires: Date?) throws {
        let entry = try entry(id, in: .deadLetter)
        guard let mutation = try mutation(id) else { return }
        // What it holds may have been lost while it lay here.
        _ = try resolve(
            mutation.content, lane: entry.lane, partition: entry.partition, own: Set(mutation.temporaryIDs))
        try db.run(
            """
            UPDATE mutation SET state = 0, queued = NOT stalled, not_before = NULL, not_before_set = NULL, expires = ?
            WHERE sequence = ?
            """, [expires?.milliseconds, entry.sequence])
        try db.run("DELETE FROM mutation_answer WHERE sequence = ?", [entry.sequence])
        try stallDependents(of: entry.sequence)
    }

    /// - Throws: `.unsentWork` where an attempt is under way, which may take effect.
    func requireNoneInFlight(in partition: Int64) throws {
        let count = try db.integer(
            "SELECT count(*) FROM mutation INDEXED BY mutation_in_flight WHERE partition = ? AND state = 1", [partition])
        guard count ?? 0 == 0 else {
            throw OperationsError(
                .unsentWork, "\(count ?? 0) mutations are under way and may take effect; wait for them")
        }
    }

    /// Gives up what is pending or set aside in a partition, the last first: whoever depended on one is gone before it.
    ///
    /// - Returns: How many.
    func discardUnsent(in partition: Int64, now: Date) throws -> Int {
        let ids = try db.rows(
            "SELECT id FROM mutation WHERE partition = ? AND state IN (0, 3) ORDER BY sequence DESC", [partition]
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
            guard let found else { throw OperationsError.damaged("a dependency names a mutation that is not there") }
            return found
        }
        let tokens = try db.texts(
            "SELECT token FROM temporary_id WHERE sequence = ? AND real IS NULL", [entry.sequence])
        for id in tokens.compactMap(TemporaryID.init(_:)) { try lose(id, reservedBy: entry.sequence, now: now) }
        try db.run(
            """
            INSERT INTO outcome (id, partition, sequence, kind, idempotency_key, settled, class, code, message)
            SELECT m.id, m.partition, m.sequence, 1, m.idempotency_key, ?, f.class, f.code, f.message
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
        throw OperationsError(.invalid, "the variables are no JSON object; give them as one", mutation: mutation)
    }
}

/// What becomes of the mutations that wait for one that is discarded.
package enum DiscardedDependents: Sendable, Hashable {
    /// They become dead letters of the class `dependencyDiscarded`, with this reason.
    case setAside(reason: String)
    /// They go on without it. Those that hold a temporary id of it are set aside all the same: the server would not
    /// know the id.
    case release
}
