import GRDB

/// Who waits for a dead letter, through however many others.
extension QueueTransaction {
    /// Works out anew which of the mutations that depend on one are stalled.
    func stallDependents(of sequence: Int64) throws {
        let hasAny = try db.exists("SELECT 1 FROM mutation_dependency WHERE dependency = ? LIMIT 1", [sequence])
        guard hasAny else { return }
        // Dependencies have smaller numbers: in ascending order each is looked at after all that it waits for.
        let dependents = try db.integers(
            """
            WITH RECURSIVE dependent (sequence) AS (
                SELECT sequence FROM mutation_dependency WHERE dependency = ?
                UNION
                SELECT d.sequence FROM mutation_dependency d JOIN dependent ON d.dependency = dependent.sequence
            )
            SELECT sequence FROM dependent ORDER BY sequence
            """, [sequence])
        for dependent in dependents { try stall(dependent) }
    }

    /// Works out anew whether a mutation is stalled.
    func stall(_ sequence: Int64) throws {
        let isStalled = try db.exists(
            """
            SELECT 1 FROM mutation_dependency d JOIN mutation m ON m.sequence = d.dependency
            WHERE d.sequence = ? AND (m.state = \(mutation: .deadLetter) OR m.stalled = 1) LIMIT 1
            """, [sequence])
        try db.run(
            """
            UPDATE mutation SET stalled = ?1, queued = state < \(mutation: .acknowledged) AND NOT ?1
            WHERE sequence = ?2 AND stalled <> ?1
            """, [isStalled ? 1 : 0, sequence])
    }
}
