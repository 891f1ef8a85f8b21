import LarderGraphQL
import Synchronization

/// What all connections share: the data and the counters.
final class RecipeService: Sendable {
    private struct State {
        var kitchen: Kitchen
        var requestCount = 0
        var latency: Duration
    }

    let executor: Executor
    private let state: Mutex<State>

    init(_ configuration: RecipeServer.Configuration) throws {
        executor = Executor(schema: try SchemaIndex(parsing: recipeSchema, sourceName: "recipes"))
        let kitchen = Kitchen.generated(
            seed: configuration.seed, recipes: configuration.recipes, authors: configuration.authors
        )
        state = Mutex(State(kitchen: kitchen, latency: configuration.latency))
    }

    var requestCount: Int { state.withLock { $0.requestCount } }
    var objectCount: Int { state.withLock { $0.kitchen.objectCount } }
    var latency: Duration {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = newValue } }
    }

    func count() { state.withLock { $0.requestCount += 1 } }

    /// One operation after the other, so that each sees the data at rest.
    func execute(_ prepared: Executor.Prepared) -> Executor.Answer {
        state.withLock { executor.execute(prepared, on: &$0.kitchen) }
    }
}
