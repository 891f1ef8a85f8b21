import Foundation
import Larder
import LarderOperations
import Synchronization

/// What a program does with a store: opens it, lists what is in it, and has its runners work.
final class HostileUse: Sendable {
    struct Refusal: Sendable {
        var what: String
        var code: String?
        var error: String

        var isTyped: Bool { code != nil }
        /// Whether it says that something stored is not as it must be.
        var isDamage: Bool { ["operations.damaged", "operations.damagedRow", "operations.storage"].contains(code) }
    }

    private let store: URL
    private let files: URL
    private let found = Mutex<[Refusal]>([])
    private let server = HostileServer()
    private let storage = HostileStorage()

    init(store: URL, files: URL) {
        self.store = store
        self.files = files
    }

    var refusals: [Refusal] { found.withLock { $0 } }
    /// Whether the mutation and the upload were carried out that have nothing to do with any other.
    var isControlDone: Bool { wasSent() && wasUploaded() }
    @Sendable private func wasSent() -> Bool { server.sent.contains("control") }
    @Sendable private func wasUploaded() -> Bool { storage.keys.contains("control") }

    func run() async {
        await attempt("opening") {
            let larder = try Store.open(at: self.store, schema: try Schema(parsing: Mutations.schema))
            defer { try? larder.close() }
            await self.look(larder)
            await self.attempt("working") {
                let app = try larder.partition(server: self.server)
                await self.attempt("listing mutations") { _ = try app.mutations() }
                await self.attempt("listing transfers") { _ = try app.transfers.list() }
                await self.attempt("asking for watchers") { _ = try app.watcherNames() }
                await self.attempt("asking for pins") { _ = try app.pins() }
                await self.attempt("collecting garbage") { _ = try await app.collectGarbage() }
                await self.attempt("asking whether all was sent") { _ = try app.hasUnsentMutations() }
                await self.attempt("reading") {
                    _ = try app.read(GraphQLOperation("{ recipe(id: 1) { id } }"), allowsPartial: true)
                }
                await self.work(app)
                await self.attempt("listing mutations") { for one in try app.mutations() { _ = "\(one)" } }
                await self.attempt("listing transfers") { for one in try app.transfers.list() { _ = "\(one)" } }
            }
        }
    }

    /// At the tables, as the tools do.
    private func look(_ larder: Store) async {
        await attempt("opening the tables") {
            let database = try OperationsDatabase(folder: self.store)
            defer { try? database.close() }
            await self.attempt("listing environments") {
                _ = (try database.environments.list(), try database.environments.partitions())
                _ = try database.environments.current()
            }
            await self.attempt("listing credentials") {
                _ = (try database.credentials.overview(), try database.credentials.keys())
            }
            await self.attempt("listing watchers") { _ = try database.watchers.list() }
            await self.attempt("asking for the history") { _ = try database.schemaStatus() }
            await self.attempt("counting") { _ = try database.mutations.counts() }
            for transfer in (try? database.transfers.list()) ?? [] {
                await self.attempt("reading parts") { _ = try database.transfers.parts(of: transfer.id) }
            }
        }
    }

    private func work(_ app: Partition) async {
        var sending = MutationRunner.Options()
        sending.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
        var moving = TransferRunner.Options()
        moving.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(2))
        moving.timeout = .milliseconds(100)
        moving.maximumFaults = 2
        let mutations = MutationRunner(app, options: sending)
        let transfers = TransferRunner(app, storage: storage, options: moving)
        await attempt("carrying out transfers") { try await self.within(wasUploaded) { try await transfers.drain() } }
        await attempt("sending") { try await self.within(wasSent) { try await mutations.drain() } }
    }

    /// Some wait for a time that never comes.
    private func within(
        _ isEnough: @escaping @Sendable () -> Bool, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let work = Task { try await body() }
        let deadline = SuspendingClock.now + .seconds(2)
        let end = Task {
            // As soon as that is done which must be, but not before all had a chance.
            try await Task.sleep(until: .now + .milliseconds(150), clock: .suspending)
            while .now < deadline, !isEnough() { try await Task.sleep(for: .milliseconds(20)) }
            work.cancel()
        }
        defer { end.cancel() }
        do { try await work.value } catch is CancellationError {}
    }

    private func attempt(_ what: String, _ body: () async throws -> Void) async {
        do { try await body() } catch {
            let code = (error as? LarderError)?.code.rawValue ?? (error as? OperationsError)?.code.rawValue
            found.withLock { $0.append(Refusal(what: what, code: code, error: "\(error)")) }
        }
    }
}

/// Answers each mutation, and notes which.
private final class HostileServer: GraphQLTransport {
    let idempotency: Idempotency? = .header(name: "Idempotency-Key")
    private let recipes = Mutex<Set<String>>([])

    var sent: Set<String> { recipes.withLock { $0 } }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        guard case .object(let variables)? = try? Value(json: request.variables),
            case .string(let recipe)? = variables["recipe"]
        else { throw TransportError(.unusableRequest, "the request has no recipe") }
        recipes.withLock { _ = $0.insert(recipe) }
        let answer = #"{"data":{"rate":{"__typename":"Recipe","id":"1","stars":5}}}"#
        return GraphQLAnswer(body: Array(answer.utf8), status: 200)
    }
}
