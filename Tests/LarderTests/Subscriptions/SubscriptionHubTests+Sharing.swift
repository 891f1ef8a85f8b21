import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

/// What subscriptions of one connection share, and what they do not.
extension SubscriptionHubTests {
    private static func choosing(_ all: Bool) -> GraphQLOperation {
        GraphQLOperation(
            "subscription($all: Boolean!) { changed { id text @include(if: $all) } }",
            variables: ["all": .boolean(all)])
    }

    @Test("Subscriptions with different variables are started separately at the server")
    func variablesApart() async throws {
        try await withApp { app, transport in
            let (first, connection, _) = try await begin(app, transport, of: Self.choosing(true))
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
            for (now, isAll) in [(Self.start, true), (Self.start + 100, all)] {
                let since = try await staleSince(
                    opening: folder, at: now, Self.choosing(isAll), begins: now == Self.start)
                #expect(since == (isAll ? Self.start : now))
            }
        }
    }

    @Test("A subscription that several readers share is not stopped while one of them is left")
    func keptByOtherReader() async throws {
        try await withApp { app, transport in
            let (kept, connection, _) = try await begin(app, transport)
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
        try await withApp { app, transport in
            let (first, connection, id) = try await begin(app, transport)
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
        try await withApp(transport) { app, _ in
            let (plain, connection, id) = try await begin(app, transport)
            let other = try await app.subscribe(Self.ids, options: Self.catchingUp)
            try await connection.startNext()
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
        try await withApp { app, transport in
            let (first, _, _) = try await beginLive(app, transport, Self.catchingUp)
            let second = try await app.subscribe(Self.changed, options: Self.catchingUp)
            #expect(second.state.phase == .live && second.state.staleSince == nil)
            withExtendedLifetime([first, second]) {}
        }
    }

    @Test("An event that is lost, or a subscription that fails, is a gap since the connection was heard of last before")
    func staleSinceHeardBefore() async throws {
        for isFailure in [true, false] {
            let clock = TestClock(Self.start)
            try await withApp(clock: clock) { app, transport in
                let (subscription, connection, id) = try await begin(app, transport)
                let live = try #require(await state(subscription) { $0.phase == .live })
                await subscription.noteCaughtUp(since: live)
                #expect(subscription.state.staleSince == nil)
                clock.advance(by: .seconds(100))
                let message: SubscriptionLine.Message =
                    isFailure ? .failure(of: id, "too many") : .event(id: id, response: Array("3".utf8))
                await connection.line.take(message)
                try await eventually { subscription.state.staleSince != nil }
                #expect(subscription.state.staleSince == Self.start)
            }
        }
    }

    @Test("A refusal of the protocol ends all subscriptions of its connection")
    func endsAll() async throws {
        try await withApp { app, transport in
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
        try await withApp { app, transport in
            let (first, connection, id) = try await begin(app, transport)
            let other = try await app.subscribe(Self.ids)
            let next = try await connection.startNext()
            let message: SubscriptionLine.Message =
                hasErrors ? .failure(of: id, "over", mayRecover: false) : .completed(id: id)
            await connection.line.take(message)
            #expect(await state(first) { $0.phase == .ended } != nil)
            await connection.line.tell(next, #"{"id":"7"}"#)
            let isTold = await readEvents(of: other)
            #expect(isTold && other.state.phase == .live)
        }
    }

    @Test("A later reader of a shared subscription is told at once where it stands")
    func stateOfShared() async throws {
        try await withApp { app, transport in
            let (first, _, _) = try await beginLive(app, transport)
            let second = try await app.subscribe(Self.changed)
            #expect(second.state.phase == .live)
            withExtendedLifetime(first) {}
        }
    }

    @Test("A subscription whose answer broke off names the cause, and begins again on the same connection")
    func brokenAnswer() async throws {
        try await withApp { app, transport in
            let (subscription, connection, id) = try await beginLive(app, transport)
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
            let (plain, connection, _) = try await begin(app, transport, of: Self.changedTodo)
            let synchronized = try await app.subscribe(
                Self.changedTodo, options: SubscriptionOptions(sync: SyncServer.sync))
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
            let options = SubscriptionOptions(catchUp: GraphQLOperation("{ todos { id title } }"))
            let (subscription, _, _) = try await beginLive(app, transport, of: Self.changedTodo, options)
            #expect(asked.withLock { $0 } == 1)
            await changeUntold(app)
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
        try await withApp { app, transport in
            let (first, connection, _) = try await begin(app, transport)
            let second = try await app.subscribe(Self.ids)
            let id = try await connection.startNext()
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
                    Self.changedTodo, options: SubscriptionOptions(sync: SyncServer.sync))
                _ = try await transport.started()
                #expect(await state(subscription) { $0.phase == .live } != nil)
                try store.close()
            }
            #expect(server.requests.map { $0.lastSync == nil } == [true, false])
        }
    }

    @Test("The last state of a subscription that the server completes has no error, though an event was lost before")
    func endsWithoutEarlierError() async throws {
        try await withApp { app, transport in
            let (subscription, connection, id) = try await begin(app, transport)
            await connection.line.tell(id, "3")
            #expect(await state(subscription) { $0.error != nil } != nil)
            await connection.line.take(.completed(id: id))
            let ended = try #require(await state(subscription) { $0.phase == .ended })
            #expect(ended.error == nil)
        }
    }
}
