import GRDB
import LarderFiles
import Synchronization

extension OperationsDatabase {
    /// What is open between two suspensions.
    struct Connection: Sendable {
        let pool: DatabasePool
        let log: SyncedLog
        let writer: Writer
        let marks: CommitMarks

        init(_ pool: DatabasePool, _ log: SyncedLog, _ options: Options) {
            (self.pool, self.log) = (pool, log)
            writer = Writer(pool: pool, log: log, isReadOnly: options.isReadOnly)
            marks = CommitMarks(of: pool)
        }

        func close(_ options: Options) throws(OperationsError) {
            writer.close()
            // Before the pool's connections, the last of which decides what becomes of the log.
            try translated { try marks.close() }
            // SQLite would do so when the last connection closes, but that is one which only reads. What the log holds is
            // safe there too, as far as it is not damaged: a log that is, is cut off without a word. Waits for no lock.
            if !options.isReadOnly, log.isWritten {
                try? pool.writeWithoutTransaction { db in
                    try db.execute(sql: "PRAGMA busy_timeout = 0")
                    try log.checkpoint(db, .passive)
                }
            }
            try translated { try pool.close() }
        }
    }

    /// Who uses the connection.
    struct Use: Sendable {
        /// Nil while the database is suspended.
        var connection: Connection?
        var isSuspended = false
        var isClosed = false
        /// Calls under way.
        var count = 0
        /// Commits before the last suspension, and one for each suspension: others may have committed meanwhile.
        var earlierCommits = 0
    }

    var pool: DatabasePool { get throws(OperationsError) { try using { $0.pool } } }
    var log: SyncedLog { get throws(OperationsError) { try using { $0.log } } }

    /// Runs `body` with what is open, which stays open meanwhile.
    func using<Value>(_ body: (Connection) throws -> Value) throws(OperationsError) -> Value {
        let connection = try beginUse()
        defer { endUse() }
        return try translated { try body(connection) }
    }

    /// - Throws: `.closed`; `.suspended` where the database is, for longer than a call waits.
    func beginUse() throws(OperationsError) -> Connection {
        let found = try poll(until: .now + options.suspensionWait) { () throws(OperationsError) -> Connection? in
            try use.withLock { (use) throws(OperationsError) in
                guard !use.isClosed else { throw .closed }
                guard !use.isSuspended else { return nil }
                use.count += 1
                return use.connection
            }
        }
        guard let found else {
            throw OperationsError(.suspended, "The store is suspended; resume it, and try again")
        }
        return found
    }

    func endUse() { use.withLock { $0.count -= 1 } }

    /// Closes the file until `resume`: no lock and no descriptor of it stays. Calls that are under way end first; calls
    /// meanwhile wait for as long as `Options.suspensionWait`, and then throw `.suspended`.
    ///
    /// - Parameter isWanted: Asked while calls are under way: whether to wait for them still.
    /// - Throws: `.busy` where a call is under way past the deadline, or is not waited for any more; then nothing is
    ///   suspended.
    package func suspend(
        until deadline: SuspendingClock.Instant, while isWanted: () -> Bool = { true }
    ) throws(OperationsError) {
        use.withLock { $0.isSuspended = true }
        let isIdle = poll(until: deadline) { () -> Bool? in
            if use.withLock({ $0.count == 0 }) { return true }
            return isWanted() ? nil : false
        }
        guard isIdle == true else {
            use.withLock { $0.isSuspended = false }
            throw OperationsError(.busy, "A call of this process still uses larder.sqlite; wait longer")
        }
        let open = use.withLock { use in
            defer { use.connection = nil }
            use.earlierCommits += 1 + (use.connection?.writer.commitCount ?? 0)
            return use.isClosed ? nil : use.connection
        }
        forgetSeenVersion()
        try open?.close(options)
    }

    /// Opens the file again.
    ///
    /// - Throws: As opening does; `.missing` where the file is not there any more. Then it stays suspended.
    package func resume() throws(OperationsError) {
        let (isDue, isOpen) = use.withLock { ($0.isSuspended && !$0.isClosed, $0.connection != nil) }
        guard isDue else { return }
        var new: Connection?
        if !isOpen {
            guard try Self.look(at: file.path, options.files) != nil else {
                throw OperationsError(.missing, "\(file.path) was removed while the store was suspended")
            }
            let (pool, log, _, _) = try Self.open(file, options, migrations)
            new = Connection(pool, log, options)
        }
        use.withLock { use in
            if let new { use.connection = new }
            use.isSuspended = false
        }
    }
}
