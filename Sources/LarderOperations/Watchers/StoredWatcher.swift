package import Foundation

/// A watcher that outlives the process.
package struct StoredWatcher: Sendable, Hashable {
    /// A place in the cache's log of changes.
    package struct Position: Sendable, Hashable {
        package var epoch: UInt64
        package var number: UInt64

        package init(epoch: UInt64, number: UInt64) {
            self.epoch = epoch
            self.number = number
        }
    }

    package var partition: String
    /// Unique in its partition.
    package var name: String
    package var document: String
    package var operationName: String?
    package var variables: [UInt8]
    /// The last change that was delivered; nil before the first.
    package var position: Position?
    package var created: Date
    package var updated: Date
}
