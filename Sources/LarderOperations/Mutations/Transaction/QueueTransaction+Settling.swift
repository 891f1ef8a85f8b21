import Foundation
import GRDB

extension QueueTransaction {
    typealias Settled = (mutation: UUID, result: [UInt8]?)

    /// Acknowledged to settled, in this order.
    ///
    /// - Throws: `.notFound`, `.wrongState` for the first for which that cannot be.
    func settle(_ settled: [Settled], now: Date) throws {
        var rest = settled[...]
        while !rest.isEmpty {
            let count = rest.count < Self.rowCount ? 1 : Self.rowCount
            try settle(rest.prefix(count), now, count == 1 ? Self.statementsOfOne : Self.statementsOfMany)
            rest = rest.dropFirst(count)
        }
    }

    private func settle(_ settled: ArraySlice<Settled>, _ now: Date, _ statements: Statements) throws {
        do {
            try db.run(statements.insertion) { row in
                for (mutation, result) in settled {
                    row.bind(mutation)
                    row.bind(now.milliseconds)
                    row.bind(result)
                }
            }
        } catch let error as DatabaseError where error.resultCode == .SQLITE_CONSTRAINT && settled.count > 1 {
            // One of them twice: the statement has undone what it did, and the second is found settled.
            for one in settled { try settle([one], now, Self.statementsOfOne) }
            return
        }
        guard db.changesCount == settled.count else {
            for (mutation, _) in settled { _ = try entry(mutation, in: .acknowledged) }
            throw OperationsError.damaged("one of \(settled.count) mutations is not found by its id")
        }
        try db.run(statements.deletion) { row in for (mutation, _) in settled { row.bind(mutation) } }
    }

    /// Notes with outcomes what had failed of mutations that took effect in part.
    func note(_ errors: [UUID: [UInt8]]) throws {
        for (mutation, list) in errors { try db.run("UPDATE outcome SET errors = ? WHERE id = ?", [list, mutation]) }
    }

    private struct Statements {
        let insertion: String
        let deletion: String

        init(rows count: Int) {
            // CROSS JOIN: each is looked up by its id, and not all mutations gone through.
            insertion = """
                INSERT INTO outcome (id, partition, sequence, kind, idempotency_key, settled, result)
                SELECT m.id, m.partition, m.sequence, \(outcome: .applied), m.idempotency_key, given.column2,
                    given.column3
                FROM (VALUES \(rows("(?, ?, ?)", count: count))) AS given CROSS JOIN mutation m ON m.id = given.column1
                WHERE m.state = \(mutation: .acknowledged)
                """
            deletion = "DELETE FROM mutation WHERE id IN (\(rows("?", count: count)))"
        }
    }

    private static let statementsOfOne = Statements(rows: 1)
    private static let statementsOfMany = Statements(rows: rowCount)
}
