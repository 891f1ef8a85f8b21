import CLMDB

extension Environment {
    /// Writes both meta pages once more as they are, so that the next sync makes them durable whatever became of the
    /// syncs before it.
    ///
    /// A failed sync is not made good by the next one: Linux takes the pages for clean then, so that every reader finds
    /// them in memory and the disk never gets them (https://wiki.postgresql.org/wiki/Fsync_Errors). LMDB writes a meta
    /// page after it has synced all pages that the meta page leads to, and leaves the meta page to the sync of the next
    /// commit (`MDB_NOMETASYNC`). So a failed sync takes nothing that was committed but a meta page. If commits went on
    /// then, they would use pages again to which the older meta page on the disk still leads.
    ///
    /// Stateless on purpose: the failed sync may have been another process's, or that of an earlier life.
    ///
    /// Only for the holder of LMDB's own lock: no other program writes a meta page meanwhile.
    func rewriteMetaPages() throws(LMDBError) { try files.data.rewriteMetaPages() }

    /// The same outside a transaction.
    func rewriteMetaPagesInTransaction() throws(LMDBError) {
        var pointer: OpaquePointer?
        let status = mdb_txn_begin(handle, nil, 0, &pointer)
        guard status == MDB_SUCCESS, let pointer else {
            throw .make(status, doing: "beginning to synchronize", path: folder)
        }
        defer { mdb_txn_abort(pointer) }
        try rewriteMetaPages()
    }
}
