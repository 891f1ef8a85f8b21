package import Foundation
package import LarderOperations
import LarderRecords

/// What has to be done to a store so that this library can work with it, step by step: shown before it is done, and
/// done as it was shown.
package struct MigrationPlan: Sendable, Hashable {
    package enum Step: Sendable, Hashable {
        /// The store is backed up, to a new folder in this one.
        case backup(into: URL)
        /// A migration is applied to `larder.sqlite`. All of them are, or none.
        case apply(SchemaStatus.Entry)
        /// A cache is rewritten in the current format, as its next generation.
        case transformCache(partition: String, from: UInt32)
        /// A cache is emptied, as its next generation in the current format: what it held is fetched again.
        case rebuildCache(partition: String, from: UInt32, byteCount: Int)
    }

    package var steps: [Step] = []

    /// - Parameter backups: Where a backup is put before anything changes; nil for none.
    /// - Throws: `records.futureFormat` where a newer program wrote a cache.
    package init(for status: StoreStatus, backingUpInto backups: URL?) throws(LarderError) {
        for entry in status.schema?.pending ?? [] { steps.append(.apply(entry)) }
        for cache in status.caches {
            switch cache.format.state {
            case .current, .absent, .damaged: break
            case .older(let from) where cache.isTransformed:
                steps.append(.transformCache(partition: cache.partition, from: from))
            case .older(let from):
                steps.append(
                    .rebuildCache(
                        partition: cache.partition, from: from, byteCount: cache.format.byteCount))
            case .newer(let format):
                throw LarderError(
                    RecordError(
                        .futureFormat,
                        "The cache of partition \(cache.partition) has format \(format), and this program "
                            + "knows those to \(CacheFormat.current); update the program"))
            }
        }
        if let backups, !steps.isEmpty { steps.insert(.backup(into: backups), at: 0) }
    }

    /// Where a store's backups are put unless the user says otherwise: beside it.
    package static func backupFolder(of store: URL) -> URL {
        let store = store.standardizedFileURL
        return store.deletingLastPathComponent().appending(path: store.lastPathComponent + ".backups")
    }
}
