import CLMDB

/// A read transaction that is kept and renewed, and the cursors that are kept with it.
///
/// `@unchecked Sendable`: a slot is in the pool, guarded by the pool's lock, or in exactly one `ReadTransaction`,
/// which is noncopyable and not `Sendable`.
///
/// Safe: it owns the transaction and the cursors, each of which is used by its holder alone; indices are checked.
@safe final class ReaderSlot: @unchecked Sendable {
    let transaction: OpaquePointer
    /// An idle cursor for each table, by its handle.
    private let cursors: UnsafeMutableBufferPointer<OpaquePointer?>
    /// The slot below this one in the pool's stack.
    var next: ReaderSlot?

    init(transaction: OpaquePointer, tableLimit: Int) {
        unsafe self.transaction = unsafe transaction
        unsafe cursors = .allocate(capacity: tableLimit)
        unsafe cursors.initialize(repeating: nil)
    }

    deinit { unsafe cursors.deallocate() }

    /// Ends the transaction and its cursors, which must be before the environment closes: a transaction on its way out
    /// that still holds the slot then only lets go of it.
    func end() {
        for index in unsafe cursors.indices {
            if let cursor = unsafe cursors[index] { unsafe mdb_cursor_close(cursor) }
            unsafe cursors[index] = nil
        }
        unsafe mdb_txn_abort(transaction)
    }

    @inline(__always)
    func cursor(in table: Table) throws(LMDBError) -> OpaquePointer {
        let index = Int(table.dbi)
        if unsafe index < cursors.count, let kept = unsafe cursors[index] {
            unsafe cursors[index] = nil
            let status = unsafe mdb_cursor_renew(transaction, kept)
            if status == MDB_SUCCESS { return unsafe kept }
            unsafe mdb_cursor_close(kept)
            throw .make(status, doing: "renewing a cursor")
        }
        var cursor: OpaquePointer?
        let status = unsafe mdb_cursor_open(transaction, table.dbi, &cursor)
        guard status == MDB_SUCCESS, let cursor = unsafe cursor else { throw .make(status, doing: "opening a cursor") }
        return unsafe cursor
    }

    @inline(__always)
    func keep(_ cursor: OpaquePointer, for table: Table) {
        let index = Int(table.dbi)
        if unsafe index < cursors.count, unsafe cursors[index] == nil {
            unsafe cursors[index] = unsafe cursor
        } else {
            unsafe mdb_cursor_close(cursor)
        }
    }
}
