internal import Foundation
internal import GRDB

/// What is done inside the one transaction that brings back a backup, attached as `backup` and of the same schema.
///
/// Other processes have the database open, and have mutations under way. What happened since the backup happened: what
/// the store knows of a mutation, that it is in flight, answered or settled, is newer than what the backup says, and
/// stays. Nor do keys, credentials and sessions come back: one that was replaced since would be taken for a stolen one
/// by whoever issued it, and one that was destroyed was to be gone.
///
/// Rows are copied one by one, so that this is a transaction like others. SQLite's online backup into the live file
/// would be one too, but whatever is settled between reading the outcomes and writing the pages would be pending again.
struct Restoration {
    let db: Database
    let now: Date
    private(set) var report = RestorationReport()

    init(db: Database, now: Date) {
        self.db = db
        self.now = now
    }

    /// - Parameter token: Noted in the store: what was staged under it is to become the caches.
    /// - Throws: `.foreignBackup`, `.environmentChanged`.
    mutating func run(token: String) throws {
        try requireSameStore()
        try restoreEnvironments()
        try restorePartitions()
        try restoreWatchers()
        // Before the backup's outcomes are among them.
        let forgotten = try lastForgotten()
        try restoreOutcomes()
        try restoreMutations(forgotten)
        // Numbers that were given are not given again.
        try db.run("""
            UPDATE main.sqlite_sequence SET seq = max(seq, ifnull(
                (SELECT b.seq FROM backup.sqlite_sequence b WHERE b.name = sqlite_sequence.name), 0))
            """)
        try db.run("UPDATE main.store SET restoration = ?", [token])
        try db.execute(sql: "DROP TABLE temp.restored_partition; DROP TABLE temp.restored_mutation")
    }

    private func requireSameStore() throws {
        let isSame = try db.exists(
            "SELECT 1 FROM main.store s JOIN backup.store b ON b.identity = s.identity")
        guard isSame else { throw OperationsError.foreignBackup }
    }

    // MARK: Environments and partitions

    private func restoreEnvironments() throws {
        let changed = try db.texts("""
            SELECT b.name FROM backup.environment b JOIN main.environment e ON e.name = b.name
            WHERE e.data <> b.data AND EXISTS (
                SELECT 1 FROM backup.partition p WHERE p.environment = b.id
                    AND p.name NOT IN (SELECT name FROM main.partition))
            """)
        if let name = changed.first {
            throw OperationsError(
                .environmentChanged, "the environment \(name) is another backend now than in the backup, whose data "
                    + "would become its own; give it another name first")
        }
        try db.run("""
            INSERT INTO main.environment (name, definition, identity, data, storage, protected, created, updated)
            SELECT name, definition, identity, data, storage, protected, created, updated FROM backup.environment
            WHERE name NOT IN (SELECT name FROM main.environment) ORDER BY id
            """)
    }

    private mutating func restorePartitions() throws {
        // One of another name may belong to the same user of the same environment by now.
        try db.run("""
            INSERT OR IGNORE INTO main.partition (name, environment, user, created, used)
            SELECT p.name, (
                SELECT e.id FROM main.environment e JOIN backup.environment b ON b.name = e.name
                WHERE b.id = p.environment
            ), p.user, p.created, p.used
            FROM backup.partition p WHERE p.name NOT IN (SELECT name FROM main.partition) ORDER BY p.id
            """)
        report.partitions = db.changesCount
        try db.run("""
            CREATE TEMP TABLE restored_partition AS
            SELECT b.id AS old, p.id AS new FROM backup.partition b JOIN main.partition p ON p.name = b.name
            """)
        report.leftOut = try db.texts("""
            SELECT name FROM backup.partition WHERE id NOT IN (SELECT old FROM temp.restored_partition) ORDER BY id
            """)
        // Which environment is the current one was decided since, unless it was never.
        try db.run("""
            INSERT OR IGNORE INTO main.current_partition (only, partition, number, switched)
            SELECT 1, r.new, c.number, c.switched FROM backup.current_partition c
            LEFT JOIN temp.restored_partition r ON r.old = c.partition
            """)
    }

    private func restoreWatchers() throws {
        let partitions = try db.rows("SELECT old, new FROM temp.restored_partition") {
            (try $0.integer(0), try $0.integer(1))
        }
        for (old, new) in partitions { try copy("watcher", "partition = ?", [old], as: new) }
    }

    private func restoreOutcomes() throws {
        let columns = try columns(of: "outcome").filter { $0 != "partition" }
        let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
        let values = columns.map { "o.\"\($0)\"" }.joined(separator: ", ")
        try db.run("""
            INSERT OR IGNORE INTO main.outcome (partition, \(list))
            SELECT r.new, \(values) FROM backup.outcome o JOIN temp.restored_partition r ON r.old = o.partition
            WHERE o.id NOT IN (SELECT id FROM main.mutation)
                AND o.sequence NOT IN (SELECT sequence FROM main.mutation)
                AND o.sequence NOT IN (SELECT sequence FROM main.outcome)
            """)
    }

    // MARK: Mutations

    /// The highest number of a mutation whose outcome the store may have had and forgotten. Of one that knows no
    /// outcome nothing was forgotten: the last is always kept.
    private func lastForgotten() throws -> Int64 {
        let highest = try db.integer("SELECT ifnull(max(sequence), 0) FROM main.outcome") ?? 0
        return highest - Int64(Outcome.kept)
    }

    /// - Parameter forgotten: Up to this number a mutation of which the store knows nothing may have been settled.
    private mutating func restoreMutations(_ forgotten: Int64) throws {
        try db.run("""
            CREATE TEMP TABLE restored_mutation AS
            SELECT b.sequence AS sequence, b.state = 1 OR (b.state = 0 AND b.sequence <= \(forgotten)) AS is_open
            FROM backup.mutation b JOIN temp.restored_partition r ON r.old = b.partition
            WHERE b.id NOT IN (SELECT id FROM main.mutation) AND b.id NOT IN (SELECT id FROM main.outcome)
                AND NOT EXISTS (SELECT 1 FROM main.mutation m
                    WHERE m.partition = r.new AND m.idempotency_key = b.idempotency_key)
                AND NOT EXISTS (SELECT 1 FROM main.outcome o
                    WHERE o.partition = r.new AND o.idempotency_key = b.idempotency_key)
            """)
        report.mutations = try count("SELECT count(*) FROM temp.restored_mutation")
        report.setAside = try count("SELECT count(*) FROM temp.restored_mutation WHERE is_open")
        report.kept = try count("""
            SELECT count(*) FROM backup.mutation b WHERE b.id IN (SELECT id FROM main.mutation)
            """)
        report.settledSince = try count("SELECT count(*) FROM backup.mutation") - report.mutations - report.kept
        guard report.mutations > 0 else { return }
        try requireFreeNumbers()
        try copyMutations()
        let restored = try db.integers("SELECT sequence FROM temp.restored_mutation ORDER BY sequence")
        try copyTemporaryIDs(of: restored)
        let queue = QueueTransaction(db: db)
        for sequence in restored { try queue.stall(sequence) }
    }

    private func requireFreeNumbers() throws {
        let isTaken = try db.exists("""
            SELECT 1 FROM temp.restored_mutation r WHERE r.sequence IN (SELECT sequence FROM main.mutation)
                OR r.sequence IN (SELECT sequence FROM main.outcome)
            """)
        guard !isTaken else {
            throw OperationsError(
                .foreignBackup, "the backup and the store have gone their own ways: both gave the same numbers to "
                    + "different mutations; restore it into a new folder")
        }
    }

    private func copyMutations() throws {
        // Nobody knows whether the server has what was in flight: whoever had it is gone. Nor what became of one that
        // is pending in the backup and so old that its outcome may be forgotten.
        try db.run("""
            INSERT INTO main.mutation (sequence, id, partition, lane, state, stalled, queued, attempts, owner,
                idempotency_key, created, expires, not_before, not_before_set)
            SELECT b.sequence, b.id, r.new, b.lane, iif(t.is_open, 3, b.state), 0, b.state = 0 AND NOT t.is_open,
                b.attempts, NULL, b.idempotency_key, b.created, b.expires, b.not_before, b.not_before_set
            FROM backup.mutation b JOIN temp.restored_partition r ON r.old = b.partition
            JOIN temp.restored_mutation t ON t.sequence = b.sequence ORDER BY b.sequence
            """)
        let isRestored = "sequence IN (SELECT sequence FROM temp.restored_mutation)"
        for table in ["mutation_content", "mutation_answer", "mutation_failure"] { try copy(table, isRestored, []) }
        try db.run("""
            INSERT OR REPLACE INTO main.mutation_failure (sequence, class, message, time)
            SELECT b.sequence, ?1, iif(b.state = 1, ?2, ?3), ?4
            FROM backup.mutation b JOIN temp.restored_mutation t ON t.sequence = b.sequence WHERE t.is_open
            """,
            [
                MutationFailure.Class.outcomeUnknown.rawValue,
                "it was in flight when the backup was made; look whether the server has it",
                "it was pending when the backup was made, so long ago that its outcome may be forgotten; look whether "
                    + "the server has it",
                now.milliseconds,
            ])
        try copy("mutation_dependency", "\(isRestored) AND dependency IN (SELECT sequence FROM main.mutation)", [])
    }

    /// Real ids that the store has learnt since take the places of temporary ones, as they did in all its rows.
    private func copyTemporaryIDs(of restored: [Int64]) throws {
        try db.run("""
            INSERT OR IGNORE INTO main.temporary_id (token, partition, sequence, real, resolved)
            SELECT t.token, r.new, (SELECT m.sequence FROM main.mutation m WHERE m.sequence = t.sequence), t.real,
                t.resolved
            FROM backup.temporary_id t JOIN temp.restored_partition r ON r.old = t.partition
            WHERE t.real IS NOT NULL OR t.sequence IN (SELECT sequence FROM temp.restored_mutation)
            """)
        let queue = QueueTransaction(db: db)
        for sequence in restored {
            let tokens = try db.texts("SELECT token FROM backup.temporary_id_use WHERE sequence = ?", [sequence])
            for id in tokens.compactMap(TemporaryID.init(_:)) {
                let real = try db.row("SELECT real FROM main.temporary_id WHERE token = ?", [id.text]) { row in
                    try row.optional(0, row.text)
                }
                switch real {
                case .some(.some(let real)): try queue.rewrite(sequence, sparing: [], [id: real])
                case .some(.none): try queue.addUse(of: id, by: sequence)
                case .none:
                    let message = "it holds \(id.text), for which there is no real id; edit its variables"
                    try queue.setAside(
                        sequence: sequence, MutationFailure(.temporaryIDLost, message: message, time: now))
                }
            }
        }
    }

    // MARK: Rows

    private func columns(of table: String) throws -> [String] {
        try db.texts("SELECT name FROM pragma_table_info(?, 'main') ORDER BY cid", [table])
    }

    /// Copies rows that the store does not have, and gives them another partition where one is said.
    private func copy(_ table: String, _ condition: String, _ bindings: Bindings, as partition: Int64? = nil) throws {
        let columns = try columns(of: table)
        let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
        let values = columns.map { name in
            if let partition, name == "partition" { return "\(partition)" }
            return "\"\(name)\""
        }
        try db.run(
            """
            INSERT OR IGNORE INTO main.\(table) (\(list))
            SELECT \(values.joined(separator: ", ")) FROM backup.\(table) WHERE \(condition)
            """, bindings)
    }

    private func count(_ sql: String) throws -> Int { Int(try db.integer(sql) ?? 0) }
}

extension OperationsError {
    static var foreignBackup: OperationsError {
        OperationsError(
            .foreignBackup, "the backup is of another store, or of this one before it had an identity; restore it into "
                + "a new folder")
    }
}
