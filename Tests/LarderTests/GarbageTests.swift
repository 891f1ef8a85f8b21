import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

/// What a collection of garbage removes and keeps of a partition.
@Suite("Garbage of a partition", .timeLimit(.minutes(10)))
struct GarbageTests {
    private let card = GraphQLFragment("fragment F on Recipe { title author { name } }")

    private func title(_ id: Int) -> GraphQLOperation { GraphQLOperation("{ recipe(id: \(id)) { title } }") }

    /// Stores recipes that the root does not lead to, each with a cook of its own.
    private func fill(_ app: Partition, _ ids: ClosedRange<Int>) async throws {
        for id in ids {
            try await app.write(
                "Recipe:\(id)", card,
                ["title": .string("R\(id)"), "author": ["id": .string("c\(id)"), "name": .string("C\(id)")]])
        }
    }

    private func open(_ folder: URL, schema: String = fixtureSchema) throws -> (Store, Partition) {
        let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
        return (store, try store.partition())
    }

    private func keys(_ app: Partition) throws -> [String] { try app.records.inspect.keys() }

    @Test("Objects that nothing leads to go, and what a field of the root leads to stays")
    func orphans() async throws {
        try await withStoreFixture { app in
            try await app.write(
                recipeList,
                ["recipes": [["id": "1", "title": "Soup", "author": ["id": "a", "name": "Ada"]]]])
            try await fill(app, 2...3)
            let told = try await app.collectGarbage(isRehearsal: true)
            #expect((told.objects, told.keys) == (4, 4))
            #expect(try keys(app).count == 7)
            #expect(try await app.collectGarbage() == told)
            #expect(try keys(app) == ["Cook:a", "QUERY_ROOT", "Recipe:1"])
            #expect(try app.read(recipeList).isComplete)
        }
    }

    @Test("What is pinned stays until no name pins it any more, also after a restart")
    func pins() async throws {
        try await withTemporaryFolder { folder in
            var (store, app) = try open(folder)
            try await fill(app, 1...3)
            try await app.pin(named: "b", recipe(1))
            try await app.pin(named: "a", recipe(1))
            try await app.pin(named: "c", recipe(2))
            try store.close()
            (store, app) = try open(folder)
            #expect(try app.pins().map(\.name) == ["a", "b", "c"])
            #expect(try app.pins().last?.operation.variables == ["id": .int(2)])
            _ = try await app.collectGarbage()
            #expect(try keys(app) == ["Cook:c1", "Cook:c2", "Recipe:1", "Recipe:2"])
            #expect(try await app.unpin(named: "a"))
            #expect(try await !app.unpin(named: "a"))
            // The same name pins something else now.
            try await app.pin(named: "c", recipe(3))
            _ = try await app.collectGarbage()
            #expect(try keys(app) == ["Cook:c1", "Recipe:1"])
            try await app.unpin(named: "b")
            _ = try await app.collectGarbage()
            #expect(try keys(app) == [])
            try store.close()
            try expectSound(folder)
        }
    }

    /// Expects that a collection keeps an object which is needed by a temporary id, under the id that the server gave it,
    /// until `removing` has run.
    private func expectKeptWithRealID(
        sourceLocation: SourceLocation = #_sourceLocation,
        _ need: (Partition, GraphQLOperation) async throws -> Void, removing: (Partition) async throws -> Void
    ) async throws {
        let server = ScriptedServer { _ in #"{"data":{"rate":{"__typename":"Recipe","id":"9","title":"Soup"}}}"# }
        try await withStoreFixture(server) { (app) throws in
            let id = TemporaryObjectID()
            try await app.enqueue(
                GraphQLOperation("mutation { rate(input: { recipe: 1, stars: 5 }) { id title } }"),
                options: MutationOptions(
                    optimisticResponse: ["rate": ["__typename": "Recipe", "id": id.value, "title": "Soup"]],
                    temporaryIDs: [id]))
            let new = GraphQLOperation(
                "query One($id: ID!) { recipe(id: $id) { title } }", variables: ["id": id.value])
            try await need(app, new)
            try await quickRunner(app).drain()
            _ = try await app.collectGarbage()
            #expect(try keys(app).contains("Recipe:9"), sourceLocation: sourceLocation)
            try await removing(app)
            _ = try await app.collectGarbage()
            #expect(try keys(app).contains("Recipe:9") == false, sourceLocation: sourceLocation)
        }
    }

    @Test("What is pinned by a temporary id stays once the server has given it a real one")
    func temporaryID() async throws {
        try await expectKeptWithRealID {
            try await $0.pin(named: "new", $1)
        } removing: { (app) throws in
            #expect(try await app.unpin(named: "new"))
        }
    }

    /// Expects that a collection fails and removes nothing while there is a pin or a watcher that does not fit the schema,
    /// whose name the error has, and that it removes all garbage after `removing` has run.
    private func expectKept(
        byUnfitting name: String, sourceLocation: SourceLocation = #_sourceLocation,
        _ put: (Partition) async throws -> Void, removing: (Partition) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            var (store, app) = try open(folder)
            try await fill(app, 1...2)
            try await put(app)
            try store.close()
            let other = fixtureSchema.replacing("title: String! rating", with: "name: String rating")
            (store, app) = try open(folder, schema: other)
            let error = await #expect(throws: LarderError.self, sourceLocation: sourceLocation) {
                try await app.collectGarbage()
            }
            #expect(error?.code == .operation, sourceLocation: sourceLocation)
            let message = error?.message ?? "none"
            #expect(message.contains(name), "\(message)", sourceLocation: sourceLocation)
            #expect(try keys(app).count == 4, sourceLocation: sourceLocation)
            try await removing(app)
            #expect(try await app.collectGarbage().objects == 4, sourceLocation: sourceLocation)
            try store.close()
        }
    }

    @Test("A pin that does not fit the schema any more keeps all garbage, and the error names it")
    func strangePin() async throws {
        try await expectKept(byUnfitting: "the pin soup") { app in
            try await app.pin(named: "soup", title(1))
            await #expect(throws: LarderError.self) { try await app.pin(named: "bad", GraphQLOperation("{ no }")) }
        } removing: { app in
            try await app.unpin(named: "soup")
        }
    }

    @Test("A named watcher that does not fit the schema any more keeps all garbage, and the error names it")
    func strangeWatcher() async throws {
        try await expectKept(byUnfitting: "the watcher soup") { app in
            _ = try await app.watch(named: "soup", title(1))
        } removing: { app in
            try await app.removeWatcher(named: "soup")
        }
    }

    @Test("A mutation is not pinned, since its answer is no part of what is read")
    func pinnedMutation() async throws {
        try await withStoreFixture { app in
            await expectCode(.operation) { try await app.pin(named: "stars", giveStars("1", 5)) }
            let pins = try app.pins()
            #expect(pins.isEmpty)
        }
    }

    @Test("What a watcher depends on stays while it watches, and what a named watcher does until it is removed")
    func watchers() async throws {
        try await withStoreFixture { app in
            try await fill(app, 1...3)
            do {
                var live = try app.watch(title(1)).makeAsyncIterator()
                var object = app.watch("Recipe:2").makeAsyncIterator()
                #expect(try await next(&live)?.complete != nil)
                #expect(try await next(&object)?.presence == .present)
                _ = try await app.watch(named: "three", title(3))
                _ = try await app.collectGarbage()
                #expect(try keys(app).count == 6)
                try await app.removeWatcher(named: "three")
                _ = try await app.collectGarbage()
                #expect(try keys(app) == ["Cook:c1", "Cook:c2", "Recipe:1", "Recipe:2"])
            }
            // The streams end when the iterators are let go of.
            _ = try await app.collectGarbage()
            #expect(try keys(app) == [])
        }
    }

    /// Queues a mutation of the second recipe as another process does.
    private func queueElsewhere(_ folder: URL) async throws {
        try await OperationsDatabase.using(folder) { other in
            let content = MutationContent(
                document: "mutation { rate(input: { recipe: 2, stars: 4 }) { rating } }",
                variables: Array("{}".utf8),
                optimisticResponse: Array(#"{"rate":{"__typename":"Recipe","id":"2","rating":4}}"#.utf8))
            _ = try await other.mutations.enqueue(
                MutationDraft(
                    partition: Store.unnamedPartition, lane: "other", content: content, created: Date()))
        }
    }

    @Test("What a queued mutation shows, removes and inserts stays, also what another process has queued")
    func queue() async throws {
        try await withOpenStore { (folder, store, app) throws in
            try await fill(app, 1...4)
            let rate = GraphQLOperation("mutation { rate(input: { recipe: 1, stars: 5 }) { rating } }")
            var options = MutationOptions()
            options.optimisticResponse = ["rate": ["__typename": "Recipe", "id": "1", "rating": 5]]
            _ = try await app.enqueue(rate, options: options)
            try await queueElsewhere(folder)
            _ = try await app.collectGarbage()
            #expect(try keys(app) == ["Cook:c1", "Cook:c2", "Recipe:1", "Recipe:2"])
            try store.close()
            try expectSound(folder)
        }
    }

    @Test("What another process has queued stays, also where this process has not looked at it yet")
    func unseenQueue() async throws {
        try await withOpenStore { (folder, store, app) throws in
            try await fill(app, 1...2)
            _ = try store.operationsStore.database()
            await store.partitions.endFollowing()
            try await queueElsewhere(folder)
            _ = try await app.collectGarbage()
            #expect(try keys(app) == ["Cook:c2", "Recipe:2"])
        }
    }

    @Test("Other writes come in between the writes of a collection")
    func between() async throws {
        try await withStoreFixture { app in
            try await fill(app, 1...150)
            let (removing, isDone) = (Flag(), Flag())
            let collecting = Task {
                // One object in each write.
                let report = try await app.collectGarbage(sliceTime: .zero) { if $0.removed > 0 { removing.set() } }
                isDone.set()
                return report
            }
            await removing.wait()
            for id in 1000...1004 { try await fill(app, id...id) }
            #expect(!isDone.isSet)
            #expect(try await collecting.value.objects == 300)
            #expect(try keys(app).count == 10)
        }
    }

    @Test("Clearing a partition keeps its pins, which do not come from the server")
    func clearing() async throws {
        try await withStoreFixture { app in
            try await app.pin(named: "one", title(1))
            try await app.clear()
            #expect(try app.pins().map(\.name) == ["one"])
        }
    }

    @Test("Erasing a partition forgets its pins")
    func erasing() async throws {
        try await withStoreFixture { app in
            try await app.pin(named: "one", title(1))
            try await app.erase()
            #expect(try app.pins().isEmpty)
        }
    }

    @Test("One collection goes on at a time, and one that is cancelled says so")
    func alone() async throws {
        try await withStoreFixture { app in
            try await fill(app, 1...2)
            let begun = Flag()
            let cancelled = Task {
                try await app.collectGarbage { _ in
                    begun.set()
                    withUnsafeCurrentTask { $0?.cancel() }
                }
            }
            let error = await #expect(throws: LarderError.self) { _ = try await cancelled.value }
            #expect(error?.code == .cancelled)
            #expect(begun.isSet)
            #expect(app.core.watchers.beginNoting())
            let busy = await #expect(throws: LarderError.self) { try await app.collectGarbage() }
            #expect(busy?.code.rawValue == "records.busy")
            app.core.watchers.endNoting()
            #expect(try await app.collectGarbage().objects == 4)
        }
    }

    @Test("An eviction is refused while garbage is being collected in its partition")
    func evictionMeanwhile() async throws {
        try await withStoreFixture { app in
            #expect(app.core.watchers.beginNoting())
            await expectCode(.init(rawValue: "records.busy")) { _ = try await app.evict(maxAge: .seconds(60)) }
            app.core.watchers.endNoting()
            _ = try await app.evict(maxAge: .seconds(60))
        }
    }

    @Test("A pin keeps the answer to that operation of its document which was named")
    func operationOfDocument() async throws {
        try await withStoreFixture { app in
            try await fill(app, 1...2)
            let document = "query One { recipe(id: 1) { title } } query Two { recipe(id: 2) { title } }"
            try await app.pin(named: "two", GraphQLOperation(document, name: "Two"))
            #expect(try app.pins().map(\.operation.name) == ["Two"])
            _ = try await app.collectGarbage()
            #expect(try keys(app).filter { $0.hasPrefix("Recipe:") } == ["Recipe:2"])
        }
    }

    @Test("A partition lists its own pins, and none that another partition of the store has")
    func pinsApart() async throws {
        try await withTransferFixture { fixture in
            try await fixture.app.pin(named: "list", recipeList)
            let other = try await fixture.store.switch(to: backend("b")).partition
            #expect(try other.pins().isEmpty)
        }
    }

    @Test("A collection takes in what is pinned while it marks")
    func pinnedMeanwhile() async throws {
        try await withStoreFixture { app in
            try await fill(app, 1...1)
            let needed = NeededObjects(app.core)
            #expect(try needed.needed(fromStart: true).isEmpty)
            #expect(try needed.needed(fromStart: false).isEmpty)
            try await app.pin(named: "late", title(1))
            #expect(try needed.needed(fromStart: false).count == 1)
        }
    }

    @Test("Pinning an operation asks no server for its answer")
    func pinAsksNobody() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            try await app.pin(named: "list", recipeList)
            #expect(server.requests.isEmpty)
            await expectCode(.miss) { _ = try app.read(recipeList) }
        }
    }

    @Test("What a named watcher watches by a temporary id stays once the server has given it a real one")
    func watchedTemporaryID() async throws {
        try await expectKeptWithRealID {
            _ = try await $0.watch(named: "new", $1)
        } removing: { app in
            try await app.removeWatcher(named: "new")
        }
    }

    /// Expects that what a damaged row of a table needs keeps all garbage until that row is removed.
    private func expectKept(
        by table: String, _ put: (Partition) async throws -> Void, removing: (Partition) async throws -> Void
    ) async throws {
        try await withOpenStore { (folder, _, app) throws in
            try await fill(app, 1...2)
            try await put(app)
            try OtherProgram(folder).run("UPDATE \(table) SET variables = x'7b'")
            await expectCode(.init(rawValue: "operations.damagedRow")) { _ = try await app.collectGarbage() }
            #expect(try keys(app).count == 4)
            try await removing(app)
            #expect(try await app.collectGarbage().objects == 4)
        }
    }

    @Test("A pin whose row is damaged keeps all garbage, since what it pins is not known")
    func damagedPin() async throws {
        try await expectKept(by: "pin") {
            try await $0.pin(named: "soup", title(1))
        } removing: { app in
            try await app.unpin(named: "soup")
        }
    }

    @Test("A named watcher whose row is damaged keeps all garbage, since what it needs is not known")
    func damagedWatcher() async throws {
        try await expectKept(by: "watcher") {
            _ = try await $0.watch(named: "soup", title(1))
        } removing: { app in
            try await app.removeWatcher(named: "soup")
        }
    }

    @Test("A pinned list of an object with a temporary id stays once the server has given that a real one")
    func pinnedListOfTemporaryID() async throws {
        let schema = """
            type Query @fieldPolicy(forField: "depot", keyArgs: ["id"]) { depot(id: ID!): Depot }
            type Mutation { make: Depot }
            type Depot @fieldPolicy(forField: "orders", paginationArgs: "limit nextToken") {
              id: ID! orders(limit: Int, nextToken: String): OrderList
            }
            type OrderList { items: [Order] nextToken: String }
            type Order { id: ID! sku: String }
            """
        let depot = #"{"__typename":"Depot","id":"d""#
        let list = #""orders":{"__typename":"OrderList","items":[\#(OrderDesk.objects(1...2))],"nextToken":null}"#
        let server = ScriptedServer { request in
            request.kind == .mutation ? #"{"data":{"make":\#(depot)}}}"# : #"{"data":{"depot":\#(depot),\#(list)}}}"#
        }
        try await withStoreFixture(server, schema: schema) { (app) throws in
            let id = TemporaryObjectID()
            try await app.enqueue(
                GraphQLOperation("mutation { make { id } }"),
                options: MutationOptions(
                    optimisticResponse: ["make": ["__typename": "Depot", "id": id.value]], temporaryIDs: [id]))
            let orders = GraphQLOperation(
                "query O($id: ID!, $limit: Int, $nextToken: String) { depot(id: $id) { "
                    + "orders(limit: $limit, nextToken: $nextToken) { items { sku } nextToken } } }",
                variables: ["id": id.value])
            try await app.pin(named: "orders", orders)
            try await quickRunner(app).drain()
            try await app.pages(orders).all()
            try await app.remove(field: "depot")
            _ = try await app.collectGarbage()
            #expect(try keys(app).filter { $0 != "QUERY_ROOT" } == ["Depot:d", "Order:1", "Order:2"])
        }
    }
}
