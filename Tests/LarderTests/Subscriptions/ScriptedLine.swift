import Larder
import LarderRecords
import Synchronization
import Testing

/// A transport whose connections do what a test says: queries are answered from a closure, and subscriptions told what
/// the test tells them.
final class ScriptedLine: GraphQLTransport, SubscriptionTransport {
    /// A connection that is open.
    struct Opened: Sendable {
        let line: SubscriptionLine
        /// What the line asks, one by one.
        let commands: AsyncStream<SubscriptionLine.Command>
        /// How long its opening was given.
        let openingTime: Duration
        /// Ends it, with the reason.
        let end: @Sendable (TransportError?) -> Void

        /// The id of the subscription that is begun next.
        func nextStart() async -> String? {
            for await command in commands { if case .start(let id, _) = command { return id } }
            return nil
        }
    }

    let pacing: SubscriptionPacing
    let nullsInEvents: NullsInEvents
    let server: String?
    private let answer: @Sendable (GraphQLRequest) async -> String
    private let connections: AsyncStream<Opened>
    private let opening: AsyncStream<Opened>.Continuation
    private let attempts = Mutex(0)

    /// - Parameter answer: What a query is answered with.
    init(
        pacing: SubscriptionPacing = .quick, nulls: NullsInEvents = .trust, server: String? = nil,
        answer: @escaping @Sendable (GraphQLRequest) async -> String = { _ in #"{"data":{"items":[]}}"# }
    ) {
        self.pacing = pacing
        nullsInEvents = nulls
        self.server = server
        self.answer = answer
        (connections, opening) = AsyncStream.makeStream(of: Opened.self)
    }

    /// How often a connection was asked for.
    var attemptCount: Int { attempts.withLock { $0 } }

    /// The connection that is asked for next.
    func next() async -> Opened? {
        for await connection in connections { return connection }
        return nil
    }

    /// The connection that is opened next, with the first subscription on it acknowledged, and its id.
    func started() async throws -> (Opened, id: String) {
        let connection = try #require(await next())
        await connection.line.take(.opened)
        let id = try #require(await connection.nextStart())
        await connection.line.take(.started(id: id))
        return (connection, id)
    }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer {
        GraphQLAnswer(body: Array(await answer(request).utf8))
    }

    func carry(_ line: SubscriptionLine, openedWithin time: Duration) async throws(TransportError) {
        attempts.withLock { $0 += 1 }
        let (ends, ending) = AsyncStream.makeStream(of: TransportError?.self)
        let (commands, asking) = AsyncStream.makeStream(of: SubscriptionLine.Command.self)
        Task {
            for await together in line.commands { for command in together { asking.yield(command) } }
            asking.finish()
        }
        opening.yield(Opened(line: line, commands: commands, openingTime: time) { ending.yield($0) })
        for await end in ends {
            if let end { throw end }
            return
        }
    }
}

extension SubscriptionPacing {
    /// Without long pauses.
    static var quick: SubscriptionPacing {
        var pacing = SubscriptionPacing()
        pacing.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
        return pacing
    }
}

extension SubscriptionLine {
    /// Tells an event of an item.
    func tell(_ id: String, _ item: String) async {
        await take(.event(id: id, response: Array(#"{"data":{"changed":\#(item)}}"#.utf8)))
    }
}
