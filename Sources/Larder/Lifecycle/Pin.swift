/// An operation whose answer stays in the cache, under a name.
public struct Pin: Sendable {
    /// Unique in its partition.
    public let name: String
    public let operation: GraphQLOperation
}
