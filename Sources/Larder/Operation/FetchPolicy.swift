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
