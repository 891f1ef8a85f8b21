import CLMDB

/// A read transaction that is kept and renewed, and the cursors that are kept with it.
///
/// `@unchecked Sendable`: a slot is in the pool, guarded by the pool's lock, or in exactly one `ReadTransaction`,
/// which is noncopyable and not `Sendable`.
final class ReaderSlot: @unchecked Sendable {
    let transaction: OpaquePointer
    /// An idle cursor for each table, by its handle.
    private let cursors: UnsafeMutableBufferPointer<OpaquePointer?>
    /// The slot below this one in the pool's stack.
    var next: ReaderSlot?

    init(transaction: OpaquePointer, tableLimit: Int) {
        self.transaction = transaction
        cursors = .allocate(capacity: tableLimit)
        cursors.initialize(repeating: nil)
    }

    deinit { cursors.deallocate() }

    /// Ends the transaction and its cursors, which must be before the environment closes: a transaction on its way out
    /// that still holds the slot then only lets go of it.
    func end() {
        for index in cursors.indices {
            if let cursor = cursors[index] { mdb_cursor_close(cursor) }
            cursors[index] = nil
        }
        mdb_txn_abort(transaction)
    }

    @inline(__always)
    func cursor(in table: Table) throws(LMDBError) -> OpaquePointer {
        let index = Int(table.dbi)
        if index < cursors.count, let kept = cursors[index] {
            cursors[index] = nil
            let status = mdb_cursor_renew(transaction, kept)
            if status == MDB_SUCCESS { return kept }
            mdb_cursor_close(kept)
            throw .make(status, doing: "renewing a cursor")
        }
        var cursor: OpaquePointer?
        let status = mdb_cursor_open(transaction, table.dbi, &cursor)
        guard status == MDB_SUCCESS, let cursor else { throw .make(status, doing: "opening a cursor") }
        return cursor
    }

    @inline(__always)
    func keep(_ cursor: OpaquePointer, for table: Table) {
        let index = Int(table.dbi)
        if index < cursors.count, cursors[index] == nil {
            cursors[index] = cursor
        } else {
            mdb_cursor_close(cursor)
        }
    }
}
