import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// What subscriptions of one connection share, and what they do not.
extension SubscriptionHubTests {
    private static let ids = GraphQLOperation("subscription { changed { id } }")

    private static func choosing(_ all: Bool) -> GraphQLOperation {
        GraphQLOperation(
            "subscription($all: Boolean!) { changed { id text @include(if: $all) } }",
            variables: ["all": .boolean(all)])
    }

    @Test("Subscriptions with different variables are started separately at the server")
    func variablesApart() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let first = try await app.subscribe(Self.choosing(true))
            let (connection, _) = try await transport.started()
            let other = try await app.subscribe(Self.choosing(false))
            // Commands arrive in order: if this start is the next one, the other one was not sent.
            let last = try await app.subscribe(Self.ids)
            for await case .start(_, let request) in connection.commands {
                #expect(request.variables == Array(#"{"all":false}"#.utf8))
                break
            }
            withExtendedLifetime([first, other, last]) {}
        }
    }

    @Test("A subscription's completeness is stored for each set of variables", arguments: [true, false])
    func knowsVariablesApart(all: Bool) async throws {
        try await withTemporaryFolder { folder in
            let first = Date(timeIntervalSince1970: 1_000_000)
            for (now, isAll) in [(first, true), (first + 100, all)] {
                var options = Store.Options()
                options.now = { now }
                let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema), options: options)
                let transport = ScriptedLine()
                let app = try store.partition(server: transport)
                let subscription = try await app.subscribe(
                    Self.choosing(isAll), options: SubscriptionOptions(catchUp: Self.items))
                #expect(subscription.state.staleSince == (isAll ? first : now))
                if now == first {
                    _ = try await transport.started()
                    try await eventually { try app.subscriptions().first?.completeUntil == now }
                }
                try store.close()
            }
        }
    }

    @Test("A subscription that several readers share is not stopped while one of them is left")
    func keptByOtherReader() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let kept = try await app.subscribe(Self.changed)
            let (connection, _) = try await transport.started()
            var other: Subscription? = try await app.subscribe(Self.changed)
            #expect(other?.state.phase != nil)
            other = nil
            // Gives the hub time to notice that one reader has gone.
            try await Task.sleep(for: .milliseconds(20))
            // Commands arrive in order: if this start is the next one, nothing was stopped.
            let last = try await app.subscribe(Self.ids)
            for await command in connection.commands {
                let isStart = if case .start = command { true } else { false }
                #expect(isStart, "\(command)")
                break
            }
            withExtendedLifetime([kept, last]) {}
        }
    }

    @Test("Each reader of a shared subscription is told its events")
    func tellsEachReader() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let first = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.started()
            let second = try await app.subscribe(Self.changed)
            await connection.line.tell(id, #"{"id":"1","text":"new"}"#)
            for subscription in [first, second] {
                var (events, text) = (subscription.makeAsyncIterator(), String?.none)
                while text == nil, let event = try await next(&events, within: .seconds(20)) {
                    if case .data(let response) = event { text = response["changed"]?["text"]?.string }
                }
                #expect(text == "new")
            }
        }
    }

    @Test("The events of a subscription are stored and told while another subscription catches up")
    func storesBesideCatchingUp() async throws {
        let (isAsked, isFree) = (Flag(), Flag())
        defer { isFree.set() }
        let transport = ScriptedLine { _ in
            isAsked.set()
            await isFree.wait()
            return #"{"data":{"items":[]}}"#
        }
        try await withApp(transport) { app in
            let plain = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.started()
            let other = try await app.subscribe(Self.ids, options: SubscriptionOptions(catchUp: Self.items))
            let otherID = try #require(await connection.nextStart())
            await connection.line.take(.started(id: otherID))
            await isAsked.wait()
            await connection.line.tell(id, #"{"id":"1","text":"new"}"#)
            var (events, isTold) = (plain.makeAsyncIterator(), false)
            while !isTold, let event = try await next(&events, within: .seconds(20)) {
                if case .data = event { isTold = true }
            }
            #expect(isTold && text(app) == "new")
            #expect(other.state.phase == .catchingUp)
            isFree.set()
        }
    }

    @Test("A subscription that joins one which is live is told so at once")
    func joinsLive() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let options = SubscriptionOptions(catchUp: Self.items)
            let first = try await app.subscribe(Self.changed, options: options)
            _ = try await transport.started()
            #expect(await state(first) { $0.phase == .live } != nil)
            let second = try await app.subscribe(Self.changed, options: options)
            #expect(second.state.phase == .live && second.state.staleSince == nil)
            withExtendedLifetime([first, second]) {}
        }
    }

    @Test("An event that is lost, or a subscription that fails, is a gap since the connection was heard of last before")
    func staleSinceHeardBefore() async throws {
        let start = Date(timeIntervalSince1970: 1_000_000)
        for isFailure in [true, false] {
            let clock = Mutex(start)
            var options = Store.Options()
            options.now = { clock.withLock { $0 } }
            let transport = ScriptedLine()
            try await withApp(transport, options) { app in
                let subscription = try await app.subscribe(Self.changed)
                let (connection, id) = try await transport.started()
                let live = try #require(await state(subscription) { $0.phase == .live })
                await subscription.noteCaughtUp(since: live)
                #expect(subscription.state.staleSince == nil)
                clock.withLock { $0 = start + 100 }
                let text = isFailure ? #"{"errors":[{"message":"too many"}]}"# : "3"
                let message: SubscriptionLine.Message =
                    isFailure
                    ? .failed(id: id, response: Array(text.utf8), mayRecover: true)
                    : .event(id: id, response: Array(text.utf8))
                await connection.line.take(message)
                try await eventually { subscription.state.staleSince != nil }
                #expect(subscription.state.staleSince == start)
            }
        }
    }

    @Test("A refusal of the protocol ends all subscriptions of its connection")
    func endsAll() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let subscriptions = [try await app.subscribe(Self.changed), try await app.subscribe(Self.ids)]
            let connection = try #require(await transport.next())
            connection.end(TransportError(.unusableRequest, "wrong"))
            try await eventually { subscriptions.contains { $0.state.phase == .ended } }
            // The hub ends them in one turn, and answers this call only after that turn.
            await subscriptions[0].noteCaughtUp(since: subscriptions[0].state)
            for subscription in subscriptions {
                #expect(subscription.state.phase == .ended)
                #expect(subscription.state.error?.code == .transportUnusableRequest)
            }
        }
    }

    @Test("Closing a store ends the subscriptions of each transport with the error parked")
    func endsOnEachTransport() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            var subscriptions: [Subscription] = []
            for transport in [ScriptedLine(), ScriptedLine()] {
                subscriptions.append(try await store.partition(server: transport).subscribe(Self.changed))
                _ = try await transport.started()
            }
            try store.close()
            try await eventually { subscriptions.allSatisfy { $0.state.phase == .ended } }
            for subscription in subscriptions { #expect(subscription.state.error?.code == .parked) }
        }
    }

    @Test(
        "A subscription that the server ends, with errors or without, ends no other of its connection",
        arguments: [true, false])
    func endsAlone(hasErrors: Bool) async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let first = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.started()
            let other = try await app.subscribe(Self.ids)
            let next = try #require(await connection.nextStart())
            await connection.line.take(.started(id: next))
            let errors = Array(#"{"errors":[{"message":"over"}]}"#.utf8)
            let message: SubscriptionLine.Message =
                hasErrors ? .failed(id: id, response: errors, mayRecover: false) : .completed(id: id)
            await connection.line.take(message)
            #expect(await state(first) { $0.phase == .ended } != nil)
            await connection.line.tell(next, #"{"id":"7"}"#)
            var isTold = false
            for await event in other {
                if case .data = event {
                    isTold = true
                    break
                }
            }
            #expect(isTold && other.state.phase == .live)
        }
    }

    @Test("A later reader of a shared subscription is told at once where it stands")
    func stateOfShared() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let first = try await app.subscribe(Self.changed)
            _ = try await transport.started()
            #expect(await state(first) { $0.phase == .live } != nil)
            let second = try await app.subscribe(Self.changed)
            #expect(second.state.phase == .live)
            withExtendedLifetime(first) {}
        }
    }

    @Test("A subscription whose answer broke off names the cause, and begins again on the same connection")
    func brokenAnswer() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let subscription = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.started()
            #expect(await state(subscription) { $0.phase == .live } != nil)
            await connection.line.take(.broken(id: id, TransportError(.interrupted, "cut")))
            let waiting = try #require(await state(subscription) { $0.phase == .connecting })
            #expect((waiting.error?.cause as? TransportError)?.code == .interrupted)
            #expect(await connection.nextStart() != nil)
            #expect(transport.attemptCount == 1)
        }
    }

    @Test("A subscription whose gaps a synchronization closes shares no start with one without")
    func synchronizationApart() async throws {
        let server = SyncServer()
        let transport = ScriptedLine(nulls: .ignore) { (try? await server.answer($0)) ?? "{}" }
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            let changed = GraphQLOperation("subscription { changed { id title } }")
            let plain = try await app.subscribe(changed)
            let (connection, _) = try await transport.started()
            let synchronized = try await app.subscribe(changed, options: SubscriptionOptions(sync: SyncServer.sync))
            // Commands arrive in order: if this start is the next one, the other one was not sent.
            let last = try await app.subscribe(GraphQLOperation("subscription Last { changed { id } }"))
            for await case .start(_, let request) in connection.commands {
                #expect(request.operationName == nil)
                break
            }
            withExtendedLifetime([plain, synchronized, last]) {}
        }
    }

    @Test("A change that deltas do not tell of lets a subscription fetch its query at once")
    func missedByQuery() async throws {
        let server = SyncServer()
        let asked = Mutex(0)
        let transport = ScriptedLine(nulls: .ignore) { request in
            asked.withLock { $0 += 1 }
            return (try? await server.answer(request)) ?? "{}"
        }
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            let subscription = try await app.subscribe(
                GraphQLOperation("subscription { changed { id title } }"),
                options: SubscriptionOptions(catchUp: GraphQLOperation("{ todos { id title } }")))
            _ = try await transport.started()
            #expect(await state(subscription) { $0.phase == .live } != nil)
            #expect(asked.withLock { $0 } == 1)
            let late = #"{"message":"m","errorType":"DeltaSyncWriteError","path":["update"]}"#
            let failing = ScriptedServer { (_: GraphQLRequest) in #"{"data":{"update":null},"errors":[\#(late)]}"# }
            let update = GraphQLOperation(
                "mutation Update($input: UpdateInput!) { update(input: $input) { id title } }",
                variables: ["input": ["id": "a", "title": "mine"]])
            await #expect(throws: LarderError.self) { _ = try await app.with(server: failing).send(update) }
            try await eventually { asked.withLock { $0 } == 2 }
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("A gap that was not closed stays one when the store is closed")
    func closedStale() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let transport = ScriptedLine()
            let subscription = try await store.partition(server: transport).subscribe(Self.changed)
            _ = try await transport.started()
            let stale = try #require(await state(subscription) { $0.phase == .live }?.staleSince)
            try store.close()
            #expect(await state(subscription) { $0.phase == .ended }?.staleSince == stale)
        }
    }

    /// Two subscriptions of one connection, of which the first misses nothing, with the id of the second.
    private func withTwo(
        _ body: (Subscription, Subscription, ScriptedLine.Opened, _ id: String) async throws -> Void
    ) async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let first = try await app.subscribe(Self.changed)
            let (connection, _) = try await transport.started()
            let second = try await app.subscribe(Self.ids)
            let id = try #require(await connection.nextStart())
            await connection.line.take(.started(id: id))
            #expect(await state(second) { $0.phase == .live } != nil)
            let live = try #require(await state(first) { $0.phase == .live })
            await first.noteCaughtUp(since: live)
            try await body(first, second, connection, id)
        }
    }

    @Test("What a program has fetched for one subscription closes the gap of no other")
    func closesOwnGap() async throws {
        try await withTwo { first, second, _, _ in
            #expect(first.state.staleSince == nil)
            #expect(second.state.staleSince != nil)
        }
    }

    @Test("An event that one subscription has lost is a gap of no other")
    func losesOwnEvent() async throws {
        try await withTwo { first, second, connection, id in
            await second.noteCaughtUp(since: second.state)
            #expect(second.state.staleSince == nil)
            await connection.line.take(.event(id: id, response: Array("3".utf8)))
            try await eventually { second.state.staleSince != nil }
            #expect(first.state.staleSince == nil)
        }
    }

    @Test("A synchronization that closes a gap after a restart asks for what has changed alone")
    func synchronizesChanges() async throws {
        let server = SyncServer()
        server.put("a", "a1")
        try await withTemporaryFolder { folder in
            for _ in 0..<2 {
                let store = try Store.open(at: folder, schema: try Schema(parsing: SyncServer.schema))
                let transport = ScriptedLine(nulls: .ignore) { (try? await server.answer($0)) ?? "{}" }
                let subscription = try await store.partition(server: transport).subscribe(
                    GraphQLOperation("subscription { changed { id title } }"),
                    options: SubscriptionOptions(sync: SyncServer.sync))
                _ = try await transport.started()
                #expect(await state(subscription) { $0.phase == .live } != nil)
                try store.close()
            }
            #expect(server.requests.map { $0.lastSync == nil } == [true, false])
        }
    }

    @Test("The last state of a subscription that the server completes has no error, though an event was lost before")
    func endsWithoutEarlierError() async throws {
        let transport = ScriptedLine()
        try await withApp(transport) { app in
            let subscription = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.started()
            await connection.line.tell(id, "3")
            #expect(await state(subscription) { $0.error != nil } != nil)
            await connection.line.take(.completed(id: id))
            let ended = try #require(await state(subscription) { $0.phase == .ended })
            #expect(ended.error == nil)
        }
    }
}
