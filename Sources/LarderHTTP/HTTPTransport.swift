public import AsyncHTTPClient
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif
public import Larder
import NIOCore
import Synchronization

/// GraphQL over HTTP: sends queries and mutations to one endpoint and hands back what may be a GraphQL response.
///
/// - **Identical queries at the same time are sent once**: same document, operation name, variables and headers.
///   Each caller keeps its own deadline and its own cancellation; the exchange is stopped when the last one goes.
///   Mutations are never joined.
/// - **Redirects are not followed.** A POST that is turned into a GET loses its operation, and headers that
///   authorize would be handed to whoever is named in `Location`. A redirect is a `.status` error that says where
///   it points. An injected client that follows redirects anyway has its answer refused.
/// - **The deadline covers everything**: the closure that supplies headers, connecting, sending, and the last byte
///   of the body.
/// - **Statuses**: with 2xx, a body whose content type can hold a GraphQL response is the answer. With any other
///   status, a body that *is* a GraphQL response (an object with `data`, or with a list of `errors`) is the answer;
///   everything else is a `.status` error with the time from `Retry-After`.
///
/// Subscriptions are refused with `.unusableRequest`.
public final class HTTPTransport: GraphQLTransport {
    /// Where the operations go. Its query, if it has one, is kept.
    public let endpoint: URL
    /// How operations are sent.
    public let options: Options

    /// As the options say.
    public var idempotency: Idempotency? { options.idempotency }

    let client: HTTPClient
    private let queriesInFlight = SharedTasks<QueryIdentity, GraphQLAnswer>()
    /// Set once the server has said that it does not do persisted queries.
    private let persistedQueriesAreRefused = Mutex(false)

    /// A transport over a client of the caller's.
    ///
    /// - Parameter client: The client that carries the exchanges. It stays the caller's, who shuts it down after the
    ///   last use of this transport. `clientConfiguration(for:)` is the configuration to make it with; of another
    ///   one, note that AsyncHTTPClient by default follows redirects, does not decompress, and keeps trying a server
    ///   that refuses connections until its connect timeout.
    public init(endpoint: URL, client: HTTPClient, options: Options = Options()) {
        self.endpoint = endpoint
        self.client = client
        self.options = options
    }

    /// How many callers wait for the answer to a query at this moment.
    package var queryCallers: Int { queriesInFlight.callers }

    /// Sends a query or a mutation; identical queries that are under way are joined.
    ///
    /// - Throws: `.unusableRequest` for a subscription; otherwise as `GraphQLTransport.send`.
    public func send(
        _ request: GraphQLRequest, deadline: ContinuousClock.Instant
    ) async throws(TransportError) -> GraphQLAnswer {
        guard request.kind != .subscription else {
            throw TransportError(
                .unusableRequest, "A subscription does not fit into one HTTP exchange; send a query or a mutation."
            )
        }
        guard !Task.isCancelled else { throw .waiterCancelled }
        guard deadline > .now else { throw .deadlinePassed }
        let headers = try await headers(for: request, deadline: deadline)
        let exchange: SharedTask<GraphQLAnswer>.Work = { () async throws(TransportError) -> GraphQLAnswer in
            try await self.exchange(request, headers: headers)
        }
        guard request.kind == .query else {
            return try await SharedTask.run(deadline: deadline, exchange)
        }
        let identity = QueryIdentity(request, headers: headers)
        return try await queriesInFlight.run(identity, deadline: deadline, exchange)
    }

    /// The headers of one request, from all three sources.
    private func headers(
        for request: GraphQLRequest, deadline: ContinuousClock.Instant
    ) async throws(TransportError) -> RequestHeaders {
        var headers = RequestHeaders()
        try headers.replace(with: options.headers)
        if let supply = options.headersForRequest {
            let supplied = try await SharedTask<[GraphQLRequest.Header]>.run(deadline: deadline) {
                () async throws(TransportError) -> [GraphQLRequest.Header] in
                do {
                    return try await supply(request)
                } catch {
                    throw TransportError(ofHeaderSource: error)
                }
            }
            try headers.replace(with: supplied)
        }
        try headers.replace(with: request.headers)
        return headers
    }

    /// One operation to its answer: one exchange, or two where a persisted query has to be introduced first.
    private func exchange(
        _ request: GraphQLRequest, headers: RequestHeaders
    ) async throws(TransportError) -> GraphQLAnswer {
        let form = RequestForm(endpoint: endpoint, request: request, headers: headers, options: options)
        switch options.persistedQueries {
        case .off:
            return try await perform(form.httpRequest(.text))
        case .trustedDocuments:
            return try await perform(form.httpRequest(.hash))
        case .automatic:
            guard request.kind == .query, !persistedQueriesAreRefused.withLock({ $0 }) else {
                return try await perform(form.httpRequest(.text))
            }
            let answer = try await perform(form.httpRequest(.hash))
            switch PersistedQueryRefusal(in: answer.body) {
            case nil:
                return answer
            case .notFound:
                return try await perform(form.httpRequest(.textAndHash))
            case .notSupported:
                persistedQueriesAreRefused.withLock { $0 = true }
                return try await perform(form.httpRequest(.text))
            }
        }
    }

    private func perform(_ request: HTTPClientRequest) async throws(TransportError) -> GraphQLAnswer {
        let response: HTTPClientResponse
        do {
            // Time is kept by those who wait (`SharedTask`), because the client's own deadline ends with the head.
            response = try await client.execute(request, deadline: .now() + .hours(24 * 365))
        } catch {
            throw TransportError(ofClient: error)
        }
        return try await AnswerReader(limit: options.maximumAnswerSize, wallClock: options.wallClock).read(response)
    }
}
