import Foundation
import Larder
import LarderGraphQL
import LarderHTTP
import NIOCore
import NIOPosix
import Synchronization

/// Subscriptions and synchronization.
extension Bench {
    private static let schema = """
        scalar AWSTimestamp
        type Query {
          items: [Item]
          syncItems(limit: Int, nextToken: String, lastSync: AWSTimestamp): ItemConnection
        }
        type Subscription { changed: Item }
        type ItemConnection { items: [Item]! nextToken: String startedAt: AWSTimestamp }
        type Item @typePolicy(versioned: true) {
          id: ID! title: String note: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        """
    private static let changed = GraphQLOperation("subscription { changed { id title note } }")

    private func withItems<Result>(
        _ transport: any GraphQLTransport, _ body: (Partition) async throws -> Result
    ) async throws -> Result {
        let path = freshPath("events")
        defer { remove(path) }
        let store = try Store.open(at: URL(filePath: path), schema: Schema(parsing: Self.schema))
        let result = try await body(try store.partition(server: transport))
        try store.close()
        return result
    }

    private static func item(_ number: Int, _ version: Int, note: String = "") -> String {
        #"{"__typename":"Item","id":"\#(number)","title":"Title \#(version)","note":"\#(note)","_version":\#(version),"_deleted":null,"_lastChangedAt":\#(version)}"#
    }

    // MARK: event

    /// One event from memory, until the watcher has it.
    func event() async throws -> [BenchRow] {
        let transport = FramesInMemory()
        return try await withItems(transport) { app in
            let subscription = try await app.subscribe(Self.changed)
            let line = try await transport.opened()
            let fragment = GraphQLFragment("fragment F on Item { id title note }")
            let version = Version()
            func change(
                _ body: (Int) async throws -> Void
            ) async throws -> Double {
                var states = try app.watch("Item:1", fragment).makeAsyncIterator()
                _ = await states.next()
                return try await Measurement.time {
                    for _ in 0..<20 {
                        let next = version.next()
                        try await body(next)
                        while let state = await states.next(), state.response?["title"]?.string != "Title \(next)" {}
                    }
                } / 20
            }
            let times = try await Measurement.times(
                rounds: rounds * 3,
                [
                    {
                        try await change { number in
                            let event = #"{"data":{"changed":\#(Self.item(1, number))}}"#
                            await line.take(.event(id: "1", response: Array(event.utf8)))
                        }
                    },
                    {
                        try await change { number in
                            try await app.write("Item:1", fragment, json: Array(Self.item(1, number).utf8))
                        }
                    },
                ])
            withExtendedLifetime(subscription) {}
            return [
                BenchRow(
                    name: "event", what: "an event from memory, until the watcher has it", times,
                    floorName: "write of the same object", reach: .ratio(1.3))
            ]
        }
    }

    // MARK: events

    /// 10,000 events of 300 bytes over loopback.
    func events() async throws -> [BenchRow] {
        let count = 10_000
        let version = Version()
        /// Frames of one round: each object in its next version.
        func frames(_ id: String) -> [ByteBuffer] {
            let round = version.next()
            return (0..<count).map { number in
                var text =
                    #"{"id":"\#(id)","type":"next","payload":{"data":{"changed":"# + Self.item(number, round) + "}}}"
                let missing = 300 - text.utf8.count
                if missing > 0 {
                    text = text.replacing(
                        #""note":"""#, with: #""note":"\#(String(repeating: "x", count: missing))""#)
                }
                return ByteBuffer(string: text)
            }
        }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let rows = try await EventServer.run(.graphQL) { server, port in
            try await EventServer.run(.echo) { _, echoPort in
                try await HTTPTransport.withTransport(to: try Self.url(port)) { transport in
                    try await withItems(transport) { app in
                        var options = SubscriptionOptions()
                        options.bufferSize = count
                        let subscription = try await app.subscribe(Self.changed, options: options)
                        var events = subscription.makeAsyncIterator()
                        while subscription.state.phase != .live { _ = await events.next() }
                        let times = try await Measurement.times(
                            rounds: min(rounds, 7),
                            [
                                {
                                    let sent = frames("1")
                                    return await Measurement.time {
                                        server.send(sent)
                                        var told = 0
                                        while told < count, let event = await events.next() {
                                            switch event {
                                            case .data: told += 1
                                            case .missed(let missed): told += missed
                                            case .state: break
                                            }
                                        }
                                    }
                                },
                                {
                                    let sent = frames("1")
                                    let socket = try await BareSocket.open(echoPort, on: group) { text in
                                        keep(try? JSONSerialization.jsonObject(with: Data(text.readableBytesView)))
                                    }
                                    let time = await Measurement.time {
                                        socket.send(sent)
                                        await socket.wait(for: count)
                                    }
                                    try await socket.close()
                                    return time
                                },
                            ])
                        return [
                            BenchRow(
                                name: "events", what: "\(count) events of 300 bytes over loopback, stored and told",
                                times, floorName: "a bare WebSocket echo of them, and JSONSerialization",
                                reach: .ratio(1))
                        ]
                    }
                }
            }
        }
        try await group.shutdownGracefully()
        return rows
    }

    // MARK: sync

    /// 100,000 objects in pages of 1,000, from memory.
    func sync() async throws -> [BenchRow] {
        let count = min(largest, 100_000)
        let server = PagesInMemory(count: count)
        var growth: [Int] = []
        let times = try await Measurement.times(
            rounds: min(rounds, 5),
            [
                {
                    try await withItems(server) { app in
                        Memory.forgetPeak()
                        let before = Memory.current ?? 0
                        let time = try await Measurement.time {
                            let report = try await app.sync(Synchronization(PagesInMemory.operation))
                            guard report.objectCount == count else { throw BenchFailure("not all objects came") }
                        }
                        if let peak = Memory.peak { growth.append(peak - before) }
                        return time
                    }
                },
                {
                    try Measurement.time {
                        for body in server.bodies { keep(try JSONSerialization.jsonObject(with: Data(body))) }
                    }
                },
            ])
        return [
            BenchRow(
                name: "sync", what: "\(count) objects in pages of 1,000, from memory", times,
                floorName: "JSONSerialization of the pages", reach: .ratio(0.6)),
            BenchRow(
                name: "sync-memory", what: "most memory above what there was before", unit: .bytes,
                value: Double(growth.max() ?? 0), reach: .most(64 * 1_048_576)),
        ]
    }

    /// The answers of a delta query, made beforehand.
    private struct PagesInMemory: GraphQLTransport {
        static let operation = GraphQLOperation(
            """
            query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
              syncItems(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                items { id title note } nextToken startedAt
              }
            }
            """)
        let bodies: [[UInt8]]

        init(count: Int) {
            bodies = stride(from: 0, to: count, by: 1_000).map { start in
                let end = min(start + 1_000, count)
                let items = (start..<end).map { item($0, 1, note: "a note of some length") }.joined(separator: ",")
                let next = end < count ? "\"\(end)\"" : "null"
                return Array(
                    #"{"data":{"syncItems":{"items":[\#(items)],"nextToken":\#(next),"startedAt":1700000000000}}}"#.utf8
                )
            }
        }

        func send(
            _ request: GraphQLRequest, within time: Duration
        ) async throws(TransportError) -> GraphQLAnswer {
            guard case .object(let values)? = try? Value(json: request.variables),
                case .string(let token)? = values["nextToken"], let start = Int(token)
            else { return GraphQLAnswer(body: bodies[0]) }
            return GraphQLAnswer(body: bodies[start / 1_000])
        }
    }

    // MARK: resubscribe

    /// 100 subscriptions after a cut, until all have begun again.
    func resubscribe() async throws -> [BenchRow] {
        let count = 100
        let operations = (0..<count).map { GraphQLOperation("subscription { a\($0): changed { id title note } }") }
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        let rows = try await EventServer.run(.graphQL) { server, port in
            var options = HTTPTransport.Options()
            options.subscriptions.pacing.backoff = Backoff(first: .zero, cap: .zero)
            return try await HTTPTransport.withTransport(to: try Self.url(port), options: options) { transport in
                try await withItems(transport) { app in
                    var subscriptions: [Subscription] = []
                    for operation in operations { subscriptions.append(try await app.subscribe(operation)) }
                    var readers = subscriptions.map { $0.makeAsyncIterator() }
                    /// Reads all states until each subscription has told that it is live, again.
                    func waitUntilLive() async {
                        for index in readers.indices {
                            while let event = await readers[index].next() {
                                if case .state(let state) = event, state.phase == .live { break }
                            }
                        }
                    }
                    await waitUntilLive()
                    let starts = operations.enumerated().flatMap { number, operation in
                        [
                            ByteBuffer(
                                string: #"{"id":"\#(number)","type":"subscribe","payload":{"query":""#
                                    + #"\#(operation.document)","variables":{}}}"#),
                            ByteBuffer(string: #"{"type":"ping","payload":{"larder":"\#(number)"}}"#),
                        ]
                    }
                    let times = try await Measurement.times(
                        rounds: rounds,
                        [
                            {
                                await Measurement.time {
                                    server.cut()
                                    await waitUntilLive()
                                }
                            },
                            {
                                try await Measurement.time {
                                    let socket = try await BareSocket.open(port, on: group) { keep($0) }
                                    socket.send([ByteBuffer(string: #"{"type":"connection_init"}"#)])
                                    await socket.wait(for: 1)
                                    socket.send(starts)
                                    await socket.wait(for: 1 + count)
                                    try await socket.close()
                                }
                            },
                        ])
                    return [
                        BenchRow(
                            name: "resubscribe", what: "\(count) subscriptions after a cut, over loopback", times,
                            floorName: "bare starts of as many", reach: .ratio(1.5))
                    ]
                }
            }
        }
        try await group.shutdownGracefully()
        return rows
    }

    private static func url(_ port: Int) throws -> URL {
        guard let url = URL(string: "http://127.0.0.1:\(port)/graphql") else { throw BenchFailure("no URL") }
        return url
    }
}

/// Counts on.
private final class Version: Sendable {
    private let value = Mutex(0)

    func next() -> Int {
        value.withLock { value in
            value += 1
            return value
        }
    }
}

/// A connection whose events come from memory.
private final class FramesInMemory: GraphQLTransport, SubscriptionTransport {
    private let lines: AsyncStream<SubscriptionLine>
    private let opening: AsyncStream<SubscriptionLine>.Continuation

    init() { (lines, opening) = AsyncStream.makeStream(of: SubscriptionLine.self) }

    var pacing: SubscriptionPacing { SubscriptionPacing() }
    var nullsInEvents: NullsInEvents { .trust }

    /// The connection, once the subscription `1` has begun on it.
    func opened() async throws -> SubscriptionLine {
        for await line in lines { return line }
        throw BenchFailure("no connection")
    }

    func send(
        _ request: GraphQLRequest, within time: Duration
    ) async throws(TransportError) -> GraphQLAnswer { GraphQLAnswer(body: Array(#"{"data":{"items":[]}}"#.utf8)) }

    func carry(_ line: SubscriptionLine, openedWithin time: Duration) async throws(TransportError) {
        await line.take(.opened)
        for await together in line.commands {
            for case .start(let id, _) in together {
                await line.take(.started(id: id))
                opening.yield(line)
            }
        }
    }
}
