package import Foundation
package import LarderOperations
package import LarderRecords

extension MigrationPlan {
    /// A step that was just done; a test may kill the program there.
    package enum KillPoint: Sendable, Hashable {
        case backedUp
        case migrated
        case cache(CacheFolder.KillPoint)
    }

    /// Does what has to be done, and says what it was. Other programs may have the store open.
    ///
    /// The migrations are applied all in one transaction, each cache is replaced by one commit. Killed in between, the
    /// rest is done by the next call.
    ///
    /// - Parameters:
    ///   - backups: Where a backup is put before anything changes; nil for none.
    ///   - lock: Held by the caller.
    /// - Returns: The steps, all of which were taken, and the backup.
    package static func carryOut(
        on store: URL, backingUpInto backups: URL?, holding lock: MigrationLock,
        options: Store.Options = Store.Options(), now: Date = Date(), reached: (KillPoint) throws -> Void = { _ in }
    ) throws -> (plan: MigrationPlan, backup: URL?) {
        // What waits for the lock finds another store than it had seen.
        let plan = try MigrationPlan(for: StoreStatus(of: store, options: options), backingUpInto: backups)
        var backup: URL?
        var isMigrated = false
        for step in plan.steps {
            switch step {
            case .backup(let folder):
                backup = try StoreBackup.make(of: store, into: folder, options: options, now: now).folder
                try reached(.backedUp)
            case .apply:
                guard !isMigrated else { continue }
                isMigrated = true
                try migrate(store, lock, options)
                try reached(.migrated)
            case .transformCache(let partition, _), .rebuildCache(let partition, _, _):
                try CacheFolder(store: store, partition: partition, options).migrate(
                    deadline: .now + options.lockTimeout
                ) { try reached(.cache($0)) }
            }
        }
        return (plan, backup)
    }

    private static func migrate(
        _ store: URL, _ lock: MigrationLock, _ options: Store.Options
    ) throws(OperationsError) {
        var options = options.operations
        options.schema = .asItIs
        let database = try OperationsDatabase(folder: store, options: options)
        defer { try? database.close() }
        try database.migrate(holding: lock)
    }
}
