package import Foundation
package import LarderOperations
import LarderRecords

/// What of a store is damaged, and what a repair makes of it: found out first, and done as it was said.
package struct StoreRepair: Sendable, Hashable {
    package enum Step: Sendable, Hashable {
        /// What can be read of `larder.sqlite` becomes a new file; the damaged one is kept beside it.
        case salvageDatabase(finding: String)
        /// A cache is emptied, as its next generation: what it held is fetched again.
        case rebuildCache(partition: String, finding: String)
    }

    package var steps: [Step] = []

    /// Looks at everything. O(size of the store).
    package init(of store: URL, options: Store.Options = Store.Options()) throws(LarderError) {
        do throws(OperationsError) {
            let check = try OperationsDatabase.check(folder: store, waiting: options.lockTimeout)
            if let problem = check?.problems.first { steps.append(.salvageDatabase(finding: problem.description)) }
        } catch { throw LarderError(error) }
        for cache in try StoreStatus.caches(of: store, options: options) {
            let folder = CacheFolder(store: store, partition: cache.partition, options)
            do throws(RecordError) {
                guard let finding = try folder.finding(cache.format) else { continue }
                steps.append(.rebuildCache(partition: cache.partition, finding: finding))
            } catch { throw LarderError(error) }
        }
    }

    /// Does what has to be done.
    ///
    /// - Parameter lock: Held by the caller, for this store.
    /// - Returns: What the repair saved of the database; nil where it was sound.
    package func carryOut(
        on store: URL, holding lock: MigrationLock, options: Store.Options = Store.Options(), now: Date = Date()
    ) throws -> RepairReport? {
        var report: RepairReport?
        for step in steps {
            switch step {
            case .salvageDatabase:
                report = try OperationsDatabase.repair(
                    folder: store, holding: lock, now: now, files: options.files)
            case .rebuildCache(let partition, _):
                try CacheFolder(store: store, partition: partition, options)
                    .rebuild(deadline: .now + options.lockTimeout)
            }
        }
        return report
    }
}
