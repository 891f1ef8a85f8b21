package import Foundation
package import LarderOperations
import LarderRecords

/// Destroys all that a store has of partitions of which none is the current one, or of an environment.
///
/// One transaction of `larder.sqlite` decides that it may be done and removes the rows, the keys of the credentials
/// among them: no process can make one of the partitions the current one between the two. Then the log is emptied, so
/// that no key is left there, and the caches are removed. The caches have been marked before: a marked cache whose
/// partition the database does not have is what a killed program has left, and the next forgetting removes it.
package enum EnvironmentForgetting {
    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: Sendable, Hashable, CaseIterable {
        /// The caches are marked.
        case marked
        /// The transaction is committed.
        case rowsRemoved
        /// The log holds no key any more, unless a reader kept it from being emptied.
        case logEmptied
        case cachesRemoved
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
        options: Store.Options = Store.Options(), until deadline: SuspendingClock.Instant? = nil,
        closing close: (String) throws -> Void = { _ in }, reached: (KillPoint) throws -> Void = { _ in }
    ) async throws -> ForgottenWork {
        let partitions = try database.environments.partitions().filter { $0.environment == name }.map(\.name)
        return try await forget(
            marking: partitions, in: store, database, options, deadline ?? .now + options.lockTimeout, close, reached
        ) { () async throws(OperationsError) -> ForgottenWork in
            try await database.environments.forget(environment: name, losingUnsent: discarding)
        }
    }

    /// Forgets a partition. Parameters and errors are those of the other; `operations.unknownPartition`.
    static func forget(
        partition: String, in store: URL, _ database: OperationsDatabase, discarding: Bool,
        holding lock: MigrationLock, options: Store.Options, until deadline: SuspendingClock.Instant,
        closing close: (String) throws -> Void
    ) async throws -> ForgottenWork {
        try await forget(marking: [partition], in: store, database, options, deadline, close, { _ in }) {
            () async throws(OperationsError) -> ForgottenWork in
            try await database.environments.forget(partitions: [partition], losingUnsent: discarding)
        }
    }

    private static func forget(
        marking partitions: [String], in store: URL, _ database: OperationsDatabase, _ options: Store.Options,
        _ deadline: SuspendingClock.Instant, _ close: (String) throws -> Void, _ reached: (KillPoint) throws -> Void,
        _ removeRows: () async throws(OperationsError) -> ForgottenWork
    ) async throws -> ForgottenWork {
        try finish(in: store, database, options)
        for partition in partitions {
            try removing(partition, store, options) { try $0.markForgotten() }
        }
        try reached(.marked)
        let forgotten: ForgottenWork
        do { forgotten = try await removeRows() } catch {
            // Refused: none of them is to be removed.
            try finish(in: store, database, options)
            throw error
        }
        try reached(.rowsRemoved)
        _ = try await database.emptyLog(until: deadline)
        try reached(.logEmptied)
        for partition in forgotten.partitions {
            try removing(partition, store, options) { cache in
                try close(partition)
                try cache.remove()
            }
        }
        for download in forgotten.downloads {
            // What cannot be removed is left to the tools.
            try? DestinationFile(of: download, options.files).removeCopy(of: download.id)
            _ = try? PartialFile.remove(download.id, in: store, options.files)
        }
        try reached(.cachesRemoved)
        return forgotten
    }

    /// Ends what a killed program has begun: a marked cache is removed where the database does not have its partition,
    /// and is a cache like others where it does.
    private static func finish(in store: URL, _ database: OperationsDatabase, _ options: Store.Options) throws {
        for partition in try StoreStatus.partitionFolders(of: store, options.files) {
            guard try CacheFolder(store: store, partition: partition, options).isForgotten() else { continue }
            let isKnown = try database.environments.partition(partition) != nil
            try removing(partition, store, options) { cache in
                if isKnown { try cache.keepForgotten() } else { try cache.remove() }
            }
        }
    }

    private static func removing(
        _ partition: String, _ store: URL, _ options: Store.Options, _ body: (CacheFolder) throws -> Void
    ) throws(LarderError) {
        let cache = CacheFolder(store: store, partition: partition, options)
        do { try body(cache) } catch {
            throw LarderError(
                .notRemoved, "The cache in \(cache.path) could not be removed; see the cause, and do it again",
                cause: error)
        }
    }
}
