import Foundation
public import Larder
import Synchronization

/// A GraphQL server in the same process that answers as a test says, and notes what it was asked and what took effect.
///
/// ```swift
/// let server = ScriptedServer { request in #"{"data":{"recipe":{"__typename":"Recipe","id":"7","title":"Soup"}}}"# }
/// let server = ScriptedServer(schema: schema)   // data that fit the schema, made up
/// server.isReachable = false                    // from now on the network is away
/// ```
public final class ScriptedServer: GraphQLTransport {
    package typealias Script = @Sendable (_ number: Int, _ request: GraphQLRequest) async throws -> GraphQLAnswer
    package typealias ResultScript =
        @Sendable (_ number: Int, _ request: GraphQLRequest) async -> Result<GraphQLAnswer, TransportError>

    private struct Seen {
        var requests: [GraphQLRequest] = []
        var deadlines: [SuspendingClock.Instant] = []
        var searches = 0
        var effects: [String] = []
        var keys: Set<String> = []
        var isReachable = true
    }

    /// How the server tells a repeat; nil where it cannot.
    public let idempotency: Idempotency?
    /// The statuses by which it refuses before it does anything.
    public let refusals: ServerRefusals
    private let seen = Mutex(Seen())
    private let script: @Sendable (ScriptedServer, Int, GraphQLRequest) async throws -> GraphQLAnswer
    /// Nil where queries are counted and answered like mutations.
    private let search: Script?

    /// - Parameters:
    ///   - search: The answer to queries, by which a runner looks for the server; they are counted for themselves. Nil
    ///     where they go the script's way.
    ///   - script: The answer to the request of a number, from 0. An error that is no `TransportError` says that the
    ///     server is away.
    package init(
        _ idempotency: Idempotency? = nil, refusals: ServerRefusals = ServerRefusals(), search: Script?,
        calling script: @escaping @Sendable (ScriptedServer, Int, GraphQLRequest) async throws -> GraphQLAnswer
    ) {
        (self.idempotency, self.refusals, self.search, self.script) = (idempotency, refusals, search, script)
    }

    /// Answers mutations; a query by which a runner looks for the server finds it, unless `search` says otherwise.
    package convenience init(
        _ idempotency: Idempotency? = nil, refusals: ServerRefusals = ServerRefusals(),
        search: @escaping ResultScript = { _, _ in ScriptedServer.found }, _ script: @escaping ResultScript
    ) {
        self.init(idempotency, refusals: refusals, search: { try await search($0, $1).get() }) {
            try await script($1, $2).get()
        }
    }

    /// Answers every request with a text.
    ///
    /// - Parameters:
    ///   - idempotency: How the server tells a repeat; nil where it cannot.
    ///   - answer: The body of the answer. An error that is no `TransportError` says that the server is away.
    public convenience init(
        _ idempotency: Idempotency? = nil, _ answer: @escaping @Sendable (GraphQLRequest) async throws -> String
    ) {
        self.init(idempotency, search: nil) { _, _, request in GraphQLAnswer(try await answer(request)) }
    }

    /// Answers the request of a number, from 0, with a text.
    package convenience init(
        _ idempotency: Idempotency? = nil,
        _ answer: @escaping @Sendable (Int, GraphQLRequest) async throws -> String
    ) {
        self.init(idempotency, search: nil) { _, number, request in GraphQLAnswer(try await answer(number, request)) }
    }

    /// Answers with data that fit a schema, made up: the same for the same object in every answer. What a mutation says
    /// of an object by an argument of a field's name stays said. An operation that does not fit the schema gets the
    /// errors that a server would send.
    ///
    /// - Parameters:
    ///   - schema: What the server answers from.
    ///   - values: What fields hold in place of a made-up value, by type and field: `"Recipe.title"`.
    ///   - idempotency: How the server tells a repeat; nil where it cannot.
    public convenience init(schema: Schema, values: [String: Value] = [:], idempotency: Idempotency? = nil) {
        let data = Mutex(MadeUpData(schema: schema.index, values: values))
        self.init(idempotency) { request in data.withLock { $0.answer(to: request) } }
    }

    /// What it was asked, in order; also what it did not answer because it could not be reached.
    public var requests: [GraphQLRequest] { seen.withLock { $0.requests } }

    /// Whether requests arrive. Where they do not, each fails as one does without a network: it was not sent.
    public var isReachable: Bool {
        get { seen.withLock { $0.isReachable } }
        set { seen.withLock { $0.isReachable = newValue } }
    }

    /// Waits until it was asked so often.
    ///
    /// - Parameters:
    ///   - count: How many requests are waited for.
    ///   - operationName: Counts operations of this name alone.
    ///   - time: How long the call may take.
    /// - Returns: The requests until then, of that name.
    /// - Throws: `transport.timedOut` when the time is over; `.cancelled`.
    public func requests(
        _ count: Int, named operationName: String? = nil, within time: Duration = .seconds(60)
    ) async throws(TransportError) -> [GraphQLRequest] {
        let deadline = SuspendingClock.now + time
        while true {
            let found = requests.filter { operationName == nil || $0.operationName == operationName }
            if found.count >= count { return found }
            guard SuspendingClock.now < deadline else {
                throw TransportError(.timedOut, "The server was asked \(found.count) times, and not \(count)")
            }
            do { try await Task.sleep(for: .milliseconds(5)) } catch {
                throw TransportError(.cancelled, "The wait for a request was cancelled")
            }
        }
    }

    package var deadlines: [SuspendingClock.Instant] { seen.withLock { $0.deadlines } }
    package var searches: Int { seen.withLock { $0.searches } }
    package var effects: [String] { seen.withLock { $0.effects } }

    /// Notes that something took effect.
    ///
    /// - Parameter key: By which the server tells a repeat: what took effect under it takes none again.
    package func note(_ effect: String, key: String? = nil) {
        seen.withLock { seen in
            if let key, !seen.keys.insert(key).inserted { return }
            seen.effects.append(effect)
        }
    }

    /// Answers as the script says.
    public func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let deadline = SuspendingClock.now + time
        do {
            if request.kind != .mutation, let search {
                let (number, isReachable) = seen.withLock { seen in
                    seen.searches += 1
                    return (seen.searches - 1, seen.isReachable)
                }
                guard isReachable else { throw TransportError.away }
                return try await search(number, request)
            }
            let (number, isReachable) = seen.withLock { seen in
                seen.requests.append(request)
                seen.deadlines.append(deadline)
                return (seen.requests.count - 1, seen.isReachable)
            }
            guard isReachable else { throw TransportError.away }
            return try await script(self, number, request)
        } catch {
            if let error = error as? TransportError { throw error }
            if error is CancellationError { throw TransportError(.cancelled, "cancelled") }
            throw TransportError(.unreachable, "The test's server failed", cause: error)
        }
    }
}

extension ScriptedServer {
    package static let key = Idempotency.header(name: "Idempotency-Key")
    package static let found = body(#"{"data":{"__typename":"Query"}}"#)

    package static func body(
        _ text: String, status: Int = 200, retryAfter: Duration? = nil
    ) -> Result<GraphQLAnswer, TransportError> {
        .success(GraphQLAnswer(body: Array(text.utf8), status: status, retryAfter: retryAfter))
    }

    package static func status(_ status: Int, retryAfter: Duration? = nil) -> Result<GraphQLAnswer, TransportError> {
        .failure(TransportError(.status, "status \(status)", status: status, retryAfter: retryAfter))
    }

    /// Is never reached.
    package static var away: ScriptedServer { ScriptedServer { _ in throw TransportError.away } }

    /// Is reached, and never answers.
    package static var silent: ScriptedServer {
        ScriptedServer(search: nil) { server, number, _ in
            try await Task.sleep(until: server.deadlines[number], clock: .suspending)
            throw TransportError(.timedOut, "nothing answers")
        }
    }
}

extension GraphQLAnswer {
    package init(_ text: String) { self.init(body: Array(text.utf8), status: 200) }
}

extension TransportError {
    package static let away = TransportError(.unreachable, "the server is away")
}

extension GraphQLRequest {
    /// The variables as a test compares them.
    package var values: [String: Any] {
        (try? JSONSerialization.jsonObject(with: Data(variables))) as? [String: Any] ?? [:]
    }
}
