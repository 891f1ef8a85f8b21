import CLMDB
import LarderFiles
import Synchronization

/// An LMDB environment: a folder with a data file and its locks, open once in this process.
///
/// Reads and writes may be made from any thread. One write transaction exists at a time, in all processes together.
///
/// `@unchecked Sendable`: LMDB's handle may be used from any thread with `MDB_NOTLS`, and is freed only when the pool
/// says that nothing uses it; everything else is constant or behind a lock. Safe for the same reason.
@safe package final class Environment: @unchecked Sendable {
    package let folder: String
    package let options: Options
    let handle: OpaquePointer
    let files: EnvironmentFiles
    private let unregistered: UnregisteredReading?
    let tables: [String: Table]
    let pool: Locked<ReaderPool>
    /// How large the map is, in bytes. It grows under the pool's lock.
    let mapSize: Atomic<Int>
    /// Whether the map was full when it was written to last.
    private let wantsRoom = Atomic<Bool>(false)
    /// Whether the file was walked at opening because no stamp of a clean close fitted it: its last user crashed, or
    /// another program changed it. The walk does not see flipped bits inside values; the caller must look for them.
    package let wasVerified: Bool
    /// Whether the last commits may be gone although readers saw them: this process verified the file, or the process
    /// that has had it open since before did.
    package let mayHaveLostCommits: Bool
    private let isDistrusted = Atomic<Bool>(false)
    private let withholdsStamp = Atomic<Bool>(false)
    /// Whether LMDB has closed it, and every file was given back.
    private let isReleased = Atomic<Bool>(false)
    /// Write transactions begun.
    private let writes = Atomic<Int>(0)

    /// After how many write transactions the dead readers are cleared; one dead reader keeps all pages from reuse.
    private static let writesBetweenChecks = 1_024

    /// Opens the environment in a folder, which is made unless `options` says read-only.
    ///
    /// The data file is walked first where it was not closed cleanly, so that no file can end in a signal.
    ///
    /// - Parameters:
    ///   - tables: every table that will be used; missing ones are made, or are `.tableMissing` read-only unless they
    ///     are optional.
    ///   - openedBy: named in the error of a caller that opens the same file again in this process.
    package init(
        folder: String,
        tables: [TableDefinition],
        options: Options = Options(),
        openedBy: String = "\(#fileID):\(#line)"
    ) throws(LMDBError) {
        self.folder = folder
        self.options = options
        let files = try EnvironmentFiles(folder: folder, options: options, openedBy: openedBy)
        let unregistered = files.unregistered
        self.files = files
        self.unregistered = unregistered
        try unregistered?.enter()
        defer { unregistered?.leave() }
        let (handle, size) = unsafe try Self.map(
            folder: folder, options: options, tableCount: tables.count, registersReaders: unregistered == nil,
            fileSize: try files.data.status().size)
        mapSize = Atomic(size)
        do throws(LMDBError) {
            self.tables = try unsafe Self.open(tables, in: handle, options: options, folder: folder, files: files)
            try files.settle()
        } catch {
            unsafe mdb_env_close(handle)
            throw error
        }
        unsafe self.handle = unsafe handle
        wasVerified = files.wasVerified
        mayHaveLostCommits = files.mayHaveLostCommits
        var limit: UInt32 = 0
        _ = unsafe mdb_env_get_maxreaders(handle, &limit)
        pool = Locked(ReaderPool(limit: min(Int(limit), options.maxReaders)))
        // Programs that open, write once and close never come to the count below.
        if !options.isReadOnly { _ = dropDeadReaders() }
    }

    deinit {
        // Transactions keep the environment, so nothing uses it now. What fails leaves no stamp, so that the next
        // opening walks the file.
        if pool.withLock({ $0.close() }) { try? finishClosing() }
    }

    /// Closes cleanly: makes everything durable and stamps the file, so that the next opening need not walk it.
    ///
    /// Transactions that are open go on; new ones are refused at once, and the last to end closes the environment.
    /// A caller that opens it anew in this process meanwhile waits for that, until its deadline.
    /// Closing again does nothing. Letting go of the environment closes it too, without saying what failed.
    package func close() throws(LMDBError) {
        files.leave()
        if pool.withLock({ $0.close() }) { try finishClosing() }
    }

    /// Closes as `close()` does, and returns once the last transaction has ended and every file was given back.
    ///
    /// - Throws: `.lockTimedOut` where a transaction is open past the deadline; then the environment stays open.
    package func close(until deadline: SuspendingClock.Instant) throws(LMDBError) {
        try close()
        var isReleased: Bool { self.isReleased.load(ordering: .acquiring) }
        let released: Void? = poll(until: deadline) { isReleased ? () : nil }
        guard released == nil, pool.withLock({ $0.reopen() }) else { return }
        files.leave(false)
        throw LMDBError(
            .lockTimedOut, "A transaction of this process is still open. Wait longer, or end it.", path: folder)
    }

    private func finishClosing() throws(LMDBError) {
        pool.withLock { $0.drain() }
        defer {
            unsafe mdb_env_close(handle)
            files.release()
            isReleased.store(true, ordering: .releasing)
        }
        try stampFiles(doing: "closing")
    }

    /// Makes everything durable and stamps the file as closing would: if this process is killed before the next commit,
    /// which withdraws the stamp first, the next opener need not walk the file.
    ///
    /// Does nothing where the stamp fits already, where another process is writing, or where closing would leave none.
    package func stamp() throws(LMDBError) {
        try pinned { () throws(LMDBError) in try stampFiles(doing: "stamping") }
    }

    private func stampFiles(doing action: String) throws(LMDBError) {
        guard !isDistrusted.load(ordering: .relaxed), !withholdsStamp.load(ordering: .relaxed) else { return }
        try files.stamp { () throws(LMDBError) in try flush(doing: action) }
    }

    /// Says that the contents were found damaged: closing leaves no stamp, so that the next opener of the file looks at
    /// it again.
    package func distrust() { isDistrusted.store(true, ordering: .relaxed) }

    /// Says whether closing is to leave no stamp, so that the next opener of the file knows that commits may be gone.
    package func withholdStamp(_ isWithheld: Bool) { withholdsStamp.store(isWithheld, ordering: .relaxed) }

    /// Makes every commit so far survive power loss, whatever the environment's durability.
    package func synchronize() throws(LMDBError) {
        guard !options.isReadOnly, let writer = files.writer else { throw readOnlyError }
        try pinned { () throws(LMDBError) in
            try writer.acquire(deadline: .now + options.lockTimeout)
            defer { writer.release() }
            try flush(doing: "synchronizing")
        }
    }

    /// Only for the holder of the writer's lock, and outside a transaction.
    private func flush(doing action: String) throws(LMDBError) {
        try rewriteMetaPagesInTransaction()
        let status = unsafe mdb_env_sync(handle, 1)
        guard status == MDB_SUCCESS else { throw writeFailure(status, doing: action) }
    }

    /// The table of that name, decided when the environment was opened; nil if it was not declared then.
    package func table(_ name: String) -> Table? { tables[name] }

    // MARK: Reading

    /// Takes a snapshot; `.readersFull` at once where no reader is left.
    ///
    /// Waits in two cases: without registered readers, as `UnregisteredReading` says; and where another process has made
    /// the file larger than this process's map, for this process's other transactions, until `lockTimeout`.
    package func beginRead() throws(LMDBError) -> ReadTransaction {
        guard let unregistered else { return try takeSnapshot() }
        try unregistered.enter()
        do throws(LMDBError) { return try takeSnapshot() } catch {
            unregistered.leave()
            throw error
        }
    }

    /// Says that the snapshot of a slot has ended.
    @inline(__always)
    func finishRead(_ slot: ReaderSlot) {
        unregistered?.leave()
        endRead(slot)
    }

    @inline(__always)
    private func takeSnapshot() throws(LMDBError) -> ReadTransaction {
        do throws(LMDBError) { return try tryTakingSnapshot() } catch {
            // Another process has a larger map, and has filled more of it than this one's holds.
            guard error.code == .mapResized else { throw error }
            try growToFile(until: .now + options.lockTimeout)
            return try tryTakingSnapshot()
        }
    }

    @inline(__always)
    private func tryTakingSnapshot() throws(LMDBError) -> ReadTransaction {
        switch pool.withLock({ $0.take() }) {
        case .kept(let slot):
            let status = unsafe mdb_txn_renew(slot.transaction)
            if status == MDB_SUCCESS { return ReadTransaction(environment: self, slot: slot) }
            endRead(status == MDB_MAP_RESIZED ? slot : nil)
            throw .make(status, doing: "beginning to read", path: folder)
        case .roomForOne:
            return ReadTransaction(environment: self, slot: try makeSlot())
        case .full: throw .make(MDB_READERS_FULL, doing: "beginning to read", path: folder)
        case .closed: throw closedError
        case .broken: throw brokenError
        }
    }

    private func makeSlot() throws(LMDBError) -> ReaderSlot {
        var pointer: OpaquePointer?
        var status = unsafe mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &pointer)
        // Other processes hold the rest. Slots of dead processes can be freed.
        if status == MDB_READERS_FULL, dropDeadReaders() > 0 {
            status = unsafe mdb_txn_begin(handle, nil, UInt32(MDB_RDONLY), &pointer)
        }
        guard status == MDB_SUCCESS, let pointer = unsafe pointer else {
            endRead(nil)
            throw .make(status, doing: "beginning to read", path: folder)
        }
        return unsafe ReaderSlot(transaction: pointer, tableLimit: tables.count + 2)
    }

    @inline(__always)
    func endRead(_ slot: ReaderSlot?) {
        // There is no caller to throw an error to; as in `deinit`, a failure leaves no stamp.
        if pool.withLock({ $0.give(slot) }) { try? finishClosing() }
    }

    /// Clears dead readers; zero also where that failed, which only delays it.
    func dropDeadReaders() -> Int {
        var count: Int32 = 0
        return unsafe mdb_reader_check(handle, &count) == MDB_SUCCESS ? Int(count) : 0
    }

    // MARK: Writing

    /// Begins the one write transaction, waiting for another writer until the deadline; then `.lockTimedOut`, which
    /// names the holder.
    ///
    /// LMDB's own lock comes after this library's and waits without a deadline: for programs of other kinds only.
    package func beginWrite(deadline: SuspendingClock.Instant) throws(LMDBError) -> WriteTransaction {
        guard !options.isReadOnly, let writer = files.writer else { throw readOnlyError }
        try pin()
        do throws(LMDBError) {
            try writer.acquire(deadline: deadline)
        } catch {
            unpin()
            throw error
        }
        if writes.add(1, ordering: .relaxed).newValue % Self.writesBetweenChecks == 0 { _ = dropDeadReaders() }
        let pointer: OpaquePointer
        do throws(LMDBError) {
            if wantsRoom.exchange(false, ordering: .relaxed), try !grow(to: 0, until: deadline) {
                throw cannotGrowError
            }
            do throws(LMDBError) { unsafe pointer = try unsafe beginLMDBsWrite() } catch {
                guard error.code == .mapResized else { throw error }
                try growToFile(until: deadline)
                unsafe pointer = try unsafe beginLMDBsWrite()
            }
        } catch {
            writer.release()
            unpin()
            throw error
        }
        return unsafe WriteTransaction(environment: self, pointer: pointer, isNested: false)
    }

    private func beginLMDBsWrite() throws(LMDBError) -> OpaquePointer {
        pool.withLock { $0.beginUsingMap() }
        var pointer: OpaquePointer?
        let status = unsafe mdb_txn_begin(handle, nil, 0, &pointer)
        if status == MDB_SUCCESS, let pointer = unsafe pointer { return unsafe pointer }
        pool.withLock { $0.endUsingMap() }
        throw .make(status, doing: "beginning to write", path: folder)
    }

    func checkSize(of byteCount: Int) throws(LMDBError) {
        guard byteCount <= Int(UInt32.max) - 16 else {
            throw LMDBError(.valueTooLong, "A value holds less than 4 GiB; split it.")
        }
    }

    /// What a failed write means. A full map clears the dead readers, whose pages may make room, and otherwise grows
    /// before the next write if it may.
    func writeFailure(_ status: Int32, doing: String) -> LMDBError {
        if status == MDB_MAP_FULL, dropDeadReaders() > 0 {
            let text = "\(doing): the map is full. Dead readers held pages and were cleared; try again."
            return LMDBError(.mapFull, text, path: folder, status: status, isWorthRepeating: true)
        }
        if status == MDB_MAP_FULL, canGrow {
            wantsRoom.store(true, ordering: .relaxed)
            let text = "\(doing): the map is full, and grows before the next write; try again."
            return LMDBError(.mapFull, text, path: folder, status: status, isWorthRepeating: true)
        }
        // LMDB says EIO where the system wrote less than it was asked to.
        let isShort = status > 0 && FileError.Code(status) == .io && files.data.hasNoRoom
        return .make(isShort ? FileError.noSpace : status, doing: doing, path: folder)
    }

    /// Runs `body` in a write transaction and commits it, or rolls back if it throws.
    ///
    /// Each time that the map was full and room could be made, by clearing dead readers or by growing, `body` runs again:
    /// it must do nothing besides the transaction, and it must not suspend.
    package func write<Result>(
        deadline: SuspendingClock.Instant, _ body: (inout WriteTransaction) throws -> Result
    ) throws -> Result {
        try repeating { () throws in try writeOnce(deadline: deadline, body) }
    }

    /// Runs a write again for as long as there is more room each time.
    package func repeating<Result>(_ body: () throws -> Result) throws -> Result {
        while true {
            do { return try body() } catch let error as LMDBError where error.isWorthRepeating { continue }
        }
    }

    private func writeOnce<Result>(
        deadline: SuspendingClock.Instant, _ body: (inout WriteTransaction) throws -> Result
    ) throws -> Result {
        var transaction = try beginWrite(deadline: deadline)
        let result = try body(&transaction)
        try transaction.commit()
        return result
    }

    /// Takes back the stamp of the last clean close before a commit that power loss may take back: the file would look
    /// as it did then, and no process would know that a commit is gone which others saw.
    ///
    /// - Returns: False where the stamp stays. Then the commit must survive.
    func revokeStamp() -> Bool { options.durability != .withoutMetaSync || files.revokeStamp() }

    /// Has the commit's own sync cover what the syncs before it may have failed to write.
    func prepareCommit() throws(LMDBError) {
        // Without syncs, closing makes all of it durable, or none.
        if options.durability != .none { try rewriteMetaPages() }
    }

    /// Ends the write transaction that LMDB has ended already.
    func endWrite() {
        pool.withLock { $0.endUsingMap() }
        files.writer?.release()
        unpin()
    }

    /// Ends a write transaction whose commit gave this status.
    func finishWrite(_ status: Int32, synchronizing: Bool) throws(LMDBError) {
        defer { endWrite() }
        guard status == MDB_SUCCESS else { throw writeFailure(status, doing: "committing") }
        if synchronizing { try flush(doing: "synchronizing") }
        var information = unsafe MDB_envinfo()
        var statistics = MDB_stat()
        guard unsafe mdb_env_info(handle, &information) == MDB_SUCCESS,
            unsafe mdb_env_stat(handle, &statistics) == MDB_SUCCESS
        else { return }
        unsafe files.data.extend(to: Int64(information.me_last_pgno + 1) * Int64(statistics.ms_psize))
    }

    // MARK: Keeping it open

    /// Runs `body` while the environment cannot close, and the map cannot move.
    func pinned<Result>(_ body: () throws(LMDBError) -> Result) throws(LMDBError) -> Result {
        try pin()
        pool.withLock { $0.beginUsingMap() }
        defer {
            pool.withLock { $0.endUsingMap() }
            unpin()
        }
        return try body()
    }

    private func pin() throws(LMDBError) {
        guard pool.withLock({ $0.pin() }) else { throw pool.withLock { $0.isClosed } ? closedError : brokenError }
    }

    private func unpin() {
        // As in `endRead`.
        if pool.withLock({ $0.unpin() }) { try? finishClosing() }
    }

    private var cannotGrowError: LMDBError {
        let advice = "End read transactions sooner, free address space, or remove or compact records."
        return LMDBError(.mapFull, "The map is full, and could not grow. \(advice)", path: folder)
    }

    private var brokenError: LMDBError {
        .make(MDB_PANIC, doing: "using an environment whose map could not be moved", path: folder)
    }

    private var readOnlyError: LMDBError {
        LMDBError(.readOnly, "The environment was opened read-only; open it for writing.", path: folder)
    }

    private var closedError: LMDBError {
        LMDBError(.closed, "The environment was closed; open it again.", path: folder)
    }
}
