package import Foundation

/// An operation whose answer stays in the cache.
package struct StoredPin: Sendable, Hashable {
    package var partition: String
    /// Unique in its partition.
    package var name: String
    package var document: String
    package var operationName: String?
    package var variables: [UInt8]
    package var created: Date
}
