package import Foundation
import GRDB

extension OperationsDatabase {
    /// Looks at every page and every row. O(size of the file), in one snapshot.
    ///
    /// - Throws: Where the file cannot be read at all. What can be read and is wrong is in the report.
    package func check() throws(OperationsError) -> OperationsCheck {
        do throws(OperationsError) {
            return try read { try check($0) }
        } catch {
            guard [.damaged, .damagedRow].contains(error.code) else { throw error }
            return OperationsCheck(problems: [.init(kind: .integrity, what: error.description)])
        }
    }

    /// The same for the database in a folder, whatever its schema; nil where there is none. One that cannot be opened
    /// for its damage is a problem like others. Opens it for reading only.
    package static func check(
        folder: URL, waiting time: Duration = .seconds(5)
    ) throws(OperationsError) -> OperationsCheck? {
        var options = Options()
        options.isReadOnly = true
        options.busyTimeout = time
        options.schema = .asItIs
        do throws(OperationsError) {
            let database = try OperationsDatabase(folder: folder, options: options)
            defer { try? database.close() }
            return try database.check()
        } catch {
            switch error.code {
            case .missing: return nil
            case .damaged, .damagedRow:
                return OperationsCheck(problems: [.init(kind: .integrity, what: error.description)])
            default: throw error
            }
        }
    }

    private static let limit = 100

    private func check(_ db: Database) throws -> OperationsCheck {
        var report = OperationsCheck()
        let findings = try db.findings("integrity_check(\(Self.limit))")
        report.problems += findings.map { .init(kind: .integrity, what: $0) }
        // What follows trusts the pages.
        guard findings.isEmpty else { return report }
        let references = try Row.fetchAll(db, sql: "PRAGMA foreign_key_check").prefix(Self.limit)
        report.problems += references.map { .init(kind: .reference, what: $0.description) }
        // The rules are about the tables of this version.
        guard try migrations.missing(in: migrations.history(db)).isEmpty else {
            return report
        }
        for reading in RowReading.all {
            let damaged = try reading.damaged(in: db, limit: Self.limit)
            report.problems += damaged.map { .init(kind: .row, what: $0.description) }
        }
        for rule in Rule.all {
            let broken = try db.texts("SELECT hex(id) FROM (\(rule.exceptions)) LIMIT \(Self.limit)")
            report.problems += broken.map { .init(kind: .rule, what: "\(rule.name): \($0)") }
        }
        report.mutations = try count("mutation", db)
        report.transfers = try count("transfer", db)
        report.outcomes = try count("outcome", db)
        report.watchers = try count("watcher", db)
        return report
    }

    private func count(_ table: String, _ db: Database) throws -> Int {
        Int(try db.integer("SELECT count(*) FROM \(table)") ?? 0)
    }
}

/// What must hold beyond the constraints of the tables, with a query for the ids of the rows for which it does not.
struct Rule: Sendable {
    let name: String
    let exceptions: String

    /// The condition of rows whose number is none that was ever given.
    static let isOutOfOrder = "sequence NOT BETWEEN 1 AND \(Columns.greatest)"

    static let all = [
        Rule(
            name: "a mutation has content",
            exceptions: """
                SELECT id FROM mutation m WHERE NOT EXISTS (SELECT 1 FROM mutation_content c
                WHERE c.sequence = m.sequence)
                """),
        Rule(
            name: "one that is acknowledged has an answer",
            exceptions: """
                SELECT id FROM mutation m
                WHERE state = \(mutation: .acknowledged)
                    AND NOT EXISTS (SELECT 1 FROM mutation_answer a WHERE a.sequence = m.sequence)
                """),
        Rule(
            name: "one that the server has not answered has no answer",
            exceptions: """
                SELECT id FROM mutation m
                WHERE state < \(mutation: .acknowledged)
                    AND EXISTS (SELECT 1 FROM mutation_answer a WHERE a.sequence = m.sequence)
                """),
        Rule(
            name: "one that is set aside has a reason",
            exceptions: """
                SELECT id FROM mutation m
                WHERE state = \(mutation: .deadLetter)
                    AND NOT EXISTS (SELECT 1 FROM mutation_failure f WHERE f.sequence = m.sequence)
                """),
        Rule(
            name: "one that was sent has attempts",
            exceptions: """
                SELECT id FROM mutation WHERE state IN \(mutation: [.inFlight, .acknowledged]) AND attempts = 0
                """),
        Rule(
            name: "one that was sent waits for nothing",
            exceptions: """
                SELECT id FROM mutation m
                WHERE state IN \(mutation: [.inFlight, .acknowledged])
                    AND EXISTS (SELECT 1 FROM mutation_dependency d WHERE d.sequence = m.sequence)
                """),
        Rule(
            name: "of a lane one is in flight",
            exceptions: """
                SELECT m.id FROM mutation m JOIN mutation n
                ON n.partition = m.partition AND n.lane = m.lane AND n.sequence < m.sequence
                    AND n.state = \(mutation: .inFlight)
                WHERE m.state = \(mutation: .inFlight)
                """),
        Rule(
            name: "stalled is who waits for a dead letter",
            exceptions: """
                SELECT id FROM mutation m WHERE stalled <> EXISTS (
                    SELECT 1 FROM mutation_dependency d JOIN mutation n ON n.sequence = d.dependency
                    WHERE d.sequence = m.sequence AND (n.state = \(mutation: .deadLetter) OR n.stalled = 1))
                """),
        Rule(
            name: "a dependency is of the same partition",
            exceptions: """
                SELECT m.id FROM mutation_dependency d JOIN mutation m ON m.sequence = d.sequence
                JOIN mutation n ON n.sequence = d.dependency WHERE m.partition <> n.partition
                """),
        Rule(
            name: "who holds a temporary id waits for its real one",
            exceptions: """
                SELECT m.id FROM temporary_id_use u JOIN mutation m ON m.sequence = u.sequence
                JOIN temporary_id t ON t.token = u.token
                WHERE t.real IS NOT NULL OR t.sequence IS NULL OR t.sequence <> m.sequence AND NOT EXISTS (
                    SELECT 1 FROM mutation_dependency d WHERE d.sequence = m.sequence AND d.dependency = t.sequence)
                """),
        Rule(
            name: "a temporary id has a mutation or a real id",
            exceptions: """
                SELECT CAST(token AS BLOB) AS id FROM temporary_id WHERE real IS NULL AND sequence IS NULL
                """),
        Rule(
            name: "a mutation is there or settled, not both",
            exceptions: """
                SELECT m.id FROM mutation m JOIN outcome o ON o.id = m.id
                """),
        Rule(
            name: "who was sent waits for no transfer",
            exceptions: """
                SELECT id FROM mutation m
                WHERE state IN \(mutation: [.inFlight, .acknowledged])
                    AND EXISTS (SELECT 1 FROM mutation_transfer w WHERE w.sequence = m.sequence)
                """),
        Rule(
            name: "a mutation waits for no transfer that is done, and for none of another partition",
            exceptions: """
                SELECT m.id FROM mutation_transfer w JOIN mutation m ON m.sequence = w.sequence
                JOIN transfer t ON t.sequence = w.transfer
                WHERE t.state = \(transfer: .done) OR t.partition <> m.partition
                """),
        Rule(
            name: "no mutation is pending whose transfer has failed, or was given up",
            exceptions: """
                SELECT m.id FROM mutation m WHERE \(QueueTransaction.isHopelessSQL)
                """),
        Rule(
            name: "a transfer that has failed has a reason",
            exceptions: """
                SELECT id FROM transfer WHERE state = \(transfer: .failed) AND failure_code IS NULL
                """),
        Rule(
            name: "a transfer that has ended has no parts",
            exceptions: """
                SELECT t.id FROM transfer t
                WHERE t.state >= \(transfer: .done)
                    AND EXISTS (SELECT 1 FROM transfer_part p WHERE p.sequence = t.sequence)
                """),
        Rule(
            name: "a sequence is from 1 to \(Columns.greatest)",
            exceptions: """
                SELECT id FROM mutation WHERE \(isOutOfOrder) UNION ALL SELECT id FROM transfer WHERE \(isOutOfOrder)
                UNION ALL SELECT id FROM outcome WHERE \(isOutOfOrder)
                """),
        Rule(
            name: "a sequence is used once",
            exceptions: """
                SELECT m.id FROM mutation m JOIN outcome o ON o.sequence = m.sequence
                UNION ALL SELECT id FROM mutation WHERE sequence > (SELECT seq FROM sqlite_sequence
                WHERE name = 'mutation')
                """),
    ]
}
