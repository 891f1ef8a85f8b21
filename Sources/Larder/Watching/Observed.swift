public import Observation

/// The newest state of a sequence, for SwiftUI and anything else that observes: of a watch, the pages of a list,
/// `MutationReceipt.changes`, `Transfer.progress` or `Session.changes`.
///
/// ```swift
/// struct RecipeList: View {
///     @State var recipes: Observed<TypedWatchState<LatestRecipes.Data>>
///
///     var body: some View {
///         List(recipes.state?.data?.recipes.items ?? [], id: \.id) { Text($0.title) }
///     }
/// }
///
/// RecipeList(recipes: Observed(try app.watch(LatestRecipes(), policy: .cacheAndNetwork)))
/// ```
///
/// It begins to read when it is made, and ends the reading when it is released.
@MainActor @Observable
public final class Observed<State: Sendable> {
    /// The newest state; nil until the first has come.
    public private(set) var state: State?
    /// Whether the sequence has ended, as a watch does when its partition is parked or the store closed. The state
    /// stays.
    public private(set) var hasEnded = false
    @ObservationIgnored private var reading: Reading?

    /// Reads the states until they end, or this object is released.
    ///
    /// - Parameter states: A sequence without errors. Nothing else should read the same one: two readers share its
    ///   states.
    public init<States: AsyncSequence & Sendable>(_ states: States)
    where States.Element == State, States.Failure == Never {
        reading = Reading(
            task: Task { [weak self] in
                var iterator = states.makeAsyncIterator()
                while let state = await iterator.next(isolation: #isolation) { self?.state = state }
                self?.hasEnded = true
            })
    }

    /// Ends a task when the last reference to it goes.
    private final class Reading: Sendable {
        let task: Task<Void, Never>

        init(task: Task<Void, Never>) { self.task = task }

        deinit { task.cancel() }
    }
}
