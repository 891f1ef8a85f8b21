import Foundation
import GRDB

/// What is done to the queue, inside one transaction: each call wholly, or it throws and the caller rolls back.
struct QueueTransaction {
    let db: Database

    /// What decides on a transition.
    struct Entry {
        var sequence: Int64
        var partition: Int64
        var lane: String
        var state: MutationState
        var isStalled: Bool
        var attempts: Int
        var owner: String?
    }

    /// - Throws: `.notFound`.
    func entry(_ id: UUID) throws -> Entry {
        let entry = try db.row(
            "SELECT sequence, partition, lane, state, stalled, attempts, owner FROM mutation WHERE id = ?", [id]
        ) { row in
            Entry(
                sequence: try row.integer(0), partition: try row.integer(1), lane: try row.text(2),
                state: try MutationState(stored: row.integer(3)), isStalled: try row.integer(4) == 1,
                attempts: try row.count(5), owner: try row.optional(6, row.text))
        }
        guard let entry else {
            throw OperationsError(.notFound, "There is no such mutation, or it is settled", mutation: id)
        }
        return entry
    }

    /// - Throws: `.notFound`, `.wrongState`.
    func entry(_ id: UUID, in state: MutationState) throws -> Entry {
        let entry = try entry(id)
        guard entry.state == state else { throw Self.wrongState(id, state, entry.state) }
        return entry
    }

    /// - Throws: `.notFound`; `.wrongState` if the attempt is not under way, or another is.
    func entry(_ attempt: Attempt) throws -> Entry {
        let entry = try entry(attempt.mutation, in: .inFlight)
        guard entry.attempts == attempt.number else {
            throw OperationsError(
                .wrongState, "Attempt \(attempt.number) is over, attempt \(entry.attempts) is under way; look again",
                mutation: attempt.mutation)
        }
        return entry
    }

    static func wrongState(_ id: UUID, _ expected: MutationState, _ found: MutationState) -> OperationsError {
        OperationsError(
            .wrongState,
            "The mutation is \(found), and the call is for one that is \(expected); look at it again",
            mutation: id)
    }

    func note(_ failure: MutationFailure, of sequence: Int64) throws {
        var failure = failure
        // That the last attempt had no effect says nothing of earlier attempts.
        if failure.class.isOfOneAttempt {
            let last = try db.texts("SELECT class FROM mutation_failure WHERE sequence = ?", [sequence]).first
            if let last = last.map(MutationFailure.Class.init), last.leavesDoubt { failure.class = last }
        }
        try db.run(
            """
            INSERT OR REPLACE INTO mutation_failure (sequence, class, code, message, details, time)
            VALUES (?, ?, ?, ?, ?, ?)
            """,
            [
                sequence, failure.class.rawValue, failure.code, failure.message, failure.details,
                failure.time.milliseconds,
            ])
    }
}
