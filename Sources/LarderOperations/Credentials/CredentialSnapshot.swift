/// What a partition has of credentials, at one moment.
package struct CredentialSnapshot: Sendable, Hashable {
    /// Whether there is such a partition.
    package var isKnown = false
    package var key: StoredPartitionKey?
    /// By kind.
    package var credentials: [SealedCredential] = []
    package var session: StoredSession?

    package init() {}
}
