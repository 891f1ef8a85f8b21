internal import Foundation
internal import GRDB

extension QueueTransaction {
    /// - Returns: The mutation as it was begun, where one was.
    func apply(_ transition: Transition, now: Date) throws -> Mutation? {
        switch transition {
        case .begin(let id, let owner): return try begin(id, owner: owner, now: now)
        case .retryLater(let attempt, let at, let failure, let revision):
            try retryLater(attempt, at: at, failure, revision, now: now)
        case .answer(let attempt, let answer, let real):
            try acknowledge(attempt, answer, real, now: now)
        case .beginNext(let id, let owner): return try beginNext(after: id, owner: owner, now: now)
        case .settle(let id, let result): try settle(id, result: result, now: now)
        case .setAside(let id, let state, let failure):
            try setAside(sequence: entry(id, in: state).sequence, failure)
        case .adopt(let attempt, let old, let new): try adopt(attempt, from: old, to: new)
        }
        return nil
    }

    private func begin(_ id: UUID, owner: String, now: Date) throws -> Mutation {
        guard var mutation = try mutation(id) else {
            throw OperationsError(.notFound, "there is no such mutation, or it is settled", mutation: id)
        }
        guard mutation.state == .pending else { throw Self.wrongState(id, .pending, mutation.state) }
        guard mutation.expires.map({ now < $0 }) ?? true else {
            throw OperationsError(.expired, "its time is over; call expire", mutation: id)
        }
        guard mutation.dependencies.isEmpty else {
            throw OperationsError(.notItsTurn, "it waits for a mutation that is not settled", mutation: id)
        }
        guard mutation.transfers.isEmpty else {
            throw OperationsError(.notItsTurn, "it waits for a transfer that is not done", mutation: id)
        }
        guard try !isWaiting(mutation, now) else {
            throw OperationsError(.notItsTurn, "its time has not come; look again when runnable says", mutation: id)
        }
        guard let partition = try db.usablePartition(mutation.partition),
            try !isLaneTaken(partition, mutation.lane, before: mutation.sequence)
        else { throw OperationsError(.notItsTurn, "another of its lane is before it", mutation: id) }
        try db.run(
            """
            UPDATE mutation SET state = 1, attempts = attempts + 1, owner = ?, not_before = NULL, not_before_set = NULL
            WHERE sequence = ?
            """, [owner, mutation.sequence])
        mutation.state = .inFlight
        mutation.attempts += 1
        mutation.owner = owner
        mutation.notBefore = nil
        return mutation
    }

    private func beginNext(after id: UUID, owner: String, now: Date) throws -> Mutation? {
        let entry = try entry(id)
        let next = try db.row(Self.nextSQL, [entry.partition, entry.lane]) { try $0.uuid(0) }
        do {
            return try next.map { try begin($0, owner: owner, now: now) }
        } catch let error as OperationsError where [.notItsTurn, .expired, .wrongState, .parked].contains(error.code)
        {
            // Its own lane may be another's by now: that of the object which the answer has created.
            return nil
        }
    }

    static let nextSQL = """
        SELECT id FROM mutation INDEXED BY mutation_lane
        WHERE partition = ? AND lane = ? AND queued = 1 ORDER BY sequence LIMIT 1
        """

    /// Whether it is not to be sent yet.
    private func isWaiting(_ mutation: Mutation, _ now: Date) throws -> Bool {
        guard let time = mutation.notBefore else { return false }
        let set = try db.row("SELECT not_before_set FROM mutation WHERE sequence = ?", [mutation.sequence]) { row in
            try row.optional(0, row.integer)
        }
        return Self.isWaiting(until: time.milliseconds, set: set ?? nil, now: now.milliseconds)
    }

    /// Whether one is not to be sent yet, in milliseconds since 1970.
    ///
    /// - Parameter set: When the time was worked out; the clock has been set back since if that is yet to come.
    static func isWaiting(until time: Int64?, set: Int64?, now: Int64) -> Bool {
        guard let time, now < time else { return false }
        return set.map { $0 <= now } ?? true
    }

    /// Whether one of the lane is in flight, or waits and was there before.
    private func isLaneTaken(_ partition: Int64, _ lane: String, before sequence: Int64) throws -> Bool {
        try db.exists(
            """
            SELECT 1 FROM mutation INDEXED BY mutation_lane
            WHERE partition = ? AND lane = ? AND queued = 1 AND sequence < ? LIMIT 1
            """, [partition, lane, sequence])
            || db.exists(
                """
                SELECT 1 FROM mutation INDEXED BY mutation_in_flight
                WHERE partition = ? AND lane = ? AND state = 1 LIMIT 1
                """, [partition, lane])
    }

    private func retryLater(
        _ attempt: Attempt, at: Date?, _ failure: MutationFailure, _ revision: Revision?, now: Date
    ) throws {
        let entry = try entry(attempt)
        try db.run(
            "UPDATE mutation SET state = 0, owner = NULL, not_before = ?, not_before_set = ? WHERE sequence = ?",
            [at?.milliseconds, at.map { _ in now.milliseconds }, entry.sequence])
        try note(failure, of: entry.sequence)
        if let revision { try revise(attempt.mutation, entry, revision) }
    }

    private func acknowledge(
        _ attempt: Attempt, _ answer: [UInt8], _ real: [TemporaryID: String], now: Date
    ) throws {
        let entry = try entry(attempt)
        try db.run(
            "UPDATE mutation SET state = 2, queued = 0, owner = NULL WHERE sequence = ?", [entry.sequence])
        try db.run(
            "INSERT INTO mutation_answer (sequence, answer) VALUES (?, ?)", [entry.sequence, answer])
        try resolveReserved(by: attempt.mutation, entry.sequence, to: real, now: now)
    }

    private func settle(_ id: UUID, result: [UInt8]?, now: Date) throws {
        let entry = try entry(id, in: .acknowledged)
        try db.run(
            """
            INSERT INTO outcome (id, partition, sequence, kind, idempotency_key, settled, result)
            SELECT id, partition, sequence, 0, idempotency_key, ?, ? FROM mutation WHERE sequence = ?
            """, [now.milliseconds, result, entry.sequence])
        try db.run("DELETE FROM mutation WHERE sequence = ?", [entry.sequence])
    }

    func setAside(sequence: Int64, _ failure: MutationFailure) throws {
        try db.run("UPDATE mutation SET state = 3, queued = 0, owner = NULL WHERE sequence = ?", [sequence])
        try note(failure, of: sequence)
        try stallDependents(of: sequence)
    }

    private func adopt(_ attempt: Attempt, from old: String, to new: String) throws {
        let entry = try entry(attempt)
        guard entry.owner == old else {
            throw OperationsError(
                .wrongState, "the attempt is \(entry.owner ?? "nobody")'s by now; look again",
                mutation: attempt.mutation)
        }
        try db.run("UPDATE mutation SET owner = ? WHERE sequence = ?", [new, entry.sequence])
    }
}
