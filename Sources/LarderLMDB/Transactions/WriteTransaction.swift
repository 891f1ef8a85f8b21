import CLMDB

/// The one write transaction of an environment. Rolls back unless it is committed.
///
/// Belongs to the thread that began it, from begin to commit: LMDB's own lock is a thread's. Do not suspend inside.
package struct WriteTransaction: ~Copyable, Transaction {
    let environment: Environment
    let handle: TransactionHandle
    private let isNested: Bool
    /// Set once LMDB has freed the transaction.
    private var isFinished = false

    init(environment: Environment, pointer: OpaquePointer, isNested: Bool) {
        self.environment = environment
        handle = unsafe TransactionHandle(pointer: pointer)
        self.isNested = isNested
    }

    deinit {
        guard !isFinished else { return }
        unsafe mdb_txn_abort(handle.pointer)
        if !isNested { environment.endWrite() }
    }

    package var id: UInt64 { handle.id }

    /// Makes every change durable as the environment's durability says, or none of them.
    ///
    /// - Parameter synchronizing: Makes it, and every commit before, survive power loss whatever that durability. A
    ///   failure to do so is thrown, and leaves the changes committed.
    package consuming func commit(synchronizing: Bool = false) throws(LMDBError) {
        let mustSynchronize = synchronizing || !isNested && !environment.revokeStamp()
        if !isNested { try environment.prepareCommit() }
        // The transaction is gone after this call, whatever it returns: nothing is left for `deinit` to abort.
        isFinished = true
        let status = unsafe mdb_txn_commit(handle.pointer)
        if isNested {
            guard status == MDB_SUCCESS else { throw .make(status, doing: "committing a nested transaction") }
        } else {
            try environment.finishWrite(status, synchronizing: mustSynchronize)
        }
    }

    /// The data file's length in bytes, as the last commit left it.
    package borrowing func fileSize() throws(LMDBError) -> Int64 { try environment.files.data.status().size }

    /// Runs `body` in a transaction inside this one: what it wrote joins this transaction if it returns, and is
    /// rolled back whole if it throws.
    package mutating func nested<Result>(
        _ body: (inout WriteTransaction) throws -> Result
    ) throws -> Result {
        var child: OpaquePointer?
        let status = unsafe mdb_txn_begin(environment.handle, handle.pointer, 0, &child)
        guard status == MDB_SUCCESS, let child = unsafe child else {
            throw LMDBError.make(status, doing: "beginning a nested transaction", path: environment.folder)
        }
        var transaction = unsafe WriteTransaction(environment: environment, pointer: child, isNested: true)
        let result = try body(&transaction)
        try transaction.commit()
        return result
    }
}

extension WriteTransaction {
    @_lifetime(borrow self)
    package borrowing func get(_ key: UInt64, in table: Table) throws(LMDBError) -> RawSpan? {
        guard let bytes = try unsafe handle.get(key, in: table) else { return nil }
        return unsafe _overrideLifetime(RawSpan(_unsafeBytes: bytes), borrowing: self)
    }

    @_lifetime(borrow self)
    package borrowing func get(_ key: RawSpan, in table: Table) throws(LMDBError) -> RawSpan? {
        let found = try unsafe key.withUnsafeBytes { (bytes) throws(LMDBError) in
            try unsafe handle.get(bytes, in: table)
        }
        guard let found = unsafe found else { return nil }
        return unsafe _overrideLifetime(RawSpan(_unsafeBytes: found), borrowing: self)
    }

    @_lifetime(borrow self)
    package borrowing func cursor(in table: Table) throws(LMDBError) -> Cursor {
        var cursor: OpaquePointer?
        let status = unsafe mdb_cursor_open(handle.pointer, table.dbi, &cursor)
        guard status == MDB_SUCCESS, let cursor = unsafe cursor else { throw .make(status, doing: "opening a cursor") }
        return unsafe Cursor(cursor, table: table, of: self)
    }

    package borrowing func entryCount(of table: Table) throws(LMDBError) -> Int {
        try handle.entryCount(of: table)
    }
}

extension WriteTransaction {
    /// Stores a value under an integer key, over the earlier one if there is one.
    ///
    /// - Parameter append: the key is greater than all others in the table, which saves the search; it is
    ///   `.appendOutOfOrder` if it is not, and the transaction stays usable.
    package mutating func put(
        _ key: UInt64, _ value: RawSpan, in table: Table, append: Bool = false
    ) throws(LMDBError) {
        try unsafe value.withUnsafeBytes { (value) throws(LMDBError) in
            try unsafe put(key, value, in: table, append: append)
        }
    }

    /// Stores a value under an integer key, over the earlier one if there is one.
    package mutating func put(
        _ key: UInt64, _ value: UnsafeRawBufferPointer, in table: Table, append: Bool = false
    ) throws(LMDBError) {
        guard table.keys == .integers else { throw .keyKind(table) }
        var value = unsafe MDB_val(value)
        try unsafe withUnsafeBytes(of: key) { (key) throws(LMDBError) in
            try unsafe store(key, &value, in: table, flags: append ? UInt32(MDB_APPEND) : 0)
        }
    }

    /// Stores a value under a key of 1 to 511 bytes, over the earlier one if there is one.
    package mutating func put(
        _ key: RawSpan, _ value: RawSpan, in table: Table, append: Bool = false
    ) throws(LMDBError) {
        try unsafe key.withUnsafeBytes { (key) throws(LMDBError) in
            try unsafe value.withUnsafeBytes { (value) throws(LMDBError) in
                try unsafe put(key, value, in: table, append: append)
            }
        }
    }

    /// Stores a value under a key of 1 to 511 bytes, over the earlier one if there is one.
    package mutating func put(
        _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, in table: Table, append: Bool = false
    ) throws(LMDBError) {
        guard table.keys == .bytes else { throw .keyKind(table) }
        var value = unsafe MDB_val(value)
        try unsafe store(key, &value, in: table, flags: append ? UInt32(MDB_APPEND) : 0)
    }

    /// Removes the entry under an integer key; false where there was none.
    @discardableResult
    package mutating func delete(_ key: UInt64, in table: Table) throws(LMDBError) -> Bool {
        guard table.keys == .integers else { throw .keyKind(table) }
        return try unsafe withUnsafeBytes(of: key) { (key) throws(LMDBError) in try unsafe remove(key, in: table) }
    }

    /// Removes the entry under a key of bytes; false where there was none.
    @discardableResult
    package mutating func delete(_ key: UnsafeRawBufferPointer, in table: Table) throws(LMDBError) -> Bool {
        guard table.keys == .bytes else { throw .keyKind(table) }
        guard key.count > 0 else { throw .emptyKey }
        return try unsafe remove(key, in: table)
    }

    /// Removes the entry under a key of bytes; false where there was none.
    @discardableResult
    package mutating func delete(_ key: RawSpan, in table: Table) throws(LMDBError) -> Bool {
        try unsafe key.withUnsafeBytes { (key) throws(LMDBError) in try unsafe delete(key, in: table) }
    }

    /// Removes every entry; the table itself stays.
    package mutating func clear(_ table: Table) throws(LMDBError) {
        let status = unsafe mdb_drop(handle.pointer, table.dbi, 0)
        guard status == MDB_SUCCESS else { throw environment.writeFailure(status, doing: "clearing a table") }
    }

    private mutating func store(
        _ key: UnsafeRawBufferPointer, _ value: inout MDB_val, in table: Table, flags: UInt32
    ) throws(LMDBError) {
        guard key.count > 0 else { throw .emptyKey }
        try unsafe environment.checkSize(of: value.mv_size)
        var name = unsafe MDB_val(key)
        let status = unsafe mdb_put(handle.pointer, table.dbi, &name, &value, flags)
        guard status == MDB_SUCCESS else { throw environment.writeFailure(status, doing: "storing a value") }
    }

    private mutating func remove(_ key: UnsafeRawBufferPointer, in table: Table) throws(LMDBError) -> Bool {
        var name = unsafe MDB_val(key)
        let status = unsafe mdb_del(handle.pointer, table.dbi, &name, nil)
        if status == MDB_NOTFOUND { return false }
        guard status == MDB_SUCCESS else { throw environment.writeFailure(status, doing: "removing a value") }
        return true
    }
}
