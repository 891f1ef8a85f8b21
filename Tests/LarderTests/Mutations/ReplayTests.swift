import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

private let rating = GraphQLFragment("fragment F on Recipe { rating }")

@Suite("Mutations that are sent later", .timeLimit(.minutes(10)))
struct ReplayTests {
    @Test("Replayed mutations reach the cache and the watchers", arguments: [true, false])
    func reachWatchers(afterRestart: Bool) async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: fixtureSchema)
            let server = ScriptedServer.rating(errors: {
                $0 == 0 && !afterRestart ? #"{"data":null,"errors":[{"message":"not today"}]}"# : nil
            })
            var store = try Store.open(at: folder, schema: schema)
            var app = try store.partition(server: server)
            let id = try await app.enqueue(giveStars("1", 4)).id
            if afterRestart {
                try store.close()
                store = try Store.open(at: folder, schema: schema)
                app = try store.partition(server: server)
            } else {
                try await quickRunner(app).drain()
                #expect(try app.mutation(id).status()?.state == .deadLetter)
                try await app.replayMutation(id)
            }
            var states = try app.watch("Recipe:1", rating).makeAsyncIterator()
            #expect(try await next(&states)?.complete == nil)
            try await quickRunner(app).drain()
            let state = try await next(&states)
            #expect(state?.complete?["rating"]?.double == 4)
            #expect(state?.isOptimistic == false)
            #expect(try app.read("Recipe:1", rating)["rating"]?.double == 4)
            try store.close()
        }
    }

    @Test("Of a document with several operations the one that is named is queued, sent and edited")
    func namedOperation() async throws {
        let document = """
            mutation Other { rate(input: {recipe: "9", stars: 1}) { id } }
            mutation Rate($recipe: ID!, $stars: Int!) {
              rate(input: {recipe: $recipe, stars: $stars}) { id title rating }
            }
            """
        let server = ScriptedServer.rating(errors: {
            $0 == 0 ? #"{"data":null,"errors":[{"message":"not today"}]}"# : nil
        })
        try await withStoreFixture(server) { app in
            let receipt = try await app.enqueue(
                GraphQLOperation(document, name: "Rate", variables: ["recipe": "1", "stars": 5]))
            try await quickRunner(app).drain()
            #expect(server.requests.map(\.operationName) == ["Rate"])
            #expect(try receipt.status()?.state == .deadLetter)
            try await app.editMutation(receipt.id, variables: ["recipe": "1", "stars": 4])
            try await app.replayMutation(receipt.id)
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(server.effects == ["1 4"])
        }
    }

    @Test("Replay does not run mutations side by side, and keeps the order of writes to one object")
    func inOrder() async throws {
        let crowd = Mutex((now: 0, most: 0))
        let sent = Mutex<[Int64]>([])
        // Refuses all at first, then takes its time with each.
        let isOpen = Mutex(false)
        let server = ScriptedServer { request in
            guard isOpen.withLock({ $0 }) else { return #"{"data":null,"errors":[{"message":"not today"}]}"# }
            crowd.withLock { crowd in
                crowd.now += 1
                crowd.most = max(crowd.most, crowd.now)
            }
            guard case .object(let variables) = try Value(json: request.variables),
                case .int(let stars)? = variables["stars"]
            else { throw TransportError.away }
            sent.withLock { $0.append(stars) }
            try await Task.sleep(for: .milliseconds(Int(10 - stars)))
            crowd.withLock { $0.now -= 1 }
            return #"{"data":{"rate":{"__typename":"Recipe","id":"1","title":"Soup","rating":\#(stars)}}}"#
        }
        try await withStoreFixture(server) { app in
            var ids: [MutationID] = []
            for stars in 1...8 { ids.append(try await app.enqueue(giveStars("1", stars)).id) }
            try await quickRunner(app).drain()
            #expect(try app.mutations(in: [.deadLetter]).map(\.id) == ids)
            isOpen.withLock { $0 = true }
            // In whatever order somebody replays them, before anything is sent.
            for id in ids.reversed() { try await app.replayMutation(id) }
            try await quickRunner(app).drain()
            #expect(sent.withLock { $0 } == Array(1...8))
            #expect(crowd.withLock { $0.most } == 1)
            #expect(try app.read("Recipe:1", rating)["rating"]?.double == 8)
        }
    }

    @Test("A schema change deletes no unsent work: what no longer fits is set aside with the reason, and can be sent")
    func schemaChange() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: fixtureSchema)
            let server = ScriptedServer.rating()
            var store = try Store.open(at: folder, schema: schema)
            let receipt = try await store.partition().enqueue(
                giveStars("1", 4),
                options: .init(optimisticResponse: [
                    "rate": ["__typename": "Recipe", "id": "1", "title": "Soup", "rating": 4]
                ]))
            try store.close()
            let other = fixtureSchema.replacingOccurrences(of: "rate(input", with: "judge(input")
            store = try Store.open(at: folder, schema: try Schema(parsing: other))
            var app = try store.partition(server: server)
            #expect(try app.mutations().map(\.id) == [receipt.id])
            try await quickRunner(app).drain()
            let status = try #require(try app.mutation(receipt.id).status())
            #expect(status.state == .deadLetter)
            #expect(status.failure?.code == .operation)
            #expect(server.requests.isEmpty)
            try store.close()
            // The old schema again, or a program that knows both.
            store = try Store.open(at: folder, schema: schema)
            app = try store.partition(server: server)
            try await app.replayMutation(receipt.id)
            try await quickRunner(app).drain()
            #expect(try app.mutation(receipt.id).status()?.state == .applied)
            #expect(server.effects == ["1 4"])
            try store.close()
        }
    }

    @Test("A mutation that may have taken effect and is changed is no repeat: the server is told another key")
    func editedInDoubt() async throws {
        let server = ScriptedServer.rating(trouble: {
            $0 < 2 ? (TransportError(.status, "500", status: 500), $0 == 0) : nil
        })
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await quickRunner(app) { $0.maximumFaults = 2 }.drain()
            #expect(try receipt.status()?.failure?.kind == .serverFault)
            try await app.editMutation(receipt.id, variables: ["recipe": "1", "stars": 4])
            try await app.replayMutation(receipt.id)
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(server.effects == ["1 5", "1 4"])
        }
    }

    @Test("Variables that do not fit the operation are refused when a mutation is edited, which stays as it is")
    func editedToMisfit() async throws {
        let server = ScriptedServer.rating(errors: {
            $0 == 0 ? #"{"errors":[{"message":"no","extensions":{"code":"BAD"}}]}"# : nil
        })
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await quickRunner(app).drain()
            let misfits: [[String: Value]] = [
                [:], ["recipe": "1"], ["recipe": "1", "stars": "many"], ["recipe": .null, "stars": 4],
            ]
            for variables in misfits {
                await expectCode(.variables) { try await app.editMutation(receipt.id, variables: variables) }
            }
            await expectCode(.init(rawValue: "operations.notFound")) {
                try await app.editMutation(MutationID(UUID()), variables: [:])
            }
            try await app.replayMutation(receipt.id)
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 5"])
        }
    }

    @Test("An edit is refused of a mutation whose operation does not fit the schema any more")
    func editedAfterSchemaChange() async throws {
        try await withTemporaryFolder { folder in
            var store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let receipt = try await store.partition().enqueue(giveStars("1", 4))
            try store.close()
            let other = fixtureSchema.replacingOccurrences(of: "rate(input", with: "judge(input")
            store = try Store.open(at: folder, schema: try Schema(parsing: other))
            let app = try store.partition(server: ScriptedServer.rating())
            try await quickRunner(app).drain()
            #expect(try app.mutation(receipt.id).status()?.state == .deadLetter)
            await expectCode(.operation) {
                try await app.editMutation(receipt.id, variables: ["recipe": "1", "stars": 3])
            }
            try store.close()
        }
    }
}
