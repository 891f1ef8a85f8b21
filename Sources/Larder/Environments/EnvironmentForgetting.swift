package import Foundation
package import LarderOperations
internal import LarderRecords

/// Destroys all that a store has of partitions of which none is the current one, or of an environment.
///
/// The keys go first, each durably, so that no credential can be read any more, whatever happens then; the caches next;
/// the rows of all partitions and the environment's name last, in one transaction. Killed in between, it is known whose
/// partitions there are, with less in them: the next call ends it.
package enum EnvironmentForgetting {
    /// A moment of the work at which a test may kill the program.
    package enum Moment: Sendable, Hashable, CaseIterable {
        case keysDestroyed
        case cachesRemoved
        case rowsRemoved
    }

    package struct Report: Sendable, Hashable {
        package var partitions: [String]
        package var mutations: Int
        /// What the storage has of their uploads. Nothing else names it any more.
        package var uploads: [LeftUpload]
    }

    /// Forgets an environment with all its partitions.
    ///
    /// - Parameters:
    ///   - discarding: Whether mutations and uploads that the server may not have may be lost.
    ///   - lock: Held by the caller, for this store.
    ///   - close: Closes a partition's cache, where this process has it open.
    /// - Throws: `operations.unknownEnvironment`, `operations.environmentInUse`, `operations.unsentWork`,
    ///   `operations.uploadsLeft`: nothing was destroyed then; `larder.notRemoved`.
    package static func forget(
        _ name: String, in store: URL, _ database: OperationsDatabase, discarding: Bool, holding lock: MigrationLock,
        options: Store.Options = Store.Options(), until deadline: ContinuousClock.Instant? = nil,
        closing close: (String) throws -> Void = { _ in }, reached: (Moment) throws -> Void = { _ in }
    ) async throws -> Report {
        let partitions = try database.environments.forgettable(name, losingUnsent: discarding)
        let mutations = try partitions.map { try database.mutations.list(MutationFilter(partition: $0)).count }
        let uploads = try await destroy(
            partitions, of: name, in: store, database, discarding, options, deadline ?? .now + options.lockDeadline,
            close, reached)
        try reached(.rowsRemoved)
        return Report(partitions: partitions, mutations: mutations.reduce(0, +), uploads: uploads)
    }

    /// Forgets a partition. Parameters and errors are those of the other; `operations.unknownPartition`.
    static func forget(
        partition: String, in store: URL, _ database: OperationsDatabase, discarding: Bool,
        holding lock: MigrationLock, options: Store.Options, until deadline: ContinuousClock.Instant,
        closing close: (String) throws -> Void
    ) async throws -> [LeftUpload] {
        try database.environments.requireForgettable(partition: partition, losingUnsent: discarding)
        return try await destroy(
            [partition], of: nil, in: store, database, discarding, options, deadline, close) { _ in }
    }

    private static func destroy(
        _ partitions: [String], of environment: String?, in store: URL, _ database: OperationsDatabase,
        _ discarding: Bool, _ options: Store.Options, _ deadline: ContinuousClock.Instant,
        _ close: (String) throws -> Void, _ reached: (Moment) throws -> Void
    ) async throws -> [LeftUpload] {
        for partition in partitions {
            _ = try await database.credentials.destroyKey(of: partition, until: deadline)
        }
        try reached(.keysDestroyed)
        for partition in partitions {
            try close(partition)
            let cache = CacheFolder(store: store, partition: partition, options)
            do throws(RecordError) { try cache.remove() } catch {
                throw LarderError(
                    .notRemoved, "the cache in \(cache.path) could not be removed; see the cause, and do it again",
                    cause: error)
            }
        }
        try reached(.cachesRemoved)
        for partition in partitions {
            // While it is known where they are. Those that cannot be removed are left to a runner, and to the tools.
            for download in try database.transfers.list(in: partition) where download.kind == .download {
                try? DestinationFile(of: download).removeCopy(of: download.id)
                _ = try? PartialFile.remove(download.id, in: store)
            }
        }
        return try await database.environments.forget(
            partitions: partitions, of: environment, losingUnsent: discarding)
    }
}
