import GRDB
import GRDBSQLite

/// A value as SQLite has it, of whatever type: a text by its bytes, so that nothing of it is lost.
enum StoredValue: Sendable, Hashable {
    case null
    case integer(Int64)
    case real(Double)
    case text([UInt8])
    case blob([UInt8])

    static func text(_ text: String) -> StoredValue { .text(Array(text.utf8)) }
}

extension StoredValue: Bindable {
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        switch self {
        case .null: sqlite3_bind_null(statement, index)
        case .integer(let value): value.bind(to: statement, at: index)
        case .real(let value): sqlite3_bind_double(statement, index, value)
        case .text(let bytes): String.bind(utf8: bytes, to: statement, at: index)
        case .blob(let bytes): bytes.bind(to: statement, at: index)
        }
    }
}

extension Columns {
    /// How many the row has.
    var count: Int32 { sqlite3_column_count(statement) }

    func value(_ index: Int32) -> StoredValue {
        switch sqlite3_column_type(statement, index) {
        case SQLITE_INTEGER: .integer(sqlite3_column_int64(statement, index))
        case SQLITE_FLOAT: .real(sqlite3_column_double(statement, index))
        case SQLITE_TEXT: .text(rawBytes(index))
        case SQLITE_BLOB: .blob(rawBytes(index))
        default: .null
        }
    }

    /// All values, in the order of the columns.
    var values: [StoredValue] { (0..<count).map(value) }

    /// The bytes of a text or a blob, converted from neither.
    private func rawBytes(_ index: Int32) -> [UInt8] {
        // Null where there are none. Safe: SQLite keeps the bytes until the statement moves, and says how many they
        // are.
        let start = sqlite3_column_blob(statement, index)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index))))
    }
}
