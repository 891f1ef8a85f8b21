import CLMDB
import LarderFiles

extension Environment {
    /// Writes a snapshot as a new environment into a folder, which is made and must hold none. Durable on return.
    ///
    /// - Parameter compacting: leaves out free pages and puts the others in order; starts again at transaction 1.
    package func copy(to target: String, compacting: Bool) throws(LMDBError) {
        try pinned { () throws(LMDBError) in
            try translated { () throws(FileError) in try options.files.makeFolder(target) }
            try files.unregistered?.enter()
            defer { files.unregistered?.leave() }
            // A plain copy takes LMDB's writer lock for a moment, which would wait for ever on a stopped writer.
            let writer = compacting ? nil : files.writer
            try writer?.acquire(deadline: .now + options.lockTimeout)
            defer { writer?.release() }
            let path = target + "/data.mdb"
            // LMDB would make the file readable for all users, as far as the process's mask lets it.
            let file = try translated { () throws(FileError) in
                try options.files.open(path, [.writing, .new, .synchronous])
            }
            let status = withExtendedLifetime(file) {
                unsafe mdb_env_copyfd2(handle, file.descriptor, compacting ? UInt32(MDB_CP_COMPACT) : 0)
            }
            guard status == MDB_SUCCESS else {
                _ = try? options.files.remove(path)
                // Compacting counts on every page being in use or free.
                let meaning = compacting && status == MDB_INCOMPATIBLE ? MDB_CORRUPTED : status
                throw .make(meaning, doing: "copying the environment", path: path)
            }
            try translated { () throws(FileError) in
                try file.synchronize()
                try options.files.synchronizeFolder(target)
            }
        }
    }
}

extension Environment {
    /// Walks every page that a snapshot sees, while others write.
    ///
    /// A snapshot knows no page of the free pages' tree; only its meta page leads there. LMDB writes the two meta pages
    /// in turns: that of a snapshot stays until the second commit after it.
    ///
    /// - Returns: Nil where another commit was made before the meta page was read; then a newer snapshot has to be taken.
    package func walk(_ snapshot: borrowing ReadTransaction) throws(LMDBError) -> PageWalk.Summary? {
        let meta = try MetaPage.newest(in: files.data.pages)
        // The second look finds that the other page was not written yet when this one was read.
        guard meta.transaction == snapshot.id, try MetaPage.newest(in: files.data.pages) == meta else { return nil }
        return try PageWalk.run(files.data.pages, size: try files.data.status().size, from: meta)
    }
}

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
        let status = unsafe mdb_txn_begin(handle, nil, 0, &pointer)
        guard status == MDB_SUCCESS, let pointer = unsafe pointer else {
            throw .make(status, doing: "beginning to synchronize", path: folder)
        }
        defer { unsafe mdb_txn_abort(pointer) }
        try rewriteMetaPages()
    }
}
