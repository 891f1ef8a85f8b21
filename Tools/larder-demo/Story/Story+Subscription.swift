import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderHTTP
import LarderTestSupport

extension Story {
    /// Changes that others make at a server: told while the connection stands, caught up where it did not.
    func followOthers() async throws {
        printout.step(23, "What others change: as it happens, and after a cut without a gap")
        guard ServerProcess.python != nil else {
            let missing = "what others change, for the same reason"
            claims.leaveOut(missing)
            return printout.say("left out: \(missing)")
        }
        let (printout, claims) = (printout, claims)
        try await TodoServer.run { server in
            let store = try Store.temporary(schemaText: [TodoServer.schema], options: .quiet)
            defer { try? store.close() }
            try await AppSyncTransport.withTransport(to: server.api, authorization: .apiKey(TodoServer.key)) { api in
                let story = Follower(app: try store.partition(server: api), server: server, claims: claims)
                try await story.tell(printout)
            }
        }
    }
}

/// Todos at an AppSync API, behind a network that can be cut.
private struct TodoServer {
    static let key = "da2-demonstration"
    static let schema = """
        scalar AWSTimestamp
        type Query { syncTodos(limit: Int, nextToken: String, lastSync: AWSTimestamp): TodoConnection }
        type Subscription { changed: Todo }
        type TodoConnection { items: [Todo]! nextToken: String startedAt: AWSTimestamp }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        """

    struct Todo: Decodable {
        var title: String?
        var _deleted: Bool?
    }

    let network: CutNetwork
    /// Where the API is through the network.
    let api: URL
    /// Where it is past it.
    private let itself: URL

    static func run(_ body: (TodoServer) async throws -> Void) async throws {
        let setup = """
            {"apiKey": "\(key)", "region": "us-east-1", "put": [
              {"id": "1", "title": "Buy flour"}, {"id": "2", "title": "Knead"}, {"id": "3", "title": "Bake"}]}
            """
        let process = try await ServerProcess.start("appsync.py", [setup])
        try await withStarted(process, stop: { await $0.stop() }) { process in
            guard let itself = URL(string: "http://127.0.0.1:\(process.words[0])/") else {
                throw Mismatch(claim: "a server says its port", expected: "a port", found: process.words[0])
            }
            try await CutNetwork.run(to: [itself]) { network in
                try await body(
                    TodoServer(network: network, api: network.urls[0].appending(path: "graphql"), itself: itself))
            }
        }
    }

    /// What another client has the server do.
    func change(_ order: String) async throws { try await post(order, "control") }

    /// The titles by id of what the server has and has not deleted.
    func titles() async throws -> [String: String] {
        try JSONDecoder().decode([String: Todo].self, from: await post("{}", "todos"))
            .compactMapValues { $0._deleted == true ? nil : $0.title }
    }

    @discardableResult
    private func post(_ json: String, _ path: String) async throws -> Data {
        var request = HTTPClientRequest(url: itself.appending(path: path).absoluteString)
        request.method = .POST
        request.body = .bytes(Array(json.utf8))
        let body = try await HTTPClient.shared.execute(request, timeout: .seconds(20)).body.collect(upTo: 1 << 20)
        return Data(body.readableBytesView)
    }
}

/// Keeps a cache like the server. Each claim is checked in the cache, and at the server.
private struct Follower {
    private static let title = GraphQLFragment("fragment Title on Todo { title }")

    let app: Partition
    let server: TodoServer
    let claims: Claims

    /// The titles by id of what the cache has.
    private func titles() throws -> [String: String] {
        var titles: [String: String] = [:]
        for id in ["1", "2", "3", "4"] {
            do throws(LarderError) {
                titles[id] = try app.read("Todo:\(id)", Self.title)["title"]?.string
            } catch {
                // The cache does not have it, or knows that it was deleted.
                guard error.code == .miss || error.code == .deleted else { throw error }
            }
        }
        return titles
    }

    func tell(_ printout: Printout) async throws {
        let sync = Synchronization(
            GraphQLOperation(
                """
                query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
                  syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                    items { id title } nextToken startedAt
                  }
                }
                """))
        let subscription = try await app.subscribe(
            GraphQLOperation("subscription { changed { id title } }"), options: SubscriptionOptions(sync: sync))
        let states = Observed(subscription)
        _ = try await states.first("the subscription is live") { $0.phase == .live }
        let atFirst = try titles()
        try claims.expect("the cache has what was there before", atFirst, is: try await server.titles())
        printout.say("an AppSync API with an API key, its delta queries, and a second client that changes todos there")

        let watcher = Observed(try app.watch("Todo:1", Self.title))
        _ = try await watcher.first("a watcher has the todo") { $0.response?["title"]?.string == "Buy flour" }
        let start = SuspendingClock.now
        try await server.change(#"{"put": {"id": "1", "title": "Buy rye flour"}}"#)
        let told = try await watcher.first("the watcher hears of the other client's change", after: 1)
        try claims.expect("it is that change", told.state.response?["title"]?.string, is: "Buy rye flour")
        printout.fact("the second client changes a todo -> the watcher here has it", start.duration(to: told.time))

        let before = states.count
        try await server.network.cut()
        _ = try await states.first("the subscription says since when it is stale", after: before) {
            $0.staleSince != nil
        }
        let old = try titles()
        try await server.change(#"{"put": {"id": "1", "title": "Buy spelt flour"}}"#)
        try await server.change(#"{"put": {"id": "4", "title": "Let it cool"}}"#)
        try await server.change(#"{"delete": "2"}"#)
        try claims.expect("nothing comes through the cut network", try titles(), is: old)
        let cut = states.count
        let back = try await timed {
            try await server.network.mend()
            return try await states.first("the subscription is live again", after: cut) { $0.phase == .live }
        }
        try claims.expect("nothing is missing any more", back.result.state.staleSince, is: nil)
        try claims.expect("the cache equals the server, object by object", try titles(), is: try await server.titles())
        try claims.expect("with the new one, and without the deleted", Set(try titles().keys), is: ["1", "3", "4"])
        printout.say("then the connection is cut, and the second client changes one, adds one and deletes one")
        printout.fact("from the network's return to a cache that equals the server", back.duration)
        withExtendedLifetime(subscription) {}
    }
}

extension SubscriptionEvent {
    /// What the subscription does; nil where this tells of something else.
    fileprivate var phase: SubscriptionState.Phase? {
        if case .state(let state) = self { state.phase } else { nil }
    }

    fileprivate var staleSince: Date? {
        if case .state(let state) = self { state.staleSince } else { nil }
    }
}
