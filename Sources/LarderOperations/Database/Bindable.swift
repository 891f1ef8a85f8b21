import Foundation
import GRDB
import GRDBSQLite

/// A value that takes the place of a `?` in a statement.
///
/// GRDB would bind a text up to its first U+0000; this binds the whole text.
protocol Bindable {
    /// - Parameter index: From 1.
    /// - Returns: SQLite's result code.
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32
}

typealias Bindings = [(any Bindable)?]

/// Gives a statement its values in their order, nulls too: a place that is not bound keeps its last value.
struct Binder {
    private let statement: SQLiteStatement
    private(set) var count: Int32 = 0
    /// SQLite's result code: of the first value that was not taken.
    private(set) var code = SQLITE_OK

    init(statement: SQLiteStatement) { self.statement = statement }

    mutating func bind(_ value: (some Bindable)?) {
        count += 1
        let code = value?.bind(to: statement, at: count) ?? sqlite3_bind_null(statement, count)
        if self.code == SQLITE_OK { self.code = code }
    }
}

/// SQLite makes its own copy of the bytes before the call returns; so it says of -1:
/// https://www.sqlite.org/c3ref/c_static.html
private var copied: sqlite3_destructor_type { unsafeBitCast(-1, to: sqlite3_destructor_type.self) }

extension Int64: Bindable {
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 { sqlite3_bind_int64(statement, index, self) }
}

extension Int: Bindable {
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 { Int64(self).bind(to: statement, at: index) }
}

extension String: Bindable {
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        var text = self
        return text.withUTF8 { Self.bind($0, to: statement, at: index) }
    }

    /// A text by its bytes, which need not be UTF-8: what a file holds is copied as it is.
    static func bind(utf8 bytes: [UInt8], to statement: SQLiteStatement, at index: Int32) -> Int32 {
        bytes.withUnsafeBufferPointer { bind($0, to: statement, at: index) }
    }

    private static func bind(
        _ bytes: UnsafeBufferPointer<UInt8>, to statement: SQLiteStatement, at index: Int32
    ) -> Int32 {
        // Safe: the bytes are copied within the call, and are as many as it is told.
        bytes.withMemoryRebound(to: CChar.self) { characters in
            guard let start = characters.baseAddress else {
                return sqlite3_bind_text(statement, index, "", 0, copied)
            }
            return sqlite3_bind_text64(statement, index, start, UInt64(characters.count), copied, UInt8(SQLITE_UTF8))
        }
    }
}

extension [UInt8]: Bindable {
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        // Safe for the reason given above. No bytes are no blob to SQLite where there is no address: null.
        withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress, !bytes.isEmpty else {
                return sqlite3_bind_zeroblob(statement, index, 0)
            }
            return sqlite3_bind_blob64(statement, index, start, UInt64(bytes.count), copied)
        }
    }
}

extension UUID: Bindable {
    func bind(to statement: SQLiteStatement, at index: Int32) -> Int32 {
        // Safe for the reason given above.
        withUnsafeBytes(of: uuid) { bytes in
            sqlite3_bind_blob64(statement, index, bytes.baseAddress, UInt64(bytes.count), copied)
        }
    }
}
