public import LarderRecords

/// What a watcher knows at one moment.
public struct WatchState: Sendable {
    /// The newest answer; `response.missing` tells what is missing in it. Nil until anything is known.
    public var response: Response?
    /// Why the last fetch brought nothing, or the cache could not be read; the response stays.
    public var error: LarderError?
    /// Whether `error` is of reading the cache, so that the next read that succeeds ends it.
    private(set) var isErrorOfRead = false
    /// Whether a fetch that this watcher began is under way.
    public var isFetching: Bool
    /// Whether the object that is watched is known to be no more.
    public var isDeleted: Bool
    /// Whether the response is older than it may be. Nothing expires yet.
    public var isStale: Bool
    /// Whether the response shows changes that the server has not confirmed.
    public var isOptimistic: Bool

    init(
        response: Response? = nil, error: LarderError? = nil, isFetching: Bool = false, isDeleted: Bool = false
    ) {
        self.response = response
        self.error = error
        self.isFetching = isFetching
        self.isDeleted = isDeleted
        isStale = false
        isOptimistic = false
    }

    /// The data, if it is complete.
    public var complete: Response? { response.flatMap { $0.isComplete ? $0 : nil } }

    mutating func setError(_ error: LarderError?, ofRead: Bool) {
        self.error = error
        isErrorOfRead = ofRead
    }

    mutating func endFetch(_ end: Result<Void, LarderError>?) {
        guard let end else { return }
        isFetching = false
        if case .failure(let failure) = end { setError(failure, ofRead: false) } else { setError(nil, ofRead: false) }
    }

    /// Whether a reader would see no difference: errors are compared by code and message.
    func isSame(as other: WatchState) -> Bool {
        response == other.response && isFetching == other.isFetching && isDeleted == other.isDeleted
            && isOptimistic == other.isOptimistic && error?.code == other.error?.code
            && error?.message == other.error?.message
    }
}
