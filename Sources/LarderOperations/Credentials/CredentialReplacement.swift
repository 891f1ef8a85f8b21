/// Sealed credentials that are to take the place of a partition's present ones, and what becomes of its session.
package struct CredentialReplacement: Sendable {
    /// The partition's name.
    package var partition: String
    package var credentials: [SealedCredential]
    /// What they are sealed with, which must still be the partition's key.
    package var key: StoredPartitionKey
    /// Where the key is a new one, which is stored along with them.
    package var making: CredentialTable.KeyMaking?
    /// What becomes of the session; must not have nil where nothing is expected.
    package var change: SessionChange

    package init(
        partition: String, credentials: [SealedCredential], key: StoredPartitionKey,
        making: CredentialTable.KeyMaking? = nil, session change: @escaping SessionChange
    ) {
        self.partition = partition
        self.credentials = credentials
        self.key = key
        self.making = making
        self.change = change
    }
}
