import CLMDB

/// A snapshot of an environment, for one thread at a time. Ends when it goes out of scope.
///
/// Never waits for a writer. Keep it short: pages that it can see are not used again while it lasts.
///
/// Not `Sendable`: it may move to another thread, but two threads must not read through it at once.
package struct ReadTransaction: ~Copyable, Transaction {
    private let environment: Environment
    private let slot: ReaderSlot

    init(environment: Environment, slot: ReaderSlot) {
        self.environment = environment
        self.slot = slot
    }

    deinit {
        unsafe mdb_txn_reset(slot.transaction)
        environment.finishRead(slot)
    }

    private var handle: TransactionHandle { unsafe TransactionHandle(pointer: slot.transaction) }

    package var id: UInt64 { handle.id }

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
        let cursor = try unsafe slot.cursor(in: table)
        return unsafe Cursor(cursor, table: table, keptIn: slot, of: self)
    }

    package borrowing func entryCount(of table: Table) throws(LMDBError) -> Int {
        try handle.entryCount(of: table)
    }

    /// What the environment holds: the tables as the snapshot sees them, the file as it is now.
    package borrowing func statistics() throws(LMDBError) -> Environment.Statistics {
        let handle = handle
        return try environment.statistics { (table) throws(LMDBError) in try handle.tree(of: table) }
    }
}
