import LarderGraphQL
import LarderRecords

/// A record of the source: an object's fields by their keys, as JSON has them.
struct SourceRecord {
    let key: String
    let fields: [String: Value]

    var typename: String? {
        if case .string(let name)? = fields["__typename"] { name } else { nil }
    }
}

/// The table `records`, which AppSync's SDK has from Apollo: `_id`, `key`, and `record` as JSON, in which a reference
/// to another record is `{"$reference": key}`.
struct SourceCache {
    static let mutationRoot = "MUTATION_ROOT"
    static let subscriptionRoot = "SUBSCRIPTION_ROOT"

    let database: ForeignDatabase

    /// - Throws: `.foreign` where it has not the table.
    init(_ path: String, _ options: ForeignDatabase.Options) throws(ImportError) {
        database = try ForeignDatabase(path, options)
        guard try database.tables().contains("records") else {
            throw ImportError(.foreign, "\(path) has no table records: it is no cache of Apollo's or AppSync's")
        }
        // Whether it has the columns.
        try database.forEachRow("SELECT _id, key, record FROM records LIMIT 0") { _ in }
    }

    /// What a row is.
    enum Row {
        case record(SourceRecord)
        case unreadable(String)
        case tooLarge(String)
    }

    /// All rows, in the order in which they were made.
    func forEachRow(_ body: (Row) throws(ImportError) -> Void) throws(ImportError) {
        try forEachRow(where: "1 ORDER BY _id", [], body)
    }

    /// The record of a key; nil where there is none that can be read.
    func record(_ key: String) throws(ImportError) -> SourceRecord? {
        var found: SourceRecord?
        try forEachRow(where: "key = ?", [key]) { row in
            if case .record(let record) = row { found = record }
        }
        return found
    }

    private func forEachRow(
        where condition: String, _ arguments: [String], _ body: (Row) throws(ImportError) -> Void
    ) throws(ImportError) {
        // Looking at the length first keeps SQLite from loading what is too long.
        let limit = database.options.maximumValueSize
        let sql = """
            SELECT _id, key, length(CAST(record AS BLOB)) <= \(limit),
                CASE WHEN length(CAST(record AS BLOB)) <= \(limit) THEN record END
            FROM records WHERE \(condition)
            """
        try database.forEachRow(sql, arguments) { (row) throws(ImportError) in
            let number = row.integer(0) ?? 0
            guard let key = row.text(1) else { return try body(.unreadable("row \(number)")) }
            if row.integer(2) == 0 { return try body(.tooLarge(key)) }
            guard let json = row.bytes(3), case .object(let fields)? = try? Value(json: json) else {
                return try body(.unreadable(key))
            }
            try body(.record(SourceRecord(key: key, fields: fields)))
        }
    }
}

extension Value {
    /// The key that a record refers to.
    var reference: String? {
        guard case .object(let members) = self, members.count == 1, case .string(let key)? = members["$reference"]
        else { return nil }
        return key
    }
}
