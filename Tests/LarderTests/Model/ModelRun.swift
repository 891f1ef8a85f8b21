import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// A store, a partition and a runner, and beside them the model to which the same is done.
final class ModelRun {
    static let schema = """
        type Recipe { id: ID! title: String stars: Int }
        type Query @fieldPolicy(forField: "recipe", keyArgs: ["id"]) { recipe(id: ID!): Recipe recipes: [Recipe!] }
        type Mutation {
          add(tag: Int!, title: String!): Recipe rate(tag: Int!, recipe: ID!, stars: Int!): Recipe
          unlist(tag: Int!, recipe: ID!): Recipe
        }
        """
    static let list = GraphQLOperation("query List { recipes { id title stars } }")
    static let card = GraphQLFragment("fragment Card on Recipe { title stars }")

    let folder: URL
    let schema: Schema
    var random: SeededNumbers
    var model: ModelClient
    var server: ModelServer
    let gate: GatedServer
    let clock: TestClock
    let connectivity = SwitchedConnectivity()
    let truths = ExpectedEffects()
    let end = ProcessEnd()
    var temporaryIDs: [TemporaryObjectID] = []
    var mutationCount = 0

    var store: Store
    var app: Partition
    var runner: (MutationRunner, Task<Void, any Error>)?
    var watches: [String: LatestState] = [:]

    init(_ folder: URL, seed: UInt64) throws {
        self.folder = folder
        schema = try Schema(parsing: Self.schema)
        var random = SeededNumbers(seed: seed)
        let tellsRepeats = Bool.random(using: &random)
        self.random = random
        server = ModelServer(tellsRepeats: tellsRepeats)
        gate = GatedServer(tellsRepeats: tellsRepeats)
        // A whole number of seconds: times are stored in milliseconds.
        clock = TestClock()
        model = ModelClient(tellsRepeats: tellsRepeats, now: clock.now)
        (store, app) = try Self.open(folder, schema, clock, gate)
        try watchAll()
    }

    static func open(
        _ folder: URL, _ schema: Schema, _ clock: TestClock, _ gate: GatedServer
    ) throws -> (Store, Partition) {
        var options = Store.Options()
        options.now = { clock.now }
        options.silence()
        // What no notification tells of is not found.
        options.longestWait = .seconds(3600)
        let store = try Store.open(at: folder, schema: schema, options: options)
        return (store, try store.partition(server: gate))
    }

    func chance(_ one: Int) -> Bool { Int.random(in: 0..<one, using: &random) == 0 }

    // MARK: The runner

    func startRunner(untilEmpty: Bool = false) {
        guard runner == nil else { return }
        gate.mend()
        truths.set(Dictionary(uniqueKeysWithValues: model.inFlight.map { ($0.id, truth($0).map($0.change.data)) }))
        let runner = MutationRunner(app, options: options)
        self.runner = (runner, Task { try await untilEmpty ? runner.drain() : runner.run() })
        model.begin { truth($0) }
    }

    /// What a check would find out.
    func truth(_ item: ModelMutation) -> ModelEffect? {
        server.effects(of: item.change.tag).last.map { server.answer(item.change.kind, $0.recipe) }
    }

    private var options: MutationRunner.Options {
        var options = MutationRunner.Options()
        options.connectivity = connectivity
        options.maximumFaults = ModelClient.Runner.maximumFaults
        options.backoff = Backoff(
            first: .seconds(ModelClient.Runner.firstPause), cap: .seconds(ModelClient.Runner.longestPause))
        options.random = { 1 }
        options.resolvers = Self.resolvers
        options.checks = truths.checks
        let (store, end) = (store, end)
        // Nothing gets to the disk after this, as if the process were killed.
        options.reached = { step in
            end.reach(step) { do { try store.close() } catch { Issue.record("closing failed: \(error)") } }
        }
        return options
    }

    private static let resolvers: [String: @Sendable (MutationInQuestion) async throws -> ConflictResolution] = [
        "keep": { _ in .keepServers },
        "aside": { _ in .setAside },
        "fail": { _ in throw Silence() },
        "nonsense": { _ in .retry(variables: ["stars": .float(.nan)]) },
        "change": { question in
            var variables = question.operation.variables
            if case .int(let stars)? = variables["stars"] { variables["stars"] = .int(stars + 100) }
            return .retry(variables: variables)
        },
    ]
    static let resolverNames = ["keep", "aside", "fail", "nonsense", "change", "change", "nobody"]
    static let checkNames = ["truth", "truth", "truth", "silent truth", "mute", "nonsense", "nobody"]
}

/// At which step of a mutation's way the process seems to end.
final class ProcessEnd: Sendable {
    private enum State: Equatable {
        case none
        case at(MutationRunner.KillPoint)
        case ending
    }

    private let state = Mutex(State.none)

    /// Whether the process is yet to end, or is ending: what a runner writes now could still get to the disk.
    var isSet: Bool { state.withLock { $0 != .none } }
    func set(_ step: MutationRunner.KillPoint) { state.withLock { $0 = .at(step) } }

    /// Ends the process where this is the step; another that comes to it meanwhile does not.
    func reach(_ step: MutationRunner.KillPoint, ending: () -> Void) {
        let isReached = state.withLock { state in
            guard state == .at(step) else { return false }
            state = .ending
            return true
        }
        guard isReached else { return }
        ending()
        state.withLock { $0 = .none }
    }
}

/// What checks find out of mutations that were sent: the data of the answer, or nil of those that had no effect.
final class ExpectedEffects: Sendable {
    private let data = Mutex<[MutationID: Value?]>([:])

    func set(_ new: [MutationID: Value?]) { data.withLock { $0 = new } }

    var checks: [String: @Sendable (MutationInQuestion) async throws -> CheckedOutcome] {
        let of: @Sendable (MutationID) -> Value? = { [self] id in data.withLock { $0[id] ?? nil } }
        return [
            "truth": { question in of(question.id).map { .tookEffect(response: $0) } ?? .hadNoEffect },
            "silent truth": { question in of(question.id).map { _ in .tookEffect(response: nil) } ?? .hadNoEffect },
            "mute": { _ in .unknown },
            "nonsense": { _ in .tookEffect(response: .float(.nan)) },
        ]
    }
}

/// What a watcher was told last.
final class LatestState: Sendable {
    private let state = Mutex<WatchState?>(nil)
    private let task: Mutex<Task<Void, Never>?> = Mutex(nil)

    init(_ states: Watch) {
        let new = Task { [weak self] in
            for await state in states {
                guard let self else { return }
                self.state.withLock { $0 = state }
            }
        }
        task.withLock { $0 = new }
    }

    deinit { task.withLock { $0 }?.cancel() }

    var response: Response? { state.withLock { $0?.response } }
}
