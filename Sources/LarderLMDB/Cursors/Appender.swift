import CLMDB

/// The end of a table with integer keys, where entries are added one after the other: one search for all of them.
///
/// Lives inside a write transaction, which cannot be used otherwise meanwhile.
///
/// Safe: it owns LMDB's cursor, cannot escape the transaction that it is of, and hands LMDB only bytes that the call
/// outlives.
@safe package struct Appender: ~Copyable, ~Escapable {
    private let pointer: OpaquePointer
    private let environment: Environment

    @_lifetime(borrow owner)
    init(_ pointer: OpaquePointer, _ environment: Environment, of owner: borrowing WriteTransaction) {
        unsafe self.pointer = unsafe pointer
        self.environment = environment
    }

    deinit { unsafe mdb_cursor_close(pointer) }

    /// Adds an entry. Its key is greater than all others in the table, or it is `.appendOutOfOrder` and the transaction
    /// stays usable.
    package mutating func append(_ key: UInt64, _ value: UnsafeRawBufferPointer) throws(LMDBError) {
        try environment.checkSize(of: value.count)
        var value = unsafe MDB_val(value)
        let status = unsafe withUnsafeBytes(of: key) { bytes in
            var name = unsafe MDB_val(bytes)
            return unsafe mdb_cursor_put(pointer, &name, &value, UInt32(MDB_APPEND))
        }
        guard status == MDB_SUCCESS else { throw environment.writeFailure(status, doing: "appending a value") }
    }
}

extension WriteTransaction {
    /// Runs `body` with the end of a table with integer keys.
    package mutating func append(to table: Table, _ body: (inout Appender) throws -> Void) throws {
        guard table.keys == .integers else { throw LMDBError.keyKind(table) }
        var cursor: OpaquePointer?
        let status = unsafe mdb_cursor_open(handle.pointer, table.dbi, &cursor)
        guard status == MDB_SUCCESS, let cursor = unsafe cursor else {
            throw LMDBError.make(status, doing: "opening a cursor")
        }
        var appender = unsafe Appender(cursor, environment, of: self)
        try body(&appender)
    }
}
