import Larder
import LarderFiles
import LarderGraphQL
import LarderRecords

/// The protocol `graphql-transport-ws`, which GraphQL servers speak on a WebSocket
/// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).
///
/// The protocol does not acknowledge a subscription, or its end. Two pings follow each, and the server's pongs say that
/// it has read what came before; an event says so too. There are two, since a server may send a pong without having been
/// asked: the second one is an answer then.
final class GraphQLTransportWS: SubscriptionDialect {
    static let subprotocol = "graphql-transport-ws"
    private static let pingKey = "larder"

    private let payload: @Sendable () async throws -> [String: Value]?
    private let deadline: SuspendingClock.Instant
    /// After how long another connection is to take this one's place.
    private let lifetime: Duration?

    /// What the server is known to have read once it has answered a command's pings.
    private struct Asked {
        /// Which each of the two pings says.
        let key: String
        let meaning: SubscriptionLine.Message
        var pongCount = 0
    }

    /// The commands whose pings the server has not answered, in the order in which they were sent.
    private let unanswered = Locked<[Asked]>([])

    init(
        openedBy deadline: SuspendingClock.Instant, lifetime: Duration? = nil,
        payload: @escaping @Sendable () async throws -> [String: Value]?
    ) {
        self.deadline = deadline
        self.lifetime = lifetime
        self.payload = payload
    }

    func greeting() async throws(TransportError) -> [UInt8] {
        let payload = payload
        let given = try await prepared(by: deadline) { try await payload() }
        var message: [String: Value] = ["type": .string("connection_init")]
        if let given { message["payload"] = .object(given) }
        if let fault = Value.object(message).fault {
            throw TransportError(.unusableRequest, "The payload of the connection cannot be sent: \(fault)")
        }
        return Value.object(message).json
    }

    func messages(for command: SubscriptionLine.Command) -> [[UInt8]] {
        switch command {
        case .start(let id, let request):
            return [Self.subscribe(id, request)] + pings(Asked(key: id, meaning: .started(id: id)))
        case .stop(let id):
            return [Self.message("complete", id)] + pings(Asked(key: "end \(id)", meaning: .completed(id: id)))
        }
    }

    private func pings(_ asked: Asked) -> [[UInt8]] {
        unanswered.withLock { $0.append(asked) }
        let ping = Value.object(["type": "ping", "payload": [Self.pingKey: .string(asked.key)]]).json
        return [ping, ping]
    }

    /// - Parameter key: Of the ping that is answered; nil where the server does not say it.
    private func answered(_ key: String?) -> DialectReaction {
        unanswered.withLock { unanswered in
            guard let place = key.map({ key in unanswered.firstIndex { $0.key == key } }) ?? unanswered.indices.first
            else { return DialectReaction(.alive) }
            unanswered[place].pongCount += 1
            // A server that repeats what a ping said cannot mean anything else.
            guard key != nil || unanswered[place].pongCount == 2 else { return DialectReaction(.alive) }
            return DialectReaction(unanswered.remove(at: place).meaning)
        }
    }

    func reaction(to message: JSONMembers) throws(TransportError) -> DialectReaction {
        let id = message.string("id")
        switch (message.string("type"), id) {
        case ("connection_ack", _):
            guard let lifetime else { return DialectReaction(.opened) }
            return DialectReaction(.opened, .expiring(after: lifetime))
        case ("ping", _):
            var reaction = DialectReaction()
            reaction.replies = [Self.message("pong")]
            return reaction
        case ("pong", _):
            var answered: String?
            if case .object(let payload)? = message.value("payload") {
                // A server that repeats what the ping had says which one it answers.
                if case .string(let id)? = payload[Self.pingKey] { answered = id }
                guard answered != nil || payload.isEmpty else { return DialectReaction() }
            }
            return self.answered(answered)
        case ("next", let id?):
            guard let payload = message["payload"] else { throw Self.malformed("an event without payload") }
            let event = SubscriptionLine.Message.event(id: id, response: payload)
            let isNew = unanswered.withLock { $0.contains { $0.key == id } }
            return isNew ? DialectReaction(.started(id: id), event) : DialectReaction(event)
        case ("error", let id?):
            guard let errors = message["payload"] else { throw Self.malformed("an error without payload") }
            // The operation itself is refused: another start would be as well.
            return DialectReaction(
                .failed(id: id, response: Array(#"{"errors":"#.utf8) + errors + Array("}".utf8), mayRecover: false))
        case ("complete", let id?): return DialectReaction(.completed(id: id))
        case (let type, _): throw Self.malformed("a message of the type \(type ?? "(none)")")
        }
    }

    func meaning(of end: WebSocketClosed) -> TransportError {
        let reason = end.reason.isEmpty ? "" : ": \(end.reason)"
        return switch end.code {
        case 4401?, 4403?:
            TransportError(.notSignedIn, "The server did not take the proof of who asks\(reason)", cause: end)
        case 4400?, 4406?, 4409?, 4429?:
            TransportError(
                .unusableRequest, "The server closed the connection for a protocol error\(reason)", cause: end)
        case let code:
            TransportError(
                .interrupted,
                code.map { "The server has closed the connection (\($0))\(reason)" } ?? "The connection broke.",
                cause: end)
        }
    }

    private static func subscribe(_ id: String, _ request: GraphQLRequest) -> [UInt8] {
        var json = Array(#"{"id":"\#(id)","type":"subscribe","payload":{"query":"#.utf8)
        appendJSONString(request.document, to: &json)
        if let name = request.operationName {
            json += Array(#","operationName":"#.utf8)
            appendJSONString(name, to: &json)
        }
        json += Array(#","variables":"#.utf8) + (request.variables.isEmpty ? Array("{}".utf8) : request.variables)
        return json + Array("}}".utf8)
    }

    private static func message(_ type: String, _ id: String? = nil) -> [UInt8] {
        var message: [String: Value] = ["type": .string(type)]
        if let id { message["id"] = .string(id) }
        return Value.object(message).json
    }

    private static func malformed(_ what: String) -> TransportError {
        TransportError(.unusableAnswer, "The server sent \(what), which \(subprotocol) does not know.")
    }
}
