import Foundation
import Larder
import Synchronization

/// Answers each mutation with what a test says, and counts.
final class StatusServer: GraphQLTransport {
    typealias Script = @Sendable (Int, GraphQLRequest) async -> Result<GraphQLAnswer, TransportError>

    let idempotency: Idempotency?
    let refusals: ServerRefusals
    private let seen = Mutex<[GraphQLRequest]>([])
    private let script: Script
    private let search: Script
    private let asked = Mutex(0)

    /// - Parameter search: What a query is answered with by which the runner looks for the server; they are counted for
    ///   themselves.
    init(
        _ idempotency: Idempotency? = nil, refusals: ServerRefusals = ServerRefusals(),
        search: @escaping Script = { _, _ in StatusServer.body(#"{"data":{"__typename":"Query"}}"#) },
        _ script: @escaping Script
    ) {
        (self.idempotency, self.refusals, self.script, self.search) = (idempotency, refusals, script, search)
    }

    var searches: Int { asked.withLock { $0 } }
    var requests: [GraphQLRequest] { seen.withLock { $0 } }

    func send(
        _ request: GraphQLRequest, deadline: ContinuousClock.Instant
    ) async throws(TransportError) -> GraphQLAnswer {
        guard request.kind == .mutation else {
            let number = asked.withLock { asked in
                asked += 1
                return asked - 1
            }
            return try await search(number, request).get()
        }
        let number = seen.withLock { seen in
            seen.append(request)
            return seen.count - 1
        }
        return try await script(number, request).get()
    }

    static let key = Idempotency.header(name: "Idempotency-Key")

    /// What was asked for, done.
    static func done(_ request: GraphQLRequest) -> Result<GraphQLAnswer, TransportError> {
        let variables = (try? JSONSerialization.jsonObject(with: Data(request.variables))) as? [String: Any] ?? [:]
        return body(rated(variables["recipe"] as? String ?? "", variables["stars"] as? Int ?? 0))
    }

    static func body(
        _ text: String, status: Int = 200, retryAfter: Duration? = nil
    ) -> Result<GraphQLAnswer, TransportError> {
        .success(GraphQLAnswer(body: Array(text.utf8), status: status, retryAfter: retryAfter))
    }

    static func status(_ status: Int, retryAfter: Duration? = nil) -> Result<GraphQLAnswer, TransportError> {
        .failure(TransportError(.status, "status \(status)", status: status, retryAfter: retryAfter))
    }
}
