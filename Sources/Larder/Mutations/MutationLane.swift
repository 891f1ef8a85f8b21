public import LarderGraphQL

/// Mutations of one lane are sent in the order in which they were queued. Lanes run side by side, so what their
/// mutations change must be disjoint.
public struct MutationLane: Sendable, Hashable, ExpressibleByStringLiteral {
    let name: String

    /// A lane of the program's own.
    public init(_ name: String) { self.name = name }
    public init(stringLiteral name: String) { self.name = name }

    /// The one lane in which everything goes that says nothing else.
    public static let main = MutationLane("")

    /// The lane of one object, which its changes share: different objects do not wait for each other.
    ///
    /// - Parameter key: The object's cache key. It may hold a temporary id; when the server has given the real one, the
    ///   lane is the real object's.
    public static func entity(_ key: CacheKey) -> MutationLane { MutationLane(key.text) }
}
