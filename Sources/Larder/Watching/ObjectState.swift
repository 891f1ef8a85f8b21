public import LarderGraphQL

/// What is known of an object at one moment.
public struct ObjectState: Sendable, Hashable {
    /// Whether the object is there.
    public enum Presence: String, Sendable, Hashable, CaseIterable {
        /// Something is known of it.
        case present
        /// Known to be no more.
        case deleted
        /// Never seen, or evicted.
        case absent
    }

    /// The object's cache key.
    public var key: CacheKey
    /// Whether it is there.
    public var presence: Presence
    /// The fields that changed since the state before, as they are stored: `name`, or `name({"argument":value})`. Empty
    /// at first, and where the object came, went or became another.
    public var changedFields: [FieldKey]
}
