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
          syncTodos(limit: Int, nextToken: String, lastSync: AWSTimestamp, filter: Filter): TodoConnection
        }
        type Mutation { update(input: UpdateInput!): Todo }
        type TodoConnection { items: [Todo]! nextToken: String startedAt: AWSTimestamp }
        type Todo @typePolicy(versioned: true) {
          id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
        }
        input Filter { title: String }
        input UpdateInput { id: ID! title: String _version: Int }
        """
    static let sync = Synchronization(
        GraphQLOperation(
            """
            query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
              syncTodos(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                items { id title } nextToken startedAt
              }
            }
            """))

    private let state = Mutex(State())

    var requests: [Request] { state.withLock { $0.requests } }

    func change(_ body: (inout State) -> Void) { state.withLock { body(&$0) } }

    /// Creates or changes an object, a millisecond after what was changed before.
    func put(_ id: String, _ title: String) {
        change { state in
            state.now += 1
            var todo = state.todos[id] ?? Todo(title: title, version: 0, changed: 0)
            (todo.title, todo.isDeleted, todo.changed) = (title, false, state.now)
            todo.version += 1
            state.todos[id] = todo
        }
    }

    func delete(_ id: String) {
        change { state in
            state.now += 1
            state.todos[id]?.isDeleted = true
            state.todos[id]?.version += 1
            state.todos[id]?.changed = state.now
        }
    }

    func wait(_ milliseconds: Int64) { change { $0.now += milliseconds } }

    /// The transport to it.
    var transport: ScriptedServer {
        ScriptedServer { [self] (request: GraphQLRequest) in try await answer(request) }
    }

    private func answer(_ request: GraphQLRequest) async throws -> String {
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
        let items = shown.map { id, todo in
            """
            {"__typename":"Todo","id":"\(id)","title":"\(todo.title)","_version":\(todo.version),\
            "_deleted":\(todo.isDeleted ? "true" : "null"),"_lastChangedAt":\(todo.changed)}
            """
        }
        let next =
            shown.count < rest.count
            ? "\"\(isDelta ? "delta" : "base")|\(startedAt)|\(shown.last?.key ?? "")\"" : "null"
        return """
            {"data":{"syncTodos":{"items":[\(items.joined(separator: ","))],"nextToken":\(next),\
            "startedAt":\(startedAt)}}}
            """
    }
}
