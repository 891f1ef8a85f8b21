package import Foundation

/// Which partition is the current one.
package struct CurrentPartition: Sendable, Hashable {
    /// Nil where a caller said that there is to be none.
    package var partition: StoredPartition?
    /// Counts the switches.
    package var number: Int64
    package var switched: Date
}
