public import AsyncHTTPClient
public import Foundation
public import Larder
import LarderFiles
import NIOCore
import Synchronization

/// GraphQL over HTTP: sends queries and mutations to one endpoint and hands back what may be a GraphQL response.
///
/// - **Identical queries at the same time are sent once**: same document, operation name, variables and headers.
///   Each caller keeps its own deadline and its own cancellation; the exchange is stopped when the last one goes.
///   Mutations are never joined, and a query that begins after a mutation has ended joins none that began before.
/// - **Redirects are not followed.** A POST that is turned into a GET loses its operation, and headers that
///   authorize would go to the host named in `Location`. A redirect is a `.status` error that says where it points.
///   An injected client that follows redirects anyway has its answer refused.
/// - **The head of a request has at most 32 KiB**: a larger one is refused with `.unusableRequest` before it is sent.
/// - **The deadline covers everything**: the closure that supplies headers, connecting, sending, and the last byte
///   of the body.
/// - **An error's phase** is `.sending` from the moment at which the body of the request is given to the connection,
///   and `.beforeSending` before it, whatever has failed.
/// - **Statuses**: with 2xx, a body whose content type can hold a GraphQL response is the answer. With any other
///   status, a body that *is* a GraphQL response (an object with `data`, or with a list of `errors`) is the answer;
///   everything else is a `.status` error with the time from `Retry-After`.
///
/// Subscriptions go over a WebSocket: `Partition.subscribe`. `send` refuses them with `.unusableRequest`.
public final class HTTPTransport: GraphQLTransport {
    /// Where the operations go. Its query, if it has one, is kept. A URL with a user or a password in it is refused by
    /// `send`: HTTP has no place for them but a header.
    package let endpoint: URL
    /// How operations are sent.
    package let options: Options

    /// As the options say.
    public var idempotency: Idempotency? { options.idempotency }
    /// As the options say.
    public var refusals: ServerRefusals { options.refusals }
    /// The endpoint, without its query.
    public var server: String? { endpoint.serverName }

    package var client: HTTPClient { held.client }
    private let held: HeldClient
    private let queriesInFlight = JoinedExchanges<QueryIdentity, GraphQLAnswer>()
    /// How many mutations have ended, and subscriptions begun.
    private let changeCount = Atomic<Int>(0)
    /// Set once the server has said that it does not do persisted queries.
    private let persistedQueriesAreRefused = Locked(false)

    /// A transport to a server.
    ///
    /// - Parameters:
    ///   - endpoint: Where the server takes operations.
    ///   - client: The client that carries the exchanges; nil for one of the transport's own, which is shut down when the
    ///     transport is released, after its last exchange. The caller owns one that is given, and shuts it down after
    ///     the last use of this transport. `clientConfiguration(for:)` is the configuration to make it with; of another
    ///     one, note that AsyncHTTPClient by default follows redirects, does not decompress, and keeps trying a server
    ///     that refuses connections until its connect timeout.
    ///   - options: What is different from the defaults.
    public init(endpoint: URL, client: HTTPClient? = nil, options: Options = Options()) {
        self.endpoint = endpoint
        held = HeldClient(client, or: Self.clientConfiguration(for: options))
        self.options = options
    }

    func noteChange() { changeCount.add(1, ordering: .sequentiallyConsistent) }

    /// How many callers wait for the answer to a query at this moment.
    package var queryCallers: Int { queriesInFlight.callers }

    /// Sends a query or a mutation; identical queries that are under way are joined.
    ///
    /// - Throws: `.unusableRequest` for a subscription, and where the endpoint names a user; otherwise as
    ///   `GraphQLTransport.send`.
    public func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        try await send(request, deadline: .now + time, signer: nil)
    }

    /// Sends what `signer` signs, once it is whole.
    package func send(
        _ request: GraphQLRequest, deadline: SuspendingClock.Instant, signer: RequestSigner?
    ) async throws(TransportError) -> GraphQLAnswer {
        guard request.kind != .subscription else {
            throw TransportError(
                .unusableRequest, "A subscription does not fit into one HTTP exchange; send a query or a mutation."
            )
        }
        guard !endpoint.namesUser else {
            throw TransportError(
                .unusableRequest,
                "The endpoint has a user or a password in its URL, which would not be sent. Take them "
                    + "out, and say what authorizes the request in a header."
            ).before
        }
        guard !Task.isCancelled else { throw TransportError.waiterCancelled.before }
        guard deadline > .now else { throw TransportError.deadlinePassed.before }
        let headers: RequestHeaders
        do { headers = try await self.headers(for: request, deadline: deadline) } catch { throw error.before }
        let departure = Departure()
        let exchange: JoinedExchange<GraphQLAnswer>.Work = { () async throws(TransportError) -> GraphQLAnswer in
            try await self.exchange(request, headers: headers, signer, departure)
        }
        guard request.kind == .query else {
            defer { noteChange() }
            do { return try await JoinedExchange.run(deadline: deadline, exchange) } catch {
                // The caller may have gone before the exchange ended: nothing must leave after this.
                var error = error
                error.phase = departure.withdraw()
                throw error
            }
        }
        let identity = QueryIdentity(
            request, headers: headers, signer: signer,
            changeCount: changeCount.load(ordering: .sequentiallyConsistent))
        return try await queriesInFlight.run(identity, deadline: deadline, exchange)
    }

    /// The headers of one request, from all three sources.
    func headers(
        for request: GraphQLRequest, deadline: SuspendingClock.Instant
    ) async throws(TransportError) -> RequestHeaders {
        var headers = RequestHeaders()
        try headers.replace(with: options.headers)
        if let supply = options.headersForRequest {
            let supplied = try await prepared(by: deadline) { try await supply(request) }
            try headers.replace(with: supplied)
        }
        try headers.replace(with: request.headers)
        return headers
    }

    /// One operation to its answer: one exchange, or two where a persisted query has to be introduced first.
    private func exchange(
        _ request: GraphQLRequest, headers: RequestHeaders, _ signer: RequestSigner?, _ departure: Departure
    ) async throws(TransportError) -> GraphQLAnswer {
        let form = RequestForm(
            endpoint: endpoint, request: request, headers: headers, options: options, departure: departure,
            signer: signer)
        switch options.persistedQueries {
        case .off:
            return try await perform(form, .text)
        case .trustedDocuments:
            return try await perform(form, .hash)
        case .automatic:
            guard request.kind == .query, !persistedQueriesAreRefused.withLock({ $0 }) else {
                return try await perform(form, .text)
            }
            let answer = try await perform(form, .hash)
            switch PersistedQueryRefusal(in: answer.body) {
            case nil:
                return answer
            case .notFound:
                return try await perform(form, .textAndHash)
            case .notSupported:
                persistedQueriesAreRefused.withLock { $0 = true }
                return try await perform(form, .text)
            }
        }
    }

    private func perform(
        _ form: RequestForm, _ told: RequestDocument.Told
    ) async throws(TransportError) -> GraphQLAnswer {
        let request = try form.httpRequest(told)
        try request.requireBoundedHead()
        let response: HTTPClientResponse
        do {
            // The waiting callers keep the time (`JoinedExchange`): the client's own deadline ends with the head.
            response = try await client.execute(request, deadline: .now() + .hours(24 * 365))
        } catch {
            throw TransportError(ofClient: error, in: request.body == nil ? nil : form.departure.withdraw())
        }
        form.signer?.heard(response.headers.first(name: "Date"))
        return try await AnswerReader(limit: options.maximumAnswerSize, wallClock: options.wallClock)
            .read(try ClientAnswer(response))
    }
}
