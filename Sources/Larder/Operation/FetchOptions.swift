/// What one fetch is to do.
public struct FetchOptions: Sendable, Hashable {
    /// What becomes of an answer that has errors.
    public var errorPolicy: ErrorPolicy
    /// How long the server may take, the whole exchange included.
    public var timeout: Duration
    /// Headers of this request only.
    public var headers: [GraphQLRequest.Header]

    /// Thirty seconds, no headers of its own, and errors are thrown, unless said otherwise.
    public init(
        errorPolicy: ErrorPolicy = .fail, timeout: Duration = .seconds(30), headers: [GraphQLRequest.Header] = []
    ) {
        self.errorPolicy = errorPolicy
        self.timeout = timeout
        self.headers = headers
    }
}
