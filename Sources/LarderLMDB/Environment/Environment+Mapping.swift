import CLMDB
import LarderFiles

extension Environment {
    /// Makes LMDB's handle and maps the data file, which was verified before.
    ///
    /// The system may have less address space than the map is to take: a phone's process has a few gigabytes in all,
    /// and any may have a limit. Then the map takes a quarter of what there is, but no less than the file, and grows when it
    /// is full.
    ///
    /// - Parameter registersReaders: Whether LMDB keeps its table of readers.
    /// - Returns: LMDB's handle, and how large the map is.
    static func map(
        folder: String, options: Options, tableCount: Int, registersReaders: Bool, fileSize: Int64
    ) throws(LMDBError) -> (handle: OpaquePointer, size: Int) {
        var size = max(0, min(options.startingMapSize ?? options.mapSize, options.mapSize))
        // LMDB itself rounds up to the pages that are in use.
        let least = max(Int(clamping: fileSize), 1 << 20)
        while true {
            do throws(LMDBError) {
                return try unsafe map(
                    folder: folder, options: options, size: size, tableCount: tableCount,
                    registersReaders: registersReaders)
            } catch {
                guard error.code == .outOfMemory, size > least else { throw error }
                while size > least, !hasAddressSpace(for: size) { size = max(size / 2, least) }
                // The heap and the threads share what there is with the map.
                size = max(size / 4, least)
            }
        }
    }

    private static func map(
        folder: String, options: Options, size: Int, tableCount: Int, registersReaders: Bool
    ) throws(LMDBError) -> (handle: OpaquePointer, size: Int) {
        var created: OpaquePointer?
        var status = unsafe mdb_env_create(&created)
        guard status == MDB_SUCCESS, let created = unsafe created else {
            throw .make(status, doing: "making an environment")
        }
        status = unsafe mdb_env_set_mapsize(created, size)
        if status == MDB_SUCCESS {
            status = unsafe mdb_env_set_maxreaders(created, UInt32(clamping: options.maxReaders))
        }
        if status == MDB_SUCCESS { status = unsafe mdb_env_set_maxdbs(created, UInt32(clamping: tableCount)) }
        let flags = options.flags | (registersReaders ? 0 : UInt32(MDB_NOLOCK))
        if status == MDB_SUCCESS { status = unsafe mdb_env_open(created, folder, flags, 0o600) }
        var information = unsafe MDB_envinfo()
        if status == MDB_SUCCESS { status = unsafe mdb_env_info(created, &information) }
        guard status == MDB_SUCCESS else {
            // A handle that could not be opened can only be closed.
            unsafe mdb_env_close(created)
            throw .make(status, doing: "opening the environment", path: folder)
        }
        return unsafe (created, information.me_mapsize)
    }

    // MARK: Growing

    /// Whether the map may become larger than it is.
    var canGrow: Bool { mapSize.load(ordering: .relaxed) < options.mapSize }

    /// Makes the map larger by as much as can be had, at most twofold.
    ///
    /// LMDB moves the map only while no transaction of this process looks at it. The caller that begins a write, or a read of what
    /// another process has added, waits for that here: other reads go on beginning and ending meanwhile, and one that
    /// begins just then waits for two calls of the system.
    ///
    /// - Parameters:
    ///   - needed: How large it has to be at least.
    ///   - deadline: Until which to wait for the transactions of this process.
    /// - Returns: False where the map stays as it is.
    func grow(to needed: Int, until deadline: SuspendingClock.Instant) throws(LMDBError) -> Bool {
        let before = mapSize.load(ordering: .relaxed)
        let status: Int32? = try poll(until: deadline) { () throws(LMDBError) -> Int32? in
            pool.withLock { pool -> Int32? in
                let current = mapSize.load(ordering: .relaxed)
                // Another thread was quicker.
                if current > before, current >= needed { return MDB_SUCCESS }
                if pool.isMapInUse { return nil }
                let sizes = [current * 2, current + current / 2, current + current / 4].map { size in
                    // LMDB wants whole pages, the largest of which have 64 KiB.
                    min(options.mapSize, max(needed, size)) & ~0xFFFF
                }
                guard let size = sizes.first(where: { $0 > current && hasAddressSpace(for: $0) }) else {
                    return FileError.noMemory
                }
                let status = unsafe mdb_env_set_mapsize(handle, size)
                if status == MDB_SUCCESS {
                    mapSize.store(size, ordering: .relaxed)
                } else {
                    // LMDB has let go of the old map by then, unless it refused at once.
                    pool.breakDown()
                    distrust()
                }
                return status
            }
        }
        return status == MDB_SUCCESS
    }

    /// Makes the map as large as the file, after another process has made that larger than this process's map.
    func growToFile(until deadline: SuspendingClock.Instant) throws(LMDBError) {
        let meta = try MetaPage.newest(in: files.data.pages)
        let needed = (Int(clamping: meta.lastPage) + 1) * meta.pageSize
        let rounded = (needed + 0xFFFF) & ~0xFFFF
        guard rounded <= options.mapSize, try grow(to: rounded, until: deadline) else {
            throw .make(MDB_MAP_RESIZED, doing: "beginning a transaction", path: folder)
        }
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
