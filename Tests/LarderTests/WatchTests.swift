import Larder
import LarderTestSupport
import Testing

@Suite("Watching", .timeLimit(.minutes(10)))
struct WatchTests {
    @Test("A watcher hears of another query's write")
    func otherQuery() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(recipe(1)).makeAsyncIterator()
            #expect(try await next(&states)?.response?["recipe"]?["title"]?.string == "Soup")
            try await app.write(recipeList, json: soupAndBread("Stew"))
            #expect(try await next(&states)?.response?["recipe"]?["title"]?.string == "Stew")
        }
    }

    @Test("A cacheOnly watcher that began before its data exists hears of it when it comes")
    func beforeData() async throws {
        try await withStoreFixture { app in
            var states = try app.watch(recipeList).makeAsyncIterator()
            let empty = try #require(try await next(&states))
            #expect(empty.complete == nil)
            #expect(empty.response?.missing.isEmpty == false)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(try await next(&states)?.complete?["recipes"]?.count == 2)
        }
    }

    @Test("An object that a field policy names is waited for by its key")
    func absentKey() async throws {
        try await withStoreFixture { app in
            var states = try app.watch(recipe(2)).makeAsyncIterator()
            #expect(try await next(&states)?.complete == nil)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(try await next(&states)?.complete?["recipe"]?["title"]?.string == "Bread")
        }
    }

    @Test("A watcher whose first fetch failed hears of what comes later")
    func failedFetch() async throws {
        let server = ScriptedServer { _ in throw TransportError.away }
        try await withStoreFixture(server) { app in
            var states = try app.watch(recipeList, policy: .cacheAndNetwork).makeAsyncIterator()
            var state = try #require(try await next(&states))
            while state.isFetching { state = try #require(try await next(&states)) }
            #expect(state.error?.code.rawValue == "transport.unreachable")
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(try await next(&states)?.complete != nil)
        }
    }

    @Test("A cacheAndNetwork watcher gives what the cache has at once, while the server is asked")
    func atOnce() async throws {
        let isFree = Flag()
        let server = listServer(waitingFor: isFree)
        try await withStoreFixture(server) { app in
            defer { isFree.set() }
            try await app.write(recipeList, json: soupAndBread("Stew"))
            var states = try app.watch(recipeList, policy: .cacheAndNetwork).makeAsyncIterator()
            let state = try #require(try await next(&states))
            #expect(state.isFetching)
            #expect(state.complete?["recipes"]?[0]?["title"]?.string == "Stew")
        }
    }

    @Test("A cacheAndNetwork watcher gives at once what the cache has of an answer that is not whole")
    func partAtOnce() async throws {
        let isFree = Flag()
        let server = listServer(waitingFor: isFree)
        try await withStoreFixture(server) { app in
            defer { isFree.set() }
            let titles = GraphQLOperation("query Titles { recipes(first: 2) { title } }")
            try await app.write(titles, json: soupAndBread("Stew"))
            var states = try app.watch(recipeList, policy: .cacheAndNetwork).makeAsyncIterator()
            let state = try #require(try await next(&states))
            #expect(state.isFetching && state.complete == nil)
            #expect(state.response?["recipes"]?[0]?["title"]?.string == "Stew")
            #expect(state.response?.missing.isEmpty == false)
        }
    }

    @Test("The error of a fetch comes beside the data that was there, and ends with the next fetch that succeeds")
    func errorBesideData() async throws {
        let isAway = Flag()
        let server = listServer(failing: isAway)
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            isAway.set()
            let watch = try app.watch(recipeList, policy: .cacheAndNetwork)
            var states = watch.makeAsyncIterator()
            var state = try await next(&states)
            while state?.isFetching == true { state = try await next(&states) }
            #expect(state?.error?.code == .transportUnreachable)
            #expect(state?.complete?["recipes"]?[0]?["title"]?.string == "Soup")
            isAway.set(false)
            watch.refetch()
            // The answer is the same as before.
            repeat { state = try await next(&states) } while state?.isFetching == true
            #expect(server.requests.count == 3)
            #expect(state?.complete != nil && state?.error == nil)
        }
    }

    @Test("Own writes do not echo back: writing the same again, or something else, wakes no watcher")
    func unconcerned() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(recipe(1)).makeAsyncIterator()
            _ = try await next(&states)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let other = GraphQLOperation("{ cook(id: 7) { name } }")
            try await app.write(other, json: Array(#"{"cook":{"id":"7","name":"Eve"}}"#.utf8))
            try await app.write(recipeList, json: soupAndBread("Stew"))
            #expect(try await next(&states)?.response?["recipe"]?["title"]?.string == "Stew")
        }
    }

    @Test("A commit that leaves the answer as it is gives no state, however quickly each is taken")
    func sameAnswer() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try await app.remove("Recipe:2", as: .deleted)
            let states = try app.watch(recipeList)
            let taken = Task {
                var titles: [[String?]] = []
                for await state in states {
                    titles.append(state.response?["recipes"]?.elements.map { $0["title"]?.string } ?? [])
                    if titles.last == ["Stew"] { break }
                }
                return titles
            }
            func write(_ title: String) async throws {
                try await app.write(
                    recipeList,
                    json: Array(
                        """
                        {"recipes":[{"id":"1","title":"\(title)","author":{"id":"a","name":"Ada"}}]}
                        """.utf8))
            }
            // The list is another one; what is deleted was not shown in it before.
            try await write("Soup")
            try await Task.sleep(for: .milliseconds(500))
            try await write("Stew")
            let titles = await taken.value
            #expect(titles.last == ["Stew"])
            #expect(titles.dropLast().count <= 1)
        }
    }

    @Test("Removing or clearing wakes watchers: deleted from lists, null in references; evicted is missing")
    func removing() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(recipeList).makeAsyncIterator()
            _ = try await next(&states)
            try await app.remove("Recipe:1", as: .deleted)
            #expect(try await next(&states)?.complete?["recipes"]?.elements.count == 1)
            try await app.remove("Cook:a", as: .deleted)
            #expect(try await next(&states)?.complete?["recipes"]?[0]?["author"]?.isNull == true)
            try await app.remove("Recipe:2", as: .evicted)
            let partial = try #require(try await next(&states))
            #expect(partial.complete == nil)
            #expect(partial.response?.missing.map(\.description) == ["recipes[0]"])
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(try await next(&states)?.complete != nil)
            _ = try await app.records.clear()
            #expect(try await next(&states)?.complete == nil)
        }
    }

    @Test("A watcher of a query whose root was evicted hears of it when the root's fields come back")
    func evictedRoot() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(recipeList).makeAsyncIterator()
            #expect(try await next(&states)?.complete != nil)
            try await app.remove(.queryRoot, as: .evicted)
            #expect(try await next(&states)?.response?.missing.map(\.description) == ["recipes"])
            try await app.write(recipeList, json: soupAndBread("Stew"))
            let state = try await next(&states, within: .seconds(60))
            #expect(state?.complete?["recipes"]?[0]?["title"]?.string == "Stew")
        }
    }

    @Test("Compacting wakes no watcher, and the next change is reported with its fields")
    func compacting() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = app.watch("Recipe:1").makeAsyncIterator()
            #expect(try await next(&states)?.presence == .present)
            // A timer looks at other processes before or after the compaction, so the test looks before it.
            try await app.records.noticeOtherProcesses()
            _ = try await app.records.compact()
            try await app.write(recipeList, json: soupAndBread("Stew"))
            // A watcher that was woken in between would report here that anything may have changed.
            #expect(try await next(&states)?.changedFields == ["title"])
        }
    }

    @Test("A watcher asks no server when a local write makes its answer partial")
    func asksNothingAnew() async throws {
        let isFree = Flag()
        let server = ScriptedServer { number, _ in
            if number > 0 { await isFree.wait() }
            return #"{"data":{"recipe":{"__typename":"Recipe","id":"1","title":"Soup","rating":4}}}"#
        }
        try await withStoreFixture(server) { app in
            defer { isFree.set() }
            let rated = GraphQLOperation("{ recipe(id: 1) { title rating } }")
            var states = try app.watch(rated, policy: .cacheFirst).makeAsyncIterator()
            var state = try await next(&states)
            while state?.complete == nil || state?.isFetching == true { state = try await next(&states) }
            try await app.remove("Recipe:1", as: .evicted)
            #expect(try await next(&states)?.response?.missing.map(\.description) == ["recipe"])
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Stew"])
            state = try await next(&states, within: .seconds(60))
            #expect(state?.response?.missing.map(\.description) == ["recipe.rating"])
            #expect(state?.isFetching == false)
            #expect(server.requests.count == 1)
        }
    }

    @Test("A fragment of one object is watched by its key")
    func fragment() async throws {
        try await withStoreFixture { app in
            let card = GraphQLFragment("fragment Card on Recipe { title rating }")
            var states = try app.watch("Recipe:5", card).makeAsyncIterator()
            #expect(try await next(&states)?.complete == nil)
            try await app.write("Recipe:5", card, json: Array(#"{"id":5,"title":"Pie","rating":4.5}"#.utf8))
            let state = try #require(try await next(&states))
            #expect(state.complete?["rating"]?.double == 4.5)
            try await app.remove("Recipe:5", as: .deleted)
            #expect(try await next(&states)?.isDeleted == true)
        }
    }

    @Test("Watchers of two objects by one fragment are each given their own")
    func twoObjects() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let title = GraphQLFragment("fragment F on Recipe { title }")
            var soups = try app.watch("Recipe:1", title).makeAsyncIterator()
            #expect(try await next(&soups)?.complete?["title"]?.string == "Soup")
            var breads = try app.watch("Recipe:2", title).makeAsyncIterator()
            #expect(try await next(&breads)?.complete?["title"]?.string == "Bread")
        }
    }

    @Test("Watchers of one document with two variables are each given their own answer")
    func twoVariables() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var soups = try app.watch(recipe(1)).makeAsyncIterator()
            #expect(try await next(&soups)?.complete?["recipe"]?["title"]?.string == "Soup")
            var breads = try app.watch(recipe(2)).makeAsyncIterator()
            #expect(try await next(&breads)?.complete?["recipe"]?["title"]?.string == "Bread")
        }
    }

    @Test("An object is watched by its key, with the fields that changed")
    func object() async throws {
        try await withStoreFixture { app in
            var states = app.watch("Recipe:1").makeAsyncIterator()
            #expect(try await next(&states)?.presence == .absent)
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(try await next(&states)?.presence == .present)
            try await app.write(recipeList, json: soupAndBread("Stew"))
            #expect(try await next(&states)?.changedFields == ["title"])
            try await app.remove("Recipe:1", as: .deleted)
            #expect(try await next(&states)?.presence == .deleted)
        }
    }

    @Test("A cancelled watcher stops fetching")
    func cancelled() async throws {
        let isCancelled = Flag()
        let server = listServer(noting: isCancelled)
        try await withStoreFixture(server) { app in
            let task = Task { for await _ in try app.watch(recipeList, policy: .networkOnly) {} }
            try await eventually { !server.requests.isEmpty }
            task.cancel()
            try await eventually { isCancelled.isSet }
        }
    }

    @Test("A fetch that a watcher began is cancelled when the store is closed")
    func closedWhileFetching() async throws {
        let isCancelled = Flag()
        let server = listServer(noting: isCancelled)
        try await withOpenStore { (_, store, _) throws in
            let states = try store.partition(server: server).watch(recipeList, policy: .networkOnly).makeAsyncIterator()
            try await eventually { !server.requests.isEmpty }
            try store.close()
            try await eventually { isCancelled.isSet }
            withExtendedLifetime(states) {}
        }
    }

    @Test("A slow watcher does not stall the writer, and gets the newest state")
    func slow() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup 0"))
            var states = try app.watch(recipe(1)).makeAsyncIterator()
            for round in 1...50 { try await app.write(recipeList, json: soupAndBread("Soup \(round)")) }
            var seen = 0
            var title: String?
            while title != "Soup 50" {
                title = try await next(&states)?.response?["recipe"]?["title"]?.string
                seen += 1
            }
            #expect(seen < 50)
        }
    }

    @Test("Streams end when the store is closed")
    func closing() async throws {
        try await withOpenStore { (_, store, app) throws in
            var queries = try app.watch(recipeList).makeAsyncIterator()
            var objects = app.watch("Recipe:1").makeAsyncIterator()
            _ = try await next(&queries)
            _ = try await next(&objects)
            try store.close()
            #expect(try await next(&queries) == nil)
            #expect(try await next(&objects) == nil)
        }
    }

    @Test("The watcher of an object names a changed field with its arguments, as it is stored")
    func fieldWithArguments() async throws {
        let schema = "type Query { book(id: ID!): Book } type Book { id: ID! title(language: String): String }"
        let card = GraphQLFragment("fragment F on Book { title(language: \"de\") }")
        try await withStoreFixture(schema: schema) { app in
            try await app.write("Book:1", card, ["title": "Suppe"])
            var states = app.watch("Book:1").makeAsyncIterator()
            #expect(try await next(&states)?.presence == .present)
            try await app.write("Book:1", card, ["title": "Eintopf"])
            #expect(try await next(&states)?.changedFields == [#"title({"language":"de"})"#])
        }
    }

    @Test("A cacheOnly watcher asks no server by refetch either")
    func refetchWithoutFetch() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            let watch = try app.watch(recipeList)
            var states = watch.makeAsyncIterator()
            #expect(try await next(&states)?.isFetching == false)
            watch.refetch()
            await #expect(throws: Silence.self) { _ = try await next(&states, within: .milliseconds(50)) }
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A watcher shows an answer that came in part, without an error where its options take such answers")
    func partialAnswer() async throws {
        let server = ScriptedServer { _ in
            #"{"data":{"recipe":{"__typename":"Recipe","id":"1","title":"Soup","author":null}},"#
                + #""errors":[{"message":"no author","path":["recipe","author"]}]}"#
        }
        try await withStoreFixture(server) { app in
            let policies: [(ErrorPolicy, LarderError.Code?)] = [(.fail, .serverErrors), (.partial, nil)]
            for (policy, code) in policies {
                let options = FetchOptions(errorPolicy: policy)
                let watch = try app.watch(recipe(1), policy: .networkOnly, options: options)
                for await state in watch where !state.isFetching {
                    #expect(state.error?.code == code)
                    #expect(state.response?["recipe"]?["title"]?.string == "Soup")
                    break
                }
            }
        }
    }
}

func soupAndBread(_ soup: String) -> [UInt8] {
    Array(
        """
        {"recipes":[{"id":"1","title":"\(soup)","author":{"id":"a","name":"Ada"}},
                    {"id":"2","title":"Bread","author":{"id":"a","name":"Ada"}}]}
        """.utf8)
}
