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

        /// Acknowledges the subscription that is begun next, and gives its id.
        @discardableResult
        func startNext(sourceLocation: SourceLocation = #_sourceLocation) async throws -> String {
            let id = try #require(await nextStart(), sourceLocation: sourceLocation)
            await line.take(.started(id: id))
            return id
        }

        /// Ends the connection once the hub has no more commands for it.
        ///
        /// - Returns: A task that returns the ids of the subscriptions that the hub has stopped.
        @discardableResult
        func endAfterCommands() -> Task<[String], Never> {
            Task {
                var ended: [String] = []
                for await case .stop(let id) in commands { ended.append(id) }
                end(nil)
                return ended
            }
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

    /// The connection that is opened next, and the id of the first subscription on it, which is not acknowledged yet.
    func opened(sourceLocation: SourceLocation = #_sourceLocation) async throws -> (Opened, id: String) {
        let connection = try #require(await next(), sourceLocation: sourceLocation)
        await connection.line.take(.opened)
        return (connection, try #require(await connection.nextStart(), sourceLocation: sourceLocation))
    }

    /// The connection that is opened next, with the first subscription on it acknowledged, and its id.
    func started(sourceLocation: SourceLocation = #_sourceLocation) async throws -> (Opened, id: String) {
        let (connection, id) = try await opened(sourceLocation: sourceLocation)
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

    /// `quick`, with what a test changes.
    static func quick(_ change: (inout SubscriptionPacing) -> Void) -> SubscriptionPacing {
        var pacing: SubscriptionPacing = .quick
        change(&pacing)
        return pacing
    }
}

extension Backoff {
    /// Pauses that outlast each test.
    static let endless = Backoff(first: .seconds(80_000), cap: .seconds(80_000))
}

extension SubscriptionLine.Message {
    /// The server ends a subscription with an error.
    static func failure(of id: String, _ message: String, mayRecover: Bool = true) -> Self {
        let response = #"{"errors":[{"message":"\#(message)"}]}"#
        return .failed(id: id, response: Array(response.utf8), mayRecover: mayRecover)
    }
}

extension SubscriptionLine {
    /// Tells an event of an item.
    func tell(_ id: String, _ item: String) async {
        await take(.event(id: id, response: Array(#"{"data":{"changed":\#(item)}}"#.utf8)))
    }
}
