import CLMDB

extension Environment {
    /// How full an environment is.
    package struct Statistics: Sendable, Hashable {
        package struct Tree: Sendable, Hashable {
            package var entries: Int
            package var depth: Int
            package var branchPages: Int
            package var leafPages: Int
            package var overflowPages: Int
        }

        package var pageSize: Int
        /// Bytes of address space reserved.
        package var mapSize: Int
        /// The data file's length in bytes.
        package var fileSize: Int64
        package var lastPage: UInt64
        /// The newest commit.
        package var transaction: UInt64
        package var maxReaders: Int
        /// Places of the reader table that were ever in use at once.
        package var usedReaders: Int
        package var tables: [String: Tree]
    }

    /// What the environment holds now.
    package func statistics() throws(LMDBError) -> Statistics {
        let transaction = try beginRead()
        return try transaction.statistics()
    }

    /// - Parameter tree: Tells of one table.
    func statistics(
        _ tree: (Table) throws(LMDBError) -> Statistics.Tree
    ) throws(LMDBError) -> Statistics {
        var information = unsafe MDB_envinfo()
        var status = unsafe mdb_env_info(handle, &information)
        var whole = MDB_stat()
        if status == MDB_SUCCESS { status = unsafe mdb_env_stat(handle, &whole) }
        guard status == MDB_SUCCESS else { throw .make(status, doing: "asking for statistics", path: folder) }
        var trees: [String: Statistics.Tree] = [:]
        for (name, table) in tables { trees[name] = try tree(table) }
        return unsafe Statistics(
            pageSize: Int(whole.ms_psize),
            mapSize: information.me_mapsize,
            fileSize: try files.data.status().size,
            lastPage: UInt64(information.me_last_pgno),
            transaction: UInt64(information.me_last_txnid),
            maxReaders: Int(information.me_maxreaders),
            usedReaders: Int(information.me_numreaders),
            tables: trees
        )
    }

    /// Frees the reader table's places of processes that died; returns how many.
    @discardableResult
    package func clearDeadReaders() throws(LMDBError) -> Int {
        try pinned { () throws(LMDBError) in
            var count: Int32 = 0
            let status = unsafe mdb_reader_check(handle, &count)
            guard status == MDB_SUCCESS else { throw .make(status, doing: "clearing dead readers", path: folder) }
            return Int(count)
        }
    }
}
