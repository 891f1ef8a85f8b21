import Foundation
import GRDB
import GRDBSQLite

/// The columns of the row at which a statement stands, from 0. Any of another type than expected is damage, and an
/// error: nothing that a file holds may trap.
///
/// Not to be kept past the row.
struct Columns {
    let statement: SQLiteStatement

    func isNull(_ index: Int32) -> Bool { sqlite3_column_type(statement, index) == SQLITE_NULL }

    func integer(_ index: Int32) throws(OperationsError) -> Int64 {
        guard sqlite3_column_type(statement, index) == SQLITE_INTEGER else { throw unexpectedType(index) }
        return sqlite3_column_int64(statement, index)
    }

    func text(_ index: Int32) throws(OperationsError) -> String {
        guard sqlite3_column_type(statement, index) == SQLITE_TEXT, let text = sqlite3_column_text(statement, index)
        else {
            throw unexpectedType(index)
        }
        // Safe: SQLite keeps the text until the statement moves, and says how long it is.
        let count = Int(sqlite3_column_bytes(statement, index))
        return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
    }

    func bytes(_ index: Int32) throws(OperationsError) -> [UInt8] {
        guard sqlite3_column_type(statement, index) == SQLITE_BLOB else { throw unexpectedType(index) }
        // Null where the blob is empty. Safe for the reason given above.
        let start = sqlite3_column_blob(statement, index)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index))))
    }

    func uuid(_ index: Int32) throws(OperationsError) -> UUID {
        guard sqlite3_column_type(statement, index) == SQLITE_BLOB, sqlite3_column_bytes(statement, index) == 16,
            let start = sqlite3_column_blob(statement, index)
        else { throw unexpectedType(index) }
        // Safe for the reason given above: there are sixteen of them.
        return UUID(uuid: start.loadUnaligned(as: uuid_t.self))
    }

    /// How often something happened, and what is as small.
    func count(_ index: Int32) throws(OperationsError) -> Int { Int(try integer(index, in: 0...Int64(Int32.max))) }

    /// How often something happened, where that is never set back; a size in bytes.
    func size(_ index: Int32) throws(OperationsError) -> Int64 { try integer(index, in: 0...Self.greatest) }

    /// So much can be added to, or be multiplied by a few, without overflow.
    static let greatest: Int64 = 1 << 56

    private func integer(_ index: Int32, in range: ClosedRange<Int64>) throws(OperationsError) -> Int64 {
        let value = try integer(index)
        guard range.contains(value) else {
            throw .damagedRow("\(name(index)) is \(value), and must be from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    /// JSON of whatever kind.
    func json(_ index: Int32) throws(OperationsError) -> [UInt8] {
        let json = try bytes(index)
        guard JSONSyntax.isValue(json) else { throw .damagedRow("\(name(index)) is no JSON") }
        return json
    }

    /// The name that the statement gives a column.
    func name(_ index: Int32) -> String {
        sqlite3_column_name(statement, index).map { String(cString: $0) } ?? "column \(index)"
    }

    func date(_ index: Int32) throws(OperationsError) -> Date { Date(milliseconds: try integer(index)) }

    func optional<Value>(
        _ index: Int32, _ read: (Int32) throws(OperationsError) -> Value
    ) throws(OperationsError) -> Value? {
        isNull(index) ? nil : try read(index)
    }
}

extension UUID {
    init?(bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        self = bytes.withUnsafeBytes { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }
}

extension Columns {
    private func unexpectedType(_ index: Int32) -> OperationsError { .damagedRow("\(name(index)) is not of its type") }
}

extension OperationsError {
    /// One row cannot be read; the others can.
    static func damagedRow(_ what: String) -> OperationsError {
        OperationsError(
            .damagedRow,
            "A row of larder.sqlite is damaged: \(what); larder check names it, larder-migrate repair mends "
                + "what can be saved")
    }

    static func damaged(_ what: String) -> OperationsError {
        OperationsError(
            .damaged, "The database larder.sqlite is damaged: \(what); restore a backup, or repair it into a new file")
    }
}
