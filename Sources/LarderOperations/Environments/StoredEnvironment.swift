package import Foundation

/// An environment as the store knows it.
package struct StoredEnvironment: Sendable, Hashable {
    package var name: String
    /// What locates the backend, as JSON. Nothing secret.
    package var definition: [UInt8]
    package var fingerprints: Fingerprints
    /// Whether destructive commands want the name repeated.
    package var isProtected: Bool
    package var created: Date
    package var updated: Date

    package init(
        name: String, definition: [UInt8], fingerprints: Fingerprints, isProtected: Bool, created: Date, updated: Date
    ) {
        self.name = name
        self.definition = definition
        self.fingerprints = fingerprints
        self.isProtected = isProtected
        self.created = created
        self.updated = updated
    }
}
