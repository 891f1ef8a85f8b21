import Foundation
import Larder
import LarderTesting
import Synchronization

/// AppSync's versioned tables in memory: a base table with tombstones and a delta table with a lifetime, by a clock that
/// the test moves.
final class SyncServer: Sendable {
    struct Todo: Sendable {
        var title: String
        var version = 1
        var isDeleted = false
        var changed: Int64
    }

    struct State: Sendable {
        var now: Int64 = 1_700_000_000_000
        var todos: [String: Todo] = [:]
        /// Also of objects whose tombstones are gone.
        var versions: [String: Int] = [:]
        /// For how long the delta table keeps a change, and the base table a tombstone, in milliseconds.
        var lifetime: Int64 = 30 * 60_000
        /// The largest page.
        var pageSize = 1_000
        /// The arguments of each request.
        var requests: [Request] = []
        /// What is answered in place of the page of a number, counted from 0 over all requests.
        var script: @Sendable (_ number: Int) async throws -> String? = { _ in nil }
    }

    struct Request: Sendable, Equatable {
        var lastSync: Int64?
        var token: String?
    }

    static let schema = """
        scalar AWSTimestamp
        type Query {
          todo(id: ID!): Todo
          todos: [Todo]
          syncTodos(limit: Int, nextToken: String, lastSync: AWSTimestamp, filter: Filter): TodoConnection
        }
        type Subscription { changed: Todo }
        type Mutation { update(input: UpdateInput!): Todo rename(id: ID!, title: String): Todo }
        type TodoConnection { items: [Todo]! nextToken: String startedAt: AWSTimestamp }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        input Filter { title: String }
        input UpdateInput { id: ID! title: String _version: Int }
        """
    static var unversionedSchema: String { schema.replacing(" @typePolicy(versioned: true)", with: "") }
    static let sync = Synchronization(
        GraphQLOperation(
            """
            query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
              syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                items { id title } nextToken startedAt
              }
            }
            """))
    /// A mutation of two objects, in the fields `a` and `b`.
    static let updateOfTwo = GraphQLOperation(
        """
        mutation Update($a: UpdateInput!, $b: UpdateInput!) {
          a: update(input: $a) { id title } b: update(input: $b) { id title }
        }
        """, variables: ["a": ["id": "a", "title": "mine"], "b": ["id": "b", "title": "mine"]])

    static func update(_ id: String = "a") -> GraphQLOperation {
        GraphQLOperation(
            "mutation Update($input: UpdateInput!) { update(input: $input) { id title } }",
            variables: ["input": ["id": .string(id), "title": "mine"]])
    }

    /// A server that answers with an object's version 3, and then with its version 2.
    static var newestFirst: ScriptedServer {
        ScriptedServer { number, _ in
            """
            {"data":{"todo":{"__typename":"Todo","id":"a","title":"version \(3 - number)","_version":\(3 - number),
             "_deleted":null,"_lastChangedAt":9}}}
            """
        }
    }

    private let state = Mutex(State())

    var todos: [String: Todo] { state.withLock { $0.todos } }

    /// The event that tells of an object as it is now.
    func event(_ id: String) -> String? {
        todos[id].map { #"{"data":{"changed":\#($0.json(id))}}"# }
    }

    var requests: [Request] { state.withLock { $0.requests } }

    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    /// Creates or changes an object, a millisecond after what was changed before.
    func put(_ id: String, _ title: String) {
        change { state in
            state.now += 1
            var todo = state.todos[id] ?? Todo(title: title, version: 0, changed: 0)
            (todo.title, todo.isDeleted, todo.changed) = (title, false, state.now)
            state.versions[id, default: 0] += 1
            todo.version = state.versions[id, default: 0]
            state.todos[id] = todo
        }
    }

    func delete(_ id: String) {
        change { state in
            state.now += 1
            state.versions[id, default: 0] += 1
            state.todos[id]?.isDeleted = true
            state.todos[id]?.version = state.versions[id, default: 0]
            state.todos[id]?.changed = state.now
        }
    }

    func wait(_ milliseconds: Int64) { change { $0.now += milliseconds } }

    /// The transport to it.
    var transport: ScriptedServer {
        ScriptedServer { [self] (request: GraphQLRequest) in try await answer(request) }
    }

    func answer(_ request: GraphQLRequest) async throws -> String {
        guard request.document.contains("syncTodos") else {
            let items = todos.filter { !$0.value.isDeleted }.map { $0.value.json($0.key) }
            return #"{"data":{"todos":[\#(items.joined(separator: ","))]}}"#
        }
        let values = request.values
        let asked = Request(
            lastSync: (values["lastSync"] as? NSNumber)?.int64Value, token: values["nextToken"] as? String)
        let (number, script) = state.withLock { state in
            state.requests.append(asked)
            return (state.requests.count - 1, state.script)
        }
        if let scripted = try await script(number) { return scripted }
        return state.withLock { $0.page(asked, limit: (values["limit"] as? NSNumber)?.intValue ?? 100) }
    }
}

extension SyncServer.State {
    /// A token holds whether the walk goes through the delta table, when it began and the id after which it goes on.
    mutating func page(_ asked: SyncServer.Request, limit: Int) -> String {
        todos = todos.filter { !$0.value.isDeleted || $0.value.changed > now - lifetime }
        var isDelta = asked.lastSync.map { $0 >= now - lifetime } ?? false
        var (startedAt, after) = (now, "")
        if let parts = asked.token?.split(separator: "|", omittingEmptySubsequences: false), parts.count == 3 {
            (isDelta, startedAt, after) = (parts[0] == "delta", Int64(parts[1]) ?? 0, String(parts[2]))
        }
        let rest = todos.filter { id, todo in
            id > after && (!isDelta || todo.changed > asked.lastSync ?? 0)
        }.sorted { $0.key < $1.key }
        let shown = rest.prefix(min(limit, pageSize))
        let items = shown.map { id, todo in todo.json(id) }
        let next =
            shown.count < rest.count
            ? "\"\(isDelta ? "delta" : "base")|\(startedAt)|\(shown.last?.key ?? "")\"" : "null"
        return """
            {"data":{"syncTodos":{"items":[\(items.joined(separator: ","))],"nextToken":\(next),\
            "startedAt":\(startedAt)}}}
            """
    }
}

extension SyncServer.Todo {
    func json(_ id: String) -> String {
        """
        {"__typename":"Todo","id":"\(id)","title":"\(title)","_version":\(version),\
        "_deleted":\(isDeleted ? "true" : "null"),"_lastChangedAt":\(changed)}
        """
    }
}
