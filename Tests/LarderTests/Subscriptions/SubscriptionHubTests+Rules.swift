import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

extension SubscriptionHubTests {
    @Test("Equal subscriptions share one at the server; with another query, other nulls or headers they do not")
    func sharesStarts() async throws {
        try await withApp { app, transport in
            let plain = Self.catchingUp
            var (tenant, nulls) = (plain, plain)
            tenant.headers = [.init(name: "x-tenant", value: "b")]
            nulls.nulls = .ignore
            var subscriptions = [try await app.subscribe(Self.changed, options: plain)]
            let (connection, _) = try await transport.started()
            for options in [plain, tenant, nulls, SubscriptionOptions()] {
                subscriptions.append(try await app.subscribe(Self.changed, options: options))
            }
            subscriptions.append(try await app.subscribe(Self.ids))
            var others = 0
            for await case .start(_, let request) in connection.commands {
                guard request.document.contains("text") else { break }
                others += 1
            }
            #expect(others == 3)
            #expect(transport.attemptCount == 1)
            withExtendedLifetime(subscriptions) {}
        }
    }

    @Test("The server is told that a subscription has ended while another of its connection goes on")
    func stops() async throws {
        try await withApp { app, transport in
            let (kept, connection, _) = try await begin(app, transport)
            var other: Subscription? = try await app.subscribe(Self.ids)
            let id = try #require(await connection.nextStart())
            #expect(other?.state.phase != nil)
            other = nil
            for await case .stop(let stopped) in connection.commands {
                #expect(stopped == id)
                break
            }
            withExtendedLifetime(kept) {}
        }
    }

    @Test(
        "Without a query a subscription is stale until the program says that it has closed this gap, and no later one")
    func isCaughtUpByProgram() async throws {
        try await withApp { app, transport in
            let subscription = try await app.subscribe(Self.changed)
            await subscription.noteCaughtUp(since: subscription.state)
            #expect(subscription.state.staleSince != nil)
            let (connection, _) = try await transport.started()
            let first = try #require(await state(subscription) { $0.phase == .live })
            #expect(first.staleSince != nil)
            connection.end(TransportError(.interrupted, "cut"))
            let (second, id) = try await transport.started()
            let state = try #require(await state(subscription) { $0.phase == .live })
            #expect(state.error == nil)
            await subscription.noteCaughtUp(since: first)
            #expect(subscription.state.staleSince != nil)
            await second.line.tell(id, #"{"id":"1","text":"in the gap"}"#)
            try await eventually { text(app) == "in the gap" }
            #expect(try app.subscriptions() == [])
            await subscription.noteCaughtUp(since: state)
            #expect(subscription.state.staleSince == nil)
            try await eventually { try app.subscriptions().count == 1 }
        }
    }

    @Test("Where a query closes gaps, the program closes none before that is answered")
    func isCaughtUpByQueryAlone() async throws {
        let (isAsked, isReleased) = (Flag(), Flag())
        let transport = ScriptedLine { _ in
            isAsked.set()
            await isReleased.wait()
            return #"{"data":{"items":[]}}"#
        }
        try await withApp(transport) { app, _ in
            let (subscription, _, _) = try await begin(app, transport, Self.catchingUp)
            await isAsked.wait()
            await subscription.noteCaughtUp(since: subscription.state)
            #expect(subscription.state.staleSince != nil)
            isReleased.set()
            #expect(await state(subscription) { $0.phase == .live && $0.staleSince == nil } != nil)
        }
    }

    @Test(
        "An event that does not fit, or has no data, is a gap, for which the query is fetched once more",
        arguments: [#"{"data":{"changed":3}}"#, #"{"data":null,"errors":[{"message":"no"}]}"#])
    func fetchesForLostEvent(event: String) async throws {
        let fetches = Mutex(0)
        let transport = ScriptedLine { _ in
            fetches.withLock { $0 += 1 }
            return #"{"data":{"items":[]}}"#
        }
        try await withApp(transport) { app, _ in
            let (subscription, connection, id) = try await beginLive(app, transport, Self.catchingUp)
            await connection.line.take(.event(id: id, response: Array(event.utf8)))
            try await eventually { fetches.withLock { $0 } == 2 }
            let live = try #require(await state(subscription) { $0.phase == .live && $0.staleSince == nil })
            #expect(live.error == nil)
            #expect(fetches.withLock { $0 } == 2)
        }
    }

    @Test("What the server told before it ended a subscription is stored and told, also while the query is fetched")
    func storesBeforeEnd() async throws {
        let ends: [(String) -> SubscriptionLine.Message] = [
            { .completed(id: $0) }, { .failure(of: $0, "over", mayRecover: false) },
        ]
        for end in ends {
            let (released, releasing) = AsyncStream.makeStream(of: Void.self)
            let transport = ScriptedLine { _ in
                for await _ in released {}
                return #"{"data":{"items":[]}}"#
            }
            try await withApp(transport) { app, _ in
                let (subscription, connection, id) = try await begin(app, transport, Self.catchingUp)
                await connection.line.tell(id, #"{"id":"1","text":"last"}"#)
                await connection.line.take(end(id))
                var dataCount = 0
                for await event in subscription { if case .data = event { dataCount += 1 } }
                #expect(dataCount == 1)
                #expect(text(app) == "last")
                #expect(subscription.state.phase == .ended)
                if case .failed = end(id) {
                    #expect(subscription.state.error?.code == .serverErrors)
                    #expect(subscription.state.error?.errors.map(\.message) == ["over"])
                } else {
                    #expect(subscription.state.error == nil)
                }
                releasing.finish()
            }
        }
    }

    @Test("That an event came without data is told with the errors that the server reported")
    func errorsOfLostEvent() async throws {
        try await withApp { app, transport in
            let (subscription, connection, id) = try await begin(app, transport)
            let event = #"{"data":null,"errors":[{"message":"no"}]}"#
            await connection.line.take(.event(id: id, response: Array(event.utf8)))
            let failed = try #require(await state(subscription) { $0.error != nil })
            #expect(failed.error?.code == .serverErrors && failed.error?.errors.map(\.message) == ["no"])
        }
    }

    @Test("A subscription that may recover is started again on the same connection, and stale until then")
    func startsAgain() async throws {
        try await withApp { app, transport in
            let (subscription, connection, id) = try await beginLive(app, transport, Self.catchingUp)
            await connection.line.take(.failure(of: id, "too many"))
            let failed = try #require(await state(subscription) { $0.phase == .connecting })
            #expect(failed.staleSince != nil)
            #expect(failed.error?.code == .serverErrors)
            try await connection.startNext()
            #expect(await state(subscription) { $0.phase == .live && $0.staleSince == nil } != nil)
            #expect(transport.attemptCount == 1)
        }
    }

    @Test("A subscription that may recover is started again after a pause, for which no other subscription waits")
    func startsAgainAfterPause() async throws {
        let transport = ScriptedLine(pacing: .quick { $0.backoff = .endless })
        try await withApp(transport) { app, _ in
            let (subscription, connection, id) = try await begin(app, transport)
            await connection.line.take(.failure(of: id, "too many"))
            #expect(await state(subscription) { $0.error != nil } != nil)
            try await Task.sleep(for: .milliseconds(50))
            let other = try await app.subscribe(GraphQLOperation("subscription Other { changed { id } }"))
            for await command in connection.commands {
                guard case .start(_, let request) = command else { continue }
                #expect(request.operationName == "Other")
                break
            }
            #expect(other.state.error == nil)
        }
    }

    @Test("A subscription that had begun is started again after the shortest pause", .timeLimit(.minutes(1)))
    func pausesBeginAnew() async throws {
        let transport = ScriptedLine(
            pacing: .quick { $0.backoff = Backoff(first: .milliseconds(1), cap: .seconds(80_000)) })
        try await withApp(transport) { app, _ in
            let (subscription, connection, first) = try await begin(app, transport)
            var id = first
            // The last of as many failures in a row would be followed by a pause of hours.
            for _ in 0..<25 {
                await connection.line.take(.failure(of: id, "too many"))
                id = try await connection.startNext()
            }
            #expect(await state(subscription) { $0.phase == .live } != nil)
        }
    }

    @Test("While events come the cache is told up to when all has come each ten seconds, and not more often")
    func notesEachTenSeconds() async throws {
        let clock = TestClock(Self.start)
        try await withApp(clock: clock) { app, transport in
            let (subscription, connection, id) = try await beginLive(app, transport, Self.catchingUp)
            try await eventually { try app.subscriptions().first?.completeUntil == Self.start }
            /// Tells two events at a time: with the second, the connection was heard of when the first came.
            func tell(after seconds: Double) async throws {
                clock.now = Self.start + seconds
                for number in 1...2 {
                    await connection.line.tell(id, #"{"id":"\#(number)","text":"\#(seconds)"}"#)
                    try await eventually { text(app, "\(number)") == "\(seconds)" }
                }
            }
            try await tell(after: 9.5)
            try await Task.sleep(for: .milliseconds(20))
            #expect(try app.subscriptions().first?.completeUntil == Self.start)
            try await tell(after: 10)
            try await eventually { try app.subscriptions().first?.completeUntil == Self.start + 10 }
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("Keep-alives advance the stored completeUntil each minute, and when the connection ends")
    func notesEachMinute() async throws {
        let clock = TestClock(Self.start)
        try await withApp(clock: clock) { app, transport in
            let (subscription, connection, _) = try await beginLive(app, transport, Self.catchingUp)
            try await eventually { try app.subscriptions().first?.completeUntil == Self.start }
            func tellAlive(after seconds: Double) async {
                clock.now = Self.start + seconds
                await connection.line.take(.alive)
            }
            await tellAlive(after: 59)
            try await Task.sleep(for: .milliseconds(20))
            #expect(try app.subscriptions().first?.completeUntil == Self.start)
            await tellAlive(after: 60)
            try await eventually { try app.subscriptions().first?.completeUntil == Self.start + 60 }
            await tellAlive(after: 90)
            connection.end(TransportError(.interrupted, "cut"))
            try await eventually { try app.subscriptions().first?.completeUntil == Self.start + 90 }
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("Where the clock was set back since a restart, a subscription is stale since now")
    func staleSinceClockSetBack() async throws {
        try await withTemporaryFolder { folder in
            for (now, isFirst) in [(Self.start, true), (Date(timeIntervalSince1970: 900), false)] {
                let since = try await staleSince(opening: folder, at: now, begins: isFirst)
                #expect(since == now)
            }
        }
    }

    private static let tenant = GraphQLRequest.Header(name: "x-tenant", value: "7")

    @Test("The start and the query that catches up have the headers of the options")
    func headers() async throws {
        let fetched = Mutex<[[GraphQLRequest.Header]]>([])
        let transport = ScriptedLine { request in
            fetched.withLock { $0.append(request.headers) }
            return #"{"data":{"items":[]}}"#
        }
        try await withApp(transport) { app, _ in
            var options = Self.catchingUp
            options.headers = [Self.tenant]
            let subscription = try await app.subscribe(Self.changed, options: options)
            let connection = try #require(await transport.next())
            await connection.line.take(.opened)
            for await case .start(let id, let request) in connection.commands {
                #expect(request.headers == [Self.tenant])
                await connection.line.take(.started(id: id))
                break
            }
            #expect(await state(subscription) { $0.phase == .live } != nil)
            #expect(fetched.withLock(\.self) == [[Self.tenant]])
        }
    }

    @Test(
        "A synchronization that closes gaps has headers of its own, and otherwise those of the subscription",
        arguments: [true, false])
    func synchronizationHeaders(hasOwn: Bool) async throws {
        let server = SyncServer()
        let fetched = Mutex<[[GraphQLRequest.Header]]>([])
        let own = GraphQLRequest.Header(name: "x-own", value: "1")
        let transport = ScriptedLine { request in
            fetched.withLock { $0.append(request.headers) }
            return (try? await server.answer(request)) ?? ""
        }
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            var options = SubscriptionOptions(sync: SyncServer.sync)
            if hasOwn { options.sync?.headers = [own] }
            options.headers = [Self.tenant]
            _ = try await beginLive(app, transport, of: Self.changedTodo, options)
            #expect(fetched.withLock(\.self) == [[hasOwn ? own : Self.tenant]])
        }
    }

    @Test(
        "The subscription's option for nulls in events overrides the transport's",
        arguments: [(.trust, nil), (.ignore, "known")] as [(NullsInEvents, String?)])
    func ownNulls(said: NullsInEvents, expected: String?) async throws {
        let transport = ScriptedLine(nulls: said == .trust ? .ignore : .trust)
        try await withApp(transport) { app, _ in
            try await app.write(Self.items, json: Array(#"{"items":[{"id":"1","text":"known"}]}"#.utf8))
            var options = SubscriptionOptions()
            options.nulls = said
            let (subscription, connection, id) = try await begin(app, transport, options)
            await connection.line.tell(id, #"{"id":"1","text":null}"#)
            await readEvents(of: subscription)
            #expect(text(app) == expected)
        }
    }

    @Test("What is to close gaps and cannot be asked is refused with the subscription")
    func catchUpIsQuery() async throws {
        try await withApp { app, transport in
            for catchUp in [Self.changed, GraphQLOperation("query { nothing }")] {
                await expectCode(.operation) {
                    _ = try await app.subscribe(Self.changed, options: SubscriptionOptions(catchUp: catchUp))
                }
            }
            let noDelta = SubscriptionOptions(sync: Synchronization(Self.items))
            await expectCode(.operation) { _ = try await app.subscribe(Self.changed, options: noDelta) }
            #expect(transport.attemptCount == 0)
        }
    }

    @Test("Where the options name both, a synchronization closes gaps, and the query is not asked")
    func synchronizationFirst() async throws {
        let server = SyncServer()
        server.put("a", "a1")
        let asked = Mutex(0)
        let transport = ScriptedLine(nulls: .ignore) { request in
            asked.withLock { $0 += 1 }
            return (try? await server.answer(request)) ?? "{}"
        }
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            var options = SubscriptionOptions(sync: SyncServer.sync)
            options.catchUp = GraphQLOperation("{ todos { id title } }")
            _ = try await beginLive(app, transport, of: Self.changedTodo, options)
            #expect(server.requests.count == 1)
            #expect(asked.withLock { $0 } == 1)
        }
    }

    @Test("A gap that was not closed stays one when the subscription ends")
    func endsStale() async throws {
        try await withApp { app, transport in
            let (subscription, connection, id) = try await begin(app, transport)
            let stale = try #require(await state(subscription) { $0.phase == .live }?.staleSince)
            await connection.line.take(.completed(id: id))
            #expect(await state(subscription) { $0.phase == .ended }?.staleSince == stale)
        }
    }

    @Test("An event that does not fit loses no other that came with it")
    func storesOthers() async throws {
        try await withApp { app, transport in
            let (subscription, connection, id) = try await beginLive(app, transport)
            let texts = [#"{"data":{"changed":3}}"#, #"{"data":{"changed":{"id":"1","text":"kept"}}}"#]
            await connection.line.take(texts.map { .event(id: id, response: Array($0.utf8)) })
            try await eventually { text(app) == "kept" }
            #expect(subscription.state.error != nil)
        }
    }
}
