import Foundation
import GRDB
import GRDBSQLite
import Testing

@testable import LarderOperations

@Suite("How SQLite runs the statements", .timeLimit(.minutes(10)))
struct PlanTests {
    /// What SQLite does by going through a table or by sorting.
    private func slow(_ sql: String, _ db: Database) throws -> [String] {
        // In `EXPLAIN` a parameter without a value is null.
        let statement = try db.makeStatement(sql: "EXPLAIN QUERY PLAN " + sql)
        statement.setUncheckedArguments([])
        return try Row.fetchAll(statement).map { $0["detail"] as String }.filter {
            // Constant rows are what values are that come with the statement, and `given` the table of them; of
            // sequences there are two.
            $0.hasPrefix("SCAN") && !$0.contains("CONSTANT ROW")
                && !["SCAN given", "SCAN sqlite_sequence"].contains($0)
                || $0.contains("TEMP B-TREE")
        }
    }

    /// What the connection keeps of the statements that it has run.
    private func statements(_ db: Database) -> [String] {
        var found: [String] = []
        var statement = sqlite3_next_stmt(db.sqliteConnection, nil)
        while let one = statement {
            if let sql = sqlite3_sql(one) { found.append(String(cString: sql)) }
            statement = sqlite3_next_stmt(db.sqliteConnection, one)
        }
        return found.filter { sql in ["SELECT", "INSERT", "UPDATE", "DELETE", "WITH"].contains { sql.hasPrefix($0) } }
    }

    /// Sends a mutation through all that may happen to one.
    private func makeAllSteps(_ database: OperationsDatabase) async throws {
        let queue = database.mutations
        let token = TemporaryID()
        let maker = try await database.enqueue(draft(key: "1", temporaryIDs: [token]))
        let user = try await database.enqueue(draft(variables: #"{"id":"\#(token.text)"}"#, dependencies: [maker]))
        let late = try await database.enqueue(draft("late", dependencies: [user], expires: after(1)))
        try await queue.retryLater(
            database.begin(maker).attempt, at: nil, offline, revision: Revision(idempotencyKey: "2"), now: noon)
        let attempt = try await database.begin(maker).attempt
        try await queue.adopt(attempt, from: "me", to: "you", now: noon)
        try await queue.answer(attempt, json("{}"), temporaryIDs: [token: "7"], now: noon)
        try await queue.settle(maker, now: noon)
        try await queue.expire(in: app, now: after(2))
        try await queue.replay(late, now: noon)
        try await database.setAside(user)
        try await queue.discard(user, dependents: .setAside(reason: "given up"), now: noon)
        _ = try await database.enqueue(draft(temporaryIDs: [TemporaryID()]))
        let many = try await queue.enqueue((0..<30).map { draft("many \($0)") })
        for mutation in many {
            try await queue.answer(database.begin(mutation.id).attempt, json("{}"), now: noon)
        }
        try await queue.settle(many.map { ($0.id, nil) }, now: noon)
        try await queue.discardAll(in: app, now: noon)
    }

    @Test("No step of a mutation goes through a table, or sorts")
    func steps() async throws {
        try await withOperations { database in
            try await makeAllSteps(database)
            let found = try await database.pool.writeWithoutTransaction { db in
                try statements(db).filter { !$0.contains("WITH RECURSIVE") }.map { ($0, try slow($0, db)) }
            }
            #expect(found.count > 40)
            // Giving up all goes through all.
            for (sql, plan) in found where !sql.contains("state IN (0, 3)") && !sql.contains("expires <= ?") {
                #expect(plan == [], "\(sql)")
            }
        }
    }

    @Test("Runnable mutations, a single one, and whether any is unsent are found by an index")
    func reads() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            let found = try await database.pool.read { db in
                let transaction = QueueTransaction(db: db)
                _ = try transaction.mutation(id)
                _ = try transaction.outcome(id)
                _ = try transaction.runnable(in: 1, now: noon, after: nil, limit: .max)
                _ = try transaction.hasUnsent(in: 1)
                return try statements(db).map { ($0, try slow($0, db)) }
            }
            #expect(found.count >= 6)
            for (sql, plan) in found where !sql.contains("sqlite_schema") { #expect(plan == [], "\(sql)") }
        }
    }

    @Test(
        "A partition's mutations that are not pending are listed by an index",
        arguments: [
            MutationState.inFlight, .acknowledged, .deadLetter,
        ])
    func lists(_ state: MutationState) async throws {
        try await withOperations { database in
            _ = try await database.enqueue(draft())
            let filter = MutationFilter(partition: app, states: [state])
            let plan = try await database.pool.read { db in
                _ = try QueueTransaction(db: db).list(filter, after: 0, limit: 10, isStrict: true)
                let list = statements(db).first { $0.contains("ORDER BY m.sequence") }
                return try slow(try #require(list), db).filter { $0.hasPrefix("SCAN") }
            }
            #expect(plan == [])
        }
    }
}
