/// Carries subscriptions to a GraphQL server, many over one connection. `LarderHTTP` has one over WebSocket, and
/// `LarderAWS` one in AppSync's dialect; tests hand in their own.
///
/// A transport knows a protocol, and nothing of caches: the partition decides when a connection is opened
/// again, what is asked on it, and what becomes of an event.
public protocol SubscriptionTransport: AnyObject, Sendable {
    /// How long the transport's connections are waited for, and when they are opened again.
    var pacing: SubscriptionPacing { get }

    /// What null means in the server's events, where a subscription does not say it.
    var nullsInEvents: NullsInEvents { get }

    /// Opens a connection, and carries what the line asks until the line's commands end, or the connection does.
    ///
    /// The transport tells the line `.opened` once the server has taken the connection up, and sends no command before.
    /// Cancelling the task ends the connection.
    ///
    /// - Parameters:
    ///   - line: What the connection is to carry, and who hears of it.
    ///   - time: For the opening; a connection that is not open by then is given up with `.timedOut`.
    /// - Throws: Why the connection ended, unless the commands did: `.notSignedIn` where another sign-in is needed, and
    ///   `.unusableRequest` where no further attempt can succeed.
    func carry(
        _ line: SubscriptionLine, openedWithin time: Duration
    ) async throws(TransportError)
}

/// One connection as its transport sees it: the commands to carry out, and the receiver of the server's messages.
public struct SubscriptionLine: Sendable {
    /// What is asked on a connection.
    public enum Command: Sendable, Hashable {
        /// Begin a subscription. No id is used twice on one line.
        case start(id: String, GraphQLRequest)
        /// End a subscription. Messages with its id may still come.
        case stop(id: String)
    }

    /// What comes on a connection.
    public enum Message: Sendable {
        /// The server has taken the connection up.
        case opened
        /// The server has begun the subscription: of what changes from now on, an event comes.
        case started(id: String)
        /// An event: a GraphQL response in JSON, with `data`, `errors` or both.
        case event(id: String, response: [UInt8])
        /// The server ends the subscription with errors, which stand in a GraphQL response without data.
        ///
        /// `mayRecover`: whether another start may succeed.
        case failed(id: String, response: [UInt8], mayRecover: Bool)
        /// The answer of this subscription broke off, and the line's others go on. The partition starts it again after a
        /// pause, and tells the error as its cause.
        case broken(id: String, TransportError)
        /// The server ends the subscription, or has ended it since that was asked: there will be no more events.
        case completed(id: String)
        /// The server was heard of, and had nothing to tell: until now, nothing is missing.
        case alive
        /// Another connection is to take this one's place after so long, such as before a token ends, or at once where
        /// the server is silent. This one is closed once all subscriptions have begun on the other.
        case expiring(after: Duration)
    }

    /// What to do, in this order; what is asked together can be sent together. The connection is to be closed when they
    /// end.
    public let commands: AsyncStream<[Command]>
    private let receive: @Sendable ([Message]) async -> Void

    /// A line, for a transport to be tried on.
    public init(commands: AsyncStream<[Command]>, receive: @escaping @Sendable ([Message]) async -> Void) {
        self.commands = commands
        self.receive = receive
    }

    /// Hands over what came. A transport reads on when this returns, so that events wait at the server and not here.
    public func take(_ message: Message) async { await receive([message]) }

    /// Hands over what came together, in its order: cheaper than one by one.
    public func take(_ messages: [Message]) async { await receive(messages) }
}

/// How long a connection for subscriptions is waited for, and when it is opened again.
public struct SubscriptionPacing: Sendable {
    /// How long to wait between attempts.
    package var backoff = Backoff(first: .milliseconds(500), cap: .seconds(60))
    /// How long the opening of a connection may take: connecting, TLS, the handshake, the server's acknowledgement.
    public var opening = Duration.seconds(15)
    /// How long the server may take to acknowledge a subscription. Then the connection is given up.
    package var starting = Duration.seconds(15)
    /// How long a connection whose place another has taken is heard for what is under way on it.
    package var draining = Duration.seconds(5)
    /// How long a connection on which nothing is asked is kept, for what may be asked next.
    package var lingering = Duration.seconds(5)
    /// Whether the network is there. Nothing is tried while it is not.
    public var connectivity: any Connectivity = systemConnectivity()

    /// Attempts after half a second at first and a minute at most, 15 seconds for each step.
    public init() {}
}

/// What null means in an event.
///
/// AppSync sends the fields that the mutation did not select as null: taken at their word, they would erase what the
/// cache knows.
public enum NullsInEvents: Sendable, Hashable {
    /// The field has no value.
    case trust
    /// The event does not say what the field's value is; the cache keeps what it knew.
    case ignore
    /// As `ignore`, and what closes a gap is fetched once more.
    case fetch
}
