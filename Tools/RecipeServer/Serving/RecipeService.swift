import LarderGraphQL
import Synchronization

/// What all connections share: the data and the counters.
final class RecipeService: Sendable {
    private struct State {
        var kitchen: Kitchen
        var requestCount = 0
        var mutationCount = 0
        var effectCount = 0
        /// What was answered to the mutations that came with a key and took effect, by their keys.
        var answered: [String: Executor.Answer] = [:]
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
    var mutationCount: Int { state.withLock { $0.mutationCount } }
    var effectCount: Int { state.withLock { $0.effectCount } }
    var objectCount: Int { state.withLock { $0.kitchen.objectCount } }
    var latency: Duration {
        get { state.withLock { $0.latency } }
        set { state.withLock { $0.latency = newValue } }
    }

    func count() { state.withLock { $0.requestCount += 1 } }

    /// One operation after the other, so that each sees the data at rest.
    ///
    /// - Parameter key: By which a mutation that took effect is known again; its repeat is answered as it was, and has
    ///   no effect. One that was refused may come again.
    func execute(_ prepared: Executor.Prepared, idempotencyKey key: String?) -> Executor.Answer {
        state.withLock { state in
            guard prepared.operation.kind == .mutation else { return executor.execute(prepared, on: &state.kitchen) }
            state.mutationCount += 1
            if let key, let answer = state.answered[key] { return answer }
            let answer = executor.execute(prepared, on: &state.kitchen)
            guard answer.errors.isEmpty else { return answer }
            state.effectCount += 1
            if let key { state.answered[key] = answer }
            return answer
        }
    }
}
