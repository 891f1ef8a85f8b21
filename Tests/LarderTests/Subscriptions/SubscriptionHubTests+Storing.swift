import Foundation
import Larder
import LarderRecords
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

extension SubscriptionHubTests {
    /// Keeps the cache from being written to while `body` runs.
    private func holdingCache(of app: Partition, _ body: () async throws -> Void) async throws {
        try await app.write(Self.items, json: Array(#"{"items":[]}"#.utf8))
        let (held, holding) = AsyncStream.makeStream(of: Void.self)
        let isReleased = Flag()
        async let update: Void = app.update(Self.items) { _ in
            holding.finish()
            while !isReleased.isSet { Thread.sleep(forTimeInterval: 0.001) }
        }
        for await _ in held {}
        do {
            try await body()
        } catch {
            isReleased.set()
            throw error
        }
        isReleased.set()
        try await update
    }

    @Test("An event that cannot be stored is a gap, which a fetch closes once the cache can be written to again")
    func fetchesForUnstoredEvent() async throws {
        var options = Store.Options()
        options.lockTimeout = .milliseconds(500)
        try await withApp(options: options) { app, transport in
            let (subscription, connection, id) = try await beginLive(app, transport, Self.catchingUp)
            try await holdingCache(of: app) {
                await connection.line.tell(id, #"{"id":"1","text":"lost"}"#)
                let missed = try #require(await state(subscription) { $0.staleSince != nil })
                #expect(missed.error != nil)
            }
            #expect(await state(subscription) { $0.phase == .live && $0.staleSince == nil } != nil)
        }
    }

    @Test("An event that cannot be stored is told to no reader")
    func tellsNoUnstoredEvent() async throws {
        var options = Store.Options()
        options.lockTimeout = .milliseconds(200)
        try await withApp(options: options) { app, transport in
            let (subscription, connection, id) = try await beginLive(app, transport)
            try await holdingCache(of: app) {
                await connection.line.tell(id, #"{"id":"1","text":"lost"}"#)
                var events = subscription.makeAsyncIterator()
                guard case .state(let missed)? = try await next(&events, within: .seconds(60)) else { throw Silence() }
                #expect(missed.error != nil)
            }
        }
    }

    @Test("The cache stores events in one commit that come while others are being stored")
    func oneCommit() async throws {
        try await withApp { app, transport in
            let (subscription, connection, id) = try await begin(app, transport)
            try await app.write(Self.items, json: Array(#"{"items":[]}"#.utf8))
            let commits = Mutex(0)
            app.records.observe { commit in
                if !commit.changes.isEmpty { commits.withLock { $0 += 1 } }
            }
            try await holdingCache(of: app) {
                for number in 0..<20 { await connection.line.tell(id, #"{"id":"\#(number)","text":"x"}"#) }
            }
            await readEvents(20, of: subscription)
            // Those that came before the first were taken up, and the others.
            #expect((1...2).contains(commits.withLock { $0 }))
        }
    }

    @Test("P114: events that come out of order overwrite newer rows. One of an older version changes nothing")
    func olderEvent() async throws {
        let transport = ScriptedLine()
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            let (subscription, connection, id) = try await begin(app, transport, of: Self.changedTodo)
            for (title, version) in [("new", 2), ("old", 1)] {
                let versions = #""_version":\#(version),"_deleted":null,"_lastChangedAt":\#(version)"#
                await connection.line.tell(id, #"{"id":"1","title":"\#(title)",\#(versions)}"#)
            }
            await readEvents(2, of: subscription)
            let fragment = GraphQLFragment("fragment F on Todo { title }")
            #expect(try app.read("Todo:1", fragment)["title"]?.string == "new")
        }
    }

    @Test("What came before a connection broke is stored before what is fetched on the next one")
    func storesBeforeFetch() async throws {
        let isCut = Flag()
        let transport = ScriptedLine { _ in
            #"{"data":{"items":[\#(isCut.isSet ? #"{"id":"1","text":"fetched"}"# : "")]}}"#
        }
        try await withApp(transport) { app, _ in
            let (subscription, connection, id) = try await beginLive(app, transport, Self.catchingUp)
            isCut.set()
            try await holdingCache(of: app) {
                await connection.line.tell(id, #"{"id":"2","text":"x"}"#)
                // The next event waits until this one is stored, and this one for the cache.
                try await Task.sleep(for: .milliseconds(30))
                await connection.line.tell(id, #"{"id":"1","text":"old"}"#)
                connection.end(TransportError(.interrupted, "cut"))
                _ = try await transport.started()
                // A fetch that waits for nothing is answered meanwhile.
                try await Task.sleep(for: .milliseconds(100))
            }
            #expect(await state(subscription) { $0.phase == .live && $0.staleSince == nil } != nil)
            #expect(text(app) == "fetched")
        }
    }

    @Test("Up to when everything has come is noted only where nothing of what came until then was lost")
    func notesNoLostEvent() async throws {
        let clock = TestClock(Self.start)
        try await withApp(clock: clock) { app, transport in
            let (subscription, connection, id) = try await begin(app, transport)
            let live = try #require(await state(subscription) { $0.phase == .live })
            await subscription.noteCaughtUp(since: live)
            try await eventually { try app.subscriptions().first?.completeUntil == Self.start }
            try await holdingCache(of: app) {
                await connection.line.tell(id, #"{"id":"1","text":"x"}"#)
                try await Task.sleep(for: .milliseconds(30))
                await connection.line.tell(id, "3")
                clock.advance(by: .seconds(100))
                await connection.line.take(.alive)
                try await Task.sleep(for: .milliseconds(30))
            }
            try await eventually { subscription.state.staleSince != nil }
            try await Task.sleep(for: .milliseconds(30))
            #expect(try app.subscriptions().first?.completeUntil == Self.start)
        }
    }

    @Test("A subscription that the server refuses again and again is started after ever longer pauses")
    func pausesLonger() async throws {
        let transport = ScriptedLine(
            pacing: .quick { $0.backoff = Backoff(first: .milliseconds(20), cap: .seconds(5)) })
        try await withApp(transport) { app, _ in
            let subscription = try await app.subscribe(Self.changed)
            let connection = try #require(await transport.next())
            await connection.line.take(.opened)
            var id = try #require(await connection.nextStart())
            let began = SuspendingClock.now
            for _ in 1...5 {
                await connection.line.take(.failure(of: id, "too many"))
                id = try #require(await connection.nextStart())
            }
            // Each takes at least half of 20, 40, 80, 160 and 320 milliseconds.
            #expect(.now - began >= .milliseconds(310))
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("A subscription that had begun is started again after a short pause, however often it has failed before")
    func pausesShortly() async throws {
        let transport = ScriptedLine(
            pacing: .quick { $0.backoff = Backoff(first: .milliseconds(1), cap: .seconds(60)) })
        try await withApp(transport) { app, _ in
            let (subscription, connection, first) = try await begin(app, transport)
            var id = first
            let began = SuspendingClock.now
            for _ in 1...17 {
                await connection.line.take(.failure(of: id, "too many"))
                id = try await connection.startNext()
            }
            // If all failures counted, the last pause alone would take half a minute at least.
            #expect(.now - began < .seconds(30))
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("A gap that a synchronization closes is closed by all of its pages, also where one call may fetch fewer")
    func catchesUpWithAllPages() async throws {
        let server = SyncServer()
        for id in ["a", "b", "c"] { server.put(id, "\(id)1") }
        let transport = ScriptedLine(nulls: .ignore) { (try? await server.answer($0)) ?? "{}" }
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            var sync = SyncServer.sync
            (sync.pageSize, sync.maximumPageCount) = (1, 1)
            _ = try await beginLive(app, transport, of: Self.changedTodo, SubscriptionOptions(sync: sync))
            let title = GraphQLFragment("fragment F on Todo { title }")
            #expect(try app.read("Todo:c", title)["title"]?.string == "c1")
        }
    }

    @Test("A change of which no event tells, while a subscription catches up, lets it catch up once more")
    func catchesUpAfterMissedChange() async throws {
        let (isAsked, isReleased) = (Flag(), Flag())
        let server = SyncServer()
        server.change { state in
            state.script = { number in
                isAsked.set()
                if number == 0 { await isReleased.wait() }
                return nil
            }
        }
        let transport = ScriptedLine(nulls: .ignore) { (try? await server.answer($0)) ?? "{}" }
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            let (subscription, _, _) = try await begin(
                app, transport, of: Self.changedTodo, SubscriptionOptions(sync: SyncServer.sync))
            await isAsked.wait()
            await changeUntold(app)
            isReleased.set()
            #expect(await state(subscription) { $0.phase == .live && $0.staleSince == nil } != nil)
            #expect(server.requests.count == 2)
        }
    }

    @Test("Up to when everything has come from one server says nothing of another", arguments: ["a", "b"])
    func knowsServersApart(server: String) async throws {
        try await withTemporaryFolder { folder in
            for (now, name) in [(Self.start, "a"), (Self.start + 100, server)] {
                let since = try await staleSince(opening: folder, at: now, server: name, begins: now == Self.start)
                #expect(since == (name == "a" ? Self.start : now))
            }
        }
    }

    @Test("Where nothing is left between two states, a slow reader gets the newer alone")
    func newestState() async throws {
        try await withApp { app, transport in
            var options = SubscriptionOptions()
            options.bufferSize = 1
            let subscription = try await app.subscribe(Self.changed, options: options)
            let (connection, id) = try await transport.opened()
            for number in 1...2 {
                await connection.line.tell(id, #"{"id":"\#(number)","text":"x"}"#)
                try await eventually { text(app, "\(number)") == "x" }
                // By then the reader is told as well.
                try await Task.sleep(for: .milliseconds(10))
                await connection.line.take(.started(id: id))
            }
            await connection.line.take(.completed(id: id))
            var phases: [SubscriptionState.Phase] = []
            for await event in subscription { if case .state(let state) = event { phases.append(state.phase) } }
            #expect(phases == [.live, .ended])
        }
    }

    @Test("A connection that opens when nothing is asked on it any more is ended after a moment")
    func opensUnused() async throws {
        let transport = ScriptedLine(pacing: .quick { $0.lingering = .milliseconds(10) })
        try await withApp(transport) { app, _ in
            var subscription: Subscription? = try await app.subscribe(Self.changed)
            let connection = try #require(await transport.next())
            #expect(subscription?.state.phase == .connecting)
            subscription = nil
            // By then the hub knows that nothing reads it.
            try await Task.sleep(for: .milliseconds(20))
            await connection.line.take(.opened)
            let isOver = Flag()
            let reading = Task {
                for await _ in connection.commands {}
                isOver.set()
            }
            try await eventually { isOver.isSet }
            await reading.value
            connection.end(nil)
        }
    }

    @Test("A connection on which nothing is asked any more is kept for what is asked next")
    func keptUnused() async throws {
        #expect(SubscriptionPacing().lingering == .seconds(5))
        let transport = ScriptedLine(pacing: .quick { $0.lingering = .seconds(300) })
        try await withApp(transport) { app, _ in
            var subscription: Subscription? = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.started()
            #expect(subscription != nil)
            subscription = nil
            for await command in connection.commands where command == .stop(id: id) { break }
            try await Task.sleep(for: .milliseconds(20))
            subscription = try await app.subscribe(Self.changed)
            #expect(await connection.nextStart() != nil)
            #expect(subscription != nil && transport.attemptCount == 1)
        }
    }

    @Test("An unused connection lingers as long after a later subscription as after the first")
    func keptSinceLastEnd() async throws {
        let transport = ScriptedLine(pacing: .quick { $0.lingering = .milliseconds(500) })
        try await withApp(transport) { app, _ in
            var subscription: Subscription? = try await app.subscribe(Self.changed)
            let (connection, id) = try await transport.started()
            #expect(subscription != nil)
            subscription = nil
            for await command in connection.commands where command == .stop(id: id) { break }
            try await Task.sleep(for: .milliseconds(250))
            subscription = try await app.subscribe(Self.changed)
            // On a loaded machine the connection may have ended by now.
            guard await connection.nextStart() != nil else { return }
            #expect(subscription != nil)
            let ended = SuspendingClock.now
            subscription = nil
            for await _ in connection.commands {}
            #expect(.now - ended >= .milliseconds(500))
            connection.end(nil)
        }
    }

    @Test("A gap that begins while another is open leaves since when changes may be missing")
    func keepsFirstGap() async throws {
        let clock = TestClock(Self.start)
        try await withApp(clock: clock) { app, transport in
            let (subscription, connection, id) = try await begin(app, transport)
            clock.advance(by: .seconds(100))
            await connection.line.take(.alive)
            await connection.line.tell(id, "3")
            let failed = try #require(await state(subscription) { $0.error != nil })
            #expect(failed.staleSince == Self.start)
            connection.end(TransportError(.interrupted, "cut"))
            let cut = try #require(await state(subscription) { $0.phase == .connecting })
            #expect(cut.staleSince == Self.start)
        }
    }

    @Test("A partition whose store is closed does not tell up to when everything has come over its subscriptions")
    func statusOfClosed() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: ScriptedLine())
            try store.close()
            await expectCode(.parked) { _ = try app.subscriptions() }
        }
    }
}
