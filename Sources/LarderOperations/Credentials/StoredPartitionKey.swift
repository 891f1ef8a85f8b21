package import Foundation

/// The key of a partition's credentials as it lies in the database: sealed with one of the program's.
package struct StoredPartitionKey: Sendable, Hashable {
    package var partition: String
    /// The id of the program's key.
    package var sealedWith: String
    package var sealed: [UInt8]
    package var created: Date

    package init(partition: String, sealedWith: String, sealed: [UInt8], created: Date) {
        self.partition = partition
        self.sealedWith = sealedWith
        self.sealed = sealed
        self.created = Date(milliseconds: created.milliseconds)
    }
}
