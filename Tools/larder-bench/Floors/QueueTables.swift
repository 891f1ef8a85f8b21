import LarderMigrations

/// Where the rows of queued mutations go, and the statements of their lives.
enum QueueTables {
    /// One table, as a program would make it that never looks for a mutation.
    case one
    /// The queue's own: with what they check, and the indices that they are read by.
    case own

    var schema: [String] {
        switch self {
        case .one:
            [
                """
                CREATE TABLE mutation (sequence INTEGER PRIMARY KEY AUTOINCREMENT, id BLOB NOT NULL UNIQUE,
                    partition INTEGER NOT NULL, lane TEXT NOT NULL, state INTEGER NOT NULL, attempts INTEGER NOT NULL,
                    created INTEGER NOT NULL, document TEXT NOT NULL, operation_name TEXT, variables BLOB NOT NULL,
                    optimistic_response BLOB, answer BLOB)
                """
            ]
        case .own:
            Migration.all.map { String(decoding: $0.sql, as: UTF8.self) }
                + ["INSERT INTO partition (id, name) VALUES (1, 'app')"]
        }
    }

    /// Bind the id, the lane, the time; and the document, the operation's name, the variables and the response where
    /// they have as many parameters.
    var insertion: [String] {
        switch self {
        case .one:
            [
                """
                INSERT INTO mutation (id, partition, lane, state, attempts, created, document, operation_name,
                    variables, optimistic_response) VALUES (?, 1, ?, 0, 0, ?, ?, ?, ?, ?)
                """
            ]
        case .own:
            [
                """
                INSERT INTO mutation (id, partition, lane, state, stalled, queued, attempts, created)
                VALUES (?, 1, ?, 0, 0, 1, 0, ?)
                """,
                """
                INSERT INTO mutation_content (sequence, document, operation_name, variables, optimistic_response)
                VALUES (last_insert_rowid(), ?4, ?5, ?6, ?7)
                """,
            ]
        }
    }

    /// Binds the sequence.
    var beginning: [String] {
        switch self {
        case .one: ["UPDATE mutation SET state = 1, attempts = attempts + 1 WHERE sequence = ?"]
        case .own: ["UPDATE mutation SET state = 1, attempts = attempts + 1, owner = 'bench' WHERE sequence = ?"]
        }
    }

    /// Bind the sequence; and the answer where they have two parameters.
    var answering: [String] {
        switch self {
        case .one: ["UPDATE mutation SET state = 2, answer = ?2 WHERE sequence = ?1"]
        case .own:
            [
                "UPDATE mutation SET state = 2, queued = 0, owner = NULL WHERE sequence = ?",
                "INSERT INTO mutation_answer (sequence, answer) VALUES (?, ?)",
            ]
        }
    }

    /// Binds the sequence.
    var deletion: [String] { ["DELETE FROM mutation WHERE sequence = ?"] }
}
