import Foundation
import Larder
import LarderFiles
import LarderGraphQL
import LarderHTTP
import LarderRecords

/// AppSync's real-time protocol on a WebSocket
/// (https://docs.aws.amazon.com/appsync/latest/devguide/real-time-websocket-client.html).
///
/// The proof of who asks goes with the handshake and with each start, a signature over exactly what is asked. The server
/// acknowledges each start, and says how long it may be silent.
final class AppSyncRealTime: SubscriptionDialect {
    /// What proves who asks, as the server is given it.
    enum Proof: Sendable, Hashable {
        case key(String)
        case token(String)
        case credentials(Credentials.CloudCredentials, region: String)
    }

    private struct State {
        /// Got last.
        var proof: Proof?
        /// The proof that the server did not take, so that another is got next.
        var refused: Proof?
        var hasOpened = false
        /// By the ids of the starts that the server has not answered.
        var proofs: [String: Proof] = [:]
        /// The proofs that were refused since a start was taken.
        var refusedProofs: Set<Proof> = []
    }

    static let subprotocol = "graphql-ws"
    private static let headers = [
        GraphQLRequest.Header(name: "accept", value: "application/json, text/javascript"),
        GraphQLRequest.Header(name: "content-encoding", value: "amz-1.0"),
        GraphQLRequest.Header(name: "content-type", value: "application/json; charset=UTF-8"),
    ]

    private let endpoint: URL
    private let authorization: AppSyncAuthorization
    private let pacing: SubscriptionPacing
    private let wallClock: @Sendable () -> Date
    private let signing: SigningClock
    private let state: Locked<State>

    /// - Parameter refused: The proof that the server did not take in an earlier handshake.
    init(
        _ endpoint: URL, _ authorization: AppSyncAuthorization, _ pacing: SubscriptionPacing, refused: Proof? = nil,
        wallClock: @escaping @Sendable () -> Date, signing: SigningClock
    ) {
        self.endpoint = endpoint
        self.authorization = authorization
        self.pacing = pacing
        self.wallClock = wallClock
        self.signing = signing
        state = Locked(State(refused: refused))
    }

    /// The proof that the handshake was made with and the server did not take; nil where the connection was opened.
    var refusedAtOpening: Proof? { state.withLock { $0.hasOpened ? nil : $0.proof } }

    // MARK: The handshake

    /// Opens a socket with the proof in its headers, where no log of URLs has it.
    func connection(by deadline: SuspendingClock.Instant) async throws(TransportError) -> WebSocketConnection {
        let proof = Value.object(try await proof(of: "connect", Array("{}".utf8), by: deadline)).json
        let encoded = Data(proof).base64EncodedString()
            .replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        var connection = WebSocketConnection(
            url: AppSyncEndpoint.realTime(of: endpoint), subprotocols: [Self.subprotocol, "header-\(encoded)"])
        // AppSync keeps the connection alive by messages of its own, and tells how often.
        connection.pings = false
        connection.heard = { [signing] in signing.hear($0) }
        return connection
    }

    func greeting() -> [UInt8] { Array(#"{"type":"connection_init"}"#.utf8) }

    // MARK: Messages

    func messages(for commands: [SubscriptionLine.Command]) async throws(TransportError) -> [[UInt8]] {
        var messages: [[UInt8]] = []
        for command in commands { messages.append(try await message(for: command)) }
        return messages
    }

    private func message(for command: SubscriptionLine.Command) async throws(TransportError) -> [UInt8] {
        switch command {
        case .start(let id, let request):
            var data = Array(#"{"query":"#.utf8)
            appendJSONString(request.document, to: &data)
            data += Array(#","variables":"#.utf8) + (request.variables.isEmpty ? Array("{}".utf8) : request.variables)
            data.append(UInt8(ascii: "}"))
            let proof = try await proof(of: "", data, by: .now + pacing.starting)
            state.withLock { $0.proofs[id] = $0.proof }
            return Value.object([
                "id": .string(id), "type": "start",
                "payload": [
                    "data": .string(String(decoding: data, as: UTF8.self)),
                    "extensions": ["authorization": .object(proof)],
                ],
            ]).json
        case .stop(let id): return Value.object(["id": .string(id), "type": "stop"]).json
        }
    }

    func reaction(to message: JSONMembers) throws(TransportError) -> DialectReaction {
        let id = message.string("id")
        switch (message.string("type"), id) {
        case ("connection_ack", _):
            let proof = state.withLock { state in
                state.hasOpened = true
                return state.proof
            }
            var reaction = DialectReaction(.opened, .expiring(after: lifetime(of: proof)))
            reaction.silence = silence(of: message)
            return reaction
        case ("start_ack", let id?):
            state.withLock { state in
                state.proofs[id] = nil
                state.refusedProofs = []
            }
            return DialectReaction(.started(id: id))
        case ("data", let id?):
            guard let payload = message["payload"] else {
                throw TransportError(.unusableAnswer, "AppSync sent an event without payload.")
            }
            return DialectReaction(.event(id: id, response: payload))
        case ("error", let id?):
            let errors = errors(of: message)
            return DialectReaction(
                .failed(
                    id: id, response: Value.object(["errors": .list(errors)]).json, mayRecover: mayRecover(errors, id)))
        case ("complete", let id?): return DialectReaction(.completed(id: id))
        case ("connection_error", _), ("error", nil): throw end(errors(of: message))
        // AppSync may say more than it does today; `ka` says that it is there.
        default: return DialectReaction(.alive)
        }
    }

    /// After how long another connection is to take this one's place: before AppSync ends it after 24 hours, and before
    /// the proof ends with which it was opened.
    private func lifetime(of proof: Proof?) -> Duration {
        let limit = Duration.seconds(24 * 3_600 - 600)
        guard let end = proof?.expires else { return limit }
        let left = end.timeIntervalSince(wallClock())
        guard left.isFinite, left > 0 else { return limit }
        return min(limit, .seconds(left - min(60, left / 10)))
    }

    func meaning(of end: WebSocketClosed) -> TransportError {
        let code = end.code.map { " (\($0))" } ?? ""
        return TransportError(
            .interrupted, "AppSync has closed the connection\(code)\(end.reason.isEmpty ? "" : ": \(end.reason)")",
            cause: end)
    }

    // MARK: What the server says

    /// How long AppSync may be silent: `connectionTimeoutMs` of its message, from 1 second to 1 hour; else 5 minutes.
    private func silence(of message: JSONMembers) -> Duration {
        var told: Value? = message.value("connectionTimeoutMs")
        if case .object(let payload)? = message.value("payload") { told = payload["connectionTimeoutMs"] ?? told }
        guard case .int(let milliseconds)? = told, milliseconds > 0 else { return .seconds(300) }
        return .milliseconds(min(max(milliseconds, 1_000), 3_600_000))
    }

    /// The errors of a message: AppSync sends a list of them, or one alone.
    private func errors(of message: JSONMembers) -> [Value] {
        guard case .object(let payload)? = message.value("payload") else { return [] }
        return switch payload["errors"] {
        case .list(let errors)?: errors
        case let error?: [error]
        case nil: [.object(payload)]
        }
    }

    private func types(_ errors: [Value]) -> [String] {
        errors.compactMap { error in
            guard case .object(let members) = error, case .string(let type)? = members["errorType"] else { return nil }
            return type
        }
    }

    private func mayRecover(_ errors: [Value], _ id: String) -> Bool {
        let types = types(errors)
        func contains(_ kind: AppSyncErrorType) -> Bool { types.contains { kind.matches($0) } }
        if AppSyncErrorType.refusalsOfProofs.contains(where: { contains(AppSyncErrorType(rawValue: $0)) }) {
            // One other proof is got, by which all starts that were refused with the first are made again.
            return state.withLock { state in
                guard let proof = state.proofs.removeValue(forKey: id) else { return false }
                state.refusedProofs.insert(proof)
                if state.proof == proof { state.refused = proof }
                return state.refusedProofs.count == 1
            }
        }
        state.withLock { _ = $0.proofs.removeValue(forKey: id) }
        return contains(.maximumSubscriptionsReached) || contains(.limitExceeded) || contains(.internalFailure)
            || types.contains("MaxSubscriptionsReachedException")
    }

    private func end(_ errors: [Value]) -> TransportError {
        let types = types(errors)
        let said = types.isEmpty ? "" : ": \(types.joined(separator: ", "))"
        // A proof that ended on an open connection says nothing of the next one, which is got for the next handshake.
        let hasOpened = state.withLock { $0.hasOpened }
        let refusals = (AppSyncErrorType.refusalsOfSignatures + AppSyncErrorType.refusalsOfProofs)
            .map(AppSyncErrorType.init)
        if !hasOpened, types.contains(where: { type in refusals.contains { $0.matches(type) } }) {
            return TransportError(.notSignedIn, "AppSync did not take the proof of who asks\(said)")
        }
        if types.contains(where: { AppSyncErrorType.badRequestException.matches($0) }) {
            return TransportError(.unusableRequest, "AppSync does not take the connection\(said)")
        }
        return TransportError(.interrupted, "AppSync has ended the connection\(said)")
    }

    // MARK: Proofs

    /// The proof for a request, in the shape that the protocol has for it.
    private func proof(
        of path: String, _ body: [UInt8], by deadline: SuspendingClock.Instant
    ) async throws(TransportError) -> [String: Value] {
        let host = Value.string(endpoint.hostOnTheWire)
        let proof = try await proof(by: deadline)
        switch proof {
        case .key(let key): return ["host": host, "x-api-key": .string(key)]
        case .token(let token): return ["host": host, "Authorization": .string(token)]
        case .credentials(let credentials, let region):
            var members = ["host": host]
            let signed = RequestSignature.headers(
                to: path.isEmpty ? endpoint : endpoint.appending(path: path), Self.headers, body: body, credentials,
                service: "appsync",
                region: region, at: signing.now)
            for header in Self.headers + signed { members[Self.spelling(header.name)] = .string(header.value) }
            return members
        }
    }

    private static func spelling(_ name: String) -> String {
        switch name {
        case "authorization": "Authorization"
        case "x-amz-security-token": "X-Amz-Security-Token"
        default: name
        }
    }

    private func proof(by deadline: SuspendingClock.Instant) async throws(TransportError) -> Proof {
        let refused = state.withLock { $0.refused }
        let proof: Proof
        switch authorization {
        case .apiKey(let key): proof = .key(key)
        case .iam(let region, let source):
            var old: Credentials.CloudCredentials?
            if case .credentials(let credentials, _)? = refused { old = credentials }
            proof = .credentials(try await get(source, old, deadline), region: region)
        case .userPool(let source), .openIDConnect(let source), .lambda(let source):
            var old: String?
            if case .token(let token)? = refused { old = token }
            proof = .token(try await get(source, old, deadline))
        }
        state.withLock { state in
            state.proof = proof
            if state.refused != proof { state.refused = nil }
        }
        return proof
    }

    private func get<Given: Sendable>(
        _ source: @escaping AppSyncAuthorization.Source<Given>, _ refused: Given?, _ deadline: SuspendingClock.Instant
    ) async throws(TransportError) -> Given {
        try await prepared(by: deadline) { try await source(refused, .until(deadline)) }
    }
}

extension AppSyncRealTime.Proof {
    /// When it ends; nil where it does not, or does not say so.
    fileprivate var expires: Date? {
        switch self {
        case .key: nil
        case .credentials(let credentials, _): credentials.expires
        case .token(let token): Self.end(of: token)
        }
    }

    /// The claim `exp` of a JSON Web Token; nil where the token is none.
    private static func end(of token: String) -> Date? {
        let parts = token.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        let text = parts[1].replacing("-", with: "+").replacing("_", with: "/")
        let padding = String(repeating: "=", count: (4 - text.utf8.count % 4) % 4)
        guard let json = Data(base64Encoded: text + padding),
            case .object(let claims)? = try? Value(json: Array(json)), case .int(let seconds)? = claims["exp"]
        else { return nil }
        return Date(timeIntervalSince1970: Double(seconds))
    }
}
