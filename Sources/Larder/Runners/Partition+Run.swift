public import ServiceLifecycle

/// What `Partition.run` carries out, and how.
public struct RunOptions: Sendable {
    /// How queued mutations are sent.
    public var mutations = MutationRunner.Options()
    /// Where the objects of uploads and downloads are; nil for a program that transfers no files.
    public var storage: (any ObjectTransport)?
    /// How files are transferred.
    public var transfers = TransferRunner.Options()

    /// Mutations as `MutationRunner.Options` has them, and no transfers.
    public init() {}

    /// Mutations, and files from and to a storage.
    public init(storage: any ObjectTransport) { self.storage = storage }
}

extension Partition: Service {
    /// Sends what is queued, as `run(_:)` with the options that `RunOptions` begins with.
    public func run() async throws { try await run(RunOptions()) }

    /// Sends queued mutations and transfers files until the task is cancelled, or the `ServiceGroup` shuts down.
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
        let mutations = MutationRunner(self, options: options.mutations)
        guard let storage = options.storage else { return try await mutations.run() }
        let transfers = TransferRunner(self, storage: storage, options: options.transfers)
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await mutations.run() }
            group.addTask { try await transfers.run() }
            // The failure of one ends the other: leaving the group cancels it.
            for try await _ in group {}
        }
    }
}
