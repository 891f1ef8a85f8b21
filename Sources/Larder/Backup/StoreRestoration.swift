package import Foundation
package import LarderOperations
package import LarderRecords

/// Brings a backup back into a store that other programs may have open: no file is swapped under them.
///
/// Everything is copied into the store first, where no reader looks. One transaction in `larder.sqlite` then brings
/// back what the store has lost of it, and notes a token: from then on, the caches that were staged under that token
/// are the store's. Each becomes its partition's next generation; a process that opens a partition finishes what a
/// killed program has left of that. So a kill leaves the store as it was before the transaction, or as it is after it.
package enum StoreRestoration {
    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: Sendable, Hashable {
        /// The store as it was is backed up.
        case backedUp
        /// Everything is copied into the store.
        case staged
        /// The transaction is committed.
        case committed
        /// A cache goes over.
        case cache(CacheFolder.KillPoint)
    }

    package struct Report: Sendable {
        package var database: RestorationReport?
        /// The partitions whose caches were brought back.
        package var caches: [String]
        /// The backup of the store as it was; nil where there was nothing, or none was wanted.
        package var backup: URL?
    }

    /// - Parameters:
    ///   - store: The store's folder; a new one is made.
    ///   - backups: Where what is there is backed up first; nil for not at all.
    ///   - lock: Held by the caller, for this store.
    ///   - nothingSentSince: Whether the caller says that no program has sent mutations since the backup was made: then
    ///     what is unsent in the backup is unsent. Otherwise a mutation comes back as pending only where the store
    ///     proves that it was not sent, and is set aside where it does not.
    /// - Throws: `operations.foreignBackup`, `operations.damagedBackup`, `operations.newerFormat`,
    ///   `operations.full`, …; the store is as it was then, but that missing migrations may be applied, and what is left
    ///   of a lost database put aside. A commit can take place although the file system reports that it failed: then the
    ///   backup is brought back, and the backup that was made first has what was there.
    package static func bringBack(
        _ backup: StoreBackup, to store: URL, backingUpInto backups: URL?, holding lock: MigrationLock,
        nothingSentSince: Bool = false, options: Store.Options = Store.Options(), now: Date = Date(),
        reached: (KillPoint) throws -> Void = { _ in }
    ) throws -> Report {
        do {
            try backup.verify(files: options.files)
            try finish(store, options: options)
            OperationsDatabase.removeStaged(in: store, options.files)
            try requireSame(backup, store, options)
            var report = Report(caches: [])
            let before = try DatabaseState(of: store, options)
            let hadBackups = try backups.map { try options.files.exists($0.path) } ?? true
            if let backups, try hasAnything(store, options) {
                report.backup = try StoreBackup.make(of: store, into: backups, options: options, now: now).folder
            }
            try reached(.backedUp)
            let token = UUID().uuidString.lowercased()
            do {
                report.caches = try stage(backup, token, in: store, lock, options)
                try reached(.staged)
                report.database = try commit(backup, token, in: store, lock, nothingSentSince, options, now)
            } catch {
                OperationsDatabase.removeStaged(in: store, options.files)
                // Where the database cannot be read, the backup and the staged caches stay, and the program that opens
                // a partition next adopts its cache or removes it.
                let after = try? DatabaseState(of: store, options)
                for name in after == nil ? [] : report.caches {
                    let cache = CacheFolder(store: store, partition: name, options)
                    if after?.restoration == token {
                        // A commit that failed may have taken place. What cannot be adopted now is so later.
                        try? cache.adoptStaged(token, deadline: .now + options.lockTimeout)
                    } else {
                        cache.removeStaged(token)
                    }
                }
                // What was changed by nothing needs no backup.
                if after == before, let made = report.backup, let backups {
                    try? options.files.removeTree(made.path)
                    if !hadBackups, (try? options.files.names(in: backups.path).isEmpty) == true {
                        try? options.files.removeTree(backups.path)
                    }
                }
                throw error
            }
            try reached(.committed)
            for name in report.caches {
                try CacheFolder(store: store, partition: name, options).adoptStaged(
                    token, deadline: .now + options.lockTimeout
                ) { try reached(.cache($0)) }
            }
            return report
        } catch { throw BackupFailure.typed(error) }
    }

    private static func hasAnything(_ store: URL, _ options: Store.Options) throws -> Bool {
        try options.files.exists(store.appending(path: OperationsDatabase.fileName).path)
            || !StoreStatus.partitionFolders(of: store, options.files).isEmpty
    }

    /// Refuses another store's backup before anything is copied; the transaction looks again.
    private static func requireSame(_ backup: StoreBackup, _ store: URL, _ options: Store.Options) throws {
        let identity = try StoreStatus.withDatabase(of: store, options) { (database) throws(OperationsError) in
            try database.schemaStatus().identity
        }
        // Nothing to be mixed up with: the database was lost, or there never was one.
        guard let identity = identity ?? nil else { return }
        guard identity == backup.manifest.store else {
            throw LarderError(OperationsError.foreignBackup(of: backup.manifest.store))
        }
    }

    private static func stage(
        _ backup: StoreBackup, _ token: String, in store: URL, _ lock: MigrationLock, _ options: Store.Options
    ) throws -> [String] {
        var staged: [String] = []
        do {
            if backup.manifest.schema != nil {
                try OperationsDatabase.stage(token, in: store, holding: lock, options: options.operations) {
                    try backup.copy(OperationsDatabase.fileName, to: $0, options.files)
                }
            }
            for partition in backup.manifest.partitions {
                guard let cache = partition.cache else { continue }
                try CacheFolder(store: store, partition: partition.name, options).stage(token) {
                    try backup.copy(cache, to: $0, options.files)
                }
                staged.append(partition.name)
            }
        } catch {
            for name in staged { CacheFolder(store: store, partition: name, options).removeStaged(token) }
            throw error
        }
        return staged
    }

    /// Nil where neither has a database: then nothing can be noted, and each cache goes over by itself.
    private static func commit(
        _ backup: StoreBackup, _ token: String, in store: URL, _ lock: MigrationLock, _ nothingSentSince: Bool,
        _ options: Store.Options, _ now: Date
    ) throws -> RestorationReport? {
        guard backup.manifest.schema != nil else { return nil }
        return try OperationsDatabase.restoreStaged(
            token, in: store, holding: lock, nothingSentSince: nothingSentSince, options: options.operations, now: now)
    }

    // MARK: What was left

    /// Finishes what a killed program has begun: caches that were staged under the token of the last restoration become
    /// their partitions' caches, and the ones that never came to the transaction are removed.
    ///
    /// The caller holds the migration lock; a process that stages holds it too.
    package static func finish(_ store: URL, options: Store.Options = Store.Options()) throws {
        try finish(store, try StoreStatus.partitionFolders(of: store, options.files), options)
    }

    private static func finish(_ store: URL, _ partitions: [String], _ options: Store.Options) throws {
        for name in partitions {
            let cache = CacheFolder(store: store, partition: name, options)
            for token in try cache.stagedTokens() {
                let last = try StoreStatus.withDatabase(of: store, options) { (database) throws(OperationsError) in
                    try database.restoration()
                }
                if last == .some(token) {
                    try cache.adoptStaged(token, deadline: .now + options.lockTimeout)
                } else {
                    cache.removeStaged(token)
                }
            }
        }
    }

    /// As `finish`, for a caller that is about to open a partition: does nothing where nothing was left, or where the
    /// process that restores is still at it.
    static func finish(_ store: URL, partition: String, options: Store.Options) throws(LarderError) {
        let cache = CacheFolder(store: store, partition: partition, options)
        guard !options.isReadOnly else { return }
        do {
            let isLeft = try !cache.stagedTokens().isEmpty
            guard isLeft, MigrationLock.holder(in: store, options.files) == nil else { return }
            let lock = try MigrationLock.take(
                in: store, for: "finishing a restoration", within: options.lockTimeout, options.files)
            defer { lock.release() }
            try finish(store, [partition], options)
        } catch { throw BackupFailure.typed(error) }
    }
}

/// What a restoration changes of a store's database, by which one that failed tells what it has done.
private struct DatabaseState: Equatable {
    /// Its remains are put aside before another takes its place.
    let isLost: Bool
    let migrations: [SchemaStatus.Entry]
    /// The token of the last restoration that took place.
    let restoration: String?

    init(of store: URL, _ options: Store.Options) throws(OperationsError) {
        isLost = try OperationsDatabase.isLost(in: store, options.files)
        let found = try StoreStatus.withDatabase(of: store, options) { (database) throws(OperationsError) in
            (try database.schemaStatus().applied, try database.restoration())
        }
        (migrations, restoration) = found ?? ([], nil)
    }
}

extension OperationsError {
    fileprivate static func foreignBackup(of identity: String?) -> OperationsError {
        let whose = identity.map { "of another store (\($0))" } ?? "of a store without an identity"
        return OperationsError(.foreignBackup, "The backup is \(whose); restore it into a new folder")
    }
}
