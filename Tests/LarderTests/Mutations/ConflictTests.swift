import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

/// What a runner does with a conflict before and after it asks the resolver.
@Suite("Conflicts", .timeLimit(.minutes(10)))
struct ConflictTests {
    private struct Away: Error {}

    private static func todo(_ title: String, _ version: Int) -> String {
        """
        {"__typename":"Todo","id":"a","title":"\(title)","_version":\(version),"_deleted":null,"_lastChangedAt":9}
        """
    }

    private static let theirs = Self.todo("theirs", 7)
    private static let conflict = #"""
        {"data":{"update":null},"errors":[{"message":"changed","errorType":"ConflictUnhandled",
         "path":["update"],"data":\#(theirs)}]}
        """#

    /// Sends an update that the server refuses, and whose resolver keeps the server's object.
    ///
    /// - Returns: What the resolver was asked, and how the mutation ended.
    private func asked(
        by server: ScriptedServer, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> (question: MutationInQuestion, MutationStatus) {
        let asked = Mutex<MutationInQuestion?>(nil)
        let status = try await settled(
            SyncServer.update(), options: .init(idempotencyKey: "one", resolver: "merge"), by: server,
            schema: SyncServer.schema
        ) { options in
            options.resolvers["merge"] = { question in
                asked.withLock { $0 = question }
                return .keepServers
            }
        }
        let given = asked.withLock(\.self)
        return (try #require(given, sourceLocation: sourceLocation), status)
    }

    @Test("A resolver that did not answer is asked again after a pause, and not at once")
    func pause() async throws {
        let server = ScriptedServer { _, _ in ScriptedServer.status(409) }
        let asked = Mutex(0)
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(resolver: "merge"))
            try await runIntoPause(app, receipt) { options in
                options.resolvers["merge"] = { _ in
                    asked.withLock { $0 += 1 }
                    throw Away()
                }
            }
            #expect(asked.withLock(\.self) == 1)
            #expect(server.requests.count == 1)
        }
    }

    @Test("What a resolver says is sent after a pause, and not at once")
    func revisedPause() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in ScriptedServer.status(409) }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(resolver: "merge"))
            try await runIntoPause(app, receipt) { options in
                options.resolvers["merge"] = { _ in .retry(variables: ["recipe": "1", "stars": 4]) }
            }
            #expect(server.requests.count == 1)
        }
    }

    @Test("A queued mutation says the version that the cache has, and after a conflict that of the server's object")
    func versions() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, _ in
            guard number == 0 else { return ScriptedServer.body(#"{"data":{"update":\#(Self.todo("mine", 8))}}"#) }
            return ScriptedServer.body(Self.conflict)
        }
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            let one = GraphQLOperation(#"{ todo(id: "a") { id title } }"#)
            _ = try await app.take(Array(#"{"data":{"todo":\#(Self.todo("old", 2))}}"#.utf8), of: one)
            let update = SyncServer.update()
            let receipt = try await app.enqueue(update, options: .init(resolver: "merge"))
            let shown = Mutex<String?>(nil)
            try await quickRunner(app) { options in
                options.resolvers["merge"] = { _ in
                    shown.withLock { $0 = try? app.read(one)["todo"]?["title"]?.string }
                    return .retry(variables: update.variables)
                }
            }.drain()
            #expect(try receipt.status()?.state == .applied)
            let sent = server.requests.map { ($0.values["input"] as? [String: Any])?["_version"] as? Int }
            #expect(sent == [2, 7])
            // Under the old key the server would take it for a repeat.
            let keys = server.requests.map { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
            #expect(Set(keys).count == 2)
            // The resolver decides with the server's object before it.
            #expect(shown.withLock(\.self) == "theirs")
        }
    }

    @Test("Of a refusal's errors the object of the conflict alone is stored")
    func otherData() async throws {
        let other = Self.todo("wrong", 9).replacing(#""id":"a""#, with: #""id":"b""#)
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            ScriptedServer.body(
                #"""
                {"data":{"update":null},"errors":[
                 {"message":"no","errorType":"BAD","path":["update"],"data":\#(other)},
                 {"message":"changed","errorType":"ConflictUnhandled","path":["update"],
                  "data":\#(Self.theirs)}]}
                """#)
        }
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            try await app.enqueue(SyncServer.update(), options: .init(resolver: "merge"))
            try await quickRunner(app) { $0.resolvers["merge"] = { _ in .keepServers } }.drain()
            let title = GraphQLFragment("fragment F on Todo { title }")
            #expect(try app.read("Todo:a", title)["title"]?.string == "theirs")
            await expectCode(.miss) { _ = try app.read("Todo:b", title) }
        }
    }

    @Test("Of a mutation that is refused for several objects, the server's version of each is stored")
    func severalObjects() async throws {
        let other = Self.todo("theirs", 9).replacing(#""id":"a""#, with: #""id":"b""#)
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            ScriptedServer.body(
                #"""
                {"data":{"a":null,"b":null},"errors":[
                 {"message":"changed","errorType":"ConflictUnhandled","path":["a"],"data":\#(Self.theirs)},
                 {"message":"changed","errorType":"ConflictUnhandled","path":["b"],"data":\#(other)}]}
                """#)
        }
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            try await app.enqueue(SyncServer.updateOfTwo, options: .init(resolver: "merge"))
            try await quickRunner(app) { $0.resolvers["merge"] = { _ in .keepServers } }.drain()
            let title = GraphQLFragment("fragment F on Todo { title }")
            for id in ["a", "b"] {
                #expect(try app.read(CacheKey(type: "Todo", id: id), title)["title"]?.string == "theirs")
            }
        }
    }

    @Test("The resolver of the options is asked about a typed mutation that says the answer it expects")
    func typed() async throws {
        struct Rate: TypedOperation {
            struct Recipe: Codable, Sendable {
                var __typename = "Recipe"
                var id = "1"
                var title = "Soup"
                var rating = 5.0
            }
            struct Data: Codable, Sendable { var rate = Recipe() }
            var operation: GraphQLOperation { giveStars("1", 5) }
        }
        let asked = Mutex(0)
        try await withStoreFixture(ScriptedServer { _, _ in ScriptedServer.status(409) }) { app in
            let receipt = try await app.enqueue(Rate(), optimistic: Rate.Data(), options: .init(resolver: "merge"))
            try await quickRunner(app) { options in
                options.resolvers["merge"] = { _ in
                    asked.withLock { $0 += 1 }
                    return .keepServers
                }
            }.drain()
            #expect(asked.withLock { $0 } == 1)
            #expect(try receipt.status()?.state == .discarded)
        }
    }

    @Test("A conflict without a resolver stores the server's object and sets the mutation aside")
    func withoutResolver() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in ScriptedServer.body(Self.conflict) }
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            let receipt = try await app.enqueue(SyncServer.update())
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .deadLetter)
            let title = GraphQLFragment("fragment F on Todo { title }")
            #expect(try app.read("Todo:a", title)["title"]?.string == "theirs")
        }
    }

    @Test("What a resolver says and the queue does not take sets its mutation aside, and others go on")
    func unqueueable() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            number == 0 ? ScriptedServer.status(409) : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(giveStars("1", 5), options: .init(resolver: "merge"))
            let other = try await app.enqueue(giveStars("2", 3))
            try await quickRunner(app) { options in
                options.resolvers["merge"] = { _ in
                    .retry(variables: ["recipe": TemporaryObjectID().value, "stars": 4])
                }
            }.drain()
            let status = try #require(try receipt.status())
            #expect(status.state == .deadLetter)
            #expect(status.failure?.message.contains("cannot be queued") == true)
            #expect(try other.status()?.state == .applied)
        }
    }

    @Test("A mutation goes on when its dependency's resolver discards that, unless it holds a temporary id of it")
    func keptServers() async throws {
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            number == 0 ? ScriptedServer.status(409) : ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            let id = TemporaryObjectID()
            let kept = try await app.enqueue(
                giveStars("1", 5),
                options: .init(
                    optimisticResponse: [
                        "rate": ["__typename": "Recipe", "id": id.value, "title": "Soup", "rating": 5]
                    ], temporaryIDs: [id], resolver: "merge"))
            let waiting = try await app.enqueue(giveStars("2", 4), options: .init(dependencies: [kept.id]))
            let holding = try await app.enqueue(giveStars(id.text, 3))
            try await quickRunner(app) { $0.resolvers["merge"] = { _ in .keepServers } }.drain()
            #expect(try kept.status()?.state == .discarded)
            #expect(try waiting.status()?.state == .applied)
            #expect(try holding.status()?.failure?.kind == .temporaryIDLost)
        }
    }

    @Test("What is read shows the mutation until its resolver keeps the server's object, and the cache's from then on")
    func shownAfterKept() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in ScriptedServer.status(409) }
        try await withStoreFixture(server) { app in
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Soup", "author": nil]])
            let expected: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Stew", "rating": 5]]
            let kept = try await app.enqueue(
                giveStars("1", 5), options: .init(optimisticResponse: expected, resolver: "merge"))
            func shown() throws -> String? { try app.read(recipe(1))["recipe"]?["title"]?.string }
            #expect(try shown() == "Stew")
            try await quickRunner(app) { $0.resolvers["merge"] = { _ in .keepServers } }.drain()
            #expect(try kept.status()?.state == .discarded)
            #expect(try shown() == "Soup")
        }
    }

    @Test("A resolver is told what was sent under which key, what the server said and what it has")
    func told() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in ScriptedServer.body(Self.conflict) }
        let (question, mutation) = try await asked(by: server)
        #expect(question.id == mutation.id && question.idempotencyKey == "one")
        #expect(question.operation.document == SyncServer.update().document)
        #expect(question.operation.variables == SyncServer.update().variables)
        #expect(question.serverErrors.map(\.message) == ["changed"])
        #expect(try question.serverItem == Value(json: Array(Self.theirs.utf8)))
    }

    @Test("What the server has of a conflict's object is an object of that conflict, whatever data stands before it")
    func itemAmongOtherData() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, _ in
            ScriptedServer.body(
                #"""
                {"errors":[{"message":"by the way","data":{"id":"b"}},
                 {"message":"changed","errorType":"ConflictUnhandled","data":"a version of yours"},
                 {"message":"changed","errorType":"ConflictUnhandled","data":\#(Self.theirs)}]}
                """#)
        }
        let (question, _) = try await asked(by: server)
        #expect(try question.serverItem == Value(json: Array(Self.theirs.utf8)))
    }

    @Test("The cache keeps what it has of an object where a mutation that was sent at once ends in a conflict")
    func sentAtOnce() async throws {
        let server = ScriptedServer { _ in Self.conflict }
        try await withStoreFixture(server, schema: SyncServer.schema) { app in
            let one = GraphQLOperation(#"{ todo(id: "a") { id title } }"#)
            _ = try await app.take(Array(#"{"data":{"todo":\#(Self.todo("old", 2))}}"#.utf8), of: one)
            #expect(await larderError { try await app.send(SyncServer.update()) }?.code == .serverErrors)
            #expect(try app.read(one)["todo"]?["title"]?.string == "old")
        }
    }
}
