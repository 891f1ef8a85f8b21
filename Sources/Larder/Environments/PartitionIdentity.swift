import LarderOperations

/// The environment and the user that a partition belongs to.
public struct PartitionIdentity: Sendable, Hashable {
    /// The partition's own name, which no other partition ever has; its cache lies in a folder of this name.
    public let name: String
    /// Nil where the program names no environment.
    public let environment: String?
    /// The user who works with the environment.
    public let user: PartitionUser

    /// An identity as a store would give it; tests make them.
    package init(name: String, environment: String?, user: PartitionUser) {
        self.name = name
        self.environment = environment
        self.user = user
    }
}

extension PartitionIdentity {
    init(_ stored: StoredPartition) {
        name = stored.name
        environment = stored.environment
        user = stored.user.map { .user($0) } ?? .guest
    }
}

extension PartitionIdentity: CustomStringConvertible {
    /// Environment and user.
    public var description: String { environment.map { "\($0), \(user)" } ?? "no environment" }
}
