import CLMDB

/// A place in a table, for storing and removing many entries. A key that is on the page of the one before it costs no
/// search from the root: go in ascending order where that can be.
///
/// Lives inside a write transaction, which cannot be used otherwise meanwhile.
///
/// Safe: it owns LMDB's cursor, cannot escape the transaction that it is of, and hands LMDB only bytes that the call
/// outlives.
@safe package struct TableWriter: ~Copyable, ~Escapable {
    private let pointer: OpaquePointer
    private let table: Table
    private let environment: Environment

    @_lifetime(borrow owner)
    init(_ pointer: OpaquePointer, _ table: Table, _ environment: Environment, of owner: borrowing WriteTransaction) {
        unsafe self.pointer = unsafe pointer
        (self.table, self.environment) = (table, environment)
    }

    deinit { unsafe mdb_cursor_close(pointer) }

    /// Adds an entry at the end, without a search. Its key is greater than all others in the table, or it is
    /// `.appendOutOfOrder` and the transaction stays usable.
    package mutating func append(_ key: UInt64, _ value: UnsafeRawBufferPointer) throws(LMDBError) {
        try unsafe put(key, value, flags: UInt32(MDB_APPEND))
    }

    /// Stores a value under an integer key, over the earlier one if there is one.
    package mutating func put(_ key: UInt64, _ value: UnsafeRawBufferPointer) throws(LMDBError) {
        try unsafe put(key, value, flags: 0)
    }

    /// Stores a value under a key of 1 to 511 bytes, over the earlier one if there is one.
    package mutating func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(LMDBError) {
        guard table.keys == .bytes else { throw .keyKind(table) }
        guard key.count > 0 else { throw .emptyKey }
        try unsafe store(key, value, flags: 0)
    }

    /// Removes the entry under an integer key; false where there was none.
    @discardableResult
    package mutating func remove(_ key: UInt64) throws(LMDBError) -> Bool {
        guard table.keys == .integers else { throw .keyKind(table) }
        return try unsafe withUnsafeBytes(of: key) { (key) throws(LMDBError) in try unsafe removeEntry(key) }
    }

    /// Removes the entry under a key of bytes; false where there was none.
    @discardableResult
    package mutating func remove(_ key: UnsafeRawBufferPointer) throws(LMDBError) -> Bool {
        guard table.keys == .bytes else { throw .keyKind(table) }
        guard key.count > 0 else { throw .emptyKey }
        return try unsafe removeEntry(key)
    }

    private func put(_ key: UInt64, _ value: UnsafeRawBufferPointer, flags: UInt32) throws(LMDBError) {
        guard table.keys == .integers else { throw .keyKind(table) }
        try unsafe withUnsafeBytes(of: key) { (key) throws(LMDBError) in try unsafe store(key, value, flags: flags) }
    }

    private func store(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, flags: UInt32
    ) throws(LMDBError) {
        try environment.checkSize(of: value.count)
        var (name, value) = unsafe (MDB_val(key), MDB_val(value))
        let status = unsafe mdb_cursor_put(pointer, &name, &value, flags)
        guard status == MDB_SUCCESS else { throw environment.writeFailure(status, doing: "storing a value") }
    }

    private func removeEntry(_ key: UnsafeRawBufferPointer) throws(LMDBError) -> Bool {
        var name = unsafe MDB_val(key)
        var status = unsafe mdb_cursor_get(pointer, &name, nil, MDB_SET)
        if status == MDB_SUCCESS { status = unsafe mdb_cursor_del(pointer, 0) }
        if status == MDB_NOTFOUND { return false }
        guard status == MDB_SUCCESS else { throw environment.writeFailure(status, doing: "removing a value") }
        return true
    }
}

extension WriteTransaction {
    /// Runs `body` with a place in a table.
    package mutating func write(to table: Table, _ body: (inout TableWriter) throws -> Void) throws {
        var cursor: OpaquePointer?
        let status = unsafe mdb_cursor_open(handle.pointer, table.dbi, &cursor)
        guard status == MDB_SUCCESS, let cursor = unsafe cursor else {
            throw LMDBError.make(status, doing: "opening a cursor")
        }
        var writer = unsafe TableWriter(cursor, table, environment, of: self)
        try body(&writer)
    }
}
