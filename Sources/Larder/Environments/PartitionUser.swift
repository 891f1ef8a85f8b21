/// The user who works with an environment.
public enum PartitionUser: Sendable, Hashable {
    /// A user who is not signed in.
    case guest
    /// A user, by an id that the environment's identity provider never gives to another user. It is not empty.
    case user(String)

    /// Nil for a guest.
    public var id: String? {
        if case .user(let id) = self { id } else { nil }
    }
}

extension PartitionUser: CustomStringConvertible {
    /// `guest`, or the user's id.
    public var description: String { id ?? "guest" }
}
