/// The states of an answer: now, and whenever anything changes it.
///
/// A slow reader gets the newest state only, and all iterators share one sequence. It ends when the partition is parked
/// or the store closed; the watcher ends when the sequence and its iterators are released.
public struct Watch: AsyncSequence, Sendable {
    let states: AsyncStream<WatchState>
    /// Nil for a watch that fetches nothing.
    let watcher: Watcher?

    /// Fetches the operation once more, unless a fetch of this watcher is under way: the button after an error. Does
    /// nothing for a watch that fetches nothing: of `.cacheOnly`, and of one object.
    public func refetch() { watcher?.refetch() }

    /// Begins to read the states.
    public func makeAsyncIterator() -> Iterator { Iterator(states: states.makeAsyncIterator()) }

    /// One reader's place in the states.
    public struct Iterator: AsyncIteratorProtocol {
        var states: AsyncStream<WatchState>.Iterator

        /// The next state; nil when the watcher has ended.
        public mutating func next() async -> WatchState? { await states.next() }

        /// As `next()`, for a reader that is an actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> WatchState? {
            await states.next(isolation: actor)
        }
    }
}
