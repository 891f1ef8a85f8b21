import Foundation
import GRDB

/// How the rows of a table are read: by the initializers that all else reads them by, so that a check, a repair and a
/// runner agree on what is damaged.
struct RowReading: Sendable {
    /// What is read of a row.
    let columns: String
    /// The table first, with what is read along with it.
    let tables: String
    /// The columns by which a row is found, by their names in `table`.
    let keys: [String]
    let read: @Sendable (Columns) throws -> Void

    /// The table's name, and that by which it is known in `tables`.
    var table: String { words.first ?? "" }
    private var alias: String { words.dropFirst().first ?? "" }
    private var words: [String] { tables.split(whereSeparator: \.isWhitespace).map(String.init) }

    /// The rows that cannot be read.
    ///
    /// - Parameters:
    ///   - condition: Which are looked at.
    ///   - limit: How many are enough.
    func damaged(
        in db: Database, where condition: String = "1", _ bindings: Bindings = [], limit: Int = .max
    ) throws -> [DamagedRow] {
        let names = keys.map { "quote(\(alias).\($0))" }.joined(separator: ", ")
        var found: [DamagedRow] = []
        try db.scan("SELECT \(columns), \(names) FROM \(tables) WHERE \(condition)", bindings) { row in
            do { try read(row) } catch let error as OperationsError where error.code == .damagedRow {
                let first = row.count - Int32(keys.count)
                let literals = try keys.indices.map { try row.text(first + Int32($0)) }
                let key = zip(keys, literals).map { "\($0) = \($1)" }.joined(separator: " AND ")
                found.append(DamagedRow(table: table, key: key, reason: error.reason))
            }
            return found.count < limit
        }
        return found
    }

    /// Whether a row that was damaged is there, and damaged no more.
    func isReadable(_ row: DamagedRow, in db: Database) throws -> Bool {
        guard try db.exists("SELECT 1 FROM \(table) WHERE \(row.key)") else { return false }
        return try !damaged(in: db).contains { $0.key == row.key }
    }

    /// Whether no row is damaged among those for which a condition holds; false where there is none.
    func isReadable(in db: Database, where condition: String) throws -> Bool {
        guard try db.exists("SELECT 1 FROM \(tables) WHERE \(condition)") else { return false }
        return try damaged(in: db, where: condition, limit: 1).isEmpty
    }
}

extension RowReading {
    static let mutations = RowReading(
        columns: QueueTransaction.columns, tables: QueueTransaction.tables, keys: ["sequence"]
    ) { _ = try Mutation($0) }

    static let transfers = RowReading(
        columns: TransferTransaction.columns, tables: TransferTransaction.tables, keys: ["sequence"]
    ) { _ = try StoredTransfer($0) }

    static let parts = RowReading(
        columns: TransferTransaction.partColumns, tables: TransferTransaction.partTables, keys: ["sequence", "number"]
    ) { _ = try StoredPart($0) }

    /// The tables whose rows others belong to come first: what is mended in them may make those readable.
    static let all = [
        RowReading(columns: "s.identity, s.restoration", tables: "store s", keys: ["only"]) { row in
            _ = try row.uuid(0)
            _ = try row.optional(1, row.text)
        },
        RowReading(columns: StoredEnvironment.columns, tables: "environment e", keys: ["id"]) {
            _ = try StoredEnvironment($0)
        },
        RowReading(
            columns: StoredPartition.columns + ", p.transfer_changes, p.transfer_removals",
            tables: StoredPartition.tables, keys: ["id"]
        ) { row in
            _ = try StoredPartition(row)
            _ = (try row.size(5), try row.size(6))
        },
        RowReading(
            columns: "c.partition, c.number, c.switched", tables: "current_partition c", keys: ["only"]
        ) { row in _ = (try row.optional(0, row.integer), try row.size(1), try row.date(2)) },
        RowReading(columns: "q.name, q.seq", tables: "sqlite_sequence q", keys: ["name"]) { row in
            _ = (try row.text(0), try row.size(1))
        },
        transfers, parts, mutations,
        linkReading("mutation_content", "sequence"), linkReading("mutation_answer", "sequence"),
        linkReading("mutation_failure", "sequence"), linkReading("mutation_link", "sequence"),
        linkReading("mutation_dependency", "sequence", "dependency"),
        linkReading("mutation_transfer", "sequence", "transfer"),
        RowReading(
            columns: "t.token, t.partition, t.sequence, t.real, t.resolved", tables: "temporary_id t", keys: ["token"]
        ) { row in
            _ = (try row.text(0), try row.integer(1), try row.optional(2, row.integer))
            _ = (try row.optional(3, row.text), try row.optional(4, row.date))
        },
        RowReading(
            columns: "u.token, u.sequence", tables: "temporary_id_use u", keys: ["token", "sequence"]
        ) { row in _ = (try row.text(0), try row.integer(1)) },
        RowReading(
            columns: Outcome.columns + ", o.idempotency_key", tables: Outcome.tables, keys: ["id"]
        ) { row in
            _ = try Outcome(row)
            _ = try row.optional(10, row.text)
        },
        RowReading(columns: "f.partition, f.sequence", tables: "forgotten_outcome f", keys: ["partition"]) { row in
            _ = (try row.text(0), try row.size(1))
        },
        RowReading(columns: WatcherTable.columns, tables: WatcherTable.tables, keys: ["partition", "name"]) {
            _ = try WatcherTable.watcher($0)
        },
        RowReading(columns: PinTable.columns, tables: PinTable.tables, keys: ["partition", "name"]) {
            _ = try PinTable.pin($0)
        },
        RowReading(columns: StoredPartitionKey.columns, tables: StoredPartitionKey.tables, keys: ["partition"]) {
            _ = try StoredPartitionKey($0)
        },
        RowReading(columns: SealedCredential.columns, tables: "credential c", keys: ["partition", "kind"]) {
            _ = try SealedCredential($0)
        },
        RowReading(
            columns: QuarantinedCredential.columns + ", q.sealed", tables: QuarantinedCredential.tables, keys: ["id"]
        ) { row in
            _ = try QuarantinedCredential(row)
            _ = try row.bytes(6)
        },
        RowReading(columns: StoredSession.columns, tables: "session s", keys: ["partition"]) {
            _ = try StoredSession($0)
        },
        RowReading(columns: MigrationSet.Applied.columns, tables: "migration m", keys: ["number"]) {
            _ = try MigrationSet.Applied($0)
        },
    ]

    /// Of a table whose rows hang on others, and are read with them.
    private static func linkReading(_ table: String, _ keys: String...) -> RowReading {
        RowReading(columns: keys.map { "l.\($0)" }.joined(separator: ", "), tables: "\(table) l", keys: keys) { row in
            for index in keys.indices { _ = try row.integer(Int32(index)) }
        }
    }
}

extension OperationsError {
    /// What is wrong with a damaged row, without what to do about it.
    var reason: String {
        let start = message.range(of: "is damaged: ")?.upperBound ?? message.startIndex
        return String(message[start...].prefix { $0 != ";" })
    }
}
