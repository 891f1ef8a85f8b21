import Foundation
import Larder
import LarderTestSupport
import LarderTesting
import Synchronization
import Testing

@Suite("Synchronization by delta queries", .timeLimit(.minutes(5)))
struct SyncTests {
    func title(_ app: Partition, _ id: String) -> String? {
        try? app.read("Todo:\(id)", GraphQLFragment("fragment F on Todo { title }"))["title"]?.string
    }

    func withServer(
        _ todos: [String], _ body: (SyncServer, Partition) async throws -> Void
    ) async throws {
        let server = SyncServer()
        for id in todos { server.put(id, "\(id)1") }
        try await withStoreFixture(server.transport, schema: SyncServer.schema) { app in try await body(server, app) }
    }

    var paged: Synchronization {
        var sync = SyncServer.sync
        sync.pageSize = 2
        return sync
    }

    /// A synchronization in pages of two objects that asks for so many pages a call at most.
    func pages(upTo count: Int?) -> Synchronization {
        var sync = paged
        sync.maximumPageCount = count
        return sync
    }

    /// Fetches an object by another query than a synchronization's.
    func fetch(_ todo: String, _ app: Partition) async throws {
        let server = ScriptedServer { (_: GraphQLRequest) in #"{"data":{"todo":\#(todo)}}"# }
        let query = GraphQLOperation("{ todo(id: 1) { id title } }")
        _ = try await app.with(server: server).fetch(query, policy: .networkOnly)
    }

    /// Runs `body` while a synchronization waits for the answer to its first request.
    func whileSyncing(
        sourceLocation: SourceLocation = #_sourceLocation, _ body: (Partition) async throws -> Void
    ) async throws {
        try await withServer(["a"]) { server, app in
            let (isAsked, isFree, isAnswered) = (Flag(), Flag(), Flag())
            server.change { state in
                state.script = { number in
                    guard number == 0 else { return nil }
                    isAsked.set()
                    await isFree.wait()
                    isAnswered.set()
                    return nil
                }
            }
            let first = Task { _ = try await app.sync(paged) }
            await isAsked.wait()
            try await body(app)
            #expect(!isAnswered.isSet, sourceLocation: sourceLocation)
            isFree.set()
            try await first.value
        }
    }

    private var filtered: Synchronization {
        var sync = paged
        sync.operation = GraphQLOperation(
            """
            query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp, $filter: Filter) {
              syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync, filter: $filter) {
                items { id } nextToken startedAt
              }
            }
            """, variables: ["filter": ["title": "x"]])
        return sync
    }

    @Test("The first walk goes through everything, and the next asks for what has changed since")
    func baseThenDelta() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            server.wait(10_000)
            let first = try await app.sync(paged)
            #expect(first.pageCount == 3)
            #expect(first.objectCount == 5)
            #expect(first.isBase && first.isFinished)
            #expect(title(app, "e") == "e1")
            server.wait(10_000)
            server.put("b", "b2")
            server.delete("c")
            server.put("f", "f1")
            let second = try await app.sync(paged)
            #expect(!second.isBase)
            #expect(second.objectCount == 3)
            #expect(title(app, "b") == "b2")
            #expect(title(app, "c") == nil)
            #expect(title(app, "f") == "f1")
            let started = try #require(first.milliseconds)
            #expect(server.requests.last { $0.token == nil }?.lastSync == started - 2_000)
            #expect(try app.synchronizations().map(\.startedAt) == [second.startedAt])
        }
    }

    @Test("P457: handlers of a synchronization are never called. Its handler is called for each page")
    func progress() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { _, app in
            let told = Mutex<[SyncReport]>([])
            let report = try await app.sync(paged) { report in told.withLock { $0.append(report) } }
            #expect(told.withLock { $0.map(\.objectCount) } == [2, 4, 5])
            #expect(told.withLock { $0.map(\.isFinished) } == [false, false, true])
            #expect(told.withLock { $0.last } == report)
        }
    }

    @Test("A limit of pages does not move the position, and the next call goes on with the page after")
    func limited() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            server.wait(10_000)
            let first = try await app.sync(pages(upTo: 2))
            #expect(!first.isFinished)
            #expect(first.startedAt == nil)
            #expect(try app.synchronizations().map(\.openPageCount) == [2])
            let second = try await app.sync(pages(upTo: 2))
            #expect(second.isFinished)
            // The rest of the walk, and what has changed since it began.
            #expect(second.pageCount == 2 && second.isBase)
            #expect(server.requests.map { $0.token == nil } == [true, false, false, true])
            #expect(title(app, "e") == "e1")
        }
    }

    @Test("A walk that fails on its way goes on with the page that failed")
    func interrupted() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            server.wait(10_000)
            server.change { $0.script = { if $0 == 1 { throw TransportError(.interrupted, "cut") } else { nil } } }
            let error = await #expect(throws: LarderError.self) { try await app.sync(paged) }
            #expect(error?.code == .transportInterrupted)
            let report1 = try await app.sync(paged)
            #expect(report1.pageCount == 3)
            #expect(try app.synchronizations().map(\.openPageCount) == [nil])
            #expect(title(app, "e") == "e1")
            // No page is asked for twice but the one that failed.
            #expect(server.requests.map { $0.token == nil } == [true, false, false, false, true])
        }
    }

    @Test("A walk that is gone on with ends with what has changed since it began, also on pages left behind")
    func changedSinceBegin() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            try await app.sync(pages(upTo: 2))
            server.put("a", "a2")
            try await app.sync(paged)
            #expect(title(app, "a") == "a2")
            #expect(title(app, "e") == "e1")
        }
    }

    @Test("Once the delta table has forgotten, a walk through everything removes what the server has no more")
    func sweeps() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { server, app in
            try await app.sync(paged)
            server.delete("c")
            server.wait(31 * 60_000)
            let report = try await app.sync(paged)
            #expect(report.isBase)
            #expect(title(app, "c") == nil)
            #expect(title(app, "d") == "d1")
            // It asked for the changes, saw by the server's clock that too much time had passed, and asked for all.
            #expect(server.requests.map { $0.lastSync == nil } == [true, true, true, false, true, true])
        }
    }

    @Test("An object that came while everything was walked through stays")
    func createdMeanwhile() async throws {
        try await withServer(["b", "c", "d"]) { server, app in
            server.change { $0.script = { if $0 == 1 { throw TransportError(.interrupted, "cut") } else { nil } } }
            await #expect(throws: LarderError.self) { try await app.sync(paged) }
            // It sorts before the pages that are yet to come.
            server.put("a", "a1")
            let changed = Int64(Date().timeIntervalSince1970 * 1_000)
            try await fetch(
                #"{"__typename":"Todo","id":"a","title":"a1","_version":1,"_lastChangedAt":\#(changed)}"#, app)
            let report2 = try await app.sync(paged)
            #expect(report2.isFinished)
            #expect(title(app, "a") == "a1")
            #expect(title(app, "d") == "d1")
        }
    }

    @Test(
        "A walk with a filter removes nothing; one without, or whose filter is null, removes what it did not have",
        arguments: [nil, .null, ["title": "x"]] as [Value?])
    func removesNothing(filter: Value?) async throws {
        try await withServer(["a", "b"]) { server, app in
            try await fetch(
                #"{"__typename":"Todo","id":"x","title":"x1","_version":1,"_lastChangedAt":1600000000000}"#, app)
            var sync = paged
            if let filter {
                sync = filtered
                sync.operation.variables = ["filter": filter]
            }
            let report = try await app.sync(sync)
            #expect(report.isBase && report.isFinished)
            #expect(title(app, "x") == (filter == ["title": "x"] ? "x1" : nil))
        }
    }

    @Test("A walk with a filter in its document removes nothing")
    func writtenFilter() async throws {
        try await withServer(["a", "b"]) { _, app in
            try await fetch(
                #"{"__typename":"Todo","id":"x","title":"x1","_version":1,"_lastChangedAt":1600000000000}"#, app)
            var sync = paged
            sync.operation = GraphQLOperation(
                """
                query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
                  syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync, filter: {title: "a"}) {
                    items { id } nextToken startedAt
                  }
                }
                """)
            #expect(try await app.sync(sync).isFinished)
            #expect(title(app, "x") == "x1")
        }
    }

    @Test("A synchronization does not wait for another one that is under way")
    func besideAnother() async throws {
        try await whileSyncing { app in try await app.sync(filtered) }
    }

    @Test("A partition whose server is another begins with everything, and removes what that one has not")
    func otherServer() async throws {
        try await withServer(["a", "b"]) { _, app in
            let first = NamedServer(app, "https://one.example")
            try await first.app.sync(paged)
            // The names of servers are compared, and no server is asked twice for everything.
            #expect(try await first.app.sync(paged).isBase == false)
            let moved = SyncServer()
            moved.put("b", "moved")
            moved.put("b", "moved")
            // Within the time for which a delta would do.
            moved.wait(10 * 60_000)
            let second = NamedServer(app, "https://two.example", moved)
            let report = try await second.app.sync(paged)
            #expect(report.isBase)
            #expect(title(app, "a") == nil)
            #expect(title(app, "b") == "moved")
            #expect(try await second.app.sync(paged).isBase == false)
        }
    }

    @Test("A walk that was begun with another server begins anew: no server is sent another one's token")
    func otherServerAmidWalk() async throws {
        try await withServer([]) { _, app in
            let (one, two) = (SyncServer(), SyncServer())
            for id in ["a", "b", "c"] {
                one.put(id, "\(id)1")
                // Twice, so that its versions are the greater ones.
                for _ in 0..<2 { two.put(id, "\(id)2") }
            }
            try await NamedServer(app, "https://one.example", one).app.sync(pages(upTo: 1))
            let report = try await NamedServer(app, "https://two.example", two).app.sync(paged)
            #expect(report.isBase && report.isFinished)
            #expect(two.requests.map { $0.token == nil } == [true, false])
            #expect(["a", "b", "c"].map { title(app, $0) } == ["a2", "b2", "c2"])
        }
    }

    @Test("A store that is open to be read only asks no server for what it could not keep")
    func readOnly() async throws {
        let server = SyncServer()
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: SyncServer.schema)
            let writable = try Store.open(at: folder, schema: schema)
            _ = try writable.partition()
            try writable.close()
            var options = Store.Options()
            options.isReadOnly = true
            let store = try Store.open(at: folder, schema: schema, options: options)
            let app = try store.partition(server: server.transport)
            await expectCode(.init(rawValue: "records.notWritable")) { _ = try await app.sync(paged) }
            #expect(server.requests.isEmpty)
            try store.close()
        }
    }

    @Test("Queries that differ in the value of a filter have a position each")
    func otherFilter() async throws {
        let server = SyncServer()
        try await withStoreFixture(server.transport, schema: SyncServer.schema) { app in
            var other = filtered
            other.operation.variables = ["filter": ["title": "y"]]
            for synchronization in [filtered, other] { try await app.sync(synchronization) }
            #expect(try app.synchronizations().count == 2)
        }
    }

    @Test("A position of which nothing was heard for 90 days is forgotten")
    func forgotten() async throws {
        let start = TestClock(Date(timeIntervalSince1970: 1_700_000_000))
        try await withClock(SyncServer().transport, schema: SyncServer.schema, start) { app, clock in
            try await app.sync(filtered)
            clock.advance(by: .seconds(90 * 86_400))
            try await app.sync(paged)
            let names = try app.synchronizations().map(\.name)
            #expect(names.count == 2 && names == names.sorted())
            clock.advance(by: .seconds(1))
            try await app.sync(paged)
            #expect(try app.synchronizations().count == 1)
        }
    }

    @Test("A position that is heard of every 60 days is not forgotten")
    func heardOf() async throws {
        let start = TestClock(Date(timeIntervalSince1970: 1_700_000_000))
        try await withClock(SyncServer().transport, schema: SyncServer.schema, start) { app, clock in
            for synchronization in [filtered, filtered, paged] {
                try await app.sync(synchronization)
                clock.advance(by: .seconds(60 * 86_400))
            }
            #expect(try app.synchronizations().count == 2)
        }
    }

    @Test("A mutation says the version that the cache has, where its input has room for it")
    func sendsVersion() async throws {
        try await withServer(["a", "a"]) { server, app in
            try await app.sync(paged)
            let answer = """
                {"data":{"update":{"__typename":"Todo","id":"a","title":"mine","_version":3,"_deleted":null,\
                "_lastChangedAt":1}}}
                """
            let other = ScriptedServer { (_: GraphQLRequest) in answer }
            let update = SyncServer.update()
            _ = try await app.with(server: other).send(update)
            let input = try #require(other.requests.first?.values["input"] as? [String: Any])
            #expect((input["_version"] as? NSNumber)?.intValue == 2)
            #expect(title(app, "a") == "mine")
            // The program's own stays.
            var old = update
            old.variables = ["input": ["id": "a", "title": "mine", "_version": 1]]
            _ = try await app.with(server: other).send(old)
            #expect(other.requests.last?.variableValues == old.variables)
            try await app.enqueue(old)
            try await MutationRunner(app.with(server: other)).drain()
            #expect(other.requests.count == 3 && other.requests.last?.variableValues == old.variables)
        }
    }

    @Test("A server whose clock was set back is walked through whole: its deltas are not those since the last walk")
    func clockSetBack() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            server.wait(-60_000)
            #expect(try await app.sync(paged).isBase)
            #expect(try await !app.sync(paged).isBase)
        }
    }

    @Test("For how long the server tells of changes is what the synchronization says", arguments: [2, 60])
    func deltaLifetime(minutes: Int64) async throws {
        try await withServer(["a", "b"]) { server, app in
            server.change { $0.lifetime = minutes * 60_000 }
            var sync = paged
            sync.deltaLifetime = .seconds(minutes * 60)
            try await app.sync(sync)
            for wait in [3, 40] as [Int64] {
                server.wait(wait * 60_000)
                #expect(try await app.sync(sync).isBase == (wait > minutes))
            }
        }
    }

    @Test("A synchronization that says nothing of it takes the server's deltas for half an hour")
    func defaultLifetime() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            for (minutes, isBase) in [(28, false), (31, true)] as [(Int64, Bool)] {
                server.wait(minutes * 60_000)
                #expect(try await app.sync(paged).isBase == isBase)
            }
        }
    }

    @Test("Each page is asked for with the headers of the synchronization, and has its time")
    func request() async throws {
        let server = SyncServer()
        for id in ["a", "b", "c"] { server.put(id, id) }
        let transport = server.transport
        try await withStoreFixture(transport, schema: SyncServer.schema) { app in
            var sync = paged
            (sync.headers, sync.timeout) = ([.init(name: "x-tenant", value: "7")], .seconds(900))
            let begun = SuspendingClock.now
            try await app.sync(sync)
            #expect(transport.requests.map(\.headers) == [sync.headers, sync.headers])
            #expect(transport.deadlines.allSatisfy { $0 >= begun + .seconds(900) })
        }
    }

    @Test("A type has versions as well where the program says so, and a type without any is refused")
    func versionsFromCode() async throws {
        var schema = try Schema(parsing: SyncServer.unversionedSchema)
        try schema.setVersioned("Todo")
        for type in ["TodoConnection", "Nothing"] {
            await expectCode(.schema) { [schema] in
                var schema = schema
                try schema.setVersioned(type)
            }
        }
        let server = SyncServer.newestFirst
        try await withTemporaryFolder { [schema] folder in
            let store = try Store.open(at: folder, schema: schema)
            let app = try store.partition(server: server)
            for _ in 0..<2 {
                _ = try await app.fetch(GraphQLOperation(#"{ todo(id: "a") { id title } }"#), policy: .networkOnly)
            }
            #expect(title(app, "a") == "version 3")
            try store.close()
        }
    }

    @Test("A call without a page left for what has changed since its walk began says that it has not finished")
    func limitedAfterWalk() async throws {
        try await withServer(["a", "b", "c", "d", "e"]) { _, app in
            try await app.sync(pages(upTo: 2))
            let atEnd = try await app.sync(pages(upTo: 1))
            #expect(!atEnd.isFinished && atEnd.startedAt != nil)
            #expect(try await app.sync(paged).isFinished)
        }
    }

    @Test("A synchronization reports by the server's clock when its walk began")
    func startTime() async throws {
        try await withServer([]) { server, app in
            server.wait(1_500)
            let report = try await app.sync(paged)
            #expect(report.startedAt == Date(timeIntervalSince1970: 1_700_000_001.5))
        }
    }

    @Test("A server that tells of its changes for ever is asked for these alone")
    func endlessLifetime() async throws {
        try await withServer(["a", "b"]) { server, app in
            var sync = paged
            // In milliseconds it is more than an integer can be.
            sync.deltaLifetime = .seconds(Int64.max / 2)
            try await app.sync(sync)
            server.wait(60_000)
            let second = try await app.sync(sync)
            #expect(second.isFinished && !second.isBase)
        }
    }
}

/// A way to a server that says which one it is.
private struct NamedServer: GraphQLTransport {
    let server: String?
    private let scripted: any GraphQLTransport
    private let partition: Partition

    init(_ partition: Partition, _ name: String, _ server: SyncServer? = nil) {
        self.partition = partition
        self.server = name
        scripted = (server ?? Self.shared).transport
    }

    private static let shared: SyncServer = {
        let server = SyncServer()
        server.put("a", "a1")
        server.put("b", "b1")
        return server
    }()

    var app: Partition { partition.with(server: self) }

    func send(_ request: GraphQLRequest, within time: Duration) async throws(TransportError) -> GraphQLAnswer {
        try await scripted.send(request, within: time)
    }
}
