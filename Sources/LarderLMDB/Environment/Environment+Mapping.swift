import CLMDB

extension Environment {
    /// Makes LMDB's handle and maps the data file, which was verified before.
    ///
    /// - Parameter registersReaders: Whether LMDB keeps its table of readers.
    static func map(
        folder: String, options: Options, tableCount: Int, registersReaders: Bool
    ) throws(LMDBError) -> OpaquePointer {
        var created: OpaquePointer?
        var status = mdb_env_create(&created)
        guard status == MDB_SUCCESS, let created else { throw .make(status, doing: "making an environment") }
        status = mdb_env_set_mapsize(created, max(0, options.mapSize))
        if status == MDB_SUCCESS { status = mdb_env_set_maxreaders(created, UInt32(clamping: options.maxReaders)) }
        if status == MDB_SUCCESS { status = mdb_env_set_maxdbs(created, UInt32(clamping: tableCount)) }
        let flags = options.flags | (registersReaders ? 0 : UInt32(MDB_NOLOCK))
        if status == MDB_SUCCESS { status = mdb_env_open(created, folder, flags, 0o600) }
        guard status == MDB_SUCCESS else {
            mdb_env_close(created)
            throw .make(status, doing: "opening the environment", path: folder)
        }
        return created
    }
}

extension Environment.Options {
    fileprivate var flags: UInt32 {
        // A reader belongs to its transaction, not to a thread: snapshots may move between threads.
        var flags = UInt32(MDB_NOTLS)
        if isReadOnly { flags |= UInt32(MDB_RDONLY) }
        switch durability {
        case .full: break
        case .withoutMetaSync: flags |= UInt32(MDB_NOMETASYNC)
        case .none: flags |= UInt32(MDB_NOSYNC)
        }
        return flags
    }
}
