import Larder
import LarderFiles
import LarderGraphQL
import LarderRecords

/// The protocol `graphql-transport-ws`, which GraphQL servers speak on a WebSocket
/// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).
///
/// The protocol acknowledges neither a start nor an end. The client therefore sends a ping after those that it sends
/// together: its pong, or an event of the subscription, shows that the server has read what came before. A server that
/// repeats the payload of a ping says which one it answers. Where it does not, one pong may have come unasked, as the
/// protocol allows: each pong counts for the ping before the one that it seems to answer, and one more ping is sent
/// after the last.
final class GraphQLTransportWS: SubscriptionDialect {
    static let subprotocol = "graphql-transport-ws"
    private static let pingKey = "larder"

    private let payload: (@Sendable () async throws -> [String: Value]?)?
    private let deadline: SuspendingClock.Instant
    /// After how long another connection is to take this one's place.
    private let lifetime: Duration?

    private struct UnansweredPing {
        /// What its payload says.
        let key: String
        /// Its place among those sent.
        let number: Int
        /// The subscriptions whose starts and ends came before it.
        let (starts, ends): ([String], [String])

        /// What it means that the server has read what came before it.
        var meaning: [SubscriptionLine.Message] {
            starts.map(SubscriptionLine.Message.started) + ends.map(SubscriptionLine.Message.completed)
        }
    }

    private struct Pings {
        /// In the order in which they were sent.
        var unanswered: [UnansweredPing] = []
        /// How many were sent, and how many pongs without their payloads came, since no pong was awaited.
        var (sent, pongs) = (0, 0)
        /// Whether the server repeats the payloads of pings: pongs without them are unasked.
        var areRepeated = false

        var awaitsPong: Bool { !areRepeated && (!unanswered.isEmpty || pongs < sent) }
    }

    private let pings = Locked(Pings())

    init(
        openedBy deadline: SuspendingClock.Instant, lifetime: Duration? = nil,
        payload: (@Sendable () async throws -> [String: Value]?)?
    ) {
        self.deadline = deadline
        self.lifetime = lifetime
        self.payload = payload
    }

    func greeting() async throws(TransportError) -> [UInt8] {
        var message: [String: Value] = ["type": .string("connection_init")]
        if let payload, let given = try await prepared(by: deadline, { try await payload() }) {
            message["payload"] = .object(given)
        }
        if let fault = Value.object(message).fault {
            throw TransportError(.unusableRequest, "The payload of the connection cannot be sent: \(fault)")
        }
        return Value.object(message).json
    }

    func messages(for commands: [SubscriptionLine.Command]) -> [[UInt8]] {
        guard let last = commands.last else { return [] }
        var messages: [[UInt8]] = []
        var (starts, ends): ([String], [String]) = ([], [])
        for command in commands {
            switch command {
            case .start(let id, let request):
                messages.append(Self.subscribe(id, request))
                starts.append(id)
            case .stop(let id):
                messages.append(Self.message("complete", id))
                ends.append(id)
            }
        }
        // No two pings that acknowledge something have the same key.
        let key = if case .start(let id, _) = last { id } else { "end \(ends.last ?? "")" }
        pings.withLock { pings in
            if !pings.awaitsPong { (pings.sent, pings.pongs) = (0, 0) }
            pings.sent += 1
            pings.unanswered.append(UnansweredPing(key: key, number: pings.sent, starts: starts, ends: ends))
        }
        return messages + [Self.ping(key)]
    }

    private static func ping(_ key: String) -> [UInt8] {
        var json = Array(#"{"type":"ping","payload":{"\#(pingKey)":"#.utf8)
        appendJSONString(key, to: &json)
        return json + Array("}}".utf8)
    }

    /// - Parameter key: Of the ping that is answered; nil where the server does not say it.
    private func answered(_ key: String?) -> DialectReaction {
        pings.withLock { pings in
            if let key {
                guard let place = pings.unanswered.firstIndex(where: { $0.key == key }) else {
                    return DialectReaction(.alive)
                }
                pings.areRepeated = true
                var reaction = DialectReaction()
                reaction.messages = pings.unanswered.remove(at: place).meaning
                return reaction
            }
            guard pings.awaitsPong else { return DialectReaction(.alive) }
            pings.pongs += 1
            // One pong may have come unasked: the nth proves no more than that the ping before the nth was read.
            let count = pings.unanswered.prefix { $0.number < pings.pongs }.count
            var reaction = DialectReaction(.alive)
            reaction.messages += pings.unanswered.prefix(count).flatMap(\.meaning)
            pings.unanswered.removeFirst(count)
            if !pings.unanswered.isEmpty, pings.pongs >= pings.sent {
                pings.sent += 1
                // It is counted, and may overtake the messages whose ping is noted: by its key it acknowledges nothing.
                reaction.replies = [Self.ping("again")]
            }
            return reaction
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
            let isNew = pings.withLock { $0.unanswered.contains { $0.starts.contains(id) } }
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
        var json: [UInt8] = []
        json.reserveCapacity(request.document.utf8.count + request.variables.count + 128)
        json += #"{"id":"\#(id)","type":"subscribe","payload":{"query":"#.utf8
        appendJSONString(request.document, to: &json)
        if let name = request.operationName {
            json += #","operationName":"#.utf8
            appendJSONString(name, to: &json)
        }
        json += #","variables":"#.utf8
        if request.variables.isEmpty { json += "{}".utf8 } else { json += request.variables }
        json += "}}".utf8
        return json
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
