public import LarderRecords

/// What a watcher of a whole list knows at one moment.
public struct PagesState: Sendable {
    /// The loaded pages, in order; each object is on one of them.
    public var pages: [Page]
    /// Whether the last page says that none follows.
    public var isComplete: Bool
    /// Whether a page shows changes that the server has not confirmed; by field, as ``WatchState/isOptimistic``.
    public var isOptimistic: Bool
    /// Why the list goes no further than its pages: `.paging`, or what reading the cache throws.
    public var error: LarderError?

    /// The objects of all pages.
    public var objects: [ResponseValue] { pages.flatMap(\.objects) }
}

/// The states of a whole list: now, and whenever an object on a page changes, and pages come and go.
///
/// A slow reader gets the newest state only. The sequence ends when the partition is parked or the store closed, and
/// watching ends when the sequence and its iterators are released.
public struct PagesWatch: AsyncSequence, Sendable {
    /// What is shown of a list that is being loaded.
    public enum Update: String, Sendable, Hashable, CaseIterable {
        /// Each page as it comes.
        case progressively
        /// Lists that are whole: the old one stays until the new one is.
        case whenComplete
    }

    let states: AsyncStream<PagesState>

    /// Begins to read the states.
    public func makeAsyncIterator() -> Iterator { Iterator(states: states.makeAsyncIterator()) }

    /// One reader's place in the states.
    public struct Iterator: AsyncIteratorProtocol {
        var states: AsyncStream<PagesState>.Iterator

        /// The next state; nil when watching has ended.
        public mutating func next() async -> PagesState? { await states.next() }

        /// As `next()`, for a reader that is an actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> PagesState? {
            await states.next(isolation: actor)
        }
    }
}

extension Pages {
    /// The list as it is loaded, whenever anything changes it, in whatever process. It asks no server.
    ///
    /// A change of an object reads its page again, and no other; a page that comes is read once.
    public func watch(_ update: PagesWatch.Update = .progressively) throws(LarderError) -> PagesWatch {
        try partition.core.requireCurrent()
        // What another process stores is watched too, also where nothing was ever queued.
        partition.core.followOthers()
        let (states, continuation) = AsyncStream.makeStream(of: PagesState.self, bufferingPolicy: .bufferingNewest(1))
        let watcher = PagesWatcher(list, holding, update, continuation)
        continuation.onTermination = { _ in watcher.end() }
        watcher.start()
        return PagesWatch(states: states)
    }
}
