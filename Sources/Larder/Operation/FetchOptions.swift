import LarderRecords

/// Where an answer may come from.
public enum FetchPolicy: String, Sendable, Hashable, CaseIterable {
    /// From the cache if it knows everything and nothing of it is too old, otherwise from the server.
    case cacheFirst
    /// From the server; from the cache if no answer can be had of it and the cache knows everything. Errors are an answer
    /// unless the status is 401, 429 or 5xx.
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
    /// How old the oldest part of an answer from the cache may be, in place of what the schema and the server say; an
    /// answer of which that is not known is older. Zero takes none from the cache.
    public var maxAge: Duration?
    /// Whether an answer from the cache is taken that is older than it may be; with `.cacheFirst` the server is asked
    /// for another in the background. Otherwise it is as if the cache did not have it.
    public var staleAllowed: Bool

    /// Thirty seconds, no headers of its own, and errors are thrown, unless said otherwise; answers of the cache are as
    /// old as the schema and the server allow.
    public init(
        errorPolicy: ErrorPolicy = .fail, timeout: Duration = .seconds(30), headers: [GraphQLRequest.Header] = [],
        maxAge: Duration? = nil, staleAllowed: Bool = false
    ) {
        self.errorPolicy = errorPolicy
        self.timeout = timeout
        self.headers = headers
        self.maxAge = maxAge
        self.staleAllowed = staleAllowed
    }

    /// Whether an answer from the cache is no older than it may be.
    func isFresh(_ response: Response) -> Bool {
        guard let maxAge else { return !response.isExpired }
        return response.age.map { $0 < maxAge } ?? false
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
