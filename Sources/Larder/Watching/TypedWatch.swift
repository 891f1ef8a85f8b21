public import LarderRecords

/// What a watcher of a typed operation knows at one moment.
public struct TypedWatchState<Data: Decodable & Sendable>: Sendable {
    /// The newest complete answer; nil while something of it is missing, or its object is deleted.
    public var data: Data?
    /// The paths of the answer that the cache does not know.
    public var missing: [ResponsePath]
    /// Why the last fetch brought nothing, or why the answer could not be read or decoded; the data stays.
    public var error: LarderError?
    /// Whether a fetch that this watcher began is under way.
    public var isFetching: Bool
    /// Whether a part of the data was older, when it was read, than the schema or the server allows.
    public var isStale: Bool
    /// Whether the data shows changes that the server has not confirmed; by field, as ``WatchState/isOptimistic``.
    public var isOptimistic: Bool
}

/// The states of a typed operation: now, and whenever anything changes the answer.
///
/// A slow reader gets the newest state only. The sequence ends when the partition is parked or the store closed; the
/// watcher ends when the sequence is released.
public struct TypedWatch<Data: Decodable & Sendable>: AsyncSequence, Sendable {
    let watch: Watch

    /// Fetches the operation once more, unless a fetch of this watcher is under way: the button after an error.
    public func refetch() { watch.refetch() }

    /// One reader's place in the states.
    public struct Iterator: AsyncIteratorProtocol {
        var states: Watch.Iterator
        var data: Data?
        var response: Response?

        /// The next state; nil when the watcher has ended. Decoding an answer costs O(its size), and an answer that is
        /// the same as before is not decoded again.
        public mutating func next() async -> TypedWatchState<Data>? { await next(isolation: nil) }

        /// As `next()`, for a reader that is an actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> TypedWatchState<Data>? {
            guard let state = await states.next(isolation: actor) else { return nil }
            var error = state.error
            if let complete = state.complete {
                if complete != response {
                    do {
                        data = try complete.decode(Data.self)
                        response = complete
                    } catch let failure {
                        error = LarderError(
                            .data, "The answer does not fit \(Data.self)", response: complete, cause: failure)
                    }
                }
            } else if state.response != nil || state.isDeleted {
                // Else nothing is known yet, or it cannot be read, and the data stays.
                (data, response) = (nil, nil)
            }
            return TypedWatchState(
                data: data, missing: state.response?.missing ?? [], error: error, isFetching: state.isFetching,
                isStale: state.isStale, isOptimistic: state.isOptimistic)
        }
    }

    /// Begins to read the states.
    public func makeAsyncIterator() -> Iterator { Iterator(states: watch.makeAsyncIterator()) }
}

extension Partition {
    /// As `watch`, in the program's own type.
    ///
    /// ```swift
    /// for await state in try app.watch(LatestRecipes(), policy: .cacheAndNetwork) {
    ///     show(state.data?.recipes.items ?? [], isOptimistic: state.isOptimistic)
    ///     if let error = state.error { report(error) }
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - operation: What is asked, with its variables.
    ///   - policy: What to fetch at first: nothing for `.cacheOnly`; for `.cacheFirst` what the cache does not know.
    ///   - options: How the server is asked, where it is.
    /// - Throws: `.syntax`, `.operation` or `.variables` for an operation that cannot be asked; `.parked`.
    public func watch<Typed: TypedOperation>(
        _ operation: Typed, policy: FetchPolicy = .cacheOnly, options: FetchOptions = FetchOptions()
    ) throws(LarderError) -> TypedWatch<Typed.Data> {
        TypedWatch(watch: try watch(operation.operation, policy: policy, options: options))
    }
}
