import Foundation
import GRDB

/// What is done inside the one transaction that brings back a backup, attached as `backup` and of the same schema.
///
/// Other processes have the database open, and have mutations under way. What happened since the backup happened: what
/// the store knows of a mutation, that it is in flight, answered or settled, is newer than what the backup says, and
/// stays. Nor do keys, credentials and sessions come back: the issuer would take a credential that was replaced since
/// for a stolen one, and one that was destroyed was to be gone.
///
/// Rows are copied one by one, so that this is a transaction like others. SQLite's online backup into the live file
/// would be one too, but whatever is settled between reading the outcomes and writing the pages would be pending again.
struct Restoration {
    let db: Database
    let now: Date
    /// Whether the caller says that nothing was sent since the backup was made.
    let nothingSentSince: Bool
    private(set) var report = RestorationReport()

    init(db: Database, nothingSentSince: Bool, now: Date) {
        self.db = db
        self.nothingSentSince = nothingSentSince
        self.now = now
    }

    /// - Parameter token: Noted in the store: what was staged under it is to become the caches.
    /// - Throws: `.foreignBackup`, `.environmentChanged`.
    mutating func run(token: String) throws {
        try requireSameStore()
        try restoreEnvironments()
        try restorePartitions()
        try restoreWatchersAndPins()
        try restoreOutcomes()
        try restoreMutations()
        // Numbers that were given are not given again.
        try db.run(
            """
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
        let changed = try db.texts(
            """
            SELECT b.name FROM backup.environment b JOIN main.environment e ON e.name = b.name
            WHERE e.data <> b.data AND EXISTS (
                SELECT 1 FROM backup.partition p WHERE p.environment = b.id
                    AND p.name NOT IN (SELECT name FROM main.partition))
            """)
        if let name = changed.first {
            throw OperationsError(
                .environmentChanged,
                "The environment \(name) is another backend now than in the backup, whose data "
                    + "would become its own; give it another name first")
        }
        try db.run(
            """
            INSERT INTO main.environment (name, definition, identity, data, storage, protected, created, updated)
            SELECT name, definition, identity, data, storage, protected, created, updated FROM backup.environment
            WHERE name NOT IN (SELECT name FROM main.environment) ORDER BY id
            """)
    }

    private mutating func restorePartitions() throws {
        // One of another name may belong to the same user of the same environment by now.
        try db.run(
            """
            INSERT OR IGNORE INTO main.partition (name, environment, user, created, used)
            SELECT p.name, (
                SELECT e.id FROM main.environment e JOIN backup.environment b ON b.name = e.name
                WHERE b.id = p.environment
            ), p.user, p.created, p.used
            FROM backup.partition p WHERE p.name NOT IN (SELECT name FROM main.partition) ORDER BY p.id
            """)
        report.partitions = db.changesCount
        try db.run(
            """
            CREATE TEMP TABLE restored_partition AS
            SELECT b.id AS old, p.id AS new FROM backup.partition b JOIN main.partition p ON p.name = b.name
            """)
        report.leftOut = try db.texts(
            """
            SELECT name FROM backup.partition WHERE id NOT IN (SELECT old FROM temp.restored_partition) ORDER BY id
            """)
        // Which environment is the current one was decided since, unless it was never.
        try db.run(
            """
            INSERT OR IGNORE INTO main.current_partition (only, partition, number, switched)
            SELECT 1, r.new, c.number, c.switched FROM backup.current_partition c
            LEFT JOIN temp.restored_partition r ON r.old = c.partition
            """)
    }

    private func restoreWatchersAndPins() throws {
        let partitions = try db.rows("SELECT old, new FROM temp.restored_partition") {
            (try $0.integer(0), try $0.integer(1))
        }
        for table in ["watcher", "pin"] {
            for (old, new) in partitions { try copy(table, "partition = ?", [old], as: new) }
        }
    }

    private func restoreOutcomes() throws {
        let columns = try columns(of: "outcome").filter { $0 != "partition" }
        let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
        let values = columns.map { "o.\"\($0)\"" }.joined(separator: ", ")
        try db.run(
            """
            INSERT OR IGNORE INTO main.outcome (partition, \(list))
            SELECT r.new, \(values) FROM backup.outcome o JOIN temp.restored_partition r ON r.old = o.partition
            WHERE o.id NOT IN (SELECT id FROM main.mutation)
                AND o.sequence NOT IN (SELECT sequence FROM main.mutation)
                AND o.sequence NOT IN (SELECT sequence FROM main.outcome)
            """)
    }

    // MARK: Mutations

    private mutating func restoreMutations() throws {
        let isProven = nothingSentSince ? "1" : ForgottenOutcomes.isRemembered("b", of: "p.name")
        let doubt = RestorationDoubt.expression("b", isProven: isProven)
        try db.run(
            """
            CREATE TEMP TABLE restored_mutation AS
            SELECT b.sequence AS sequence, \(doubt) AS doubt, \(isProven) AS isProven
            FROM backup.mutation b JOIN temp.restored_partition r ON r.old = b.partition
            JOIN backup.partition p ON p.id = b.partition
            WHERE b.id NOT IN (SELECT id FROM main.mutation) AND b.id NOT IN (SELECT id FROM main.outcome)
                AND NOT EXISTS (SELECT 1 FROM main.mutation m
                    WHERE m.partition = r.new AND m.idempotency_key = b.idempotency_key)
                AND NOT EXISTS (SELECT 1 FROM main.outcome o
                    WHERE o.partition = r.new AND o.idempotency_key = b.idempotency_key)
            """)
        report.mutations = try count("SELECT count(*) FROM temp.restored_mutation")
        report.kept = try count(
            """
            SELECT count(*) FROM backup.mutation b WHERE b.id IN (SELECT id FROM main.mutation)
            """)
        report.settledSince = try count("SELECT count(*) FROM backup.mutation") - report.mutations - report.kept
        // Real ids that only the backup knows are wanted by what is queued later, too.
        guard report.mutations > 0 else { return try copyTemporaryIDs(of: []) }
        try requireFreeNumbers()
        try copyMutations()
        try RestorationDoubt.warn("SELECT sequence FROM temp.restored_mutation WHERE NOT isProven", db)
        report.setAside = try RestorationDoubt.setAside("SELECT sequence, doubt FROM temp.restored_mutation", now, db)
        let restored = try db.integers("SELECT sequence FROM temp.restored_mutation ORDER BY sequence")
        try requireDependencies()
        try restoreWaits()
        try copyTemporaryIDs(of: restored)
        let queue = QueueTransaction(db: db)
        for sequence in restored { try queue.stall(sequence) }
    }

    private func requireFreeNumbers() throws {
        let isTaken = try db.exists(
            """
            SELECT 1 FROM temp.restored_mutation r WHERE r.sequence IN (SELECT sequence FROM main.mutation)
                OR r.sequence IN (SELECT sequence FROM main.outcome)
            """)
        guard !isTaken else {
            throw OperationsError(
                .foreignBackup,
                "The backup and the store have gone their own ways: both gave the same numbers to "
                    + "different mutations; restore it into a new folder")
        }
    }

    /// As they are in the backup, but for their owners: no process has them in flight any more.
    private func copyMutations() throws {
        try db.run(
            """
            INSERT INTO main.mutation (sequence, id, partition, lane, state, stalled, queued, attempts, owner,
                idempotency_key, created, expires, not_before, not_before_set, doubt)
            SELECT b.sequence, b.id, r.new, b.lane, 
                iif(b.state = \(mutation: .inFlight), \(mutation: .pending), b.state), 0,
                b.state < \(mutation: .acknowledged),
                b.attempts, NULL, b.idempotency_key, b.created, b.expires, b.not_before, b.not_before_set, b.doubt
            FROM backup.mutation b JOIN temp.restored_partition r ON r.old = b.partition
            JOIN temp.restored_mutation t ON t.sequence = b.sequence ORDER BY b.sequence
            """)
        let isRestored = "sequence IN (SELECT sequence FROM temp.restored_mutation)"
        for table in ["mutation_content", "mutation_answer", "mutation_failure"] { try copy(table, isRestored, []) }
        try copy("mutation_dependency", "\(isRestored) AND dependency IN (SELECT sequence FROM main.mutation)", [])
    }

    /// A dependency that the store has settled is waited for no longer where it took effect. Where it was discarded,
    /// the mutations that depend on it are set aside.
    private mutating func requireDependencies() throws {
        let dependents = try db.integers(
            """
            SELECT DISTINCT d.sequence FROM backup.mutation_dependency d
            JOIN temp.restored_mutation t ON t.sequence = d.sequence
            JOIN backup.mutation b ON b.sequence = d.dependency
            JOIN temp.restored_partition r ON r.old = b.partition
            WHERE b.id NOT IN (SELECT id FROM main.mutation)
                AND NOT EXISTS (SELECT 1 FROM main.outcome o WHERE o.kind = \(outcome: .applied) AND o.partition = r.new
                    AND (o.id = b.id OR o.idempotency_key = b.idempotency_key))
            ORDER BY d.sequence
            """)
        try setAside(dependents, .dependencyDiscarded, "What it depended on was discarded since the backup was made")
    }

    /// A transfer that the store still has is waited for as before, and one that is done is waited for no longer. A
    /// backup brings no transfer back: a mutation whose transfer the store does not have would name an object that may
    /// not exist.
    private mutating func restoreWaits() throws {
        let waits = try db.rows(
            """
            SELECT w.sequence, t.sequence, ifnull(t.state, \(TransferState.cancelled.rawValue))
            FROM backup.mutation_transfer w JOIN backup.transfer b ON b.sequence = w.transfer
            JOIN main.mutation m ON m.sequence = w.sequence
            JOIN temp.restored_mutation r ON r.sequence = w.sequence
            LEFT JOIN main.transfer t ON t.id = b.id AND t.partition = m.partition
            ORDER BY w.sequence
            """
        ) { row in
            (
                mutation: try row.integer(0), transfer: try row.optional(1, row.integer),
                state: try TransferState(stored: row.integer(2))
            )
        }
        for (mutation, transfer, state) in waits where state != .done {
            let isGone = state == .cancelling || state == .cancelled
            if let transfer, !isGone {
                try db.run(
                    "INSERT OR IGNORE INTO main.mutation_transfer (sequence, transfer) VALUES (?, ?)",
                    [mutation, transfer])
            }
            guard isGone || state == .failed else { continue }
            try setAside(
                [mutation], .transferFailed,
                "The transfer that it waited for is not in the store, has failed or was cancelled; look whether the "
                    + "storage has the object, then replay or discard it")
        }
    }

    /// Sets aside the mutations that are pending. What was set aside before keeps its reason, and tells of this as
    /// well: who replays it must know.
    private mutating func setAside(_ sequences: [Int64], _ kind: MutationFailure.Class, _ message: String) throws {
        let queue = QueueTransaction(db: db)
        for sequence in sequences {
            let isPending = try db.exists(
                "SELECT 1 FROM main.mutation WHERE sequence = ? AND state = \(mutation: .pending)", [sequence])
            guard isPending else {
                try db.run(
                    """
                    UPDATE main.mutation_failure SET message = message || '; ' || ?1
                    WHERE sequence = ?2
                        AND sequence IN (SELECT sequence FROM main.mutation WHERE state = \(mutation: .deadLetter))
                    """, [message, sequence])
                continue
            }
            try queue.setAside(sequence: sequence, MutationFailure(kind, message: message, time: now))
            report.setAside += 1
        }
    }

    /// Real ids that the store has learnt since take the places of temporary ones, as they did in all its rows.
    private mutating func copyTemporaryIDs(of restored: [Int64]) throws {
        try db.run(
            """
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
                    try setAside(
                        [sequence], .temporaryIDLost,
                        "It holds \(id.text), for which there is no real id; edit its variables")
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
            .foreignBackup,
            "The backup is of another store, or of this one before it had an identity; restore it into "
                + "a new folder")
    }
}
