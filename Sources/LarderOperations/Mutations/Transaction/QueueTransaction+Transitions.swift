import Foundation
import GRDB

extension QueueTransaction {
    /// - Returns: The mutation as it was begun, where one was.
    func apply(_ transition: Transition, now: Date) throws -> Mutation? {
        switch transition {
        case .begin(let id, let owner, let telling): return try begin(id, owner: owner, telling, now: now)
        case .retryLater(let attempt, let at, let failure, let revision, let doubt):
            try retryLater(attempt, at: at, failure, revision, leaving: doubt, now: now)
        case .answer(let attempt, let answer, let real):
            try acknowledge(attempt, answer, real, now: now)
        case .settle(let id, let result): try settle([(id, result)], now: now)
        case .setAside(let id, let state, let failure):
            try setAside(sequence: entry(id, in: state).sequence, failure)
        case .adopt(let attempt, let old, let new): try adopt(attempt, from: old, to: new)
        }
        return nil
    }

    private func begin(_ id: UUID, owner: String, _ telling: KeyDelivery, now: Date) throws -> Mutation {
        guard let turn = try db.row(Self.turnSQL, [id], Turn.init) else {
            throw OperationsError(.notFound, "There is no such mutation, or it is settled", mutation: id)
        }
        return try begin(turn, owner: owner, telling, now: now)
    }

    private func begin(_ turn: Turn, owner: String, _ telling: KeyDelivery, now: Date) throws -> Mutation {
        var mutation = turn.mutation
        let id = mutation.id
        guard mutation.state == .pending else { throw Self.wrongState(id, .pending, mutation.state) }
        guard mutation.expires.map({ now < $0 }) ?? true else {
            throw OperationsError(.expired, "The mutation's time is over; call expire", mutation: id)
        }
        guard mutation.dependencies.isEmpty else {
            throw OperationsError(.notItsTurn, "It waits for a mutation that is not settled", mutation: id)
        }
        guard mutation.transfers.isEmpty else {
            throw OperationsError(.notItsTurn, "It waits for a transfer that is not done", mutation: id)
        }
        let notBefore = mutation.notBefore?.milliseconds
        guard StoredPause.end(notBefore, set: turn.notBeforeSet, now: now.milliseconds) == nil else {
            throw OperationsError(
                .notItsTurn, "The mutation's time has not come; look again when runnable says", mutation: id)
        }
        guard !turn.isParked else { throw OperationsError.parked(mutation.partition) }
        guard !turn.isLaneTaken else {
            throw OperationsError(.notItsTurn, "Another of its lane is before it", mutation: id)
        }
        mutation.telling = mutation.doubt.map { $0.allowsRepeat(telling) } ?? true ? telling : nil
        try db.run(Self.beginSQL) { row in
            row.bind(owner)
            row.bind(mutation.telling?.rawValue)
            row.bind(mutation.sequence)
        }
        mutation.state = .inFlight
        mutation.attempts += 1
        mutation.owner = owner
        mutation.notBefore = nil
        return mutation
    }

    /// In flight to acknowledged, and the next of its lane to in flight, if there is one and it can be sent now.
    func acknowledge(
        _ attempt: Attempt, _ answer: [UInt8], _ real: [TemporaryID: String], beginningNextAs owner: String,
        telling: KeyDelivery, now: Date
    ) throws -> Mutation? {
        let lane = try acknowledge(attempt, answer, real, now: now)
        let next = try db.row(Self.nextSQL, [lane.partition, lane.name], Turn.init)
        do {
            return try next.map { try begin($0, owner: owner, telling, now: now) }
        } catch let error as OperationsError where [.notItsTurn, .expired, .wrongState, .parked].contains(error.code) {
            // Its own lane may be another's by now: that of the object which the answer has created.
            return nil
        }
    }

    /// A mutation, and what besides it decides whether it may be begun: all of it looked at where it is begun, for
    /// others may have been quicker, and another partition be the current one.
    private struct Turn {
        var mutation: Mutation
        /// When its `notBefore` was worked out.
        var notBeforeSet: Int64?
        /// Whether one of its lane is in flight, or waits and was there before.
        var isLaneTaken: Bool
        var isParked: Bool

        /// From the columns of `turnSQL`.
        init(_ row: Columns) throws {
            mutation = try Mutation(row)
            notBeforeSet = try row.optional(32, row.integer)
            isLaneTaken = try row.integer(33) == 1
            isParked = try row.integer(34) == 1
        }
    }

    private static let turnSelection = """
        SELECT \(columns), m.not_before_set,
            EXISTS (SELECT 1 FROM mutation b INDEXED BY mutation_lane
                WHERE b.partition = m.partition AND b.lane = m.lane AND b.queued = 1 AND b.sequence < m.sequence)
            OR EXISTS (SELECT 1 FROM mutation f INDEXED BY mutation_in_flight
                WHERE f.partition = m.partition AND f.lane = m.lane AND f.state = \(mutation: .inFlight)),
            \(Database.isParked("m.partition"))
        FROM \(tables)
        """
    private static let beginSQL = """
        UPDATE mutation SET state = \(mutation: .inFlight), attempts = attempts + 1, owner = ?, not_before = NULL,
            not_before_set = NULL, telling = ?
        WHERE sequence = ?
        """
    private static let acknowledgeSQL =
        "UPDATE mutation SET state = \(mutation: .acknowledged), queued = 0, owner = NULL WHERE sequence = ?"
    static let turnSQL = turnSelection + " WHERE m.id = ?"
    static let nextSQL =
        turnSelection + """
             WHERE m.sequence = (SELECT sequence FROM mutation INDEXED BY mutation_lane
                WHERE partition = ? AND lane = ? AND queued = 1 ORDER BY sequence LIMIT 1)
            """

    private func retryLater(
        _ attempt: Attempt, at: Date?, _ failure: MutationFailure, _ revision: Revision?,
        leaving doubt: RemainingDoubt?, now: Date
    ) throws {
        let entry = try entry(attempt)
        let doubtful =
            switch doubt ?? (failure.class.leavesDoubt ? .attempt : .asBefore) {
            case .asBefore: "doubt"
            case .attempt: "coalesce(telling, doubt, '')"
            case .unrepeatable: "'\(KeyDelivery.none.rawValue)'"
            case .none: "NULL"
            }
        try db.run(
            """
            UPDATE mutation SET state = \(mutation: .pending), owner = NULL, not_before = ?, not_before_set = ?,
                telling = NULL, doubt = \(doubtful)
            WHERE sequence = ?
            """, [at?.milliseconds, at.map { _ in now.milliseconds }, entry.sequence])
        try note(failure, of: entry.sequence)
        if let revision { try revise(attempt.mutation, entry, revision) }
    }

    /// - Returns: The lane that it leaves.
    @discardableResult
    private func acknowledge(
        _ attempt: Attempt, _ answer: [UInt8], _ real: [TemporaryID: String], now: Date
    ) throws -> (partition: Int64, name: String) {
        // Looked at and changed by two statements: what RETURNING says goes through a table of its own, which takes
        // longer than both.
        let entry = try entry(attempt)
        try db.run(Self.acknowledgeSQL) { row in row.bind(entry.sequence) }
        try db.run("INSERT INTO mutation_answer (sequence, answer) VALUES (?, ?)") { row in
            row.bind(entry.sequence)
            row.bind(answer)
        }
        guard try !real.isEmpty || hasReserved(entry.sequence) else { return (entry.partition, entry.lane) }
        try resolveReserved(by: attempt.mutation, entry.sequence, to: real, now: now)
        return (entry.partition, try self.entry(attempt.mutation).lane)
    }

    func setAside(sequence: Int64, _ failure: MutationFailure) throws {
        try db.run(
            "UPDATE mutation SET state = \(mutation: .deadLetter), queued = 0, owner = NULL WHERE sequence = ?",
            [sequence])
        try note(failure, of: sequence)
        try stallDependents(of: sequence)
    }

    private func adopt(_ attempt: Attempt, from old: String, to new: String) throws {
        let entry = try entry(attempt)
        guard entry.owner == old else {
            throw OperationsError(
                .wrongState, "The attempt belongs to \(entry.owner ?? "no runner") by now. Look again.",
                mutation: attempt.mutation)
        }
        try db.run("UPDATE mutation SET owner = ? WHERE sequence = ?", [new, entry.sequence])
    }
}
