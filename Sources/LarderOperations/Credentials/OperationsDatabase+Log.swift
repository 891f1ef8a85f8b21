import GRDB

extension OperationsDatabase {
    /// Sealed credentials, and whether a user is signed in.
    package var credentials: CredentialTable { CredentialTable(database: self) }

    /// Moves all that was committed out of the log into the file and empties the log, so that nothing is left in it of
    /// what was overwritten since. Readers that see an older state keep it from doing so for as long as they read.
    ///
    /// - Returns: False where they did so past the deadline.
    package func emptyLog(until deadline: SuspendingClock.Instant) async throws(OperationsError) -> Bool {
        var pause = Duration.milliseconds(2)
        while true {
            if try await tryEmptyLog() { return true }
            guard .now < deadline, (try? await Task.sleep(for: min(pause, deadline - .now))) != nil else {
                return false
            }
            pause = min(pause * 2, .milliseconds(100))
        }
    }

    private func tryEmptyLog() async throws(OperationsError) -> Bool {
        let timeout = Int(min(max(0, options.busyTimeout / .milliseconds(1)), 86_400_000))
        let connection = try beginUse()
        defer { endUse() }
        let result = await withCheckedContinuation { continuation in
            connection.pool.asyncWriteWithoutTransaction { db in
                continuation.resume(
                    returning: Result { () throws(OperationsError) -> Bool in
                        try translated {
                            // SQLite would wait here with the connection that all writes go through.
                            try db.run("PRAGMA busy_timeout = 0")
                            defer { try? db.run("PRAGMA busy_timeout = \(timeout)") }
                            do {
                                try connection.log.checkpoint(db, .truncate)
                            } catch let error as DatabaseError {
                                guard error.resultCode == .SQLITE_BUSY else { throw error }
                                return false
                            }
                            return true
                        }
                    })
            }
        }
        return try result.get()
    }
}
