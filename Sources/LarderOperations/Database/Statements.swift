internal import Foundation
internal import GRDB
internal import GRDBSQLite

/// Statements are compiled once for each connection and kept by their text.
extension Database {
    func run(_ sql: String, _ bindings: Bindings = []) throws {
        try prepared(sql, bindings).execute()
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
        let statement = try prepared(sql, bindings)
        // The statement is reset when its cursor goes.
        let cursor = try Row.fetchCursor(statement)
        return try withExtendedLifetime(cursor) {
            guard try cursor.next() != nil else { return nil }
            return try body(Columns(statement: statement.sqliteStatement))
        }
    }

    func rows<Value>(
        _ sql: String, _ bindings: Bindings = [], _ body: (Columns) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        let statement = try prepared(sql, bindings)
        let cursor = try Row.fetchCursor(statement)
        try withExtendedLifetime(cursor) {
            while try cursor.next() != nil { values.append(try body(Columns(statement: statement.sqliteStatement))) }
        }
        return values
    }

    private func prepared(_ sql: String, _ bindings: Bindings) throws -> Statement {
        let statement = try cachedStatement(sql: sql)
        // What GRDB does next must not fail; it would if the last use of the statement had.
        try check(sqlite3_reset(statement.sqliteStatement), sql)
        // Tells GRDB that the values are not its business, and clears those of the last time.
        statement.setUncheckedArguments([])
        for (index, value) in zip(Int32(1)..., bindings) {
            guard let value else { continue }
            try check(value.bind(to: statement.sqliteStatement, at: index), sql)
        }
        return statement
    }

    private func check(_ code: Int32, _ sql: String) throws {
        guard code != SQLITE_OK else { return }
        throw DatabaseError(resultCode: ResultCode(rawValue: code), message: lastErrorMessage, sql: sql)
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
