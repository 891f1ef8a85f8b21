public import LarderGraphQL
import LarderRecords

extension Partition {
    /// The newest answer to an operation, whenever anything changes it.
    ///
    /// It depends on the fields it is made of, and not on having been fetched: it may be watched before its data
    /// exists, and after a fetch that failed. A slow reader gets the newest state only, and equal states are not given
    /// twice. A watcher whose answer another write made partial says so; it does not fetch again.
    ///
    /// The sequence ends when the partition is parked or the store closed; letting go of it and of its iterators ends
    /// the watcher, and the fetch that it began.
    ///
    /// - Parameters:
    ///   - operation: What is asked, with its variables.
    ///   - policy: What to fetch at first: nothing for `.cacheOnly`; for `.cacheFirst` what the cache does not know.
    ///   - options: How the server is asked, where it is.
    public func watch(
        _ operation: GraphQLOperation, policy: FetchPolicy = .cacheOnly, options: FetchOptions = FetchOptions()
    ) throws(LarderError) -> Watch {
        try core.requireCurrent()
        let bound = try core.operations.bound(query: operation)
        let fetch: @Sendable () async throws(LarderError) -> Void = { () async throws(LarderError) in
            _ = try await self.fetch(operation, policy: .networkOnly, options: options)
        }
        let first: Watcher.FirstFetch =
            switch policy {
            case .cacheOnly: .nothing
            case .cacheFirst: .whatIsMissing
            case .networkOnly, .networkFirst, .cacheAndNetwork: .everything
            }
        return watch(bound, .query, first, fetch)
    }

    /// The newest of what a fragment asks of one object, whenever anything changes it.
    ///
    /// - Parameters:
    ///   - key: The object's cache key, such as `Movie:12345`; the object need not be there yet.
    ///   - fragment: What is asked of the object.
    /// - Throws: `.syntax`, `.operation` or `.variables` for what cannot be asked.
    public func watch(_ key: CacheKey, _ fragment: GraphQLFragment) throws(LarderError) -> Watch {
        try core.requireCurrent()
        return watch(try core.operations.bound(fragment), .object(key: key.text), .nothing, nil)
    }

    /// Whether an object is there, and which of its fields have changed, whenever anything of it changes.
    ///
    /// A slow reader gets the newest state only, with the fields that have changed since the one it took last.
    public func watch(_ key: CacheKey) -> AsyncStream<ObjectState> {
        core.followOthers()
        return AsyncStream(bufferingPolicy: .bufferingNewest(1)) { continuation in
            let watcher = ObjectWatcher(core, key.text, continuation)
            continuation.onTermination = { _ in watcher.end() }
            watcher.start()
        }
    }

    private func watch(
        _ operation: BoundOperation, _ root: RecordCache.Root, _ first: Watcher.FirstFetch,
        _ fetch: (@Sendable () async throws(LarderError) -> Void)?
    ) -> Watch {
        // What another process stores is watched too, also where nothing was ever queued.
        core.followOthers()
        let (states, continuation) = AsyncStream.makeStream(
            of: WatchState.self, bufferingPolicy: .bufferingNewest(1))
        // A fetch is told of in the states of the stream that asked for it.
        guard let fetch, first != .nothing else {
            core.watchers.shared.watch(operation, root, core, continuation)
            return Watch(states: states, watcher: nil)
        }
        let watcher = Watcher(core, operation, root, fetch: fetch)
        _ = watcher.add(continuation)
        watcher.start(first)
        return Watch(states: states, watcher: watcher)
    }
}
