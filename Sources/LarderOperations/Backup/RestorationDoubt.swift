import Foundation
import GRDB

/// Why a mutation of a backup is set aside when it comes back: only provably unsent mutations are sent by themselves.
enum RestorationDoubt: String, CaseIterable {
    /// An attempt that the backup knows of may have taken effect.
    case attempted
    /// It was unsent when the backup was made, and nothing proves that it was not sent since.
    case sentSince

    /// An expression of SQL: the doubt of a mutation, or null. A mutation that is answered or set aside is not sent.
    ///
    /// - Parameters:
    ///   - row: The name of the mutation's row in the statement.
    ///   - isProven: A condition: whether the store proves that it was not sent since.
    static func expression(_ row: String, isProven: String) -> String {
        """
        CASE WHEN \(row).state > \(mutation: .inFlight) THEN NULL
            WHEN NOT \(ProvablyUnsent.condition(row)) THEN '\(attempted.rawValue)'
            WHEN NOT (\(isProven)) THEN '\(sentSince.rawValue)' END
        """
    }

    /// Sets aside the mutations for which a query gives a doubt.
    ///
    /// - Parameter query: Gives numbers of mutations of `main`, each with its doubt or null.
    /// - Returns: How many were set aside.
    static func setAside(_ query: String, _ now: Date, _ db: Database) throws -> Int {
        let queue = QueueTransaction(db: db)
        let found = try db.rows(
            "SELECT sequence, doubt FROM (\(query)) WHERE doubt IS NOT NULL ORDER BY sequence"
        ) { (sequence: try $0.integer(0), doubt: try $0.text(1)) }
        for (sequence, text) in found {
            let doubt = RestorationDoubt(rawValue: text) ?? .attempted
            try queue.setAside(sequence: sequence, doubt.failure(now))
        }
        return found.count
    }

    /// Treats a whole database as one that a backup has brought back.
    ///
    /// - Parameter isProven: Whether nothing of it was sent since.
    /// - Returns: How many mutations were set aside.
    static func distrustAll(_ db: Database, isProven: Bool, _ now: Date) throws -> Int {
        if !isProven { try warn("SELECT sequence FROM mutation", db) }
        let doubt = expression("m", isProven: isProven ? "1" : "0")
        let count = try setAside("SELECT m.sequence, \(doubt) AS doubt FROM mutation m", now, db)
        // The other store goes on, or went on, giving numbers. A later backup of it may be brought back as well.
        let gap = Int64.random(in: 1 << 20...1 << 40)
        try db.run("UPDATE sqlite_sequence SET seq = seq + ? WHERE name = 'mutation'", [gap])
        try ForgottenOutcomes(db: db).noteEverything()
        return count
    }

    /// Adds to the reasons of mutations that were set aside before the backup was made that they may have been replayed
    /// since: who replays them must know.
    ///
    /// - Parameter query: Gives numbers of mutations of `main`, of which nothing proves that they were not sent since.
    static func warn(_ query: String, _ db: Database) throws {
        try db.run(
            """
            UPDATE main.mutation_failure SET message = message || ?1
            WHERE sequence IN (\(query)) AND instr(message, ?1) = 0
                AND sequence IN (SELECT sequence FROM main.mutation WHERE state = \(mutation: .deadLetter))
            """, [warning])
    }

    private static let warning =
        "; it was set aside before the backup that it came back from was made, and may have been sent since: look "
        + "whether the server has it before it is replayed"

    private func failure(_ now: Date) -> MutationFailure {
        switch self {
        case .attempted:
            MutationFailure(
                .outcomeUnknown,
                message: "It was in flight when the backup was made, or an attempt before that may have taken effect; "
                    + "look whether the server has it, then replay or discard it",
                time: now)
        case .sentSince:
            MutationFailure(
                .restored,
                message: "It was pending when the backup was made, and may have been sent since; look whether the "
                    + "server has it, then replay or discard it",
                time: now)
        }
    }
}
