/// What a server sent back for one `GraphQLRequest`.
public struct GraphQLAnswer: Sendable, Hashable {
    /// The body as received, already decompressed: JSON in UTF-8 if the server keeps its word.
    public var body: [UInt8]
    /// The HTTP status; nil where the transport has none.
    public var status: Int?
    /// How long the server asked to be left alone, from `Retry-After`.
    public var retryAfter: Duration?
    /// How long ago the server made the answer, where a cache before it says so: HTTP's `Age`.
    public var age: Duration?
    /// For how long the answer may be used, from when it was made: `max-age` of HTTP's `Cache-Control`. It is kept with
    /// the fields of the query's root.
    public var maxAge: Duration?

    /// The bytes of a body that transports take unless told otherwise. Storing one takes up to sixteen times as much
    /// memory.
    #if os(Linux) || os(macOS)
    package static let defaultMaximumSize = 64 << 20
    #else
    package static let defaultMaximumSize = 8 << 20
    #endif

    /// - Parameters:
    ///   - body: JSON in UTF-8, already decompressed.
    ///   - status: The status of HTTP.
    ///   - retryAfter: How long the server asks to wait.
    ///   - age: How old the answer was when it arrived.
    ///   - maxAge: How old the answer may become.
    public init(
        body: [UInt8], status: Int? = nil, retryAfter: Duration? = nil, age: Duration? = nil, maxAge: Duration? = nil
    ) {
        self.body = body
        self.status = status
        self.retryAfter = retryAfter
        self.age = age
        self.maxAge = maxAge
    }
}
