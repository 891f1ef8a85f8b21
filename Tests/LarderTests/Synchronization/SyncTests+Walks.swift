import Foundation
import Larder
import LarderRecords
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

private let tokenRefusal = #"{"data":null,"errors":[{"message":"The token is not valid","errorType":"BadRequest"}]}"#
/// The change was made, and deltas do not tell of it.
private let deltaWriteError = #"{"message":"m","errorType":"DeltaSyncWriteError","path":["update"]}"#
private let missedByDeltas = #"{"data":{"update":null},"errors":[\#(deltaWriteError)]}"#

/// What a walk asks for, and when.
extension SyncTests {
    /// What a synchronization reports after a mutation that the server could not write to where deltas come from.
    private func syncedAfter(
        _ update: GraphQLOperation, isQueued: Bool, _ app: Partition, _ failing: ScriptedServer
    ) async throws -> SyncReport {
        if isQueued {
            let receipt = try await app.enqueue(update)
            try await MutationRunner(app.with(server: failing)).drain()
            #expect(try await receipt.outcome(within: .seconds(60)).isApplied)
        } else {
            await #expect(throws: LarderError.self) { _ = try await app.with(server: failing).send(update) }
        }
        #expect(try app.synchronizations().map(\.startedAt) == [nil])
        return try await app.sync(paged)
    }

    @Test(
        "After a change that deltas do not tell of, subscriptions of the process fetch everything at once",
        arguments: [true, false])
    func missedBySubscriptions(isQueued: Bool) async throws {
        let server = SyncServer()
        server.put("a", "a1")
        let transport = ScriptedLine(nulls: .ignore) { request in
            (try? await server.answer(request)) ?? "{}"
        }
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            let subscription = try await app.subscribe(
                GraphQLOperation("subscription { changed { id title } }"), options: SubscriptionOptions(sync: paged))
            _ = try await transport.started()
            try await eventually { subscription.state.phase == .live }
            let failing = ScriptedServer { (_: GraphQLRequest) in
                // The change was made, and neither the delta table nor an event tells of it.
                server.change { state in
                    state.todos["a"]?.title = "mine"
                    state.todos["a"]?.version += 1
                }
                return missedByDeltas
            }
            let update = SyncServer.update()
            let writer = app.with(server: failing)
            if isQueued {
                try await writer.enqueue(update)
                try await quickRunner(writer).drain()
            } else {
                await #expect(throws: LarderError.self) { _ = try await writer.send(update) }
            }
            try await eventually { title(app, "a") == "mine" }
        }
    }

    @Test("After a change that deltas do not tell of, the subscriptions of each transport fetch everything at once")
    func missedByEachTransport() async throws {
        let servers = [SyncServer(), SyncServer()]
        let lines = servers.map { server in
            ScriptedLine(nulls: .ignore) { request in (try? await server.answer(request)) ?? "{}" }
        }
        try await withStoreFixture(lines[0], schema: SyncServer.schema) { app in
            var subscriptions: [Subscription] = []
            for line in lines {
                let subscription = try await app.with(server: line).subscribe(
                    GraphQLOperation("subscription { changed { id title } }"),
                    options: SubscriptionOptions(sync: paged))
                subscriptions.append(subscription)
                _ = try await line.started()
                try await eventually { subscription.state.phase == .live && subscription.state.staleSince == nil }
            }
            let asked = servers.map(\.requests.count)
            let failing = ScriptedServer { (_: GraphQLRequest) in missedByDeltas }
            await #expect(throws: LarderError.self) {
                _ = try await app.with(server: failing).send(SyncServer.update())
            }
            for (server, count) in zip(servers, asked) { try await eventually { server.requests.count > count } }
            withExtendedLifetime(subscriptions) {}
        }
    }

    @Test("A token that is refused on the way is an error, and the walk begins again")
    func refusedToken() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            server.change { $0.script = { $0 == 1 ? tokenRefusal : nil } }
            let error = await #expect(throws: LarderError.self) { try await app.sync(paged) }
            #expect(error?.code == .serverErrors)
            let report3 = try await app.sync(paged)
            #expect(report3.pageCount == 3)
        }
    }

    @Test("A walk goes on with the page that a throttled server did not give, since its token is still good")
    func throttledPage() async throws {
        let busy = #"{"data":null,"errors":[{"message":"m","extensions":{"code":"THROTTLED"}}]}"#
        try await withServer(["a", "b", "c", "d", "e"]) { (server, app) async throws in
            server.wait(10_000)
            server.change { $0.script = { $0 == 1 ? busy : nil } }
            await expectCode(.serverErrors) { _ = try await app.sync(paged) }
            #expect(try app.synchronizations().map(\.openPageCount) == [1])
            #expect(try await app.sync(paged).isFinished)
            // Only the failed page is requested twice; the last request is for the changes meanwhile.
            #expect(server.requests.map { $0.token == nil } == [true, false, false, false, true])
        }
    }

    @Test("A token refused in a walk through changes leaves the position, and the next call asks for them again")
    func refusedAmidChanges() async throws {
        try await withServer(["a", "b", "c"]) { server, app in
            let before = try await app.sync(paged).startedAt
            server.wait(10_000)
            for id in ["a", "b", "c"] { server.put(id, "\(id)2") }
            let count = server.requests.count
            server.change { $0.script = { $0 == count + 1 ? tokenRefusal : nil } }
            await expectCode(.serverErrors) { _ = try await app.sync(paged) }
            #expect(try app.synchronizations().map(\.startedAt) == [before])
            #expect(try await !app.sync(paged).isBase)
            #expect(title(app, "c") == "c2")
        }
    }

    @Test("A cancelled walk removes nothing, and the next call removes what the server no longer has")
    func brokenOffRemoval() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            server.delete("b")
            server.wait(31 * 60_000)
            let isReady = Flag()
            let syncing = Task {
                await isReady.wait()
                return try await app.sync(paged)
            }
            // The request for changes is followed by the one for everything.
            server.change { state in
                state.script = { number in
                    if number == 2 { syncing.cancel() }
                    return nil
                }
            }
            isReady.set()
            await expectCode(.cancelled) { _ = try await syncing.value }
            #expect(server.requests.count == 3)
            #expect(["a", "b"].map { title(app, $0) } == ["a1", "b1"])
            try await app.sync(paged)
            #expect(["a", "b"].map { title(app, $0) } == ["a1", nil])
        }
    }

    @Test("A token that an earlier call has left and that is refused begins the walk again at once")
    func oldToken() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            try await app.sync(pages(upTo: 1))
            server.change { $0.script = { $0 == 1 ? tokenRefusal : nil } }
            let report4 = try await app.sync(paged)
            #expect(report4.pageCount == 3)
            #expect(title(app, "e") == "e1")
        }
    }

    @Test("A token of changes that an earlier call has left and that is refused lets the changes be asked for at once")
    func oldTokenOfChanges() async throws {
        try await withServer(["a", "b", "c"]) { (server, app) async throws in
            try await app.sync(paged)
            server.wait(10_000)
            for id in ["a", "b", "c"] { server.put(id, "\(id)2") }
            try await app.sync(pages(upTo: 1))
            let count = server.requests.count
            server.change { $0.script = { $0 == count ? tokenRefusal : nil } }
            let report = try await app.sync(paged)
            #expect(report.isFinished && !report.isBase)
            #expect(title(app, "c") == "c2")
        }
    }

    @Test("Tokens that lead in a circle, and more than a thousand pages in a row without objects, are errors")
    func endless() async throws {
        @Sendable func page(_ token: Int, _ items: String = "") -> String {
            #"{"data":{"syncTodos":{"items":[\#(items)],"nextToken":"t\#(token)","startedAt":1700000000000}}}"#
        }
        try await withServer([]) { server, app in
            server.change { $0.script = { page($0 % 3) } }
            let circle = await #expect(throws: LarderError.self) { try await app.sync(paged) }
            #expect(circle?.code == .paging)
            #expect(server.requests.count == 4)
            let todo = #"{"__typename":"Todo","id":"a","title":"x","_version":1,"_deleted":null,"_lastChangedAt":1}"#
            server.change { $0.script = { page($0, $0 == 504 ? todo : "") } }
            let empty = await #expect(throws: LarderError.self) { try await app.sync(paged) }
            #expect(empty?.code == .paging)
            // The circle's, those before the page that has something, that one, and as many behind it as are too many.
            let asked = [4, 500, 1, 1_001]
            #expect(server.requests.count == asked.reduce(0, +))
            let statuses = try app.synchronizations()
            #expect(statuses.allSatisfy { $0.openPageCount == nil })
        }
    }

    @Test("Tokens that lead in a circle leave the position, and the next call asks for what has changed since")
    func endlessChanges() async throws {
        try await withServer(["a", "b", "c"]) { server, app in
            let first = try await app.sync(paged)
            let began = try #require(first.milliseconds)
            let page = #"{"data":{"syncTodos":{"items":[],"nextToken":"t","startedAt":\#(began + 1_000)}}}"#
            server.change { $0.script = { _ in page } }
            await expectCode(.paging) { _ = try await app.sync(paged) }
            #expect(try app.synchronizations().map(\.startedAt) == [first.startedAt])
            server.change { $0.script = { _ in nil } }
            #expect(try await app.sync(paged).isBase == false)
        }
    }

    @Test("The position of a walk is the start time in its first page, whatever later pages say")
    func beginOfWalk() async throws {
        @Sendable func page(_ startedAt: Int64, next: String) -> String {
            #"{"data":{"syncTodos":{"items":[],"nextToken":\#(next),"startedAt":\#(startedAt)}}}"#
        }
        try await withServer([]) { server, app in
            server.change { state in
                state.script = { number in
                    number == 0 ? page(1_700_000_000_000, next: #""t""#) : page(1_700_000_060_000, next: "null")
                }
            }
            let report = try await app.sync(paged)
            #expect(report.pageCount == 2 && report.milliseconds == 1_700_000_000_000)
            try await app.sync(paged)
            let lastSync = try #require(server.requests.last?.lastSync)
            #expect(lastSync == 1_699_999_998_000)
        }
    }

    @Test("A walk through everything that has not come to its last page removes nothing")
    func removesAfterLastPage() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            try await app.sync(paged)
            server.delete("b")
            server.wait(31 * 60_000)
            let report = try await app.sync(pages(upTo: 1))
            #expect(report.isBase && !report.isFinished)
            #expect(["a", "b", "c", "d", "e"].map { title(app, $0) } == ["a1", "b1", "c1", "d1", "e1"])
            #expect(try await app.sync(paged).isFinished)
            #expect(["a", "b", "c", "d", "e"].map { title(app, $0) } == ["a1", nil, "c1", "d1", "e1"])
        }
    }

    @Test("A walk removes the objects that it did not have in several short commits")
    func shortRemovals() async throws {
        try await withServer((0..<600).map { "\($0)" }) { server, app in
            try await app.sync(SyncServer.sync)
            server.change { $0.todos = [:] }
            server.wait(31 * 60_000)
            let removals = Mutex(0)
            app.records.observe { commit in
                if !commit.changes.isEmpty { removals.withLock { $0 += 1 } }
            }
            #expect(try await app.sync(SyncServer.sync).isBase)
            #expect(["0", "599"].map { title(app, $0) } == [nil, nil])
            #expect(removals.withLock(\.self) >= 3)
        }
    }

    @Test("A partition without a transport synchronizes nothing")
    func noTransport() async throws {
        try await withStoreFixture(schema: SyncServer.schema) { app in
            await expectCode(.noTransport) { _ = try await app.sync(paged) }
        }
    }

    @Test("A page that does not fit, or has errors, leaves the position where it was")
    func unusablePage() async throws {
        let broken = [
            #"{"data":{"syncTodos":{"items":[{"id":1}],"nextToken":null,"startedAt":1700000000000}}}"#,
            #"{"data":{"syncTodos":{"items":[null],"nextToken":null,"startedAt":1}},"errors":[{"message":"x"}]}"#,
            #"{"data":{"syncTodos":{"items":[],"nextToken":null,"startedAt":null}}}"#,
        ]
        try await withServer(["a"]) { server, app in
            let before = try await app.sync(paged).startedAt
            for text in broken {
                server.change { $0.script = { _ in text } }
                await #expect(throws: LarderError.self) { try await app.sync(paged) }
                #expect(try app.synchronizations().map(\.startedAt) == [before])
            }
        }
    }

    @Test(
        "An answer that does not say when its walk began, or says what is no time, is no page and moves no position",
        arguments: ["null", "-1", "9007199254740993"])
    func noPage(startedAt: String) async throws {
        try await withServer(["a"]) { server, app in
            let before = try await app.sync(paged).startedAt
            let text = #"{"data":{"syncTodos":{"items":[],"nextToken":null,"startedAt":\#(startedAt)}}}"#
            server.change { $0.script = { _ in text } }
            await expectCode(.paging) { _ = try await app.sync(paged) }
            #expect(try app.synchronizations().map(\.startedAt) == [before])
        }
    }

    @Test("P217: two synchronizations at once crash. Two calls at once synchronize one after the other")
    func twoAtOnce() async throws {
        try await withServer(["a", "b", "c"]) { server, app in
            async let first = app.sync(paged)
            async let second = app.sync(paged)
            let reports = try await [first, second]
            #expect(reports.filter(\.isBase).count == 1)
            #expect(title(app, "c") == "c1")
        }
    }

    @Test("A synchronization that waits for another call of its own ends at once when its task is cancelled")
    func cancelledWait() async throws {
        try await whileSyncing { app in
            for pause in [Duration.zero, .milliseconds(50)] {
                let waiting = Task { _ = try await app.sync(paged) }
                if pause > .zero { try await Task.sleep(for: pause) }
                waiting.cancel()
                #expect(await larderError { try await waiting.value }?.code == .cancelled)
            }
        }
    }

    @Test("Garbage collection keeps what a synchronization brought, and an eviction makes it begin with everything")
    func garbage() async throws {
        try await withServer(["a", "b"]) { _, app in
            try await app.sync(paged)
            _ = try await app.collectGarbage()
            #expect(title(app, "a") == "a1")
            try await app.remove("Todo:a", as: .evicted)
            #expect(try app.synchronizations().map(\.startedAt) == [nil])
            let report5 = try await app.sync(paged)
            #expect(report5.isBase)
            #expect(title(app, "a") == "a1")
        }
    }

    @Test("A query of unversioned objects, or without the variables of a walk, is no synchronization")
    func noDeltaQuery() async throws {
        try await withServer([]) { _, app in
            for text in [
                "{ syncTodos { items { id } nextToken startedAt } }", "{ todo(id: 1) { id } }",
                "query($a: AWSTimestamp, $b: String) { syncTodos(lastSync: $a, nextToken: $b) { nextToken } }",
            ] {
                let error = await #expect(throws: LarderError.self) {
                    try await app.sync(Synchronization(GraphQLOperation(text)))
                }
                #expect(error?.code == .operation)
                var options = SubscriptionOptions()
                options.sync = Synchronization(GraphQLOperation(text))
                let refusal = await #expect(throws: LarderError.self) {
                    _ = try await app.subscribe(GraphQLOperation("subscription { changed { id } }"), options: options)
                }
                #expect(refusal?.code == .operation)
            }
        }
    }

    @Test(
        "After a change that deltas do not tell of, the next synchronization goes through everything",
        arguments: [true, false])
    func missingFromDeltas(isQueued: Bool) async throws {
        try await withServer(["a"]) { _, app in
            try await app.sync(paged)
            let failing = ScriptedServer { (_: GraphQLRequest) in missedByDeltas }
            let report = try await syncedAfter(SyncServer.update(), isQueued: isQueued, app, failing)
            #expect(report.isBase && report.isFinished)
        }
    }

    @Test(
        "After two errors of which the last says that deltas do not tell of a change, everything is gone through",
        arguments: [true, false])
    func missingFromDeltasBesideRefusal(isQueued: Bool) async throws {
        try await withServer(["a", "b"]) { _, app in
            try await app.sync(paged)
            let (refused, late) = (
                #"{"message":"no","errorType":"Unauthorized","path":["a"]}"#,
                #"{"message":"m","errorType":"DeltaSyncWriteError","path":["b"]}"#
            )
            let answer = #"{"data":{"a":null,"b":null},"errors":[\#(refused),\#(late)]}"#
            let failing = ScriptedServer { (_: GraphQLRequest) in answer }
            let report = try await syncedAfter(SyncServer.updateOfTwo, isQueued: isQueued, app, failing)
            #expect(report.isBase)
        }
    }

    @Test(
        "The server is asked for the next pages while a page is stored, and for none beyond the limit of a call",
        arguments: [(nil, 3), (2, 2)] as [(Int?, Int)])
    func asksAhead(limit: Int?, count: Int) async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            let fragment = GraphQLFragment("fragment F on Todo { title }")
            try await app.write("Todo:x", fragment, json: Array(#"{"title": "held"}"#.utf8))
            let isHeld = Atomic(false)
            let isAsked = Atomic(false)
            async let holding: Void = app.update("Todo:x", fragment) { _ in
                // No page can be stored until this returns.
                isHeld.store(true, ordering: .relaxed)
                let deadline = SuspendingClock.now + .seconds(10)
                while server.requests.count < count, .now < deadline { Thread.sleep(forTimeInterval: 0.001) }
                isAsked.store(server.requests.count == count, ordering: .relaxed)
            }
            try await eventually { isHeld.load(ordering: .relaxed) }
            let report = try await app.sync(pages(upTo: limit))
            try await holding
            let wasAsked = isAsked.load(ordering: .relaxed)
            #expect(wasAsked)
            #expect(report.pageCount == count && server.requests.count == count)
            #expect(try await app.sync(paged).isFinished)
            #expect(["a", "c", "e"].map { title(app, $0) } == ["a1", "c1", "e1"])
        }
    }

    @Test("A synchronization that says no size of page asks for 1,000 objects at a time")
    func defaultSize() async throws {
        let transport = SyncServer().transport
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            try await app.sync(SyncServer.sync)
            #expect(transport.requests.compactMap { $0.variableValues["limit"] } == [.int(1_000)])
        }
    }

    @Test("A size of page that the operation says goes before that of the synchronization")
    func ownSize() async throws {
        try await withServer(["a", "b", "c"]) { _, app in
            var sync = paged
            sync.operation.variables = ["limit": 1]
            let report = try await app.sync(sync)
            #expect(report.pageCount == 3)
        }
    }

    @Test("A synchronization stores the objects of a page under their keys, and not its list")
    func storesNoList() async throws {
        try await withServer(["a"]) { _, app in
            try await app.sync(paged)
            #expect(title(app, "a") == "a1")
            let page = GraphQLOperation(paged.operation.document, variables: ["limit": 2])
            await expectCode(.miss) { _ = try app.read(page) }
        }
    }

    @Test("A page that comes after another process has moved the position is an error, and the cache stores none of it")
    func movedByOther() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            server.change { state in
                state.script = { number in
                    guard number == 1 else { return nil }
                    // As another process does that gives the walk up. The first page is being stored meanwhile.
                    try await eventually { try !app.records.positions().isEmpty }
                    for key in try app.records.positions().keys { try await app.records.forgetWalk(of: key) }
                    return nil
                }
            }
            await expectCode(.recordsBusy) { _ = try await app.sync(paged) }
            #expect(title(app, "b") == "b1")
            #expect(title(app, "c") == nil)
        }
    }
}
