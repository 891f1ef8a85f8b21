public import LarderRecords

/// What a watcher knows at one moment.
public struct WatchState: Sendable {
    /// The newest answer; `response.missing` tells what is missing in it. Nil until anything is known, where the object
    /// is deleted, and where the cache cannot be read and the program no longer holds the answer before.
    public var response: Response?
    /// Why the last fetch brought nothing, which leaves the response as it is, or why the cache could not be read.
    public var error: LarderError?
    /// Whether `error` is of reading the cache, so that the next read that succeeds ends it.
    private(set) var isErrorOfRead = false
    /// Whether a fetch that this watcher began is under way.
    public var isFetching: Bool
    /// Whether the object that is watched is known to be no more.
    public var isDeleted: Bool
    /// Whether a part of the response was older, when it was read, than the schema or the server allows. It is read
    /// again after a fetch and whenever something changes it, and not because time passes.
    public var isStale: Bool { response?.isExpired ?? false }
    /// Whether the response shows changes that the server has not confirmed. It is false where queued mutations change
    /// only fields that the response does not have.
    public var isOptimistic: Bool

    init(
        response: Response? = nil, error: LarderError? = nil, isFetching: Bool = false, isDeleted: Bool = false
    ) {
        self.response = response
        self.error = error
        self.isFetching = isFetching
        self.isDeleted = isDeleted
        isOptimistic = false
    }

    /// The data, if it is complete.
    public var complete: Response? { response.flatMap { $0.isComplete ? $0 : nil } }

    mutating func setError(_ error: LarderError?, ofRead: Bool) {
        self.error = error
        isErrorOfRead = ofRead
    }

    /// - Parameter isFetching: Whether another fetch has begun since.
    mutating func endFetch(_ end: Result<Void, LarderError>?, isFetching: Bool) {
        guard let end else { return }
        self.isFetching = isFetching
        if case .failure(let failure) = end { setError(failure, ofRead: false) } else { setError(nil, ofRead: false) }
    }

    /// What tells this state from others.
    ///
    /// - Parameter digest: The response's.
    func mark(_ digest: UInt64?) -> Mark {
        Mark(
            response: digest, isFetching: isFetching, isDeleted: isDeleted, isOptimistic: isOptimistic,
            isStale: isStale, errorCode: error?.code, errorMessage: error?.message)
    }

    /// What a reader would see a difference in: errors are compared by code and message.
    struct Mark: Equatable {
        let response: UInt64?
        let isFetching: Bool
        let isDeleted: Bool
        let isOptimistic: Bool
        let isStale: Bool
        let errorCode: LarderError.Code?
        let errorMessage: String?
    }
}
