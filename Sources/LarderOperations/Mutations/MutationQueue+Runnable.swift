package import Foundation
import GRDB

/// What can be sent.
package struct Runnable: Sendable, Hashable {
    /// The head of a lane.
    package struct Head: Sendable, Hashable {
        package var id: UUID
        package var sequence: Int64
        package var lane: String
    }

    /// One of each lane whose head waits for nothing, by lane.
    package var heads: [Head] = []
    /// When to look again if nothing is committed before: the earliest time for which a head waits, or at which a
    /// pending mutation expires. Nil if there is none.
    package var lookAgain: Date?
    /// Whether there are pending ones whose time is over. They are not among the heads, and hold up their lanes until
    /// `expire` is called.
    package var mustExpire = false
}

extension MutationQueue {
    /// What can be sent now: of each lane the first that is queued, if none of the lane is in flight, all that it
    /// depends on is settled, and its time has come. Mutations that wait for a dead letter have no place in their
    /// lanes.
    ///
    /// O(log n) for each lane that is looked at, however many are queued.
    ///
    /// - Parameters:
    ///   - after: Lanes up to this one are left out, so that a program with a limit can come to all of them in turn.
    ///   - limit: How many heads are enough; `lookAgain` is then about the lanes that were looked at.
    package func runnable(
        in partition: String, now: Date, after: String? = nil, limit: Int = .max
    ) throws(OperationsError) -> Runnable {
        try read { transaction in
            guard let number = try transaction.db.partition(partition) else { return Runnable() }
            return try transaction.runnable(in: number, now: now, after: after, limit: limit)
        }
    }

    /// Turns pending mutations whose time is over into dead letters of the class `expired`, or of the class
    /// `outcomeUnknown` where an attempt may have taken effect.
    ///
    /// - Returns: Which.
    @discardableResult
    package func expire(in partition: String, now: Date) async throws(OperationsError) -> [UUID] {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return [] }
            let expired = try transaction.db.rows(
                """
                SELECT m.sequence, m.id, m.doubt IS NOT NULL FROM mutation m INDEXED BY mutation_expiry
                WHERE m.partition = ? AND m.state = \(mutation: .pending) AND m.expires IS NOT NULL AND m.expires <= ?
                ORDER BY m.sequence
                """, [number, now.milliseconds]
            ) { (try $0.integer(0), try $0.uuid(1), try $0.integer(2) == 1) }
            for (sequence, _, isInDoubt) in expired {
                let failure =
                    isInDoubt
                    ? MutationFailure(
                        .outcomeUnknown,
                        message: "The mutation's time was over, and an attempt before may have taken effect",
                        time: now)
                    : MutationFailure(
                        .expired, message: "The mutation's time was over before an attempt succeeded", time: now)
                try transaction.setAside(sequence: sequence, failure)
            }
            return expired.map(\.1)
        }
    }
}

extension QueueTransaction {
    private struct Candidate {
        var head: Runnable.Head
        var isFree: Bool
        var expires: Int64?
        var notBefore: Int64?
        var notBeforeSet: Int64?
    }

    func runnable(in partition: Int64, now: Date, after: String?, limit: Int) throws -> Runnable {
        let time = now.milliseconds
        var runnable = Runnable()
        var earliest: Int64?
        var lane = after
        while runnable.heads.count < limit, let candidate = try head(of: partition, after: lane) {
            lane = candidate.head.lane
            guard candidate.isFree, candidate.expires.map({ time < $0 }) ?? true else { continue }
            if let wait = StoredPause.end(candidate.notBefore, set: candidate.notBeforeSet, now: time) {
                earliest = min(earliest ?? wait, wait)
            } else {
                runnable.heads.append(candidate.head)
            }
        }
        if let expiry = try nextExpiry(in: partition) {
            runnable.mustExpire = expiry <= time
            earliest = min(earliest ?? expiry, expiry)
        }
        runnable.lookAgain = earliest.map(Date.init(milliseconds:))
        return runnable
    }

    static let headSQL = """
        SELECT m.sequence, m.id, m.lane, m.expires, m.not_before, m.not_before_set,
            m.state = \(mutation: .pending)
            AND NOT EXISTS (SELECT 1 FROM mutation_dependency d WHERE d.sequence = m.sequence)
            AND NOT EXISTS (SELECT 1 FROM mutation_transfer w WHERE w.sequence = m.sequence)
            AND NOT EXISTS (SELECT 1 FROM mutation f INDEXED BY mutation_in_flight
                WHERE f.partition = m.partition AND f.lane = m.lane AND f.state = \(mutation: .inFlight))
        FROM mutation m INDEXED BY mutation_lane
        WHERE m.partition = ? AND m.lane > ? AND m.queued = 1 ORDER BY m.lane, m.sequence LIMIT 1
        """
    static let firstHeadSQL = headSQL.replacing("m.lane > ?", with: "m.lane >= ?")
    static let nextExpirySQL = """
        SELECT expires FROM mutation INDEXED BY mutation_expiry
        WHERE partition = ? AND state = \(mutation: .pending) AND expires IS NOT NULL ORDER BY expires LIMIT 1
        """

    private func head(of partition: Int64, after lane: String?) throws -> Candidate? {
        try db.row(lane == nil ? Self.firstHeadSQL : Self.headSQL, [partition, lane ?? ""]) { row in
            Candidate(
                head: .init(id: try row.uuid(1), sequence: try row.integer(0), lane: try row.text(2)),
                isFree: try row.integer(6) == 1, expires: try row.optional(3, row.integer),
                notBefore: try row.optional(4, row.integer), notBeforeSet: try row.optional(5, row.integer))
        }
    }

    private func nextExpiry(in partition: Int64) throws -> Int64? {
        try db.integer(Self.nextExpirySQL, [partition])
    }
}
