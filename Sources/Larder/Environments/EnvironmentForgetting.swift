package import Foundation
package import LarderOperations
internal import LarderRecords

/// Destroys all that a store has of an environment which is not the current one.
///
/// The keys go first, each durably, so that no credential can be read any more, whatever happens then; the caches next;
/// the rows of each partition in one transaction, and the name, last. Killed in between, the environment is there, with
/// less: the next call ends it.
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
    }

    /// - Parameters:
    ///   - discarding: Whether mutations that the server may not have may be lost.
    ///   - lock: Held by the caller, for this store.
    /// - Throws: `operations.unknownEnvironment`, `operations.environmentInUse`, `operations.unsentWork`.
    package static func forget(
        _ name: String, in store: URL, _ database: OperationsDatabase, discarding: Bool, holding lock: MigrationLock,
        options: Store.Options = Store.Options(), reached: (Moment) throws -> Void = { _ in }
    ) async throws -> Report {
        let partitions = try database.environments.forgettable(name, losingUnsent: discarding)
        let mutations = try partitions.map { try database.mutations.list(MutationFilter(partition: $0)).count }
        for partition in partitions {
            try await database.credentials.destroyKey(of: partition, until: .now + options.lockDeadline)
        }
        try reached(.keysDestroyed)
        for partition in partitions { try CacheFolder(store: store, partition: partition, options).remove() }
        try reached(.cachesRemoved)
        for partition in partitions {
            try await database.environments.forget(
                partition: partition, losingUnsent: discarding, until: .now + options.lockDeadline)
        }
        try await database.environments.remove(name)
        try reached(.rowsRemoved)
        return Report(partitions: partitions, mutations: mutations.reduce(0, +))
    }
}
