internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// The columns of the row at which a statement stands, from 0. Any of another type than expected is damage, and an
/// error: nothing that a file holds may trap.
///
/// Not to be kept past the row.
struct Columns {
    let statement: SQLiteStatement

    func isNull(_ index: Int32) -> Bool { sqlite3_column_type(statement, index) == SQLITE_NULL }

    func integer(_ index: Int32) throws(OperationsError) -> Int64 {
        guard sqlite3_column_type(statement, index) == SQLITE_INTEGER else { throw .unexpectedType(index) }
        return sqlite3_column_int64(statement, index)
    }

    func text(_ index: Int32) throws(OperationsError) -> String {
        guard sqlite3_column_type(statement, index) == SQLITE_TEXT, let text = sqlite3_column_text(statement, index)
        else {
            throw .unexpectedType(index)
        }
        // Safe: SQLite keeps the text until the statement moves, and says how long it is.
        let count = Int(sqlite3_column_bytes(statement, index))
        return String(decoding: UnsafeBufferPointer(start: text, count: count), as: UTF8.self)
    }

    func bytes(_ index: Int32) throws(OperationsError) -> [UInt8] {
        guard sqlite3_column_type(statement, index) == SQLITE_BLOB else { throw .unexpectedType(index) }
        // Null where the blob is empty. Safe for the reason given above.
        let start = sqlite3_column_blob(statement, index)
        return Array(UnsafeRawBufferPointer(start: start, count: Int(sqlite3_column_bytes(statement, index))))
    }

    func uuid(_ index: Int32) throws(OperationsError) -> UUID {
        guard sqlite3_column_type(statement, index) == SQLITE_BLOB, sqlite3_column_bytes(statement, index) == 16,
            let start = sqlite3_column_blob(statement, index)
        else { throw .unexpectedType(index) }
        // Safe for the reason given above: there are sixteen of them.
        return UUID(uuid: start.loadUnaligned(as: uuid_t.self))
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

extension OperationsError {
    fileprivate static func unexpectedType(_ index: Int32) -> OperationsError {
        .damaged("column \(index) of a row is not of its type")
    }

    static func damaged(_ what: String) -> OperationsError {
        OperationsError(.damaged, "larder.sqlite is damaged: \(what); restore a backup, or repair it into a new file")
    }
}
