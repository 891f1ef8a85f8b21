/// Where an answer may come from.
public enum FetchPolicy: String, Sendable, Hashable, CaseIterable {
    /// From the cache if it knows everything, otherwise from the server.
    case cacheFirst
    /// From the server; from the cache if no answer can be had of it and the cache knows everything.
    case networkFirst
    /// From the server. The cache takes in the answer.
    case networkOnly
    /// From the cache.
    case cacheOnly
    /// From the cache if it knows everything, and then from the server.
    case cacheAndNetwork
}

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

/// What becomes of an answer that has errors beside its data, or instead of it.
public enum ErrorPolicy: String, Sendable, Hashable, CaseIterable {
    /// It is thrown, as `.serverErrors`; the error has the data with it.
    case fail
    /// It is returned with its errors. One without data is thrown.
    case partial
    /// It is returned without its errors. One without data is thrown.
    case ignore
}
