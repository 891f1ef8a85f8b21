import AsyncHTTPClient
import Foundation
import Larder
import LarderTestSupport
import Testing

/// A client is a process of its own that is killed again and again, and its network a bad one: connections break or
/// fall silent, events come twice, late and in another order, requests and answers are lost, tokens end.
@Suite(
    "Convergence of a client that is killed", .timeLimit(.minutes(10)),
    .enabled(
        if: BuiltProgram.exists("larder-crash") && ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct KilledConvergenceTests {
    private struct Difference: Error, CustomStringConvertible { var description: String }

    /// The client, its server and what the test sees of both.
    private struct Scene {
        let folder: URL
        let endpoint: URL
        let control: URL
        let kind: String
        let app: Partition

        var store: URL { folder.appending(path: "store") }
        var token: URL { folder.appending(path: "token") }
        var said: URL { folder.appending(path: "said") }

        func start() throws -> Process {
            let child = Process()
            child.executableURL = BuiltProgram.file("larder-crash")
            child.arguments = [store.path, "converge", endpoint.absoluteString, kind, token.path]
            // It ends with this process: nothing is written there.
            child.standardInput = Pipe.uninherited()
            try Data().write(to: said)
            let handle = try FileHandle(forWritingTo: said)
            child.standardOutput = handle
            try child.start()
            try handle.close()
            return child
        }

        @discardableResult
        func order(_ json: String, _ path: String = "control") async throws -> Data {
            var request = HTTPClientRequest(url: control.appending(path: path).absoluteString)
            request.method = .POST
            request.body = .bytes(Array(json.utf8))
            let body = try await HTTPClient.shared.execute(request, timeout: .seconds(60)).body.collect(upTo: 1 << 22)
            return Data(body.readableBytesView)
        }

        func cached(_ key: String, _ field: String) -> String? {
            let type = key.prefix { $0 != ":" }
            return try? app.read(CacheKey(key), GraphQLFragment("fragment F on \(type) { \(field) }"))[field]?.string
        }

        /// Waits until there is no difference, which lasts at most a minute.
        func wait(_ about: String, _ differences: () throws -> [String]) async throws {
            let end = SuspendingClock.now + .seconds(60)
            while true {
                let found = try differences()
                if found.isEmpty { return }
                guard .now < end else {
                    let states = (try? String(contentsOf: said, encoding: .utf8)) ?? ""
                    throw Difference(description: "\(about): \(found); the client said \(states.suffix(300))")
                }
                try await Task.sleep(for: .milliseconds(3))
            }
        }
    }

    private func withScene(
        _ server: ServerProcess, _ kind: String, schema: String, ports: (Int, Int),
        _ body: (Scene) async throws -> Void
    ) async throws {
        try await withStarted(server, stop: { await $0.stop() }) { server in
            try await withTemporaryFolder { folder in
                let store = try Store.open(
                    at: folder.appending(path: "store"), schema: try Schema(parsing: schema))
                func url(_ word: Int, _ path: String) throws -> URL {
                    try #require(URL(string: "http://127.0.0.1:\(server.words[word])/\(path)"))
                }
                let scene = Scene(
                    folder: folder, endpoint: try url(ports.0, "graphql"), control: try url(ports.1, ""), kind: kind,
                    app: try store.partition())
                try Data("0".utf8).write(to: scene.token)
                try await body(scene)
                try store.close()
                #expect(try StoreRepair(of: scene.store).steps == [])
            }
        }
    }

    @Test("After quiet, a cache that is kept by AppSync's delta queries equals the server, object by object")
    func deltaSync() async throws {
        let seed = TestSeed.of("killed convergence by delta queries")
        var numbers = SeededNumbers(seed: seed)
        func random(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &numbers) }
        let start = """
            {"apiKey": "k", "pool": "pool", "region": "eu-west-1", "lifetime": 4000, "pageSize": 3, "timeout": 1000,
             "every": 0.1, "tokens end": true, "storm": \(seed)}
            """
        let server = try await ServerProcess.start("appsync.py", [start])
        try await withScene(server, "appsync", schema: Self.todos, ports: (0, 0)) { scene in
            var child = try scene.start()
            defer { kill(child.processIdentifier, SIGKILL) }
            for round in 0..<28 {
                try await scene.order(#"{"storm": \#(seed &+ UInt64(round))}"#)
                for change in 0..<(4 + random(12)) {
                    if random(4) == 0 {
                        try await scene.order(#"{"delete": "\#(random(12))"}"#)
                    } else {
                        try await scene.order(
                            #"{"put": {"id": "\#(random(12))", "title": "\#(round).\#(change)"}}"#)
                    }
                    if random(6) == 0 {
                        kill(child.processIdentifier, SIGKILL)
                        await child.ended()
                        #expect(child.terminationReason == .uncaughtSignal, "seed \(seed): it ended by itself")
                        child = try scene.start()
                    }
                    if random(3) == 0 { try await Task.sleep(for: .milliseconds(random(15))) }
                }
                try await scene.order(#"{"storm": null}"#)
                let todos = try JSONDecoder().decode([String: Todo].self, from: try await scene.order("{}", "todos"))
                try await scene.wait("seed \(seed), round \(round)") {
                    (0..<12).compactMap { id in
                        let todo = todos["\(id)"]
                        let expected = todo?._deleted == true ? nil : todo?.title
                        let cached = scene.cached("Todo:\(id)", "title")
                        return cached == expected ? nil : "\(id) is \(cached ?? "-") and not \(expected ?? "-")"
                    }
                }
            }
        }
    }

    @Test("After quiet, a cache that fetches anew after each gap equals the server, object by object")
    func refetch() async throws {
        let seed = TestSeed.of("killed convergence by queries")
        var numbers = SeededNumbers(seed: seed)
        func random(_ limit: Int) -> Int { Int.random(in: 0..<limit, using: &numbers) }
        let server = try await ServerProcess.start("events.py", ["strawberry"])
        try await withScene(server, "websocket", schema: Self.items, ports: (0, 1)) { scene in
            var child = try scene.start()
            defer { kill(child.processIdentifier, SIGKILL) }
            for round in 0..<60 {
                try await scene.order(#"{"storm": \#(seed &+ UInt64(round))}"#)
                for change in 0..<(4 + random(12)) {
                    switch random(12) {
                    case 0:
                        // No event tells of it: the cut is the gap after which the list is fetched.
                        try await scene.order(#"{"remove": ["\#(random(12))"], "cut": true}"#)
                    case 1: try await scene.order(#"{"cut": true}"#)
                    case 2:
                        try Data("\(round).\(change)".utf8).write(to: scene.token, options: .atomic)
                        try await scene.order(#"{"token": "\#(round).\#(change)", "cut": true}"#)
                    case 3, 4:
                        kill(child.processIdentifier, SIGKILL)
                        await child.ended()
                        #expect(child.terminationReason == .uncaughtSignal, "seed \(seed): it ended by itself")
                        child = try scene.start()
                    default:
                        try await scene.order(#"{"set": {"\#(random(12))": "\#(round).\#(change)"}}"#)
                    }
                    if random(3) == 0 { try await Task.sleep(for: .milliseconds(random(15))) }
                }
                let answer = try await scene.order(#"{"storm": null}"#)
                let items = try JSONDecoder().decode(Items.self, from: answer).items
                try await scene.wait("seed \(seed), round \(round)") {
                    let listed = (try? scene.app.read(GraphQLOperation("{ items { id } }"), allowsPartial: true))?[
                        "items"]
                    let left = (listed?.elements ?? []).compactMap { $0["id"]?.string }.filter { items[$0] == nil }
                    return left.map { "\($0) is listed" }
                        + items.compactMap { id, item in
                            let cached = scene.cached("Item:\(id)", "text")
                            return cached == item.text ? nil : "\(id) is \(cached ?? "-") and not \(item.text ?? "-")"
                        }
                }
            }
        }
    }

    private static let calm = """
        {"apiKey": "k", "pool": "pool", "region": "eu-west-1", "pageSize": 3}
        """

    /// Waits until the client has said something, and answers all that it has said.
    private func said(_ scene: Scene, _ word: String) async throws -> [String] {
        var lines: [String] = []
        try await scene.wait("the client does not say \(word)") {
            lines = try String(contentsOf: scene.said, encoding: .utf8).split(separator: "\n").map(String.init)
            return lines.contains { $0.hasPrefix(word) } ? [] : ["\(lines)"]
        }
        return lines
    }

    @Test("A subscription whose process was killed while it was live says since when it is stale, and catches up")
    func gapAfterKill() async throws {
        let server = try await ServerProcess.start("appsync.py", [Self.calm])
        try await withScene(server, "appsync", schema: Self.todos, ports: (0, 0)) { scene in
            try await scene.order(#"{"put": {"id": "1", "title": "first"}}"#)
            let began = Date()
            var child = try scene.start()
            defer { kill(child.processIdentifier, SIGKILL) }
            _ = try await said(scene, "live")
            try await scene.wait("it is not noted") { try scene.app.subscriptions().isEmpty ? ["no position"] : [] }
            kill(child.processIdentifier, SIGKILL)
            await child.ended()
            let killed = Date()
            let status = try #require(try scene.app.subscriptions().first)
            #expect(status.name == "Subscription.changed")
            #expect(began < status.completeUntil && status.completeUntil < killed)
            try await scene.order(#"{"put": {"id": "1", "title": "second"}}"#)
            try await scene.order(#"{"put": {"id": "2", "title": "new"}}"#)
            child = try scene.start()
            let first = try #require(try await said(scene, "connecting").first { $0.hasPrefix("connecting") })
            let since = try #require(first.split(separator: " ").last.flatMap { Double($0) })
            #expect(abs(since - status.completeUntil.timeIntervalSince1970) < 0.01)
            try await scene.wait("it has not caught up") {
                scene.cached("Todo:1", "title") == "second" && scene.cached("Todo:2", "title") == "new" ? [] : ["old"]
            }
        }
    }

    @Test("One process holds the connection, and the watchers of another see its events")
    func twoProcesses() async throws {
        let server = try await ServerProcess.start("appsync.py", [Self.calm])
        try await withScene(server, "appsync", schema: Self.todos, ports: (0, 0)) { scene in
            try await scene.order(#"{"put": {"id": "1", "title": "first"}}"#)
            let child = try scene.start()
            defer { kill(child.processIdentifier, SIGKILL) }
            _ = try await said(scene, "live")
            var titles = try scene.app.watch("Todo:1", GraphQLFragment("fragment F on Todo { title }"))
                .makeAsyncIterator()
            #expect(await titles.next()?.response?["title"]?.string == "first")
            try await scene.order(#"{"put": {"id": "1", "title": "second"}}"#)
            while let state = await titles.next(), state.response?["title"]?.string != "second" {}
            #expect(scene.cached("Todo:1", "title") == "second")
        }
    }

    private struct Todo: Decodable {
        var title: String?
        var _deleted: Bool?
    }

    private struct Items: Decodable {
        struct Item: Decodable { var text: String? }
        var items: [String: Item]
    }

    private static let todos = """
        scalar AWSTimestamp
        type Query {
          todos: [Todo]
          syncTodos(limit: Int, nextToken: String, lastSync: AWSTimestamp): TodoConnection
        }
        type Subscription { changed: Todo }
        type TodoConnection { items: [Todo]! nextToken: String startedAt: AWSTimestamp }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        """
    private static let items = """
        type Query { items: [Item!]! }
        type Subscription { changed: Item! }
        type Item { id: ID! text: String version: Int! }
        """
}
