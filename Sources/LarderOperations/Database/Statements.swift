import Foundation
import GRDB
import GRDBSQLite

/// Statements are compiled once for each connection and kept by their text.
///
/// GRDB compiles and keeps them; they are stepped through here. What GRDB does besides, for observers of a database,
/// takes longer than the short statements of a queue themselves, and this database has no observers.
extension Database {
    func run(_ sql: String, _ bindings: Bindings = []) throws {
        _ = try row(sql, bindings) { _ in }
    }

    /// Runs a statement that is run very often: its values are bound one by one, and are put into no array of boxes.
    func run(_ sql: String, binding bind: (inout Binder) -> Void) throws {
        let statement = try compiled(sql)
        try withExtendedLifetime(statement) {
            let statement = statement.sqliteStatement
            defer { sqlite3_reset(statement) }
            var binder = Binder(statement: statement)
            bind(&binder)
            try check(binder.code, sql)
            guard binder.count == sqlite3_bind_parameter_count(statement) else {
                throw OperationsError(.storage, "A statement was given \(binder.count) values: \(sql)")
            }
            _ = try step(statement, sql)
        }
    }

    /// Whether there is a row.
    func exists(_ sql: String, _ bindings: Bindings = []) throws -> Bool {
        try row(sql, bindings) { _ in true } ?? false
    }

    /// The first row's first column.
    func integer(_ sql: String, _ bindings: Bindings = []) throws -> Int64? {
        try row(sql, bindings) { try $0.integer(0) }
    }

    /// Every row's first column.
    func integers(_ sql: String, _ bindings: Bindings = []) throws -> [Int64] {
        try rows(sql, bindings) { try $0.integer(0) }
    }

    /// Every row's first column.
    func texts(_ sql: String, _ bindings: Bindings = []) throws -> [String] {
        try rows(sql, bindings) { try $0.text(0) }
    }

    /// The first row, while the statement stands there.
    func row<Value>(
        _ sql: String, _ bindings: Bindings = [], _ body: (Columns) throws -> Value
    ) throws -> Value? {
        try stepping(sql, bindings) { statement in
            guard try step(statement, sql) else { return nil }
            return try body(Columns(statement: statement))
        }
    }

    func rows<Value>(
        _ sql: String, _ bindings: Bindings = [], _ body: (Columns) throws -> Value
    ) throws -> [Value] {
        try stepping(sql, bindings) { statement in
            var values: [Value] = []
            while try step(statement, sql) { values.append(try body(Columns(statement: statement))) }
            return values
        }
    }

    /// As `rows`, without damaged rows: one must not keep the others from being seen. A check names them.
    func readableRows<Value>(
        _ sql: String, _ bindings: Bindings = [], _ body: (Columns) throws -> Value
    ) throws -> [Value] {
        try rows(sql, bindings) { row in
            do { return try body(row) } catch let error as OperationsError where error.code == .damagedRow {
                return nil
            }
        }.compactMap { (value: Value?) in value }
    }

    /// Looks at rows for as long as the body says.
    func scan(_ sql: String, _ bindings: Bindings = [], _ body: (Columns) throws -> Bool) throws {
        try stepping(sql, bindings) { statement in
            while try step(statement, sql) {
                guard try body(Columns(statement: statement)) else { return }
            }
        }
    }

    private func stepping<Result>(
        _ sql: String, _ bindings: Bindings, _ body: (SQLiteStatement) throws -> Result
    ) throws -> Result {
        let statement = try compiled(sql)
        return try withExtendedLifetime(statement) {
            let statement = statement.sqliteStatement
            // Says once more what the last step said, which was told then.
            defer { sqlite3_reset(statement) }
            try bind(bindings, to: statement, sql)
            return try body(statement)
        }
    }

    /// Compiling reads the definitions of the tables.
    private func compiled(_ sql: String) throws -> Statement {
        try requireOpen()
        do { return try cachedStatement(sql: sql) } catch let error as DatabaseError where hasFailedReading {
            throw failure(error.extendedResultCode.rawValue, sql)
        }
    }

    private func bind(_ bindings: Bindings, to statement: SQLiteStatement, _ sql: String) throws {
        // A place that is not bound is null, and does not keep its last value.
        try check(sqlite3_clear_bindings(statement), sql)
        for (index, value) in zip(Int32(1)..., bindings) {
            guard let value else { continue }
            try check(value.bind(to: statement, at: index), sql)
        }
    }

    /// Whether there is another row.
    private func step(_ statement: SQLiteStatement, _ sql: String) throws -> Bool {
        switch sqlite3_step(statement) {
        case SQLITE_ROW: return true
        case SQLITE_DONE: return false
        case let code: throw failure(code, sql)
        }
    }

    private func check(_ code: Int32, _ sql: String) throws {
        guard code == SQLITE_OK else { throw failure(code, sql) }
    }

    private func failure(_ code: Int32, _ sql: String) -> DatabaseError {
        // Of a file that could not be attached there is nothing left but what was said of it.
        let isUnread = hasFailedReading || lastErrorMessage == String(cString: sqlite3_errstr(SQLITE_IOERR))
        guard code & 0xFF == SQLITE_CORRUPT, isUnread else {
            return DatabaseError(resultCode: ResultCode(rawValue: code), message: lastErrorMessage, sql: sql)
        }
        return DatabaseError(resultCode: .SQLITE_IOERR_READ, message: "a page could not be read", sql: sql)
    }
}

extension Date {
    /// Milliseconds since 1970, as they are stored. A date that is past all of them is the last.
    var milliseconds: Int64 {
        let value = (timeIntervalSince1970 * 1000).rounded()
        guard value.isFinite else { return value == -.infinity ? .min : .max }
        return Int64(exactly: value) ?? (value < 0 ? .min : .max)
    }

    init(milliseconds: Int64) { self.init(timeIntervalSince1970: Double(milliseconds) / 1000) }
}
