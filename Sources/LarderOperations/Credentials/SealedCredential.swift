package import Foundation

/// A credential as it lies in the database: nothing of it can be read without the partition's key.
package struct SealedCredential: Sendable, Hashable {
    /// Which of a partition's credentials it is.
    package var kind: String
    /// The fingerprint of identity that it was issued under.
    package var identity: String
    package var sealed: [UInt8]
    package var created: Date
    package var updated: Date

    package init(kind: String, identity: String, sealed: [UInt8], created: Date, updated: Date) {
        self.kind = kind
        self.identity = identity
        self.sealed = sealed
        self.created = created
        self.updated = updated
    }
}
