import Foundation
package import Larder
import Synchronization

/// A GraphQL server that answers as a test says, and notes what it was asked and what took effect.
package final class ScriptedServer: GraphQLTransport {
    package typealias Script = @Sendable (_ number: Int, _ request: GraphQLRequest) async throws -> GraphQLAnswer
    package typealias ResultScript =
        @Sendable (_ number: Int, _ request: GraphQLRequest) async -> Result<GraphQLAnswer, TransportError>

    private struct Seen {
        var requests: [GraphQLRequest] = []
        var deadlines: [ContinuousClock.Instant] = []
        var searches = 0
        var effects: [String] = []
        var keys: Set<String> = []
    }

    package let idempotency: Idempotency?
    package let refusals: ServerRefusals
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
    package convenience init(
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

    package var requests: [GraphQLRequest] { seen.withLock { $0.requests } }
    package var deadlines: [ContinuousClock.Instant] { seen.withLock { $0.deadlines } }
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

    package func send(
        _ request: GraphQLRequest, deadline: ContinuousClock.Instant
    ) async throws(TransportError) -> GraphQLAnswer {
        do {
            if request.kind != .mutation, let search {
                let number = seen.withLock { seen in
                    seen.searches += 1
                    return seen.searches - 1
                }
                return try await search(number, request)
            }
            let number = seen.withLock { seen in
                seen.requests.append(request)
                seen.deadlines.append(deadline)
                return seen.requests.count - 1
            }
            return try await script(self, number, request)
        } catch {
            if let error = error as? TransportError { throw error }
            if error is CancellationError { throw TransportError(.cancelled, "cancelled") }
            throw TransportError(.unreachable, "the test's server failed", cause: error)
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
            try await Task.sleep(until: server.deadlines[number])
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
