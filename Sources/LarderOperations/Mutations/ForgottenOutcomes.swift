import GRDB

/// Up to which number the store may have forgotten how mutations ended, by partition: `forgotten_outcome`.
///
/// A transaction that removes outcomes also notes the highest number among the mutations that may have had an effect;
/// one that carries mutations to another partition, where they will be noted, notes the highest number of theirs. A
/// mutation of a higher number, of which the store knows nothing, had not been sent when the note was made: it was
/// provably unsent, or discarded before it was ever begun.
struct ForgottenOutcomes {
    let db: Database

    private static let mayHaveHadEffect = "NOT (o.kind = \(outcome: .discarded) AND o.class IS NULL)"
    private static let keepingHighest =
        "ON CONFLICT (partition) DO UPDATE SET sequence = max(sequence, excluded.sequence)"

    /// The highest number that was given. No column of SQLite's own table has a type.
    private static let highestGiven =
        "ifnull((SELECT CAST(seq AS INTEGER) FROM sqlite_sequence WHERE name = 'mutation'), 0)"

    /// Notes outcomes that are about to be removed. Where the number of one is damaged, it may be any that was given.
    ///
    /// - Parameter condition: Which ones, on the row `o` of `outcome`.
    func note(outcomes condition: String, _ bindings: Bindings) throws {
        try db.run(
            """
            INSERT INTO forgotten_outcome (partition, sequence)
            SELECT p.name,
                CASE WHEN max(typeof(o.sequence) <> 'integer') THEN \(Self.highestGiven) ELSE max(o.sequence) END
            FROM outcome o JOIN partition p ON p.id = o.partition
            WHERE \(Self.mayHaveHadEffect) AND (\(condition)) GROUP BY p.name
            \(Self.keepingHighest)
            """, bindings)
    }

    /// Notes all of a partition that is about to be removed.
    func noteAll(of partition: Int64) throws {
        try note(outcomes: "o.partition = ?", [partition])
        try db.run(
            """
            INSERT INTO forgotten_outcome (partition, sequence)
            SELECT p.name, max(m.sequence) FROM mutation m JOIN partition p ON p.id = m.partition
            WHERE m.partition = ? AND NOT \(ProvablyUnsent.condition("m")) GROUP BY p.name
            \(Self.keepingHighest)
            """, [partition])
    }

    /// Notes mutations that go from one partition to another: how they end is noted there, and forgotten there.
    func note(carried sequences: [Int64], from partition: String) throws {
        guard let highest = sequences.max() else { return }
        try db.run(
            "INSERT INTO forgotten_outcome (partition, sequence) VALUES (?, ?) \(Self.keepingHighest)",
            [partition, highest])
    }

    /// Notes that nothing is known of any number that was given until now.
    func noteEverything() throws {
        try db.run(
            """
            INSERT INTO forgotten_outcome (partition, sequence)
            SELECT '', seq FROM sqlite_sequence WHERE name = 'mutation' AND seq > 0
            \(Self.keepingHighest)
            """)
    }

    /// A condition of SQL: whether `main` would know it if a mutation of a backup had been sent since. A number that
    /// `main` has not given is not one of its own.
    ///
    /// - Parameters:
    ///   - row: The name of the mutation's row in the statement.
    ///   - partition: An expression: the name of its partition.
    static func isRemembered(_ row: String, of partition: String) -> String {
        """
        \(row).sequence <= ifnull((SELECT seq FROM main.sqlite_sequence WHERE name = 'mutation'), 0)
            AND \(row).sequence > ifnull((
                SELECT max(sequence) FROM main.forgotten_outcome WHERE partition IN ('', \(partition))), 0)
        """
    }
}
