public import Foundation
public import Larder
public import LarderGraphQL
public import NIOSSL

extension HTTPTransport {
    /// How subscriptions are carried.
    public struct SubscriptionOptions: Sendable {
        /// A protocol for subscriptions.
        public enum Carrier: Sendable, Hashable {
            /// All of a partition over one WebSocket, by `graphql-transport-ws`.
            case webSocket
            /// Each as a request whose answer does not end, by Apollo's multipart protocol: Apollo Router serves
            /// clients no other.
            case multipart
        }

        /// By which protocol.
        public var carrier = Carrier.webSocket
        /// Where subscriptions are begun; nil for the endpoint itself, for a WebSocket with `wss` in place of `https`.
        public var url: URL?
        /// What introduces the program to the server, in `connection_init`, such as a token: asked for at each opening,
        /// within its deadline. What it throws ends the attempt, as with `headersForRequest`.
        public var payload: (@Sendable () async throws -> [String: Value]?)?
        /// How a WebSocket is secured; nil for the system's authorities. `.multipart` uses the transport's own.
        public var tls: TLSConfiguration?
        /// Bytes of a message above which the connection is given up.
        package var maximumMessageSize = 16 << 20
        /// How long the server may send nothing before the connection is given up. After half of it the server gets a
        /// ping. With AppSync, the time that the server announces counts instead, and no ping is sent.
        public var silence = Duration.seconds(60)
        /// After how long another WebSocket takes a WebSocket's place, such as before the token that `payload` gives
        /// ends; nil where none has to. All subscriptions have begun on the other before the old one is closed. With
        /// AppSync it is not needed: the end of the proof is known, and connections end after a day.
        public var lifetime: Duration?
        /// How long each step of a connection may take, and when a connection is opened again.
        public var pacing = SubscriptionPacing()
        /// What null means in an event; nil for what it means to the server's protocol.
        public var nulls: NullsInEvents?

        /// The endpoint itself, no payload, the system's authorities.
        public init() {}
    }
}

extension HTTPTransport: SubscriptionTransport {
    /// As the options say.
    public var pacing: SubscriptionPacing { options.subscriptions.pacing }
    /// A null is a value, unless the options say otherwise.
    public var nullsInEvents: NullsInEvents { options.subscriptions.nulls ?? .trust }

    /// Carries subscriptions by the protocol of the options: `graphql-transport-ws`, unless they say otherwise.
    ///
    /// The handshake has the headers that every request has; `headersForRequest` is asked for those of a request without
    /// document.
    ///
    /// - Throws: `.notSignedIn` where the server answers the handshake with 401 or 403, or closes the socket with 4401
    ///   or 4403; `.unusableRequest` where it closes it with 4400, 4406, 4409 or 4429; `.unusableAnswer` where the
    ///   server sends a message that the protocol does not have; `.timedOut` where the server does not open the socket
    ///   in time, or falls silent; `.status` where it answers the handshake with another status; `.notPrepared` where
    ///   `payload` throws, unless it is a `TransportError` or a session's; `.interrupted` where the connection breaks, or
    ///   the server closes it with another code.
    public func carry(
        _ line: SubscriptionLine, openedWithin time: Duration
    ) async throws(TransportError) {
        guard options.subscriptions.carrier == .webSocket else {
            return try await MultipartSubscriptions(transport: self, line: line).carry()
        }
        let deadline = SuspendingClock.now + time
        let connection = try await socket(
            WebSocketConnection(
                url: options.subscriptions.url ?? endpoint, subprotocols: [GraphQLTransportWS.subprotocol]),
            openedBy: deadline)
        try await GraphQLTransportWS(
            openedBy: deadline, lifetime: options.subscriptions.lifetime, payload: options.subscriptions.payload
        )
        .carry(noting(line), over: connection, on: client.eventLoopGroup, openedBy: deadline)
    }

    /// The same line. From each start on, queries are sent that join none that was sent before: what it answers may lack
    /// what happened until then.
    package func noting(_ line: SubscriptionLine) -> SubscriptionLine {
        SubscriptionLine(commands: line.commands) { messages in
            if messages.contains(where: { if case .started = $0 { true } else { false } }) { self.noteChange() }
            await line.take(messages)
        }
    }

    /// A connection as the options have it, with the headers that every request has.
    package func socket(
        _ connection: WebSocketConnection, openedBy deadline: SuspendingClock.Instant
    ) async throws(TransportError) -> WebSocketConnection {
        let handshake = GraphQLRequest(
            kind: .subscription, operationName: nil, document: "", documentHash: "", variables: [])
        var connection = connection
        connection.headers = try await headers(for: handshake, deadline: deadline).fields
        connection.tls = options.subscriptions.tls
        connection.maximumMessageSize = options.subscriptions.maximumMessageSize
        connection.silence = options.subscriptions.silence
        return connection
    }
}
