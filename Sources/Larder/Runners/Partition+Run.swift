public import ServiceLifecycle

/// What `Partition.run` carries out, and how.
public struct RunOptions: Sendable {
    /// How queued mutations are sent.
    public var mutations = MutationRunner.Options()
    /// Where the objects of uploads and downloads are; nil for a program that transfers no files.
    public var storage: (any ObjectTransport)?
    /// Further storages, by the names that `ObjectLocation.storage` has.
    public var namedStorages: [String: any ObjectTransport] = [:]
    /// How files are transferred.
    public var transfers = TransferRunner.Options()
    /// How the cache is kept in order.
    public var cache = CacheUpkeep()

    /// Mutations as `MutationRunner.Options` has them, and no transfers.
    public init() {}

    /// Mutations, and files from and to a storage.
    public init(storage: any ObjectTransport) { self.storage = storage }
}

/// Within what bounds `Partition.run` keeps the cache, and when it looks.
public struct CacheUpkeep: Sendable, Hashable {
    /// The bytes that the cache's pages may take: beyond it garbage is collected, and then what came and was read longest
    /// ago goes. Nil for no bound.
    public var maxBytes: Int?
    /// What came longer ago goes. Nil for no such age.
    public var maxAge: Duration?
    /// How long to wait from one look to the next. A look at a cache within its bytes costs next to nothing.
    public var interval = Duration.seconds(60)

    /// No bounds, unless given.
    public init(maxBytes: Int? = nil, maxAge: Duration? = nil) {
        (self.maxBytes, self.maxAge) = (maxBytes, maxAge)
    }
}

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
    /// - Throws: As `MutationRunner.run` and `TransferRunner.run`. Nothing is lost; run again when the cause is over.
    public func run(_ options: RunOptions) async throws {
        guard options.cache.maxBytes != nil || options.cache.maxAge != nil else { return try await work(options) }
        let upkeep = Task { await keepInOrder(options.cache) }
        let result: Result<Void, any Error>
        do { result = .success(try await work(options)) } catch { result = .failure(error) }
        upkeep.cancel()
        await upkeep.value
        try result.get()
    }

    private func work(_ options: RunOptions) async throws {
        let mutations = MutationRunner(self, options: options.mutations)
        guard options.storage != nil || !options.namedStorages.isEmpty else { return try await mutations.run() }
        let transfers = TransferRunner(
            self, storage: options.storage, named: options.namedStorages, options: options.transfers)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await mutations.run() }
            group.addTask { try await transfers.run() }
            // The failure of one ends the other: leaving the group cancels it.
            for try await _ in group {}
        }
    }
}
