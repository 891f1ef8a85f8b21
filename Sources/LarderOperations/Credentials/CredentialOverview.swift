package import Foundation

/// What can be said of a partition's credentials without a key: nothing of it is secret.
package struct CredentialOverview: Sendable, Hashable {
    package struct Kind: Sendable, Hashable {
        package var kind: String
        /// The fingerprint of identity that it was issued under.
        package var identity: String
        package var created: Date
        package var updated: Date
    }

    package var partition: String
    /// The name of the partition's environment; nil where it has none.
    package var environment: String?
    /// Nil for a guest, who is not signed in.
    package var user: String?
    /// Nil where nothing is known.
    package var session: StoredSession?
    package var credentials: [Kind]
    /// The id of the program's key that the partition's is sealed with; nil where the partition has none.
    package var sealedWith: String?
    /// Oldest first.
    package var quarantined: [QuarantinedCredential]
}
