import Foundation
import GRDB

/// Reads what SQLite can read of a damaged database into a new one of this library's schema.
struct Salvage {
    /// The new one, inside a transaction.
    let db: Database
    /// Another connection, to which the damaged one is attached as `damaged`, so that definitions of tables that cannot
    /// be read are passed over.
    let damaged: Database
    let now: Date
    private(set) var report = RepairReport()
    /// Rows of the table at hand of which something was lost, or all.
    private var refused: Set<DamagedRow> = []
    /// What such rows belong to.
    private var damagedTransfers: Set<Int64> = []
    private var damagedMutations: Set<Int64> = []
    /// The tables that the damaged one has, as far as its definitions can be read.
    private var there: Set<String> = []

    init(db: Database, damaged: Database, now: Date) {
        self.db = db
        self.damaged = damaged
        self.now = now
    }

    /// - Throws: `.damaged` where not even the schema can be read.
    mutating func run() throws {
        let tables = try db.texts(
            """
            SELECT name FROM sqlite_schema
            WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND name <> 'migration' ORDER BY name
            """)
        there = Set(try tables.filter { try !Self.columns(of: $0, in: damaged, as: "damaged").isEmpty })
        guard !there.isEmpty else {
            throw OperationsError(
                .damaged, "Nothing of larder.sqlite can be read, not even which tables it has; restore a backup")
        }
        for table in tables {
            // Of an older version, or one whose definition cannot be read.
            guard there.contains(table) else {
                report.rows.append(.init(table: table, saved: 0, isDamaged: try isDefinitionLost()))
                continue
            }
            // Its one row was made with the new database.
            let isStore = table == "store"
            if isStore { try db.run("DELETE FROM store") }
            refused = []
            let (saved, isDamaged) = try copy(table)
            if isStore, saved == 0 {
                report.isNewStore = true
                try db.run("INSERT INTO store (only, identity) VALUES (1, randomblob(16))")
            }
            report.rows.append(
                .init(table: table, saved: saved, isDamaged: isDamaged, damaged: refused.count))
        }
        if !there.contains("store") { report.isNewStore = try isDefinitionLost() }
        // Before what does not fit together is removed: it tells that something is lost.
        let isRemembered = try isEveryMutationRemembered()
        // Nothing could be counted on from there.
        for table in ["mutation", "transfer", "outcome"] {
            try db.run("DELETE FROM \(table) WHERE \(Rule.isOutOfOrder)")
            if table == "mutation" { report.lost += db.changesCount }
        }
        try restoreNumbers()
        try mend()
        if !isRemembered || Self.memories.contains(where: isDamaged) { try ForgottenOutcomes(db: db).noteEverything() }
        for index in report.rows.indices {
            let row = report.rows[index]
            report.rows[index].saved = min(row.saved, try count(row.table))
        }
    }

    /// Where it stands which mutations may have been sent.
    private static let memories = ["mutation", "mutation_content", "outcome", "partition", "forgotten_outcome"]

    /// Whether nothing that was copied tells of a lost mutation, or outcome: a backup may bring back as pending what
    /// this database knows nothing of.
    private func isEveryMutationRemembered() throws -> Bool {
        guard Self.memories.allSatisfy(there.contains) else { return false }
        return try !db.exists(
            """
            SELECT 1 FROM mutation WHERE \(Rule.isOutOfOrder) OR partition NOT IN (SELECT id FROM partition)
                OR sequence NOT IN (SELECT sequence FROM mutation_content)
            UNION ALL SELECT 1 FROM mutation_content WHERE sequence NOT IN (SELECT sequence FROM mutation)
            UNION ALL SELECT 1 FROM outcome WHERE \(Rule.isOutOfOrder) OR partition NOT IN (SELECT id FROM partition)
            """)
    }

    // MARK: Rows

    /// Whether some of the definitions of tables cannot be read.
    private func isDefinitionLost() throws -> Bool {
        try Self.unlessDamaged { try damaged.texts("SELECT name FROM damaged.sqlite_schema ORDER BY name") } == nil
    }

    private static func columns(
        of table: String, in db: Database, as schema: String = "main"
    ) throws -> [String] {
        try db.texts("SELECT name FROM pragma_table_info(?, ?) ORDER BY cid", [table, schema])
    }

    /// From the beginning to the first row that cannot be read, from there on where the numbers of rows allow to look
    /// behind it, and from the end back.
    private mutating func copy(_ table: String) throws -> (saved: Int, isDamaged: Bool) {
        let known = try Self.columns(of: table, in: db)
        let there = Set(try Self.columns(of: table, in: damaged, as: "damaged"))
        let names = known.filter(there.contains)
        let keys = try db.texts("SELECT name FROM pragma_table_info(?) WHERE pk > 0 ORDER BY pk", [table])
        let isDamaged = try !copy(table, names, order: keys, from: nil)
        if isDamaged {
            if try isByNumber(table) { try copyBehindGaps(table, names) }
            _ = try copy(table, names, order: keys, descending: true, from: nil)
        }
        return (Int(try db.integer("SELECT count(*) FROM \(table)") ?? 0), isDamaged)
    }

    /// Whether its rows are found by number: it is not WITHOUT ROWID.
    private func isByNumber(_ table: String) throws -> Bool {
        let sql = try db.texts("SELECT sql FROM sqlite_schema WHERE name = ?", [table]).first ?? ""
        return !sql.contains("WITHOUT ROWID")
    }

    /// - Returns: Whether all could be read.
    private mutating func copy(
        _ table: String, _ columns: [String], order keys: [String], descending: Bool = false, from number: Int64?
    ) throws -> Bool {
        let list = columns.map { "\"\($0)\"" }.joined(separator: ", ")
        let direction = descending ? " DESC" : ""
        let order = keys.map { "\"\($0)\"\(direction)" }.joined(separator: ", ")
        var sql = "SELECT \(list) FROM damaged.\(table) NOT INDEXED"
        if let number { sql += " WHERE rowid >= \(number)" }
        if !order.isEmpty { sql += " ORDER BY \(order)" }
        let rows = SalvagedRows(db: db, table: table, columns: try TableColumn.all(of: table, in: db), names: columns)
        let isWhole: Void? = try Self.unlessDamaged {
            try damaged.scan(sql) { row in
                if let damage = try rows.insert(row.values) { note(damage) }
                return true
            }
        }
        return isWhole != nil
    }

    /// Goes on behind pages that cannot be read, in steps that grow.
    private mutating func copyBehindGaps(_ table: String, _ columns: [String]) throws {
        let found = try Self.unlessDamaged { try damaged.integer("SELECT ifnull(max(rowid), 0) FROM damaged.\(table)") }
        guard let greatest = found ?? nil else { return }
        var (next, step) = (try db.integer("SELECT ifnull(max(rowid), 0) + 1 FROM \(table)") ?? 1, Int64(1))
        while next <= greatest {
            if try copy(table, columns, order: [], from: next) { return }
            let reached = try db.integer("SELECT ifnull(max(rowid), 0) + 1 FROM \(table)") ?? next
            if reached > next { (next, step) = (reached, 1) } else { (next, step) = (next + step, min(step * 2, 64)) }
        }
    }

    private mutating func note(_ damage: SalvagedRows.Damage) {
        refused.insert(damage.row)
        // Of what it waits for, or waits for no more, nothing is known.
        guard let sequence = damage.sequence else { return }
        if damage.row.table.hasPrefix("transfer") {
            damagedTransfers.insert(sequence)
        } else if damage.row.table != "outcome" {
            damagedMutations.insert(sequence)
        }
    }

    /// Nil where the damaged database cannot be read there. A disk that fails is an error: what is read is a copy that
    /// was just made, and what the disk does not give now is not lost.
    private static func unlessDamaged<Value>(_ body: () throws -> Value) throws -> Value? {
        do { return try body() } catch let error as DatabaseError
            where [.SQLITE_CORRUPT, .SQLITE_NOTADB, .SQLITE_ERROR].contains(error.resultCode)
            || error.extendedResultCode == .SQLITE_IOERR_SHORT_READ
        {
            return nil
        } catch let error as OperationsError where error.code == .damagedRow { return nil }
    }

    /// Numbers that were given are not given again, also those of rows that were lost.
    private func restoreNumbers() throws {
        let gap = Int64.random(in: 1 << 20...1 << 40)
        for (table, others) in [("mutation", ["outcome"]), ("transfer", [])] {
            try db.run(
                """
                INSERT INTO sqlite_sequence (name, seq) SELECT ?1, 0
                WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = ?1)
                """, [table])
            for source in [table] + others {
                try db.run(
                    """
                    UPDATE sqlite_sequence SET seq = max(seq, ifnull((SELECT max(sequence) FROM \(source)), 0))
                    WHERE name = ?
                    """, [table])
            }
            try db.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = ?", [gap, table])
        }
    }

    // MARK: What belongs together

    /// Makes the rules hold that a loss has broken, on the side of sending nothing twice and nothing out of its order.
    private mutating func mend() throws {
        let queue = QueueTransaction(db: db)
        try removeRemains()
        try mendRows()
        try restoreUses()
        try mendColumns()
        try setAsideIncomplete(queue)
        try setAsideDoubtful(queue)
        try setAsideBereft(queue)
        try removeOrphans()
        try db.run("DELETE FROM temporary_id WHERE real IS NULL AND sequence IS NULL")
        try removeOrphans()
        try restoreDependencies(queue)
    }

    /// Removes mutations and transfers that belong nowhere, or have ended.
    private mutating func removeRemains() throws {
        let before = try count("mutation")
        try db.run("DELETE FROM mutation WHERE partition NOT IN (SELECT id FROM partition)")
        try db.run("DELETE FROM mutation WHERE sequence NOT IN (SELECT sequence FROM mutation_content)")
        try db.run("DELETE FROM mutation WHERE id IN (SELECT id FROM outcome)")
        try db.run("DELETE FROM mutation WHERE sequence IN (SELECT sequence FROM outcome)")
        report.lost += before - (try count("mutation"))
        try db.run("DELETE FROM transfer WHERE partition NOT IN (SELECT id FROM partition)")
    }

    /// Sets the columns again whose damage `RowReading` would not find, and the columns that an older version did not have.
    private func mendColumns() throws {
        // Damage in this column would go unnoticed.
        try db.run("UPDATE mutation SET touched = NULL")
        try db.run(
            """
            UPDATE mutation SET attempts = 1 WHERE state IN \(mutation: [.inFlight, .acknowledged]) AND attempts = 0
            """)
        try db.run(
            """
            DELETE FROM mutation_answer WHERE sequence IN (SELECT sequence FROM mutation
            WHERE state < \(mutation: .acknowledged))
            """)
        // A file of an older version tells of doubt by the last failure alone.
        if try !Self.columns(of: "mutation", in: damaged, as: "damaged").contains("doubt") {
            try db.run(
                """
                UPDATE mutation SET doubt = '\(KeyDelivery.unnoted.rawValue)'
                WHERE state = \(mutation: .pending) AND attempts > 0 AND sequence NOT IN (
                    SELECT sequence FROM mutation_failure WHERE class NOT IN ('outcomeUnknown', 'serverFault'))
                """)
        }
    }

    /// Sets aside mutations that may have taken effect.
    private mutating func setAsideDoubtful(_ queue: QueueTransaction) throws {
        // What became of a mutation in flight is unknown, and so is what a lost answer said.
        try setAside(
            """
            state = \(mutation: .inFlight) OR state = \(mutation: .acknowledged)
                AND sequence NOT IN (SELECT sequence FROM mutation_answer)
            """, .outcomeUnknown,
            "The server's answer to it was lost with a damaged file; look whether it has it", queue)
        try setAside(
            "state = \(mutation: .pending) AND NOT \(ProvablyUnsent.condition("mutation"))", .outcomeUnknown,
            "An earlier attempt may have taken effect; look whether the server has it, then replay or discard it",
            queue)
    }

    /// Sets aside mutations that have lost what they refer to.
    private mutating func setAsideBereft(_ queue: QueueTransaction) throws {
        try setAside(
            """
            state = \(mutation: .pending) AND sequence IN (SELECT sequence FROM mutation_dependency
                WHERE dependency NOT IN (SELECT sequence FROM mutation))
            """, .dependencyDiscarded, "What it depended on was lost with a damaged file", queue)
        try setAside(
            """
            state = \(mutation: .pending) AND sequence IN (SELECT sequence FROM temporary_id_use
                WHERE token NOT IN (SELECT token FROM temporary_id))
            """, .temporaryIDLost, "A temporary id that it holds was lost with a damaged file; edit its variables",
            queue)
        try setAside(
            "state = \(mutation: .deadLetter) AND sequence NOT IN (SELECT sequence FROM mutation_failure)",
            .init(rawValue: "unknown"), "Why it was set aside was lost with a damaged file", queue)
        try setAside(
            """
            state = \(mutation: .pending) AND sequence IN (SELECT sequence FROM mutation_transfer
                WHERE transfer NOT IN (SELECT sequence FROM transfer))
            """, .transferFailed, "The transfer it waits for was lost with a damaged file", queue)
        try setAside(
            "sequence IN (SELECT m.sequence FROM mutation m WHERE \(QueueTransaction.isHopelessSQL))", .transferFailed,
            "The transfer it waits for has failed, or was given up", queue)
    }

    private func restoreDependencies(_ queue: QueueTransaction) throws {
        // What a temporary id says of what its holder waits for is left where the dependency is lost.
        try db.run(
            """
            INSERT OR IGNORE INTO mutation_dependency (sequence, dependency)
            SELECT u.sequence, t.sequence FROM temporary_id_use u JOIN temporary_id t ON t.token = u.token
            WHERE t.real IS NULL AND t.sequence < u.sequence
            """)
        try db.run(
            """
            DELETE FROM mutation_dependency WHERE sequence IN (SELECT sequence FROM mutation
            WHERE state = \(mutation: .acknowledged))
            """)
        for sequence in try db.integers("SELECT sequence FROM mutation ORDER BY sequence") {
            try queue.stall(sequence)
        }
    }

    /// Makes every row one that can be read: mutations and transfers are set aside for that, what others belong to
    /// keeps what can be read of it, and the rest is gone.
    private mutating func mendRows() throws {
        for reading in RowReading.all where !Self.works.contains(reading.table) {
            for row in try reading.damaged(in: db) {
                let place = RowMending.Place(table: row.table, condition: row.key)
                let isKept =
                    Self.owners.contains(row.table)
                    ? try RowMending(db: db).mend([place]) { try reading.isReadable(row, in: db) }.isReadable
                    : false
                if !isKept { try db.run("DELETE FROM \(row.table) WHERE \(row.key)") }
                report.noteDamage(in: row.table)
            }
        }
        let damaged = DamagedRows(db: db, now: now)
        for transfer in damagedTransfers.sorted()
        where try db.exists("SELECT 1 FROM transfer WHERE sequence = ?", [transfer]) {
            try damaged.setAside(transfer: transfer, "a value was not of its column's type")
        }
        for mutation in damagedMutations.sorted()
        where try db.exists("SELECT 1 FROM mutation WHERE sequence = ?", [mutation]) {
            try damaged.setAside(mutation: mutation, "a value was not of its column's type")
            report.setAside += 1
        }
        for row in try damaged.setAside("1") {
            report.noteDamage(in: row.table)
            if row.table == "mutation" { report.setAside += 1 }
        }
    }

    /// What is set aside, and what rows of other tables belong to.
    private static let works: Set = ["mutation", "transfer", "transfer_part"]
    private static let owners: Set = ["partition", "environment", "current_partition", "store"]

    /// What a mutation waited for may be among the rows that are lost, and then nothing else tells of it. A mutation
    /// that has no row in `mutation_link` waited for nothing.
    private mutating func setAsideIncomplete(_ queue: QueueTransaction) throws {
        let areLinksWhole = there.contains("mutation_link") && !isDamaged("mutation_link")
        let mayHaveWaited = areLinksWhole ? "sequence IN (SELECT sequence FROM mutation_link)" : "1"
        let kinds: [(table: String, reason: MutationFailure.Class, what: String)] = [
            ("mutation_dependency", .dependencyDiscarded, "mutations"),
            ("mutation_transfer", .transferFailed, "transfers"),
            ("temporary_id_use", .temporaryIDLost, "temporary ids"),
        ]
        for (table, reason, what) in kinds where isDamaged(table) {
            try setAside(
                "state = \(mutation: .pending) AND \(mayHaveWaited)", reason,
                "Which \(what) it waited for may have been lost with a damaged file; look whether they are done, then "
                    + "replay or discard it",
                queue)
        }
    }

    private func isDamaged(_ table: String) -> Bool {
        report.rows.contains { $0.table == table && ($0.isDamaged || $0.damaged > 0) }
    }

    /// Where temporary ids stand whose real ones are not known: what the mutations say, whatever the table says. One
    /// that is not found would be sent as it stands.
    private func restoreUses() throws {
        try db.run("DELETE FROM temporary_id_use")
        let contents = try db.rows(
            """
            SELECT m.sequence, m.lane, c.variables, c.optimistic_response, c.list_edits
            FROM mutation m JOIN mutation_content c ON c.sequence = m.sequence
            """
        ) { row in
            (
                sequence: try row.integer(0), lane: try row.text(1),
                json: [
                    try row.bytes(2), try row.optional(3, row.bytes), try row.optional(4, row.bytes),
                ].compactMap(\.self)
            )
        }
        for content in contents {
            var held: Set<TemporaryID> = []
            func note(_ id: TemporaryID) -> String? {
                held.insert(id)
                return nil
            }
            _ = TemporaryIDText.replace(inText: content.lane, note)
            for json in content.json { _ = TemporaryIDText.replace(inJSON: json, note) }
            // Its own stay in what was sent, also where their real ones are known.
            for id in held
            where try !db.exists(
                """
                SELECT 1 FROM temporary_id WHERE token = ?1 AND (real IS NOT NULL OR sequence > ?2)
                """, [id.text, content.sequence])
            {
                try QueueTransaction(db: db).addUse(of: id, by: content.sequence)
            }
        }
    }

    private mutating func setAside(
        _ condition: String, _ reason: MutationFailure.Class, _ message: String, _ queue: QueueTransaction
    ) throws {
        for sequence in try db.integers("SELECT sequence FROM mutation WHERE \(condition) ORDER BY sequence") {
            try queue.setAside(sequence: sequence, MutationFailure(reason, message: message, time: now))
            report.setAside += 1
        }
    }

    /// Removes rows that refer to missing rows, or clears the reference, until none is left: removing some can orphan
    /// others.
    private func removeOrphans() throws {
        let references = try db.rows(
            """
            SELECT s.name, f."table", f."from", ifnull(f."to", ''), i."notnull" = 0 AND i.pk = 0
            FROM sqlite_schema s JOIN pragma_foreign_key_list(s.name) f
            JOIN pragma_table_info(s.name) i ON i.name = f."from"
            WHERE s.type = 'table'
            """
        ) { row in
            (
                table: try row.text(0), parent: try row.text(1), column: try row.text(2), key: try row.text(3),
                isCleared: try row.integer(4) == 1
            )
        }
        var isDone = false
        while !isDone {
            isDone = true
            for reference in references {
                let key = reference.key.isEmpty ? "rowid" : "\"\(reference.key)\""
                let orphans = """
                    "\(reference.column)" IS NOT NULL
                        AND "\(reference.column)" NOT IN (SELECT \(key) FROM \(reference.parent))
                    """
                try db.run(
                    reference.isCleared
                        ? "UPDATE \(reference.table) SET \"\(reference.column)\" = NULL WHERE \(orphans)"
                        : "DELETE FROM \(reference.table) WHERE \(orphans)")
                if db.changesCount > 0 { isDone = false }
            }
        }
    }

    private func count(_ table: String) throws -> Int {
        Int(try db.integer("SELECT count(*) FROM \(table)") ?? 0)
    }
}
