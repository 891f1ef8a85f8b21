import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

/// What is promised of each state of a watcher, and of its fetches.
@Suite("Rules of watching", .timeLimit(.minutes(10)))
struct WatchRuleTests {
    private static let card = GraphQLFragment("fragment Card on Recipe { title rating }")

    @Test("A cacheFirst watcher fetches only where something is missing", arguments: [false, true])
    func cacheFirst(isKnown: Bool) async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            if isKnown { try await app.write(recipeList, json: soupAndBread("Soup")) }
            var states = try app.watch(recipeList, policy: .cacheFirst).makeAsyncIterator()
            if isKnown {
                let state = try #require(try await next(&states))
                #expect(state.complete != nil && !state.isFetching)
                try await app.write(recipeList, json: soupAndBread("Stew"))
                #expect(try await next(&states)?.isFetching == false)
                #expect(server.requests.isEmpty)
            } else {
                while try await next(&states)?.complete == nil {}
                #expect(server.requests.count == 1)
            }
        }
    }

    @Test(
        "A watcher that asks the server says from its first state on that it fetches, and asks although the cache knows",
        arguments: [FetchPolicy.cacheAndNetwork, .networkFirst, .networkOnly])
    func fetching(policy: FetchPolicy) async throws {
        let isAnswered = Flag()
        let server = listServer(waitingFor: isAnswered)
        try await withStoreFixture(server) { app in
            try await app.write(recipeList, json: soupAndBread("Stew"))
            let watch = try app.watch(recipeList, policy: policy)
            var states = watch.makeAsyncIterator()
            #expect(try await next(&states)?.isFetching == true)
            try await eventually { server.requests.count == 1 }
            // One is under way, so that no other is begun.
            watch.refetch()
            watch.refetch()
            isAnswered.set()
            var state = try await next(&states)
            while state?.isFetching == true { state = try await next(&states) }
            #expect(state?.complete?["recipes"]?[0]?["title"]?.string == "Soup")
            #expect(server.requests.count == 1)
            watch.refetch()
            try await eventually { server.requests.count == 2 }
        }
    }

    @Test("Newer data takes the error of a fetch away, by whatever way they have come")
    func fetchError() async throws {
        let server = ScriptedServer { _ in throw TransportError.away }
        try await withStoreFixture(server) { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(recipeList, policy: .cacheAndNetwork).makeAsyncIterator()
            var state = try await next(&states)
            while state?.error == nil { state = try await next(&states) }
            try await app.write(recipeList, json: soupAndBread("Stew"))
            state = try await next(&states)
            #expect(state?.complete?["recipes"]?[0]?["title"]?.string == "Stew")
            #expect(state?.error == nil)
        }
    }

    @Test("The error of a fetch stays where the answer is read again and is the same")
    func fetchErrorStays() async throws {
        let server = ScriptedServer { _ in throw TransportError.away }
        try await withStoreFixture(server) { app in
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Soup", "author": nil]])
            let expected: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Stew", "rating": 5]]
            try await app.enqueue(giveStars("1", 5), options: .init(optimisticResponse: expected))
            var states = try app.watch(recipe(1), policy: .cacheAndNetwork).makeAsyncIterator()
            var state = try await next(&states)
            while state?.error == nil { state = try await next(&states) }
            #expect(state?.isOptimistic == true)
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Stew", "author": nil]])
            while state?.isOptimistic == true { state = try await next(&states, within: .seconds(20)) }
            #expect(state?.isOptimistic == false && state?.error?.code == .transportUnreachable)
        }
    }

    @Test("The error of a fetch stays beside an answer of which only a part has come")
    func fetchErrorBesidePart() async throws {
        let server = ScriptedServer { _ in throw TransportError.away }
        try await withStoreFixture(server) { app in
            var states = try app.watch(recipeList, policy: .networkOnly).makeAsyncIterator()
            var state = try await next(&states)
            while state?.error == nil { state = try await next(&states) }
            try await app.write(
                GraphQLOperation("{ recipes(first: 2) { title } }"),
                json: Array(#"{"recipes":[{"__typename":"Recipe","id":"1","title":"Soup"}]}"#.utf8))
            state = try await next(&states)
            #expect(state?.response?["recipes"]?[0]?["title"]?.string == "Soup" && state?.complete == nil)
            #expect(state?.error?.code.rawValue == "transport.unreachable")
        }
    }

    @Test("A watcher whose reader has let go of the last state asks again, and says so with the whole response")
    func refetchedLater() async throws {
        let isAnswered = Flag()
        let server = listServer(waitingFor: isAnswered)
        try await withStoreFixture(server) { app in
            try await app.write(recipeList, json: soupAndBread("Stew"))
            let watch = try app.watch(recipeList, policy: .cacheFirst)
            var states = watch.makeAsyncIterator()
            #expect(try await next(&states)?.complete != nil)
            watch.refetch()
            let asking = try #require(try await next(&states))
            #expect(asking.isFetching && asking.complete?["recipes"]?[0]?["title"]?.string == "Stew")
            isAnswered.set()
            var answered = try await next(&states)
            while answered?.isFetching == true { answered = try await next(&states) }
            #expect(answered?.complete?["recipes"]?[0]?["title"]?.string == "Soup")
            // What is written again as it was is not told.
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try await app.write(recipeList, json: soupAndBread("Pie"))
            #expect(try await next(&states)?.complete?["recipes"]?[0]?["title"]?.string == "Pie")
        }
    }

    @Test("A deleted object has no response, and reading or updating it says so")
    func deleted() async throws {
        try await withStoreFixture { app in
            try await app.write("Recipe:5", Self.card, json: Array(#"{"title":"Pie","rating":4.5}"#.utf8))
            var states = try app.watch("Recipe:5", Self.card).makeAsyncIterator()
            #expect(try await next(&states)?.complete != nil)
            try await app.remove("Recipe:5", as: .deleted)
            let state = try #require(try await next(&states))
            #expect(state.isDeleted && state.response == nil)
            for allowsPartial in [false, true] {
                await expectCode(.deleted) { _ = try app.read("Recipe:5", Self.card, allowsPartial: allowsPartial) }
            }
            await expectCode(.miss) { try await app.update("Recipe:5", Self.card) { _ in } }
            await expectCode(.miss) {
                try await app.update("Recipe:5", Self.card) { $0 = ["title": "Cake", "rating": 1] }
            }
        }
    }

    @Test("What a layer shows is said to be optimistic, until it goes")
    func optimistic() async throws {
        try await withStoreFixture(ScriptedServer { _ in #"{"data":null,"errors":[{"message":"no"}]}"# }) { app in
            try await app.write(
                recipe(1),
                json: Array(
                    #"{"recipe":{"__typename":"Recipe","id":"1","title":"Soup","author":null}}"#.utf8))
            var states = try app.watch(recipe(1)).makeAsyncIterator()
            #expect(try await next(&states)?.isOptimistic == false)
            try await app.enqueue(
                giveStars("1", 5),
                options: .init(
                    optimisticResponse: .object([
                        "rate": ["__typename": "Recipe", "id": "1", "title": "Best soup", "rating": 5]
                    ])))
            var state = try await next(&states)
            #expect(state?.isOptimistic == true)
            #expect(state?.complete?["recipe"]?["title"]?.string == "Best soup")
            try await quickRunner(app).drain()
            while state?.isOptimistic == true { state = try await next(&states) }
            #expect(state?.complete?["recipe"]?["title"]?.string == "Soup")
        }
    }

    @Test("Equal operations share one reading; a reader who comes later gets the state of now, and none lasts longer")
    func shared() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var first: Watch? = try app.watch(recipeList)
            var iterator: Watch.Iterator? = first?.makeAsyncIterator()
            #expect(await iterator?.next()?.complete != nil)
            var second: Watch? = try app.watch(recipeList)
            var other: Watch.Iterator? = second?.makeAsyncIterator()
            #expect(await other?.next()?.complete != nil)
            #expect(!app.core.watchers.isEmpty)
            (first, iterator) = (nil, nil)
            try await app.write(recipeList, json: soupAndBread("Stew"))
            #expect(await other?.next()?.complete?["recipes"]?[0]?["title"]?.string == "Stew")
            (second, other) = (nil, nil)
            try await eventually { app.core.watchers.isEmpty }
            // A watcher that begins after the last has ended is another one.
            var third = try app.watch(recipeList).makeAsyncIterator()
            #expect(try await next(&third)?.complete != nil)
        }
    }

    @Test("Nothing is left of a watcher that has ended, what it waited for included")
    func leftovers() async throws {
        try await withStoreFixture { app in
            for isWritten in [false, true] {
                var watches: [Watch] = [try app.watch(recipe(1)), try app.watch("Recipe:9", Self.card)]
                for watch in watches {
                    var states = watch.makeAsyncIterator()
                    _ = try await next(&states)
                }
                if isWritten {
                    var states = watches[0].makeAsyncIterator()
                    try await app.write(recipeList, json: soupAndBread("Soup"))
                    #expect(try await next(&states)?.complete != nil)
                    try await app.remove("Recipe:1", as: .evicted)
                    #expect(try await next(&states)?.complete == nil)
                }
                watches = []
                try await eventually { app.core.watchers.isEmpty }
            }
        }
    }

    @Test("What a watcher has read that has ended meanwhile is not noted, and nothing of it is left in the index")
    func endedMeanwhile() {
        let index = WatcherIndex()
        let dependencies = Dependencies(
            generation: 1, fields: [RecordField(record: 1, field: 2)], absentKeys: ["Recipe:1"])
        guard let watcher = index.add({ _ in }) else { return }
        #expect(index.set(dependencies, of: watcher, readAt: index.published))
        index.remove(watcher)
        #expect(index.isEmpty)
        #expect(index.set(dependencies, of: watcher, readAt: index.published))
        #expect(index.setAnything(of: watcher, readAt: index.published))
        #expect(index.isEmpty)
    }

    @Test("A commit of another generation wakes no watcher by its numbers, which are of other records there")
    func otherGeneration() throws {
        let index = WatcherIndex()
        let woken = Mutex<[UInt64]>([])
        let watcher = try #require(
            index.add { commit in woken.withLock { $0.append(commit?.generation ?? 0) } })
        let field = RecordField(record: 1, field: 2)
        func publish(_ generation: UInt64, isEverything: Bool = false) -> [UInt64] {
            var changes = isEverything ? ChangeSet.everything : ChangeSet()
            if !isEverything { changes.fields = [field] }
            let position = ChangePosition(epoch: 1, number: 1)
            index.publish(Commit(generation: generation, changes: changes, position: position))
            return woken.withLock { woken in
                defer { woken = [] }
                return woken
            }
        }
        func depend(on generation: UInt64) -> Bool {
            let dependencies = Dependencies(generation: generation, fields: [field], absentKeys: [])
            return index.set(dependencies, of: watcher, readAt: index.published)
        }
        #expect(depend(on: 1))
        #expect(publish(1) == [1])
        #expect(publish(2) == [])
        #expect(publish(2, isEverything: true) == [2])
        // It has read again.
        #expect(depend(on: 2))
        #expect(publish(1) == [])
        #expect(publish(2) == [2])
    }

    @Test("The first state of a watcher that asks the server says so, and none before it that nothing is asked")
    func firstState() async throws {
        try await withStoreFixture { app in
            let (states, continuation) = AsyncStream.makeStream(of: WatchState.self, bufferingPolicy: .unbounded)
            let isFetched = Flag()
            let fetch: @Sendable () async throws(LarderError) -> Void = { await isFetched.wait() }
            let watcher = Watcher(app.core, try app.core.operations.bound(recipeList), .query, fetch: fetch)
            #expect(watcher.add(continuation))
            watcher.start(.everything)
            var iterator = states.makeAsyncIterator()
            #expect(try await next(&iterator)?.isFetching == true)
            isFetched.set()
            #expect(try await next(&iterator)?.isFetching == false)
            watcher.end()
        }
    }

    @Test("An object's watcher is told where everything may be different, though the object looks the same")
    func everything() async throws {
        try await withStoreFixture { app in
            try await app.write("Recipe:5", Self.card, json: Array(#"{"title":"Pie","rating":1}"#.utf8))
            var states = app.watch("Recipe:5").makeAsyncIterator()
            #expect(try await next(&states)?.presence == .present)
            let record = try #require(try app.records.presence(of: "Recipe:5").dependencies.records.first)
            for fields in [1..<1, 1..<100] as [Range<UInt32>] {
                // As when another process has cleared the cache and filled it again; then together with other changes.
                var changes = ChangeSet.everything
                changes.fields = fields.map { RecordField(record: record, field: $0) }
                let position = ChangePosition(epoch: 0, number: 0)
                app.core.watchers.publish(Commit(generation: 0, changes: changes, position: position))
                let state = try #require(try await next(&states, within: .seconds(60)))
                #expect(state.presence == .present && state.changedFields.isEmpty)
            }
        }
    }

    @Test("An object's watcher that has not taken a state gets all that has changed since, and anything after a clear")
    func object() async throws {
        try await withStoreFixture { app in
            try await app.write("Recipe:5", Self.card, json: Array(#"{"title":"Pie","rating":1}"#.utf8))
            var states = app.watch("Recipe:5").makeAsyncIterator()
            #expect(try await next(&states)?.presence == .present)
            try await app.write("Recipe:5", Self.card, json: Array(#"{"title":"Cake","rating":1}"#.utf8))
            try await app.write("Recipe:5", Self.card, json: Array(#"{"title":"Cake","rating":2}"#.utf8))
            var changed: Set<FieldKey> = []
            while changed.count < 2 { changed.formUnion(try await next(&states)?.changedFields ?? []) }
            #expect(changed == ["title", "rating"])
            // What does not concern it gives no state.
            try await app.write(recipeList, json: soupAndBread("Soup"))
            _ = try await app.records.clear()
            let cleared = try #require(try await next(&states))
            #expect(cleared.presence == .absent && cleared.changedFields.isEmpty)
        }
    }

    @Test("An object's watcher that has not taken its first state is told that anything may have changed since")
    func untaken() async throws {
        try await withStoreFixture { app in
            try await app.write("Recipe:5", Self.card, ["title": "Pie", "rating": 1])
            var states = app.watch("Recipe:5").makeAsyncIterator()
            var others = app.watch("Recipe:5").makeAsyncIterator()
            _ = try await next(&others)
            for title: Value in ["Cake", "Flan"] {
                try await app.write("Recipe:5", Self.card, ["title": title, "rating": 1])
                #expect(try await next(&others)?.changedFields == ["title"])
            }
            #expect(try await next(&states)?.changedFields == [])
        }
    }

    @Test("That nothing is to be confirmed any more is told, also where the answer looks the same")
    func optimisticAlone() async throws {
        try await withStoreFixture { app in
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Soup", "author": nil]])
            var states = try app.watch(recipe(1)).makeAsyncIterator()
            #expect(try await next(&states)?.isOptimistic == false)
            let expected: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Stew", "rating": 5]]
            try await app.enqueue(giveStars("1", 5), options: .init(optimisticResponse: expected))
            let waiting = try #require(try await next(&states, within: .seconds(20)))
            #expect(waiting.isOptimistic)
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Stew", "author": nil]])
            let confirmed = try #require(try await next(&states, within: .seconds(20)))
            #expect(!confirmed.isOptimistic)
            #expect(confirmed.response == waiting.response)
        }
    }

    @Test("A partition that is parked is not watched any more, whatever is asked")
    func parked() async throws {
        func environment(_ name: String) throws -> BackendEnvironment {
            let url = try #require(URL(string: "https://\(name).example/graphql"))
            return BackendEnvironment(name: name, api: .init(url: url))
        }
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try await store.switch(to: environment("a"), pending: .park).partition
            let (list, object) = (try app.watch(recipeList), app.watch("Recipe:1"))
            _ = try await store.switch(to: environment("b"), pending: .park)
            await expectCode(.parked) { _ = try app.watch(recipeList) }
            await expectCode(.parked) { _ = try app.watch("Recipe:1", Self.card) }
            await expectCode(.parked) { try await app.pin(named: "list", recipeList) }
            await expectCode(.parked) { try await app.remove("Recipe:1", as: .evicted) }
            await expectCode(.parked) { try await app.remove(type: "Recipe", as: .evicted) }
            await expectCode(.parked) { try await app.remove(field: "recipes") }
            for await _ in list {}
            for await _ in object {}
            for await _ in app.watch("Recipe:1") {}
            try store.close()
        }
    }

    @Test("An old answer that may be shown is fetched anew once at a time, and again when it is old again")
    func refetched() async throws {
        let isAnswered = Flag()
        let server = ScriptedServer { number, _ in
            if number == 1 { await isAnswered.wait() }
            return recipeListAnswer
        }
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            let options = FetchOptions(maxAge: .seconds(60), staleAllowed: true)
            for _ in 0..<3 { _ = try await app.fetch(recipeList, options: options) }
            try await eventually { server.requests.count == 2 }
            isAnswered.set()
            try await eventually { app.core.refetched.withLock(\.isEmpty) }
            #expect(server.requests.count == 2)
            wait(100)
            _ = try await app.fetch(recipeList, options: options)
            try await eventually { server.requests.count == 3 }
            try await eventually { app.core.refetched.withLock(\.isEmpty) }
        }
    }

    @Test("Letting go of the answers of a policy ends their fetch")
    func lettingGo() async throws {
        let (isAsked, isCancelled) = (Flag(), Flag())
        let server = listServer(noting: isCancelled, isAsked: isAsked)
        try await withStoreFixture(server) { app in
            let reading = Task { for try await _ in app.fetches(recipeList, policy: .networkOnly) {} }
            await isAsked.wait()
            reading.cancel()
            _ = await reading.result
            try await eventually { isCancelled.isSet }
        }
    }

    @Test("Only mutations are sent, and the errors of a server come with the data beside them")
    func sending() async throws {
        let server = ScriptedServer { _ in
            #"""
            {"data":{"recipes":[{"__typename":"Recipe","id":"1","title":"Soup","author":null}]},
             "errors":[{"message":"no author","path":["recipes",0,"author"]}]}
            """#
        }
        try await withStoreFixture(server) { app in
            await expectCode(.operation) { _ = try await app.send(recipeList) }
            #expect(server.requests.isEmpty)
            let error = await #expect(throws: LarderError.self) { try await app.fetch(recipeList) }
            #expect(error?.code == .serverErrors && error?.errors.map(\.message) == ["no author"])
            #expect(error?.response?["recipes"]?[0]?["title"]?.string == "Soup")
        }
    }

    @Test("Erasing leaves no outcome and no pin, and waits for an answer that is yet to be stored")
    func erasing() async throws {
        let server = ScriptedServer(ScriptedServer.key) { _, request in ScriptedServer.done(request) }
        try await withStoreFixture(server) { app in
            try await app.pin(named: "list", recipeList)
            let receipt = try await app.enqueue(giveStars("1", 1))
            try await quickRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            // As a runner leaves it that is killed before it stores the answer.
            let queue = try app.core.operationsStore.database().mutations
            let answered = try await app.enqueue(giveStars("1", 2))
            let mutation = try await queue.begin(answered.id.uuid, owner: "another", now: .now)
            try await queue.answer(mutation.attempt, Array(rated("1", 2).utf8), now: .now)
            for unsent in [Partition.UnsentWork.refuse, .discard] {
                await expectCode(.init(rawValue: "operations.unsentWork")) { try await app.erase(unsent: unsent) }
            }
            #expect(try app.pins().count == 1)
            try await quickRunner(app).drain()
            try await app.erase()
            #expect(try receipt.status() == nil)
            #expect(try answered.status() == nil)
            #expect(try app.pins().isEmpty)
        }
    }

    @Test("A watcher asks the server as its options say, also where it is asked again")
    func options() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            let tenant = GraphQLRequest.Header(name: "x-tenant", value: "7")
            let begun = SuspendingClock.now
            let watch = try app.watch(
                recipeList, policy: .networkOnly, options: FetchOptions(timeout: .seconds(900), headers: [tenant]))
            for await state in watch where !state.isFetching { break }
            watch.refetch()
            #expect(try await server.requests(2).map(\.headers) == [[tenant], [tenant]])
            #expect(server.deadlines.allSatisfy { $0 >= begun + .seconds(900) })
        }
    }
}
