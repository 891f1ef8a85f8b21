/// What a server sent back for one `GraphQLRequest`.
public struct GraphQLAnswer: Sendable, Hashable {
    /// The body as received, already decompressed: JSON in UTF-8 if the server keeps its word.
    public var body: [UInt8]
    /// The HTTP status; nil where the transport has none.
    public var status: Int?
    /// How long the server asked to be left alone, from `Retry-After`.
    public var retryAfter: Duration?

    /// - Parameter body: JSON in UTF-8, already decompressed.
    public init(body: [UInt8], status: Int? = nil, retryAfter: Duration? = nil) {
        self.body = body
        self.status = status
        self.retryAfter = retryAfter
    }
}
