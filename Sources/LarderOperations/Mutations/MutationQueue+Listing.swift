package import Foundation
import GRDB

/// Which mutations are meant; nil means any.
package struct MutationFilter: Sendable, Hashable {
    package var partition: String?
    package var states: Set<MutationState>?
    package var lane: String?

    package init(partition: String? = nil, states: Set<MutationState>? = nil, lane: String? = nil) {
        self.partition = partition
        self.states = states
        self.lane = lane
    }
}

extension MutationQueue {
    /// What is known of a mutation: the row, or the outcome of one that is settled, at one moment.
    package func find(_ id: UUID) throws(OperationsError) -> Standing {
        try database.settleCommits()
        return try read { transaction in
            if let mutation = try transaction.mutation(id) { return .present(mutation) }
            return try transaction.outcome(id).map(Standing.settled) ?? .unknown
        }
    }

    /// Mutations in their sequence. Those whose rows are damaged are left out; a check names them.
    ///
    /// Quick where states other than pending are asked for; otherwise O(rows of the file) at worst.
    ///
    /// - Parameters:
    ///   - after: The sequence of the last one that is known; 0 for the beginning.
    ///   - limit: How many at most.
    ///   - isStrict: Whether a damaged row is an error, and not left out.
    package func list(
        _ filter: MutationFilter = MutationFilter(), after: Int64 = 0, limit: Int = .max, isStrict: Bool = false
    ) throws(OperationsError) -> [Mutation] {
        try read { try $0.list(filter, after: after, limit: limit, isStrict: isStrict) }
    }

    /// What the unsettled mutations of a partition are expected to do, in their sequence, without dead letters and
    /// mutations that say nothing of it. Where it is known what they touch, the rest is not read.
    package func expectations(in partition: String) throws(OperationsError) -> [Expectation] {
        try read { transaction in
            guard let number = try transaction.db.partition(partition) else { return [] }
            return try transaction.expectations(in: number)
        }
    }

    /// What mutations are expected to do now, all at one moment, in their sequence. Mutations that are settled or set
    /// aside by now are left out.
    package func expectations(of sequences: [Int64]) throws(OperationsError) -> [Expectation] {
        try read { try $0.expectations(of: sequences) }
    }

    /// How many of a partition are in each state.
    package func counts(in partition: String) throws(OperationsError) -> [MutationState: Int] {
        try read { try $0.counts(in: partition) }
    }

    /// How many of a partition are in each state, by lane, and which are set aside, all at one moment. O(rows of the
    /// partition).
    package func laneCounts(
        in partition: String
    ) throws(OperationsError) -> (lanes: [String: [MutationState: Int]], deadLetters: [SetAside]) {
        try read { (try $0.laneCounts(in: partition), try $0.deadLetters(in: partition)) }
    }

    /// How many of each partition are in each state. O(rows of the file).
    package func counts() throws(OperationsError) -> [String: [MutationState: Int]] {
        try read { transaction in
            let rows = try transaction.db.readableRows(
                """
                SELECT p.name, m.state, count(*) FROM mutation m JOIN partition p ON p.id = m.partition
                GROUP BY m.partition, m.state
                """
            ) { (try $0.text(0), try MutationState(stored: $0.integer(1)), Int(try $0.integer(2))) }
            return rows.reduce(into: [:]) { $0[$1.0, default: [:]][$1.1] = $1.2 }
        }
    }

    /// Whether anything would be lost with a partition that may not have reached the server: pending, in flight, or a
    /// dead letter. O(log n).
    package func hasUnsent(in partition: String) throws(OperationsError) -> Bool {
        try read { transaction in
            try transaction.db.partition(partition).map(transaction.hasUnsent(in:)) ?? false
        }
    }

    /// Whether anything is pending, in flight or acknowledged that does not wait for a dead letter. O(log n).
    package func hasMoving(in partition: String) throws(OperationsError) -> Bool {
        try read { transaction in
            try transaction.db.partition(partition).map(transaction.hasMoving(in:)) ?? false
        }
    }

    /// What dead owners left in flight, in sequence. The caller decides, with `adopt` first where that takes time:
    /// `retryLater` where the server tells a repeat, asking it with the check query, or `setAside` as `outcomeUnknown`.
    ///
    /// - Parameter isAlive: Whether the owner of this name lives; asked once for each.
    package func recover(
        in partition: String, isAlive: (String) -> Bool
    ) throws(OperationsError) -> [Mutation] {
        let inFlight = try list(MutationFilter(partition: partition, states: [.inFlight]), isStrict: true)
        let dead = Set(inFlight.compactMap(\.owner)).filter { !isAlive($0) }
        return inFlight.filter { $0.owner.map(dead.contains) ?? true }
    }

    /// Forgets the outcomes of what was settled, and the real ids that were learnt, before a time. A mutation that is
    /// queued afterwards and holds such a temporary id is refused.
    ///
    /// - Returns: How many outcomes. O(outcomes and temporary ids).
    @discardableResult
    package func prune(before time: Date) async throws(OperationsError) -> Int {
        try await write { transaction in
            try transaction.db.run(
                "DELETE FROM temporary_id WHERE resolved < ? AND sequence IS NULL", [time.milliseconds])
            try ForgottenOutcomes(db: transaction.db).note(outcomes: "o.settled < ?", [time.milliseconds])
            try transaction.db.run("DELETE FROM outcome WHERE settled < ?", [time.milliseconds])
            return transaction.db.changesCount
        }
    }

    /// Forgets the outcomes of a partition but those of the last mutations: by their number and not by a clock, which
    /// may be set to anything.
    ///
    /// - Returns: How many. O(outcomes).
    @discardableResult
    package func prune(keeping count: Int, in partition: String) async throws(OperationsError) -> Int {
        try await write { transaction in
            guard let number = try transaction.db.partition(partition) else { return 0 }
            let isOld = """
                o.partition = ?1 AND o.sequence <= (SELECT max(sequence) FROM outcome WHERE partition = ?1) - ?2
                """
            try ForgottenOutcomes(db: transaction.db).note(outcomes: isOld, [number, count])
            try transaction.db.run("DELETE FROM outcome AS o WHERE \(isOld)", [number, count])
            return transaction.db.changesCount
        }
    }
}

extension MutationQueue {
    /// The real ids of the temporary ones for which an answer has given any.
    package func realIDs(
        of ids: Set<TemporaryID>, in partition: String
    ) throws(OperationsError) -> [TemporaryID: String] {
        try read { transaction in
            var real: [TemporaryID: String] = [:]
            for id in ids {
                real[id] = try transaction.db.texts(
                    """
                    SELECT t.real FROM temporary_id t JOIN partition p ON p.id = t.partition
                    WHERE t.token = ? AND p.name = ? AND t.real IS NOT NULL
                    """, [id.text, partition]
                ).first
            }
            return real
        }
    }
}

/// One setting aside of a mutation: one that was replayed and is set aside again is another.
package struct SetAside: Sendable, Hashable {
    package var id: UUID
    var attempts: Int64
    /// In milliseconds since 1970.
    var time: Int64?
}
