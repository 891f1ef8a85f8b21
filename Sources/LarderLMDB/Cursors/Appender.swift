import CLMDB

/// The end of a table with integer keys, where entries are added one after the other: one search for all of them.
///
/// Lives inside a write transaction, which cannot be used otherwise meanwhile.
package struct Appender: ~Copyable, ~Escapable {
    private let pointer: OpaquePointer
    private let environment: Environment

    @_lifetime(borrow owner)
    init(_ pointer: OpaquePointer, _ environment: Environment, of owner: borrowing WriteTransaction) {
        self.pointer = pointer
        self.environment = environment
    }

    deinit { mdb_cursor_close(pointer) }

    /// Adds an entry. Its key is greater than all others in the table, or it is `.appendOutOfOrder` and the transaction
    /// stays usable.
    package mutating func append(_ key: UInt64, _ value: UnsafeRawBufferPointer) throws(LMDBError) {
        try environment.checkSize(of: value.count)
        var value = MDB_val(value)
        let status = withUnsafeBytes(of: key) { bytes in
            var name = MDB_val(bytes)
            return mdb_cursor_put(pointer, &name, &value, UInt32(MDB_APPEND))
        }
        guard status == MDB_SUCCESS else { throw environment.writeFailure(status, doing: "appending a value") }
    }
}

extension WriteTransaction {
    /// Runs `body` with the end of a table with integer keys.
    package mutating func append(to table: Table, _ body: (inout Appender) throws -> Void) throws {
        guard table.keys == .integers else { throw LMDBError.keyKind(table) }
        var cursor: OpaquePointer?
        let status = mdb_cursor_open(handle.pointer, table.dbi, &cursor)
        guard status == MDB_SUCCESS, let cursor else { throw LMDBError.make(status, doing: "opening a cursor") }
        var appender = Appender(cursor, environment, of: self)
        try body(&appender)
    }
}
