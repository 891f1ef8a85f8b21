import Foundation
import LarderOperations

extension Store {
    /// Destroys all that is kept for a user of an environment, or for its guests: in one transaction the key of the
    /// credentials, the mutations, outcomes, watchers and the session; then the cache. Where the process dies before
    /// the cache is removed, the next forgetting removes it.
    ///
    /// - Parameters:
    ///   - partition: One of `partitionIdentities()`; not the current one.
    ///   - confirming: The environment's name once more, where the environment is protected.
    ///   - losingUnsent: Whether mutations and uploads may be lost that the server may not have.
    ///   - time: How long to wait for processes that migrate, back up or restore the store, and for readers; nil for
    ///     the options' `lockTimeout`.
    /// - Returns: What the storage has of uploads that were not done: abort it there, since nothing names it any more.
    /// - Throws: `operations.protected`, `operations.migrationLocked`, `operations.unknownPartition`,
    ///   `operations.environmentInUse`, `operations.unsentWork`, and `operations.uploadsLeft` where uploads that were
    ///   given up are at the storage still, and `.cancelled` where the task was cancelled while it waited for other
    ///   processes: nothing was destroyed then; `.notRemoved`.
    @discardableResult
    public func forget(
        _ partition: PartitionIdentity, confirming: String? = nil, losingUnsent: Bool = false,
        within time: Duration? = nil
    ) async throws(LarderError) -> [AbandonedUpload] {
        let deadline = SuspendingClock.now + (time ?? options.lockTimeout)
        let database = try operationsStore.database()
        do {
            if let name = partition.environment {
                try requireConfirmed(database.environments.find(name), confirming)
            }
            let lock = try await migrationLock(until: deadline)
            defer { lock.release() }
            return try await EnvironmentForgetting.forget(
                partition: partition.name, in: folder, database, discarding: losingUnsent, holding: lock,
                options: options, until: deadline, closing: close
            ).uploads.map(AbandonedUpload.init)
        } catch { throw LarderError(translating: error) }
    }

    /// Forgets an environment and everything that is kept for its users. Where the data of one user may not be
    /// destroyed, the data of none is.
    ///
    /// - Returns: As `forget` of a partition.
    /// - Throws: As that; `operations.unknownEnvironment`.
    @discardableResult
    public func forget(
        environment name: String, confirming: String? = nil, losingUnsent: Bool = false,
        within time: Duration? = nil
    ) async throws(LarderError) -> [AbandonedUpload] {
        let deadline = SuspendingClock.now + (time ?? options.lockTimeout)
        let database = try operationsStore.database()
        do {
            try requireConfirmed(database.environments.find(name), confirming)
            let lock = try await migrationLock(until: deadline)
            defer { lock.release() }
            return try await EnvironmentForgetting.forget(
                name, in: folder, database, discarding: losingUnsent, holding: lock, options: options,
                until: deadline, closing: close
            ).uploads.map(AbandonedUpload.init)
        } catch { throw LarderError(translating: error) }
    }

    private func requireConfirmed(
        _ environment: StoredEnvironment?, _ confirming: String?
    ) throws(OperationsError) {
        guard let environment, environment.isProtected, confirming != environment.name else { return }
        throw OperationsError(
            .protected, "The environment \(environment.name) is protected; repeat its name to do this nevertheless")
    }

    private func close(_ partition: String) throws(LarderError) {
        if let open = partitions.remove(partition) { try open.close() }
    }

    /// Asks again and again: a thread that waits in the kernel's stead is kept from other tasks.
    private func migrationLock(until deadline: SuspendingClock.Instant) async throws -> MigrationLock {
        while true {
            do throws(OperationsError) {
                return try MigrationLock.take(in: folder, for: "forgetting", within: .zero, options.files)
            } catch {
                guard error.code == .migrationLocked, .now < deadline else { throw error }
            }
            do { try await Task.sleep(for: .milliseconds(10)) } catch {
                throw LarderError(.cancelled, "The task was cancelled while another process held the migration lock")
            }
        }
    }
}
