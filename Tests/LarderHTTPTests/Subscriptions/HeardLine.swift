import Larder
import LarderHTTP
import Synchronization
import Testing

/// A line on which a subscription with the id 1 is asked for, and what its transport has told of it.
final class HeardLine: Sendable {
    private let commands: AsyncStream<[SubscriptionLine.Command]>
    private let commanding: AsyncStream<[SubscriptionLine.Command]>.Continuation
    private let heard = Mutex<[SubscriptionLine.Message]>([])
    private let endsWithSubscription: Bool

    /// - Parameter endsWithSubscription: Whether the line's commands end when a subscription of it does.
    init(_ request: GraphQLRequest = .query(), endsWithSubscription: Bool = false) {
        (commands, commanding) = AsyncStream.makeStream(of: [SubscriptionLine.Command].self)
        self.endsWithSubscription = endsWithSubscription
        command(.start(id: "1", request))
    }

    private var messages: [SubscriptionLine.Message] { heard.withLock { $0 } }

    var told: [String] { messages.map { "\($0)" } }

    var hasBegun: Bool { told.contains { $0.hasPrefix("started") } }

    /// Why subscriptions of the line have broken off.
    var faults: [TransportError.Code] {
        messages.compactMap { if case .broken(_, let error) = $0 { error.code } else { nil } }
    }

    func command(_ command: SubscriptionLine.Command) { commanding.yield([command]) }

    func end() { commanding.finish() }

    /// Returns when the line's commands have ended.
    func carry(by transport: HTTPTransport) async throws {
        let line = SubscriptionLine(commands: commands) { [self] messages in
            heard.withLock { $0 += messages }
            guard endsWithSubscription else { return }
            for message in messages {
                switch message {
                case .completed, .failed, .broken: end()
                default: break
                }
            }
        }
        try await transport.carry(line, openedWithin: .ample)
    }
}

/// Expects that a query which begins after a subscription has begun joins none that began before it.
///
/// - Parameters:
///   - server: Answers queries once `gate` is open.
///   - count: How many requests it has seen once both queries have come.
func expectAskedAgainAfterStart(
    _ transport: HTTPTransport, at server: ScriptedServer, _ gate: Gate, requests count: Int,
    sourceLocation: SourceLocation = #_sourceLocation
) async throws {
    let early = Task { try await transport.send(.query(), within: .ample) }
    try await server.waitUntil("the query arrives", sourceLocation: sourceLocation) { $0.requests.count == 1 }
    let line = HeardLine()
    let carrying = Task { try await line.carry(by: transport) }
    try await waitUntil("it has begun", sourceLocation: sourceLocation) { line.hasBegun }
    let late = Task { try await transport.send(.query(), within: .ample) }
    try await server.waitUntil("the late query arrives", sourceLocation: sourceLocation) { $0.requests.count == count }
    gate.open()
    for task in [early, late] { _ = try await task.value }
    line.end()
    try await carrying.value
}
