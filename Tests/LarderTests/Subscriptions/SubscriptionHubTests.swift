import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Subscriptions", .timeLimit(.minutes(5)))
struct SubscriptionHubTests {
    static let schema = """
        type Query { items: [Item!]! }
        type Subscription { changed: Item added: Item }
        type Item { id: ID! text: String }
        """
    static let changed = GraphQLOperation("subscription { changed { id text } }")
    static let ids = GraphQLOperation("subscription { changed { id } }")
    static let items = GraphQLOperation("query { items { id text } }")
    /// The subscription of a `SyncServer`.
    static let changedTodo = GraphQLOperation("subscription { changed { id title } }")
    static let catchingUp = SubscriptionOptions(catchUp: items)
    static let start = Date(timeIntervalSince1970: 1_000_000)

    @Test("A connection is given as much time for its opening as the transport's pacing says")
    func openingTime() async throws {
        let transport = ScriptedLine(pacing: .quick { $0.opening = .seconds(7) })
        try await withApp(transport) { app, _ in
            let subscription = try await app.subscribe(Self.changed)
            let connection = try #require(await transport.next())
            #expect(connection.openingTime == .seconds(7))
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("An event that came while the cache caught up is stored after what was fetched")
    func holdsEvents() async throws {
        let (asked, asking) = AsyncStream.makeStream(of: Void.self)
        let (released, releasing) = AsyncStream.makeStream(of: Void.self)
        let transport = ScriptedLine { _ in
            asking.finish()
            for await _ in released {}
            return #"{"data":{"items":[{"id":"1","text":"fetched"}]}}"#
        }
        try await withApp(transport) { app, _ in
            let (subscription, connection, id) = try await begin(app, transport, Self.catchingUp)
            for await _ in asked {}
            for text in ["newer", "newest"] { await connection.line.tell(id, #"{"id":"1","text":"\#(text)"}"#) }
            #expect(text(app) == nil)
            releasing.finish()
            // What was held back is in the cache by the time at which nothing is missing any more.
            #expect(await state(subscription) { $0.phase == .live } != nil)
            #expect(text(app) == "newest")
        }
    }

    @Test(
        "Where more events come than are held while the cache catches up, the query is fetched once more",
        arguments: [(1_024, 1), (1_025, 2)])
    func overflows(eventCount: Int, fetchCount: Int) async throws {
        let (asked, asking) = AsyncStream.makeStream(of: Void.self)
        let (released, releasing) = AsyncStream.makeStream(of: Void.self)
        let fetches = Mutex(0)
        let transport = ScriptedLine { _ in
            fetches.withLock { $0 += 1 }
            asking.finish()
            for await _ in released {}
            return #"{"data":{"items":[]}}"#
        }
        try await withApp(transport) { app, _ in
            let (subscription, connection, id) = try await begin(app, transport, Self.catchingUp)
            for await _ in asked {}
            for _ in 0..<eventCount { await connection.line.tell(id, #"{"id":"1","text":"x"}"#) }
            releasing.finish()
            #expect(await state(subscription) { $0.phase == .live } != nil)
            #expect(fetches.withLock { $0 } == fetchCount)
        }
    }

    @Test(
        "All subscriptions together hold back 16 MiB of events: the query of one that has no room is fetched once more",
        arguments: [(6, 2), (10, 3)])
    func overflowsTogether(mebibytes: Int, fetchCount: Int) async throws {
        let isReleased = Flag()
        let fetches = Mutex(0)
        let transport = ScriptedLine { _ in
            fetches.withLock { $0 += 1 }
            await isReleased.wait()
            return #"{"data":{"items":[]}}"#
        }
        try await withApp(transport) { app, _ in
            let (first, connection, id) = try await begin(app, transport, Self.catchingUp)
            let second = try await app.subscribe(
                Self.ids, options: SubscriptionOptions(catchUp: GraphQLOperation("query { items { id } }")))
            let other = try await connection.startNext()
            try await eventually { fetches.withLock { $0 } == 2 }
            let space = String(repeating: " ", count: 1 << 20)
            for (id, item) in [(id, #"{"id":"1","text":"x"}"#), (other, #"{"id":"1"}"#)] {
                for _ in 0..<mebibytes { await connection.line.tell(id, space + item) }
            }
            isReleased.set()
            for subscription in [first, second] {
                #expect(await state(subscription) { $0.phase == .live } != nil)
            }
            #expect(fetches.withLock { $0 } == fetchCount)
        }
    }

    @Test(
        "P391, P427: changes made while offline never arrive. A subscription is stale until what was missed was fetched"
    )
    func isStale() async throws {
        try await withApp { app, transport in
            let subscription = try await app.subscribe(Self.changed, options: Self.catchingUp)
            for _ in 0..<2 {
                let connection = try #require(await transport.next())
                #expect(subscription.state.staleSince != nil)
                await connection.line.take(.opened)
                try await connection.startNext()
                let live = try #require(await state(subscription) { $0.phase == .live })
                #expect(live.staleSince == nil)
                #expect(live.error == nil)
                connection.end(TransportError(.interrupted, "cut"))
                let cut = try #require(await state(subscription) { $0.phase == .connecting && $0.error != nil })
                #expect(cut.staleSince != nil)
                #expect(cut.error?.code == .transportInterrupted)
            }
        }
    }

    @Test("A connection that breaks before a gap was closed leaves the time at which the gap began")
    func staleSinceFirstGap() async throws {
        let clock = TestClock(Self.start)
        try await withApp(clock: clock) { app, transport in
            let subscription = try await app.subscribe(Self.changed, options: Self.catchingUp)
            #expect(subscription.state.staleSince == Self.start)
            let connection = try #require(await transport.next())
            clock.advance(by: .seconds(100))
            // The connection is heard of at the later time, and has a gap of its own from then on.
            await connection.line.take(.opened)
            connection.end(TransportError(.interrupted, "cut"))
            let cut = try #require(await state(subscription) { $0.phase == .connecting && $0.error != nil })
            #expect(cut.staleSince == Self.start)
        }
    }

    @Test("What a connection brings that was given up is dropped")
    func dropsLateEvents() async throws {
        try await withApp { app, transport in
            let subscription = try await app.subscribe(Self.changed)
            let (first, id) = try await transport.opened()
            first.end(TransportError(.interrupted, "cut"))
            let (second, other) = try await transport.opened()
            #expect(other != id)
            await first.line.tell(id, #"{"id":"1","text":"late"}"#)
            await first.line.tell(other, #"{"id":"1","text":"late"}"#)
            await second.line.tell(other, #"{"id":"2","text":"new"}"#)
            await readEvents(of: subscription)
            #expect(text(app) == nil)
            #expect(text(app, "2") == "new")
        }
    }

    @Test("A null in an event erases nothing where nulls are ignored, and a value where they are trusted")
    func nulls() async throws {
        for (nulls, expected) in [(NullsInEvents.ignore, "known"), (.trust, nil), (.fetch, "known")] {
            let transport = ScriptedLine(nulls: nulls)
            try await withApp(transport) { app, _ in
                try await app.write(Self.items, json: Array(#"{"items":[{"id":"1","text":"known"}]}"#.utf8))
                let subscription = try await app.subscribe(Self.changed)
                let (connection, id) = try await transport.opened()
                await connection.line.tell(id, #"{"id":"1","text":null}"#)
                await readEvents(of: subscription)
                #expect(text(app) == expected)
            }
        }
    }

    @Test("Where a null may mean anything, an event that has one lets the query be fetched again")
    func fetchesForNull() async throws {
        let fetches = Mutex(0)
        let transport = ScriptedLine(nulls: .fetch) { _ in
            let count = fetches.withLock { count in
                count += 1
                return count
            }
            return #"{"data":{"items":[{"id":"1","text":"fetch \#(count)"}]}}"#
        }
        try await withApp(transport) { app, _ in
            let (subscription, connection, id) = try await beginLive(app, transport, Self.catchingUp)
            #expect(text(app) == "fetch 1")
            await connection.line.tell(id, #"{"id":"1","text":null}"#)
            await readEvents(of: subscription)
            // Held back until the query has been answered.
            await connection.line.tell(id, #"{"id":"2","text":"new"}"#)
            try await eventually { text(app, "2") == "new" }
            #expect(fetches.withLock { $0 } == 2)
            #expect(text(app) == "fetch 2")
        }
    }

    @Test("S1213: events are dropped without a word. A slow reader is told how many, and the cache has them all")
    func countsMissed() async throws {
        try await withApp { app, transport in
            var options = SubscriptionOptions()
            options.bufferSize = 3
            let subscription = try await app.subscribe(Self.changed, options: options)
            let (connection, id) = try await transport.opened()
            for number in 0..<10 { await connection.line.tell(id, #"{"id":"\#(number)","text":"x"}"#) }
            try await eventually { text(app, "9") != nil }
            await connection.line.take(.completed(id: id))
            var (missed, data) = (0, 0)
            for await event in subscription {
                switch event {
                case .missed(let count): missed += count
                case .data: data += 1
                case .state: break
                }
            }
            #expect(missed == 7)
            #expect(data == 3)
        }
    }

    @Test("A server that does not acknowledge a subscription loses its connection")
    func givesUp() async throws {
        let transport = ScriptedLine(pacing: .quick { $0.starting = .milliseconds(20) })
        try await withApp(transport) { app, _ in
            let subscription = try await app.subscribe(Self.changed)
            let connection = try #require(await transport.next())
            await connection.line.take(.opened)
            _ = await connection.endAfterCommands().value
            let state = await state(subscription) { $0.error != nil }
            #expect(state?.error?.code == .transportTimedOut)
            #expect(await transport.next() != nil)
        }
    }

    @Test("A later subscription has its own time to be acknowledged")
    func givesUpLater() async throws {
        let transport = ScriptedLine(pacing: .quick { $0.starting = .milliseconds(400) })
        try await withApp(transport) { app, _ in
            let first = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.opened()
            try await Task.sleep(for: .milliseconds(200))
            await connection.line.take(.started(id: id))
            let asked = SuspendingClock.now
            let second = try await app.subscribe(Self.ids)
            _ = try #require(await connection.nextStart())
            for await _ in connection.commands {}
            // Longer than what was left of the first one's time.
            #expect(SuspendingClock.now - asked > .milliseconds(350))
            connection.end(nil)
            #expect(await state(second) { $0.error != nil }?.error?.code == .transportTimedOut)
            withExtendedLifetime(first) {}
        }
    }

    @Test("A refusal of the protocol ends all subscriptions, and nothing is tried again")
    func ends() async throws {
        try await withApp { app, transport in
            let subscription = try await app.subscribe(Self.changed)
            let connection = try #require(await transport.next())
            connection.end(TransportError(.unusableRequest, "wrong"))
            let state = await state(subscription) { $0.phase == .ended }
            #expect(state?.error?.code == .transportUnusableRequest)
            #expect(transport.attemptCount == 1)
        }
    }

    @Test("Closing a store ends its subscriptions with the error parked")
    func endsWithStore() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let transport = ScriptedLine()
            let subscription = try await store.partition(server: transport).subscribe(Self.changed)
            _ = try await transport.started()
            try store.close()
            #expect(await state(subscription) { $0.phase == .ended }?.error?.code == .parked)
        }
    }

    @Test("A failed catching up is tried again, and the subscription is stale until then")
    func triesAgain() async throws {
        let count = Mutex(0)
        let (released, releasing) = AsyncStream.makeStream(of: Void.self)
        let transport = ScriptedLine { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number == 3 else { return #"{"errors":[{"message":"not yet"}]}"# }
            for await _ in released {}
            return #"{"data":{"items":[]}}"#
        }
        try await withApp(transport) { app, _ in
            let (subscription, _, _) = try await begin(app, transport, Self.catchingUp)
            let failed = try #require(await state(subscription) { $0.error != nil })
            #expect(failed.staleSince != nil)
            #expect(failed.error?.code == .serverErrors)
            releasing.finish()
            let live = try #require(await state(subscription) { $0.phase == .live })
            #expect(live.staleSince == nil && live.error == nil)
            #expect(count.withLock { $0 } == 3)
        }
    }

    @Test("A partition whose transport carries no subscriptions says so")
    func refusesOtherTransport() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition()
            let error = await #expect(throws: LarderError.self) { _ = try await app.subscribe(Self.changed) }
            #expect(error?.code == .noTransport)
            try store.close()
        }
    }

    @Test("After a restart a subscription is stale from the time until which everything had come")
    func staleSinceRestart() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: Self.schema)
            let transport = ScriptedLine()
            let store = try Store.open(at: folder, schema: schema)
            let app = try store.partition(server: transport)
            let subscription = try await app.subscribe(Self.changed, options: Self.catchingUp)
            let connection = try #require(await transport.next())
            #expect(try app.subscriptions() == [])
            await connection.line.take(.opened)
            try await connection.startNext()
            #expect(await state(subscription) { $0.phase == .live } != nil)
            try await eventually { try app.subscriptions().count == 1 }
            let status = try #require(try app.subscriptions().first)
            #expect(status.name == "Subscription.changed")
            try store.close()

            let reopened = Date()
            let again = try Store.open(at: folder, schema: schema)
            let later = try await again.partition(server: ScriptedLine()).subscribe(
                Self.changed, options: Self.catchingUp)
            let staleSince = try #require(later.state.staleSince)
            #expect(staleSince >= status.completeUntil)
            #expect(staleSince < reopened)
            let other = try await again.partition(server: ScriptedLine()).subscribe(Self.ids)
            #expect(try #require(other.state.staleSince) >= reopened)
            try again.close()
        }
    }

    @Test("Up to when everything has come is listed in the order of the subscriptions' names")
    func listed() async throws {
        try await withApp { app, transport in
            let (changed, connection, _) = try await begin(app, transport, Self.catchingUp)
            let added = try await app.subscribe(
                GraphQLOperation("subscription { a: added { id } }"), options: Self.catchingUp)
            try await connection.startNext()
            for subscription in [changed, added] { #expect(await state(subscription) { $0.phase == .live } != nil) }
            try await eventually { try app.subscriptions().count == 2 }
            #expect(try app.subscriptions().map(\.name) == ["Subscription.added", "Subscription.changed"])
        }
    }

    @Test("A query is no subscription")
    func refusesQuery() async throws {
        try await withApp { app, _ in
            let error = await #expect(throws: LarderError.self) { _ = try await app.subscribe(Self.items) }
            #expect(error?.code == .operation)
        }
    }
}
