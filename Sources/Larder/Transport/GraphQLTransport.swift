/// Carries operations to a GraphQL server. `LarderHTTP` has one over HTTP; tests hand in their own.
public protocol GraphQLTransport: Sendable {
    /// How the server can tell that a mutation is a repeat; nil, as where it is not implemented, if it cannot. A
    /// mutation whose answer was lost is then not sent again on its own.
    var idempotency: Idempotency? { get }

    /// What the server says before it acts on a mutation; as where it is not implemented, no more than every server.
    var refusals: ServerRefusals { get }

    /// Which server is asked, such as its URL; nil, as where it is not implemented, if the transport does not say it.
    /// A synchronization begins with everything where it is another than the one before. The cache keeps it: it must
    /// have no secret, such as a URL's query.
    var server: String? { get }

    /// Sends one operation and returns the server's answer, not yet understood.
    ///
    /// An answer is any body that may be a GraphQL response, whatever status it came with: reading it, and
    /// telling data from errors, is the caller's work. Everything else is a `TransportError`, whose `phase` says
    /// whether anything of the request may have reached the server. A queued mutation is sent again where it did not,
    /// so `.beforeSending` must be certain.
    ///
    /// Cancelling the task stops the exchange itself and throws `.cancelled`.
    ///
    /// - Parameters:
    ///   - request: The operation as text, with its variables and headers.
    ///   - time: How long the exchange may take; then it is given up with `.timedOut`.
    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer
}

extension GraphQLTransport {
    /// The server cannot tell a repeat.
    public var idempotency: Idempotency? { nil }

    /// The server refuses as every server does.
    public var refusals: ServerRefusals { ServerRefusals() }

    /// The transport does not say it.
    public var server: String? { nil }
}

/// How a server is told that a mutation is a repeat, so that it takes effect once.
public enum Idempotency: Sendable, Hashable {
    /// By a header with the mutation's idempotency key.
    case header(name: String)
    /// By a variable with the key, which the operation declares.
    case variable(name: String)
}
