import Crypto
import LarderOperations

/// The key of a partition's credentials, while it is in memory. It never prints itself.
struct PartitionKey: Sendable {
    let key: SymmetricKey
    /// As it is stored.
    let stored: StoredPartitionKey

    init(_ key: SymmetricKey, stored: StoredPartitionKey) {
        self.key = key
        self.stored = stored
    }
}

extension PartitionKey: Discreet {
    var description: String { "key of partition \(stored.partition)" }
}
