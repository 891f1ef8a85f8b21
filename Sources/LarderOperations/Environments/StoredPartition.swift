package import Foundation

/// A partition: one environment's, and one user's of it.
package struct StoredPartition: Sendable, Hashable {
    /// Names its cache's folder and stamps its cache. No other partition ever has the same name.
    package var name: String
    /// Nil for the partition of a store whose program names no environment.
    package var environment: String?
    /// Nil for a guest, who is not signed in.
    package var user: String?
    /// Nil where it was made before this was kept.
    package var created: Date?
    /// When it was last made the current one; after all that were before, whatever the clock said.
    package var used: Date?

    package init(name: String, environment: String?, user: String?, created: Date? = nil, used: Date? = nil) {
        self.name = name
        self.environment = environment
        self.user = user
        self.created = created
        self.used = used
    }
}

/// Which partition is the current one.
package struct CurrentPartition: Sendable, Hashable {
    /// Nil where a caller said that there is to be none.
    package var partition: StoredPartition?
    /// Counts the switches.
    package var number: Int64
    package var switched: Date
}
