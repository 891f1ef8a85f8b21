internal import CLMDB
internal import Synchronization

/// An LMDB environment: a folder with a data file and its locks, open once in this process.
///
/// Reads and writes may be made from any thread. One write transaction exists at a time, in all processes together.
///
/// `@unchecked Sendable`: LMDB's handle may be used from any thread with `MDB_NOTLS`; everything mutable is behind
/// `readers` and `writer`, which are locks.
package final class Environment: @unchecked Sendable {
    package let folder: String
    package let options: Options
    let handle: OpaquePointer
    private let tables: [String: Table]
    private let tableLimit: Int
    private let readers: Mutex<ReaderPool>
    private let writer: WriterLock?

    /// Opens the environment in a folder, which is made unless `options` says read-only.
    ///
    /// - Parameters:
    ///   - tables: every table that will be used; those that are missing are made, or are `.tableMissing` read-only.
    ///   - openedBy: named in the error of whoever opens the same file again in this process.
    package init(
        folder: String,
        tables: [TableDefinition],
        options: Options = Options(),
        openedBy: String = "\(#fileID):\(#line)"
    ) throws(LMDBError) {
        self.folder = folder
        self.options = options
        if !options.isReadOnly { try FileSystem.makeFolder(folder) }
        var created: OpaquePointer?
        var status = mdb_env_create(&created)
        guard status == MDB_SUCCESS, let created else { throw .make(status, doing: "making an environment") }
        do throws(LMDBError) {
            writer = options.isReadOnly ? nil : try WriterLock(folder: folder, label: options.lockLabel)
            tableLimit = tables.count + 2
            status = mdb_env_set_mapsize(created, options.mapSize)
            if status == MDB_SUCCESS { status = mdb_env_set_maxreaders(created, UInt32(clamping: options.maxReaders)) }
            if status == MDB_SUCCESS { status = mdb_env_set_maxdbs(created, UInt32(clamping: tables.count)) }
            if status == MDB_SUCCESS { status = mdb_env_open(created, folder, options.flags, 0o644) }
            guard status == MDB_SUCCESS else {
                throw .make(status, doing: "opening the environment", path: folder)
            }
            self.tables = try Self.open(tables, in: created, options: options, folder: folder)
        } catch {
            mdb_env_close(created)
            throw error
        }
        handle = created
        var limit: UInt32 = 0
        _ = mdb_env_get_maxreaders(created, &limit)
        readers = Mutex(ReaderPool(limit: Int(limit)))
    }

    deinit {
        readers.withLock { $0.drain() }
        mdb_env_close(handle)
    }

    /// The table of that name, decided when the environment was opened; nil if it was not declared then.
    package func table(_ name: String) -> Table? { tables[name] }

    // MARK: Reading

    /// Takes a snapshot. Never waits: `.readersFull` at once where no reader is left.
    package func beginRead() throws(LMDBError) -> ReadTransaction {
        switch readers.withLock({ $0.take() }) {
        case .kept(let slot):
            let status = mdb_txn_renew(slot.transaction)
            guard status == MDB_SUCCESS else {
                readers.withLock { $0.give(nil) }
                throw .make(status, doing: "beginning to read", path: folder)
            }
            return ReadTransaction(environment: self, slot: slot)
        case .roomForOne: return ReadTransaction(environment: self, slot: try makeSlot())
        case .full: throw .make(MDB_READERS_FULL, doing: "beginning to read", path: folder)
        case .closed: throw closedError
        }
    }

    private func makeSlot() throws(LMDBError) -> ReaderSlot {
        var pointer: OpaquePointer?
        var status = mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &pointer)
        if status == MDB_READERS_FULL, try clearDeadReaders() > 0 {
            status = mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &pointer)
        }
        guard status == MDB_SUCCESS, let pointer else {
            readers.withLock { $0.give(nil) }
            throw .make(status, doing: "beginning to read", path: folder)
        }
        return ReaderSlot(transaction: pointer, tableLimit: tableLimit)
    }

    @inline(__always)
    func endRead(_ slot: ReaderSlot) { readers.withLock { $0.give(slot) } }

    /// Frees the reader table's places of processes that died; returns how many.
    @discardableResult
    package func clearDeadReaders() throws(LMDBError) -> Int {
        var count: Int32 = 0
        let status = mdb_reader_check(handle, &count)
        guard status == MDB_SUCCESS else { throw .make(status, doing: "clearing dead readers", path: folder) }
        return Int(count)
    }

    private var closedError: LMDBError {
        LMDBError(.closed, "The environment was closed; open it again.", path: folder)
    }

    // MARK: Writing

    /// Begins the one write transaction, waiting for another writer until the deadline.
    package func beginWrite(deadline: ContinuousClock.Instant) throws(LMDBError) -> WriteTransaction {
        guard let writer else {
            throw LMDBError(.readOnly, "The environment was opened read-only; open it for writing.", path: folder)
        }
        try writer.acquire(deadline: deadline)
        var pointer: OpaquePointer?
        let status = mdb_txn_begin(handle, nil, 0, &pointer)
        guard status == MDB_SUCCESS, let pointer else {
            writer.release()
            throw .make(status, doing: "beginning to write", path: folder)
        }
        return WriteTransaction(environment: self, pointer: pointer, isNested: false)
    }

    func endWrite() { writer?.release() }

    func finishWrite(_ status: Int32) throws(LMDBError) {
        defer { endWrite() }
        guard status == MDB_SUCCESS else { throw writeFailure(status, doing: "committing") }
    }

    func writeFailure(_ status: Int32, doing: String) -> LMDBError { .make(status, doing: doing, path: folder) }
}

extension Environment.Options {
    var flags: UInt32 {
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
