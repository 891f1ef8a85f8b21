/// What a collection of garbage keeps beside what the root of all queries leads to and what optimistic layers touch.
package protocol CollectionRoots: Sendable {
    /// What is needed. Called before each slice of the work.
    ///
    /// - Parameter fromStart: Whether everything is asked for. Otherwise what was told before may be left out.
    func needed(fromStart: Bool) throws -> [Dependencies]

    /// What watchers of this process have come to need since this or `needed` was called last. Called on the writer's
    /// thread: it must not wait.
    func newlyWatched() -> [Dependencies]
}
