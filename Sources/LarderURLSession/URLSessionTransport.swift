public import Foundation
public import Larder

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// GraphQL over HTTP with Foundation's `URLSession`: for programs that want no second network stack.
///
/// Queries and mutations go by POST, with the document's text. `HTTPTransport`, of the product `LarderHTTP`, carries
/// subscriptions as well, joins identical queries, and knows persisted queries.
///
/// - **Redirects are not followed**, and no cookie, cache or stored password is used: what authorizes a request is in
///   its headers.
/// - **An error's phase** is `.beforeSending` only where the system says that there was no connection: the server's name
///   has no address, the server refused, or its certificate is not trusted. `URLSession` does not tell whether a request
///   has left, so everything else counts as sent.
/// - **A mutation has a connection of its own.** A request on a connection that was kept may be repeated by the system
///   when that connection breaks, without a word.
/// - **The time covers everything**: the closure that supplies headers, connecting, and the last byte of the body.
public final class URLSessionTransport: GraphQLTransport {
    /// How operations are sent.
    public struct Options: Sendable {
        /// How the server is told that a mutation is a repeat; nil if it cannot be told.
        public var idempotency: Idempotency?
        /// What the server says before it acts on a mutation, beyond what every server says so.
        public var refusals = ServerRefusals()
        /// Headers of every request. One of the same name from `headersForRequest` replaces them, and one of the request
        /// itself replaces both.
        public var headers: [GraphQLRequest.Header] = []
        /// Supplies headers that change, such as the authorization; called for each `send`, within its time.
        ///
        /// What it throws ends the request: a `TransportError` as it is, everything else as the cause of a
        /// `.notPrepared`.
        public var headersForRequest: (@Sendable (GraphQLRequest) async throws -> [GraphQLRequest.Header])?
        /// Bytes of a body, decompressed, above which an answer is given up with `.unusableAnswer`: 64 MiB, and 8 MiB on a
        /// phone.
        public var maximumAnswerSize = GraphQLAnswer.defaultMaximumSize
        /// Reads the time of day, against which a date in `Retry-After` is held where the server sent no `Date`.
        package var wallClock: @Sendable () -> Date = { Date() }

        /// No headers of its own, and answers of up to 64 MiB.
        public init() {}
    }

    private let endpoint: URL
    private let options: Options
    /// For queries, whose connections are kept.
    private let queries = ExchangeSession()

    /// As the options say.
    public var idempotency: Idempotency? { options.idempotency }
    /// As the options say.
    public var refusals: ServerRefusals { options.refusals }
    /// The endpoint, without its query.
    public var server: String? { endpoint.serverName }

    /// A transport with a session of its own, which ends with it.
    ///
    /// - Parameter endpoint: Where the operations go. A URL with a user or a password in it is refused by `send`.
    public init(endpoint: URL, options: Options = Options()) {
        self.endpoint = endpoint
        self.options = options
    }

    deinit { queries.end() }

    /// Sends a query or a mutation.
    ///
    /// - Throws: `.unusableRequest` for a subscription, and for an endpoint that names a user or is no HTTP URL;
    ///   otherwise as `GraphQLTransport.send`.
    public func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        let deadline = SuspendingClock.now + time
        guard request.kind != .subscription else {
            throw TransportError(
                .unusableRequest, "A subscription does not fit into one HTTP exchange; send a query or a mutation.")
        }
        guard !endpoint.namesUser, ["http", "https"].contains(endpoint.scheme?.lowercased()),
            endpoint.host(percentEncoded: false)?.isEmpty == false
        else {
            throw TransportError(
                .unusableRequest,
                "The endpoint must be an http or https URL with a host, and without a user or a password.",
                phase: .beforeSending)
        }
        var headers = RequestHeaders()
        do {
            try headers.replace(with: options.headers)
            if let supply = options.headersForRequest {
                try headers.replace(with: await prepared(by: deadline) { try await supply(request) })
            }
            try headers.replace(with: request.headers)
        } catch { throw error.before }
        let http = self.http(request, headers)
        let session = request.kind == .query ? queries : ExchangeSession()
        defer { if request.kind != .query { session.end() } }
        guard !Task.isCancelled else { throw TransportError.waiterCancelled.before }
        guard deadline > .now else { throw TransportError.deadlinePassed.before }
        let reader = AnswerReader(limit: options.maximumAnswerSize, wallClock: options.wallClock)
        return try await JoinedExchange.run(deadline: deadline) { () async throws(TransportError) in
            try await reader.read(try await session.exchange(http, limit: reader.limit))
        }
    }

    private func http(_ request: GraphQLRequest, _ headers: RequestHeaders) -> URLRequest {
        var http = URLRequest(url: endpoint)
        http.httpMethod = "POST"
        http.httpShouldHandleCookies = false
        // The waiting caller keeps the time (`JoinedExchange`).
        http.timeoutInterval = 24 * 3600
        let defaults = [("Accept", RequestDocument.accept), ("Content-Type", "application/json")]
        for (name, value) in defaults { http.setValue(value, forHTTPHeaderField: name) }
        var seen: Set<String> = []
        for header in headers.fields {
            if seen.insert(header.name.lowercased()).inserted {
                http.setValue(header.value, forHTTPHeaderField: header.name)
            } else {
                http.addValue(header.value, forHTTPHeaderField: header.name)
            }
        }
        http.httpBody = Data(RequestDocument(request, .text).json)
        return http
    }
}

extension GraphQLTransport where Self == URLSessionTransport {
    /// A GraphQL server, reached over HTTP with Foundation's `URLSession`.
    ///
    /// ```swift
    /// let app = try store.partition(server: .urlSession(url))
    /// ```
    public static func urlSession(
        _ endpoint: URL, options: URLSessionTransport.Options = .init()
    ) -> URLSessionTransport {
        URLSessionTransport(endpoint: endpoint, options: options)
    }
}
