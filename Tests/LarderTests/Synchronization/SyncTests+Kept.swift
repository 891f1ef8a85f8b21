import Foundation
import Larder
import LarderTesting
import Testing

/// What stays in the cache, and what is shown of it, whatever a walk through everything had.
extension SyncTests {
    @Test("A page whose token is empty is the last of its walk")
    func emptyToken() async throws {
        let page = #"{"data":{"syncTodos":{"items":[],"nextToken":"","startedAt":1000}}}"#
        let server = ScriptedServer { (_: GraphQLRequest) in page }
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            let report = try await app.sync(paged)
            #expect(report.isFinished && report.pageCount == 1 && server.requests.count == 1)
        }
    }

    @Test("The error of a walk has what the server said, the data beside it, and the time that it asks to wait")
    func refusedWithTime() async throws {
        let busy = ScriptedServer(
            search: { _, _ in
                ScriptedServer.body(
                    #"{"data":{"syncTodos":null},"errors":[{"message":"m"}]}"#, status: 429, retryAfter: .seconds(7))
            }, { _, request in ScriptedServer.done(request) })
        try await withStoreFixture(busy, schema: SyncServer.schema) { app in
            let error = await larderError { try await app.sync(paged) }
            #expect(error?.code == .serverErrors && error?.response?["syncTodos"]?.isNull == true)
            #expect(error?.errors.map(\.message) == ["m"])
            #expect(error?.remedy == .tryAgain(after: .seconds(7)))
        }
    }

    @Test("What a queued mutation changes stays, though the walk did not have it")
    func keepsQueued() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            _ = try await app.enqueue(
                SyncServer.update("b"),
                options: MutationOptions(optimisticResponse: [
                    "update": ["__typename": "Todo", "id": "b", "title": "mine"]
                ]))
            server.delete("b")
            server.wait(31 * 60_000)
            try await app.sync(paged)
            #expect(title(app, "b") == "mine")
        }
    }

    @Test("What a queued mutation names stays, though the walk did not have it and the mutation shows nothing")
    func keepsNamed() async throws {
        try await withServer(["a", "b", "c"]) { server, app in
            try await app.sync(paged)
            for text in ["update(input: $input)", "rename(id: $id, title: \"x\")"] {
                let isInput = text.hasPrefix("update")
                _ = try await app.enqueue(
                    GraphQLOperation(
                        "mutation M(\(isInput ? "$input: UpdateInput!" : "$id: ID!")) { \(text) { id title } }",
                        variables: isInput ? ["input": ["id": "b", "title": "mine"]] : ["id": "c"]))
            }
            for id in ["a", "b", "c"] { server.delete(id) }
            server.wait(31 * 60_000)
            try await app.sync(paged)
            #expect(["a", "b", "c"].map { title(app, $0) } == [nil, "b1", "c1"])
        }
    }

    @Test("What a queued mutation shows stays, though the walk did not have it and the mutation does not name it")
    func keepsShown() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            try await app.enqueue(
                GraphQLOperation(#"mutation { rename(id: "x", title: "mine") { id title } }"#),
                options: MutationOptions(optimisticResponse: [
                    "rename": ["__typename": "Todo", "id": "b", "title": "mine"]
                ]))
            for id in ["a", "b"] { server.delete(id) }
            server.wait(31 * 60_000)
            try await app.sync(paged)
            #expect(["a", "b"].map { title(app, $0) } == [nil, "mine"])
            // Once the server has refused the mutation, what was there before it is seen again.
            let refusing = ScriptedServer { (_: GraphQLRequest) in #"{"data":null,"errors":[{"message":"no"}]}"# }
            try await quickRunner(app.with(server: refusing)).drain()
            #expect(title(app, "b") == "b1")
        }
    }

    @Test("What the server changed a moment before a walk began stays, though the walk did not have it")
    func keepsRecent() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            server.wait(31 * 60_000)
            for id in ["a", "b"] { server.put(id, "\(id)2") }
            _ = try await app.fetch(GraphQLOperation("{ todos { id title } }"), policy: .networkOnly)
            // The walk's pages were read before the change of one, and after that of the other.
            server.change { $0.todos["b"] = nil }
            server.wait(1_000)
            #expect(try await app.sync(paged).isBase)
            #expect(["a", "b"].map { title(app, $0) } == ["a2", "b2"])
        }
    }

    @Test("What the server changed after a walk began stays, whatever the last page says of its begin")
    func keepsChangedMeanwhile() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            server.wait(31 * 60_000)
            let now = try #require(server.todos["b"]).changed + 31 * 60_000
            server.put("b", "b2")
            _ = try await app.fetch(GraphQLOperation("{ todos { id title } }"), policy: .networkOnly)
            func page(_ startedAt: Int64, next: String) -> String {
                #"{"data":{"syncTodos":{"items":[],"nextToken":\#(next),"startedAt":\#(startedAt)}}}"#
            }
            // The first answer shows that deltas do not reach as far back, and the walk has two pages.
            let pages = [page(now, next: "null"), page(now, next: #""t""#), page(now + 60_000, next: "null")]
            let asked = server.requests.count
            server.change { state in
                state.script = { number in pages[min(number - asked, 2)] }
            }
            #expect(try await app.sync(paged).isBase)
            #expect(["a", "b"].map { title(app, $0) } == [nil, "b2"])
        }
    }

    @Test("What an earlier call of a walk has brought stays when a later call has come to the end of the walk")
    func keepsEarlierPages() async throws {
        let ids = ["a", "b", "c", "d", "e"]
        try await withServer(ids) { server, app in
            server.wait(10_000)
            try await app.sync(pages(upTo: 2))
            #expect(try await app.sync(paged).isFinished)
            #expect(ids.map { title(app, $0) } == ids.map { "\($0)1" })
        }
    }

    @Test("A walk through everything that a later call has come to the end of removes what it did not have")
    func removesAfterLaterCall() async throws {
        try await withServer(["a", "b", "c", "d"]) { server, app in
            try await app.sync(paged)
            server.delete("d")
            server.wait(31 * 60_000)
            var limited = paged
            limited.pageSize = 1
            limited.maximumPageCount = 1
            let begun = try await app.sync(limited)
            #expect(begun.isBase && !begun.isFinished)
            limited.maximumPageCount = nil
            #expect(try await app.sync(limited).isBase)
            #expect(["a", "b", "c", "d"].map { title(app, $0) } == ["a1", "b1", "c1", nil])
        }
    }

    @Test("What a named watcher shows goes where a walk through everything did not have it")
    func removesWatched() async throws {
        try await withServer(["a", "b"]) { server, app in
            let list = GraphQLOperation("{ todos { id title } }")
            _ = try await app.fetch(list, policy: .networkOnly)
            _ = try await app.watch(named: "todos", list)
            try await app.sync(paged)
            server.delete("b")
            server.wait(31 * 60_000)
            try await app.sync(paged)
            #expect(["a", "b"].map { title(app, $0) } == ["a1", nil])
        }
    }

    @Test("What a first walk has brought that is not at its end stays when garbage is collected")
    func keepsUnfinishedWalk() async throws {
        try await withServer(["a", "b", "c"]) { _, app in
            try await app.sync(pages(upTo: 1))
            _ = try await app.collectGarbage()
            #expect(["a", "b"].map { title(app, $0) } == ["a1", "b1"])
        }
    }

    @Test("A queued mutation says the version that the cache has when it is sent, and not when it was queued")
    func sendsNewestVersion() async throws {
        try await withServer(["a"]) { server, app in
            try await app.sync(paged)
            try await app.enqueue(SyncServer.update())
            server.put("a", "a2")
            try await app.sync(paged)
            let todo = #"{"__typename":"Todo","id":"a","title":"mine","_version":3,"_deleted":null,"_lastChangedAt":9}"#
            let other = ScriptedServer { (_: GraphQLRequest) in #"{"data":{"update":\#(todo)}}"# }
            try await quickRunner(app.with(server: other)).drain()
            let input = try #require(other.requests.first?.values["input"] as? [String: Any])
            #expect((input["_version"] as? NSNumber)?.intValue == 2)
        }
    }

    @Test("What a pinned query shows stays, though the walk did not have it")
    func keepsPinned() async throws {
        try await withServer(["a", "b"]) { server, app in
            let pinned = GraphQLOperation("{ todos { id title } }")
            _ = try await app.fetch(pinned, policy: .networkOnly)
            try await app.pin(named: "todos", pinned)
            try await app.sync(paged)
            server.put("c", "c1")
            try await app.sync(paged)
            for id in ["b", "c"] { server.delete(id) }
            server.wait(31 * 60_000)
            try await app.sync(paged)
            #expect(["a", "b", "c"].map { title(app, $0) } == ["a1", "b1", nil])
        }
    }

    @Test(
        "What a program queues or edits is shown, also where it says an older version than the server has",
        arguments: [true, false])
    func showsOlder(isQueued: Bool) async throws {
        try await withServer(["a"]) { server, app in
            for title in ["a2", "a3"] { server.put("a", title) }
            try await app.sync(paged)
            if isQueued {
                try await app.enqueue(
                    GraphQLOperation(#"mutation { update(input: {id: "a", title: "mine"}) { id title _version } }"#),
                    options: MutationOptions(optimisticResponse: [
                        "update": ["__typename": "Todo", "id": "a", "title": "mine", "_version": 1]
                    ]))
            } else {
                try await app.update("Todo:a", GraphQLFragment("fragment F on Todo { title _version }")) { data in
                    guard case .object(var todo) = data else { return }
                    (todo["title"], todo["_version"]) = ("mine", 1)
                    data = .object(todo)
                }
            }
            #expect(title(app, "a") == "mine")
        }
    }

    @Test(
        "The cache keeps its newer version of an object when a mutation's answer has an older one",
        arguments: [true, false])
    func olderAnswer(isQueued: Bool) async throws {
        try await withServer(["a"]) { server, app in
            for title in ["a2", "a3"] { server.put("a", title) }
            try await app.sync(paged)
            let answer = """
                {"data":{"rename":{"__typename":"Todo","id":"a","title":"old","_version":2,"_deleted":null,\
                "_lastChangedAt":9}}}
                """
            let writer = app.with(server: ScriptedServer { (_: GraphQLRequest) in answer })
            let rename = GraphQLOperation(#"mutation { rename(id: "a", title: "old") { id title } }"#)
            if isQueued {
                let receipt = try await writer.enqueue(rename)
                try await MutationRunner(writer).drain()
                #expect(try receipt.status()?.state == .applied)
            } else {
                let sent = try await writer.send(rename)
                #expect(sent["rename"]?["title"]?.string == "old")
            }
            #expect(title(app, "a") == "a3")
        }
    }

    @Test("The cache keeps its newer version of an object when a synchronized page has an older one")
    func olderPage() async throws {
        try await withServer(["a", "b"]) { _, app in
            try await fetch(SyncServer.Todo(title: "newer", version: 2, changed: 9).json("a"), app)
            try await app.sync(paged)
            #expect(["a", "b"].map { title(app, $0) } == ["newer", "b1"])
        }
    }

    @Test("A mutation with several objects says the version that the cache has of each")
    func sendsVersions() async throws {
        try await withServer(["a", "a", "b"]) { _, app in
            try await app.sync(paged)
            func answer(_ id: String) -> String {
                """
                {"__typename":"Todo","id":"\(id)","title":"mine","_version":3,"_deleted":null,"_lastChangedAt":1}
                """
            }
            let text = #"{"data":{"a":\#(answer("a")),"b":\#(answer("b"))}}"#
            let other = ScriptedServer { (_: GraphQLRequest) in text }
            _ = try await app.with(server: other).send(SyncServer.updateOfTwo)
            let request = try #require(other.requests.first)
            let inputs = ["a", "b"].map { request.values[$0] as? [String: Any] }
            let versions = inputs.map { ($0?["_version"] as? NSNumber)?.intValue }
            #expect(versions == [2, 1])
        }
    }

    @Test("A fetch returns the older object that the server sent, and the cache keeps the newer one")
    func returnsOlder() async throws {
        try await withStoreFixture(SyncServer.newestFirst, schema: SyncServer.schema) { app in
            let todo = GraphQLOperation(#"{ todo(id: "a") { id title } }"#)
            for title in ["version 3", "version 2"] {
                let answer = try await app.fetch(todo, policy: .networkOnly)
                #expect(answer["todo"]?["title"]?.string == title)
            }
            #expect(try app.read(todo)["todo"]?["title"]?.string == "version 3")
        }
    }

    @Test("A garbage collection keeps the version of a deleted object, and nothing older brings that object back")
    func keepsDeletedVersion() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            server.delete("a")
            try await app.sync(paged)
            #expect(["a", "b"].map { title(app, $0) } == [nil, "b1"])
            _ = try await app.collectGarbage()
            try await fetch(SyncServer.Todo(title: "a1", changed: 9).json("a"), app)
            #expect(["a", "b"].map { title(app, $0) } == [nil, "b1"])
        }
    }

    @Test("A garbage collection keeps the objects of each type that a synchronization brings")
    func keepsEachType() async throws {
        let fields = "id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!"
        let schema = """
            scalar AWSTimestamp
            type Query { syncItems(limit: Int, nextToken: String, lastSync: AWSTimestamp): ItemConnection }
            type ItemConnection { items: [Item]! nextToken: String startedAt: AWSTimestamp }
            interface Item @typePolicy(versioned: true) { \(fields) }
            type Note implements Item { \(fields) }
            type Chore implements Item { \(fields) }
            """
        let items = ["Note", "Chore"].map {
            #"{"__typename":"\#($0)","id":"1","title":"\#($0)","_version":1,"_deleted":null,"_lastChangedAt":9}"#
        }.joined(separator: ",")
        let page = #"{"data":{"syncItems":{"items":[\#(items)],"nextToken":null,"startedAt":1700000000000}}}"#
        try await withStoreFixture(ScriptedServer { (_: GraphQLRequest) in page }, schema: schema) { app in
            let query = GraphQLOperation(
                """
                query Sync($limit: Int, $nextToken: String, $lastSync: AWSTimestamp) {
                  syncItems(limit: $limit, nextToken: $nextToken, lastSync: $lastSync) {
                    items { id title } nextToken startedAt
                  }
                }
                """)
            #expect(try await app.sync(Synchronization(query)).objectCount == 2)
            _ = try await app.collectGarbage()
            for type in ["Note", "Chore"] {
                let fragment = GraphQLFragment("fragment F on \(type) { title }")
                #expect(try app.read(CacheKey(type: type, id: "1"), fragment)["title"]?.string == type)
            }
        }
    }

    @Test("A mutation says the version that the cache has of an object whose key has several fields")
    func sendsVersionOfSeveralKeyFields() async throws {
        let schema = """
            scalar AWSTimestamp
            type Query { todo(id: ID!): Todo }
            type Mutation { update(input: UpdateInput!): Todo }
            type Todo @typePolicy(keyFields: "owner id", versioned: true) {
              owner: String! id: ID! title: String _version: Int! _deleted: Boolean _lastChangedAt: AWSTimestamp!
            }
            input UpdateInput { owner: String! id: ID! title: String _version: Int }
            """
        let server = ScriptedServer { (request: GraphQLRequest) in
            """
            {"data":{"\(request.kind == .mutation ? "update" : "todo")":{"__typename":"Todo","owner":"ada","id":"a",
             "title":"a1","_version":2,"_deleted":null,"_lastChangedAt":9}}}
            """
        }
        try await withStoreFixture(server, schema: schema) { app in
            _ = try await app.fetch(GraphQLOperation("{ todo(id: 1) { title } }"), policy: .networkOnly)
            _ = try await app.send(
                GraphQLOperation(
                    "mutation Update($input: UpdateInput!) { update(input: $input) { title } }",
                    variables: ["input": ["owner": "ada", "id": "a", "title": "mine"]]))
            let input = try #require(server.requests.last?.values["input"] as? [String: Any])
            #expect((input["_version"] as? NSNumber)?.intValue == 2)
        }
    }

    @Test("A walk goes through everything once the cache was cleared, and brings back what has not changed since")
    func cleared() async throws {
        try await withServer(["a", "b"]) { server, app in
            try await app.sync(paged)
            try await app.clear()
            #expect(title(app, "a") == nil)
            let again = try await app.sync(paged)
            #expect(again.isBase)
            #expect(["a", "b"].map { title(app, $0) } == ["a1", "b1"])
            #expect(server.requests.allSatisfy { $0.lastSync == nil })
        }
    }

    @Test("What a synchronization brings has an age, as what a fetch brings has")
    func ageOfSynchronized() async throws {
        try await withServer(["a"]) { _, app in
            try await app.sync(paged)
            let todo = try app.read("Todo:a", GraphQLFragment("fragment F on Todo { title }"))
            #expect(todo["title"]?.string == "a1")
            #expect(todo.age != nil)
        }
    }

    @Test("A garbage collection forgets the version of a deleted object whose type is not synchronized")
    func forgetsDeletedVersion() async throws {
        let versions = [3, 4, 2, 2]
        let server = ScriptedServer { number, _ in
            """
            {"data":{"todo":{"__typename":"Todo","id":"a","title":"version \(versions[number])",
             "_version":\(versions[number]),"_deleted":\(number == 1),"_lastChangedAt":9}}}
            """
        }
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            let todo = GraphQLOperation(#"{ todo(id: "a") { id title } }"#)
            for shown in ["version 3", nil, nil] {
                _ = try await app.fetch(todo, policy: .networkOnly)
                #expect(title(app, "a") == shown)
            }
            try await app.remove(field: "todo")
            _ = try await app.collectGarbage()
            _ = try await app.fetch(todo, policy: .networkOnly)
            #expect(title(app, "a") == "version 2")
        }
    }

    @Test("A synchronization may call its variables, its field and what it asks of a page by names of its own")
    func ownNames() async throws {
        let server = ScriptedServer { number, _ in
            let id = number == 0 ? "a" : "b"
            let more = number == 0 ? #""t""# : "null"
            return """
                {"data":{"found":{"list":[{"__typename":"Todo","id":"\(id)","title":"\(id)1","_version":1,
                 "_deleted":null,"_lastChangedAt":9}],"more":\(more),"began":1700000000000}}}
                """
        }
        let sync = Synchronization(
            GraphQLOperation(
                """
                query Mine($size: Int, $page: String, $since: AWSTimestamp) {
                  found: syncTodos(limit: $size, nextToken: $page, lastSync: $since) {
                    list: items { id title } more: nextToken began: startedAt
                  }
                }
                """))
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            let report = try await app.sync(sync)
            #expect(report.pageCount == 2 && report.objectCount == 2 && report.isFinished)
            #expect(["a", "b"].map { title(app, $0) } == ["a1", "b1"])
            _ = try await app.sync(sync)
        }
        let expected: [[String: Value]] = [
            ["size": 1_000], ["size": 1_000, "page": "t"], ["size": 1_000, "since": 1_699_999_998_000],
        ]
        #expect(server.requests.map(\.variableValues) == expected)
    }

    @Test("The server may take thirty seconds for a page where the synchronization says nothing else")
    func defaultTime() {
        #expect(Synchronization(SyncServer.sync.operation).timeout == .seconds(30))
    }
}
