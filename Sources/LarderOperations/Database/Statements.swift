internal import Foundation
internal import GRDB

/// Statements are compiled once for each connection and kept by their text.
extension Database {
    func run(_ sql: String, _ arguments: StatementArguments = []) throws {
        let statement = try cachedStatement(sql: sql)
        statement.setUncheckedArguments(arguments)
        try statement.execute()
    }

    /// The first row's first column.
    func value<Value: DatabaseValueConvertible & StatementColumnConvertible>(
        _ sql: String, _ arguments: StatementArguments = []
    ) throws -> Value? {
        try Value.fetchOne(cachedStatement(sql: sql), arguments: arguments)
    }

    func values<Value: DatabaseValueConvertible & StatementColumnConvertible>(
        _ sql: String, _ arguments: StatementArguments = []
    ) throws -> [Value] {
        try Value.fetchAll(cachedStatement(sql: sql), arguments: arguments)
    }

    /// Whether there is a row.
    func exists(_ sql: String, _ arguments: StatementArguments = []) throws -> Bool {
        let statement = try cachedStatement(sql: sql)
        return try Row.fetchCursor(statement, arguments: arguments).next() != nil
    }

    /// The first row, while the statement stands there.
    func row<Value>(
        _ sql: String, _ arguments: StatementArguments = [], _ body: (Columns) throws -> Value
    ) throws -> Value? {
        let statement = try cachedStatement(sql: sql)
        // The statement is reset when its cursor goes.
        let cursor = try Row.fetchCursor(statement, arguments: arguments)
        return try withExtendedLifetime(cursor) {
            guard try cursor.next() != nil else { return nil }
            return try body(Columns(statement: statement.sqliteStatement))
        }
    }

    func rows<Value>(
        _ sql: String, _ arguments: StatementArguments = [], _ body: (Columns) throws -> Value
    ) throws -> [Value] {
        var values: [Value] = []
        let statement = try cachedStatement(sql: sql)
        let cursor = try Row.fetchCursor(statement, arguments: arguments)
        try withExtendedLifetime(cursor) {
            while try cursor.next() != nil { values.append(try body(Columns(statement: statement.sqliteStatement))) }
        }
        return values
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
