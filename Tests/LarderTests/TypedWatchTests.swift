import Larder
import LarderTestSupport
import Testing

@Suite("Watching in the program's own types", .timeLimit(.minutes(10)))
struct TypedWatchTests {
    private struct Recipes: TypedOperation {
        struct Data: Codable, Sendable, Equatable { var recipes: [Recipe] }
        struct Recipe: Codable, Sendable, Equatable { var title: String }
        var operation: GraphQLOperation { GraphQLOperation("query List { recipes(first: 2) { title } }") }
    }

    private struct Ratings: TypedOperation {
        struct Data: Decodable, Sendable { var recipes: [Recipe] }
        struct Recipe: Decodable, Sendable { var title: Int }
        var operation: GraphQLOperation { Recipes().operation }
    }

    /// Whose data tells whether it was decoded anew.
    private struct Counted: TypedOperation {
        final class Copy: Sendable {}
        struct Data: Decodable, Sendable {
            let copy = Copy()
            init(from decoder: any Decoder) throws {}
        }
        var operation: GraphQLOperation { Recipes().operation }
    }

    @Test("A typed watcher fetches by its policy, and gives the new data after each change")
    func changes() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            var states = try app.watch(Recipes(), policy: .cacheAndNetwork).makeAsyncIterator()
            var state = await states.next()
            while state?.isFetching == true { state = await states.next() }
            #expect(state?.data?.recipes.map(\.title) == ["Soup", "Bread"])
            #expect(state?.missing.isEmpty == true)
            #expect(state?.error == nil)
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Stew"])
            #expect(await states.next()?.data?.recipes.map(\.title) == ["Stew", "Bread"])
        }
    }

    @Test("A typed watcher of data that the cache does not have names the missing paths, and has no data")
    func missing() async throws {
        try await withStoreFixture { app in
            var states = try app.watch(Recipes()).makeAsyncIterator()
            let state = try #require(await states.next())
            #expect(state.data == nil)
            #expect(state.missing.map(\.description) == ["recipes"])
            #expect(!state.isFetching)
        }
    }

    @Test("A typed watcher whose type does not fit the answer says so, and goes on")
    func unfit() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(Ratings()).makeAsyncIterator()
            #expect(await states.next()?.error?.code == .data)
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Stew"])
            #expect(await states.next()?.error?.code == .data)
        }
    }

    @Test("The data of a typed watcher stays while an answer does not fit its type")
    func staying() async throws {
        struct Rated: TypedOperation {
            struct Data: Decodable, Sendable { var recipe: Recipe }
            struct Recipe: Decodable, Sendable { var rating: Double }
            var operation: GraphQLOperation { GraphQLOperation("{ recipe(id: 1) { rating } }") }
        }
        try await withStoreFixture { app in
            let fragment = GraphQLFragment("fragment F on Recipe { rating }")
            try await app.write("Recipe:1", fragment, ["rating": 1])
            var states = try app.watch(Rated()).makeAsyncIterator()
            #expect(await states.next()?.data?.recipe.rating == 1)
            for (rating, shown) in [(.null, 1), (2, 2)] as [(Value, Double)] {
                try await app.write("Recipe:1", fragment, ["rating": rating])
                let state = await states.next()
                #expect(state?.data?.recipe.rating == shown)
                #expect(state?.error?.code == (rating == .null ? .data : nil))
            }
        }
    }

    @Test("The data of a typed watcher stays while the cache cannot be read, and the state says why")
    func unreadable() async throws {
        var options = Store.Options()
        options.maximumAnswerSize = 100_000
        try await withOpenStore(options: options) { (_, _, app) throws in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(Recipes()).makeAsyncIterator()
            #expect(await states.next()?.data?.recipes.map(\.title) == ["Soup", "Bread"])
            let fragment = GraphQLFragment("fragment F on Recipe { title }")
            for (title, shown) in [(String(repeating: "x", count: 200_000), "Soup"), ("Stew", "Stew")] {
                try await app.write("Recipe:1", fragment, ["title": .string(title)])
                let state = try #require(await states.next())
                #expect(state.data?.recipes.map(\.title) == [shown, "Bread"])
                #expect(state.error?.code == (title == shown ? nil : .recordsTooLarge))
            }
        }
    }

    @Test("An answer that is the same as before is not decoded again")
    func decodedOnce() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            let watch = try app.watch(Counted(), policy: .cacheFirst)
            var states = watch.makeAsyncIterator()
            var state = await states.next()
            while state?.isFetching != false || state?.data == nil { state = await states.next() }
            let first = try #require(state?.data)
            watch.refetch()
            state = await states.next()
            while state?.isFetching != false { state = await states.next() }
            #expect(server.requests.count == 2)
            #expect(state?.data?.copy === first.copy)
        }
    }

    @Test("The error of a fetch stays while the answer is not whole, and refetch fetches again")
    func refetch() async throws {
        let isThere = Flag()
        let server = ScriptedServer { _ in
            guard isThere.isSet else { throw TransportError.away }
            return recipeListAnswer
        }
        try await withStoreFixture(server) { app in
            let watch = try app.watch(Recipes(), policy: .cacheFirst)
            var states = watch.makeAsyncIterator()
            var state = await states.next()
            while state?.isFetching != false || state?.error == nil { state = await states.next() }
            #expect(state?.error?.code == .transportUnreachable)
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Stew"])
            isThere.set()
            watch.refetch()
            state = await states.next()
            while state?.isFetching != false || state?.data == nil { state = await states.next() }
            #expect(state?.error == nil)
            #expect(server.requests.count == 2)
        }
    }

    private struct Rate: TypedOperation {
        struct Data: Codable, Sendable { var rate: Recipe }
        struct Recipe: Codable, Sendable {
            var __typename = "Recipe"; var id = "1"; var title: String; var rating: Double
        }
        var operation: GraphQLOperation { giveStars("1", 5) }
    }

    @Test("An expected answer in the program's own type is shown in place of the one in the options")
    func optimisticTwice() async throws {
        try await withStoreFixture { app in
            let other: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Stew", "rating": 1]]
            try await app.enqueue(
                Rate(), optimistic: .init(rate: .init(title: "Soup", rating: 5)),
                options: .init(optimisticResponse: other))
            let card = GraphQLFragment("fragment F on Recipe { title rating }")
            let shown = try app.read("Recipe:1", card)
            #expect(shown["title"]?.string == "Soup" && shown["rating"]?.double == 5)
        }
    }

    @Test("A typed mutation is shown as its expected answer until the server has answered")
    func optimistic() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let receipt = try await app.enqueue(Rate(), optimistic: .init(rate: .init(title: "Soup", rating: 5)))
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            #expect(try app.read("Recipe:1", rating)["rating"]?.double == 5)
            let service = Task { try await app.run() }
            let outcome = try await receipt.outcome(within: .seconds(300))
            guard case .applied(let data, let errors) = outcome else {
                Issue.record("\(outcome)")
                return
            }
            #expect(errors.isEmpty)
            guard case .object(let members) = data else {
                Issue.record("\(data)")
                return
            }
            #expect(members["rate"] != nil)
            service.cancel()
            try await service.value
            #expect(server.effects == ["1 5"])
        }
    }

    @Test("A typed watcher says that its data has a change that the server has not confirmed")
    func unconfirmed() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(Recipes()).makeAsyncIterator()
            #expect(await states.next()?.isOptimistic == false)
            try await app.enqueue(Rate(), optimistic: .init(rate: .init(title: "Stew", rating: 5)))
            let state = try #require(await states.next())
            #expect(state.data?.recipes.map(\.title) == ["Stew", "Bread"])
            #expect(state.isOptimistic && !state.isStale)
        }
    }

    @Test("A typed watcher says that its data is older than the schema allows")
    func stale() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withAgedStore(server, { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            for (seconds, isStale) in [(29.0, false), (1, true)] {
                wait(seconds)
                var states = try app.watch(Recipes()).makeAsyncIterator()
                let state = try #require(await states.next())
                #expect(state.data != nil && state.isStale == isStale && !state.isOptimistic)
            }
        }
    }

    @Test("A typed watcher asks the server as its options say")
    func options() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            let tenant = GraphQLRequest.Header(name: "x-tenant", value: "7")
            let watch = try app.watch(Recipes(), policy: .networkOnly, options: FetchOptions(headers: [tenant]))
            for await state in watch where !state.isFetching { break }
            #expect(server.requests.map(\.headers) == [[tenant]])
        }
    }

    @Test("A typed watcher has no data any more once something of it is evicted, and names what is missing then")
    func evicted() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(Recipes()).makeAsyncIterator()
            #expect(await states.next()?.data?.recipes.map(\.title) == ["Soup", "Bread"])
            try await app.remove("Recipe:2", as: .evicted)
            let state = try #require(await states.next())
            #expect(state.data == nil && state.missing.map(\.description) == ["recipes[1]"])
            try await app.write(recipeList, json: soupAndBread("Soup"))
            #expect(await states.next()?.data?.recipes.map(\.title) == ["Soup", "Bread"])
        }
    }

    @Test("A typed watcher has no data any more once something of its answer is missing")
    func partlyGone() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            var states = try app.watch(Recipes()).makeAsyncIterator()
            #expect(await states.next()?.data?.recipes.count == 2)
            try await app.remove("Recipe:1", as: .evicted)
            let state = try #require(await states.next())
            #expect(state.data == nil)
            #expect(state.missing.map(\.description) == ["recipes[0]"])
        }
    }
}
