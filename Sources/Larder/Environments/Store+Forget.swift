internal import Foundation
internal import LarderOperations

extension Store {
    /// Destroys all that is kept for a user of an environment, or for its guests: first the key of the credentials, then
    /// the mutations, outcomes, watchers and the session, then the cache.
    ///
    /// - Parameters:
    ///   - partition: One of `partitionIdentities()`; not the current one.
    ///   - confirming: The environment's name once more, where the environment is protected.
    ///   - losingUnsent: Whether mutations may be lost that the server may not have.
    ///   - deadline: How long to wait for other processes that read.
    /// - Throws: `operations.protected`; `operations.unknownPartition`, `operations.environmentInUse`, `operations.unsentWork`:
    ///   nothing was destroyed then; `.notRemoved`.
    public func forget(
        _ partition: PartitionIdentity, confirming: String? = nil, losingUnsent: Bool = false,
        deadline: ContinuousClock.Instant = .now + .seconds(5)
    ) async throws(LarderError) {
        let environments = try intent.database().environments
        do throws(OperationsError) {
            if let name = partition.environment { try requireConfirmed(environments.find(name), confirming) }
            try await environments.forget(partition: partition.name, losingUnsent: losingUnsent, until: deadline)
        } catch { throw LarderError(translating: error) }
        if let open = partitions.remove(partition.name) { try open.close() }
        try removeCache(of: partition.name)
    }

    /// Forgets an environment and everything that is kept for its users.
    ///
    /// - Throws: As `forget` of a partition; `operations.unknownEnvironment`. What was forgotten before an error is
    ///   forgotten; do it again.
    public func forget(
        environment name: String, confirming: String? = nil, losingUnsent: Bool = false,
        deadline: ContinuousClock.Instant = .now + .seconds(5)
    ) async throws(LarderError) {
        let environments = try intent.database().environments
        do throws(OperationsError) {
            try requireConfirmed(environments.find(name), confirming)
            if let current = try environments.current()?.partition, current.environment == name {
                throw OperationsError(
                    .environmentInUse, "\(name) is the current environment; switch to another, or to none, first")
            }
        } catch { throw LarderError(translating: error) }
        for partition in try partitionIdentities() where partition.environment == name {
            try await forget(partition, confirming: confirming, losingUnsent: losingUnsent, deadline: deadline)
        }
        do { try await environments.remove(name) } catch { throw LarderError(error) }
    }

    private func requireConfirmed(
        _ environment: StoredEnvironment?, _ confirming: String?
    ) throws(OperationsError) {
        guard let environment, environment.isProtected, confirming != environment.name else { return }
        throw OperationsError(
            .protected, "the environment \(environment.name) is protected; repeat its name to do this nevertheless")
    }

    /// Takes the folder out of sight in one step, and then away.
    private func removeCache(of name: String) throws(LarderError) {
        let folder = Self.cacheFolder(of: folder, partition: name)
        guard FileManager.default.fileExists(atPath: folder.path) else { return }
        let removed = folder.deletingLastPathComponent().appending(path: "\(name).removed")
        do {
            if FileManager.default.fileExists(atPath: removed.path) { try FileManager.default.removeItem(at: removed) }
            try FileManager.default.moveItem(at: folder, to: removed)
            try FileManager.default.removeItem(at: removed)
        } catch {
            throw LarderError(
                .notRemoved, "the cache in \(folder.path) could not be removed; remove the folder", cause: error)
        }
    }
}
