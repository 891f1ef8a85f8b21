public import ServiceLifecycle

extension Partition: Service {
    /// Sends what is queued, as `run(_:)` with the options that `RunOptions` begins with.
    public func run() async throws { try await run(RunOptions()) }

    /// Sends queued mutations, transfers files and keeps the cache within its bounds until the task is cancelled, or the
    /// `ServiceGroup` shuts down.
    ///
    /// It may run in several processes at once: one works, and the others stand by. Work that waits for a user goes on
    /// when a user signs in, in any process.
    ///
    /// ```swift
    /// Task { try await app.run() }
    /// ```
    ///
    /// - Throws: `.noTransport`; `.operation`, `.syntax`, `.variables` where the probe is no query of the schema; `.parked`
    ///   once another partition is the current one, or the store is closed; `.notRunnable` where a lock cannot be made;
    ///   `operations.…` and `records.…` where the queue or the cache cannot be read or written: the disk is full, or another
    ///   program keeps the file locked past the deadline. Nothing is lost; run again when the cause is over.
    public func run(_ options: RunOptions) async throws {
        guard options.cache.maxBytes != nil || options.cache.maxAge != nil else { return try await work(options) }
        let upkeep = Task { await keepInOrder(options.cache) }
        let result: Result<Void, any Error>
        do { result = .success(try await work(options)) } catch { result = .failure(error) }
        upkeep.cancel()
        await upkeep.value
        try result.get()
    }

    /// Sends and transfers what can be, and returns when nothing is left that could be, now or after a pause: for the
    /// background task of an app, a script or a test.
    ///
    /// It waits while no user is signed in, there is no network, or another process works: cancel its task to end that.
    ///
    /// - Throws: As `run(_:)`.
    public func drain(_ options: RunOptions = RunOptions()) async throws {
        let mutations = MutationRunner(self, options: options.mutations)
        guard let transfers = transferRunner(options) else { return try await mutations.drain() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await mutations.drain() }
            group.addTask { try await transfers.drain() }
            for try await _ in group {}
        }
        // Mutations that waited for a file.
        try await mutations.drain()
    }

    /// Has what waits for a sign-in go on, in this process. A sign-in to the partition's `session`, in any process, is
    /// noticed without this; call it where the program keeps its sign-ins elsewhere.
    public func noteSignIn() { core.runners.resume() }

    private func transferRunner(_ options: RunOptions) -> TransferRunner? {
        guard options.storage != nil || !options.namedStorages.isEmpty else { return nil }
        return TransferRunner(
            self, storage: options.storage, named: options.namedStorages, options: options.transfers)
    }

    private func work(_ options: RunOptions) async throws {
        let mutations = MutationRunner(self, options: options.mutations)
        guard let transfers = transferRunner(options) else { return try await mutations.run() }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await mutations.run() }
            group.addTask { try await transfers.run() }
            // The failure of one ends the other: leaving the group cancels it.
            for try await _ in group {}
        }
    }
}

extension Partition {
    /// How often the queue, or what a runner does, may have changed. A caller takes it before it looks, so that `change`
    /// misses nothing.
    package var changeCount: UInt64 { core.operationsStore.changeSignal.count }

    /// Waits until there may be another change, or the task is cancelled; for a minute at most.
    package func change(past count: UInt64) async {
        await core.operationsStore.changeSignal.wait(past: count, for: core.operationsStore.longestWait)
    }
}
