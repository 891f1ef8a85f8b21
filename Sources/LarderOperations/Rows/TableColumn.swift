import Foundation
import GRDB

/// A column as its table's definition says that it is.
struct TableColumn: Sendable, Hashable {
    enum Kind: String, Sendable, Hashable {
        case integer = "INTEGER"
        case text = "TEXT"
        case blob = "BLOB"
    }

    var table: String
    var name: String
    /// Nil where it takes values of any type.
    var kind: Kind?
    /// Whether null is a value of it.
    var isOptional: Bool
    /// Whether rows are found by it.
    var isKey: Bool

    static func all(of table: String, in db: Database) throws -> [TableColumn] {
        try db.rows(
            "SELECT name, upper(type), \"notnull\", pk FROM pragma_table_info(?) ORDER BY cid", [table]
        ) { row in
            let isKey = try row.integer(3) > 0
            return TableColumn(
                table: table, name: try row.text(0), kind: Kind(rawValue: try row.text(1)),
                isOptional: try row.integer(2) == 0 && !isKey, isKey: isKey)
        }
    }

    func fits(_ value: StoredValue) -> Bool {
        switch (kind, value) {
        case (nil, _), (.integer, .integer), (.text, .text), (.blob, .blob): true
        case (_, .null): isOptional
        default: false
        }
    }

    /// What takes the place of a value that cannot be read, and says as little as can be.
    var neutral: StoredValue {
        if isOptional { return .null }
        return switch (table, name) {
        case ("mutation", "id"), ("transfer", "id"), ("outcome", "id"), ("store", "identity"):
            .blob(withUnsafeBytes(of: UUID().uuid) { Array($0) })
        case ("transfer", "bucket"), ("transfer", "key"): .text("?")
        case ("partition", "name"), ("environment", "name"): .text(Destination.randomName)
        case ("mutation_content", "variables"), ("mutation_answer", "answer"), ("watcher", "variables"),
            ("pin", "variables"):
            .blob(Array("{}".utf8))
        default:
            switch kind {
            case .integer, nil: .integer(0)
            case .text: .text("")
            case .blob: .blob([])
            }
        }
    }
}
