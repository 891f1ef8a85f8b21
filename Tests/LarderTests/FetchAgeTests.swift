import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Testing

/// A store whose clock the test moves, and the server that it asks.
func withAgedStore(
    _ server: ScriptedServer = .away, schema text: String = fixtureSchema,
    _ changed: (inout Schema) throws -> Void = { _ in },
    _ body: (Partition, @escaping @Sendable (TimeInterval) -> Void) async throws -> Void
) async throws {
    try await withTemporaryFolder { folder in
        let clock = TestClock()
        var options = Store.Options()
        options.now = { clock.now }
        var schema = try Schema(parsing: text)
        try changed(&schema)
        let store = try Store.open(at: folder, schema: schema, options: options)
        try await body(try store.partition(server: server)) { seconds in clock.advance(by: .seconds(seconds)) }
        try store.close()
        try expectSound(folder)
    }
}

private func titled(_ number: Int) -> String {
    #"{"data":{"recipes":[{"__typename":"Recipe","id":"1","title":"Soup \#(number)","author":null}]}}"#
}

@Suite("Fetching by age", .timeLimit(.minutes(10)))
struct FetchAgeTests {
    private func server() -> ScriptedServer { ScriptedServer { number, _ in titled(number) } }

    private func title(_ response: Response) -> String? { response["recipes"]?[0]?["title"]?.string }

    @Test("cacheFirst asks the server once the cache's answer is as old as it may be")
    func cacheFirst() async throws {
        let server = server()
        try await withAgedStore(server) { app, wait in
            let options = FetchOptions(maxAge: .seconds(60))
            #expect(try await app.fetch(recipeList, options: options).age == .zero)
            wait(59)
            let cached = try await app.fetch(recipeList, options: options)
            #expect(cached.age == .seconds(59))
            #expect(title(cached) == "Soup 0")
            wait(1)
            let fresh = try await app.fetch(recipeList, options: options)
            #expect(title(fresh) == "Soup 1")
            #expect(server.requests.count == 2)
        }
    }

    @Test("A maximum age of zero, or below it, takes nothing from the cache", arguments: [0, -1, Int64.min])
    func zero(seconds: Int64) async throws {
        let server = server()
        try await withAgedStore(server) { app, _ in
            for _ in 0..<3 { _ = try await app.fetch(recipeList, options: FetchOptions(maxAge: .seconds(seconds))) }
            #expect(server.requests.count == 3)
        }
    }

    @Test("A maximum age beyond a century takes whatever has a known age")
    func century() async throws {
        let server = server()
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(50 * 365 * 86_400)
            _ = try await app.fetch(recipeList, options: FetchOptions(maxAge: .seconds(200 * 365 * 86_400)))
            #expect(server.requests.count == 1)
        }
    }

    @Test("With staleAllowed, cacheFirst answers with what is old and fetches it again in the background")
    func stale() async throws {
        let server = server()
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            let options = FetchOptions(maxAge: .seconds(60), staleAllowed: true)
            let old = try await app.fetch(recipeList, options: options)
            #expect(title(old) == "Soup 0")
            var states = try app.watch(recipeList).makeAsyncIterator()
            while let state = try await next(&states), state.response.map(title) != "Soup 1" {}
            #expect(server.requests.count == 2)
        }
    }

    @Test("cacheOnly throws a miss that has the old answer, and gives it on request")
    func cacheOnly() async throws {
        try await withAgedStore(server()) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            let error = await #expect(throws: LarderError.self) {
                try await app.fetch(recipeList, policy: .cacheOnly, options: FetchOptions(maxAge: .seconds(60)))
            }
            #expect(error?.code == .miss)
            #expect(error?.response.map(title) == "Soup 0")
            let old = try await app.fetch(
                recipeList, policy: .cacheOnly, options: FetchOptions(maxAge: .seconds(60), staleAllowed: true))
            #expect(old.age == .seconds(100))
        }
    }

    @Test("cacheOnly asks no server, though what it answers with is old")
    func cacheOnlyAsksNobody() async throws {
        let server = server()
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            let options = FetchOptions(maxAge: .seconds(60), staleAllowed: true)
            for _ in 0..<20 { _ = try await app.fetch(recipeList, policy: .cacheOnly, options: options) }
            _ = try await app.fetch(recipeList, policy: .networkOnly)
            #expect(server.requests.count == 2)
        }
    }

    @Test("networkFirst stands in with what is old only where that is allowed")
    func networkFirst() async throws {
        let server = ScriptedServer { number, _ in
            guard number == 0 else { throw TransportError.away }
            return titled(number)
        }
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            var options = FetchOptions(maxAge: .seconds(60))
            let error = await #expect(throws: LarderError.self) {
                try await app.fetch(recipeList, policy: .networkFirst, options: options)
            }
            #expect(error?.code.rawValue == "transport.unreachable")
            options.staleAllowed = true
            let stale = try await app.fetch(recipeList, policy: .networkFirst, options: options)
            #expect(title(stale) == "Soup 0")
        }
    }

    @Test("A maximum age in the schema makes cacheFirst ask again, and that of a fetch goes before it")
    func schemaAge() async throws {
        let server = server()
        try await withAgedStore(server, { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(30)
            #expect(try app.read(recipeList).isExpired)
            _ = try await app.fetch(recipeList, options: FetchOptions(maxAge: .seconds(60)))
            #expect(server.requests.count == 1)
            _ = try await app.fetch(recipeList)
            #expect(server.requests.count == 2)
            #expect(try app.read(recipeList).isExpired == false)
        }
    }

    @Test("A watcher says that its answer is older than it may be, and after a fetch of the same answer that it is not")
    func staleWatch() async throws {
        let server = ScriptedServer { _, _ in titled(0) }
        try await withAgedStore(server, { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(30)
            var states = try app.watch(recipeList).makeAsyncIterator()
            #expect(await states.next()?.isStale == true)
            let watch = try app.watch(recipeList, policy: .cacheAndNetwork)
            for await state in watch where !state.isFetching {
                #expect(!state.isStale && state.complete != nil)
                break
            }
            #expect(server.requests.count == 2)
        }
    }

    @Test("The age and the maximum age that an answer says are kept")
    func answerAge() async throws {
        let server = ScriptedServer(search: nil) { _, number, _ in
            GraphQLAnswer(body: Array(titled(number).utf8), status: 200, age: .seconds(10), maxAge: .seconds(60))
        }
        try await withAgedStore(server) { app, wait in
            #expect(try await app.fetch(recipeList).age == .seconds(10))
            wait(49)
            #expect(try await app.fetch(recipeList).age == .seconds(59))
            wait(1)
            _ = try await app.fetch(recipeList)
            #expect(server.requests.count == 2)
        }
    }

    @Test("An answer of which the clock was set back since is asked for again")
    func setBack() async throws {
        let server = server()
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(-86_400)
            #expect(try app.read(recipeList).age == nil)
            _ = try await app.fetch(recipeList, options: FetchOptions(maxAge: .seconds(1_000_000)))
            #expect(server.requests.count == 2)
            #expect(try app.read(recipeList).age == .zero)
        }
    }

    @Test("A field's maximum age goes before its type's, until it is taken back", arguments: [true, false])
    func fieldAge(isTakenBack: Bool) async throws {
        let titles = GraphQLOperation("{ recipes(first: 2) { title } }")
        try await withAgedStore(server()) { schema in
            try schema.setMaxAge(.seconds(30), of: "Recipe")
            try schema.setMaxAge(.seconds(90), forField: "title", of: "Recipe")
            if isTakenBack { try schema.setMaxAge(nil, forField: "title", of: "Recipe") }
        } _: { app, wait in
            _ = try await app.fetch(recipeList)
            wait(60)
            #expect(try app.read(recipeList).isExpired && app.read(titles).isExpired == isTakenBack)
            wait(60)
            #expect(try app.read(titles).isExpired)
        }
    }

    @Test("fetches with cacheAndNetwork gives what the cache has, however old, and the server's answer after it")
    func staleAnswers() async throws {
        try await withAgedStore(server(), { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            var answers: [Response] = []
            for try await answer in app.fetches(recipeList, policy: .cacheAndNetwork) { answers.append(answer) }
            #expect(answers.map(title) == ["Soup 0", "Soup 1"])
            #expect(answers.first?.isExpired == true)
        }
    }

    @Test("A cacheAndNetwork watcher gives at once what the cache has, though it is older than it may be")
    func staleAtFirst() async throws {
        let isAnswered = Flag()
        let server = ScriptedServer { number, _ in
            if number > 0 { await isAnswered.wait() }
            return titled(number)
        }
        try await withAgedStore(server, { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(30)
            var states = try app.watch(recipeList, policy: .cacheAndNetwork).makeAsyncIterator()
            let first = try await next(&states)
            isAnswered.set()
            #expect(first?.isFetching == true && first?.isStale == true)
            #expect(first?.complete.map(title) == "Soup 0")
            var last = try await next(&states)
            while last?.isFetching == true { last = try await next(&states) }
            #expect(last?.isStale == false)
            #expect(last?.complete.map(title) == "Soup 1")
        }
    }

    @Test("An old answer is fetched again although the server has not yet answered for another one")
    func staleSideBySide() async throws {
        let isFree = Flag()
        defer { isFree.set() }
        let bread = #"{"data":{"recipe":{"__typename":"Recipe","id":"2","title":"Bread","author":null}}}"#
        let server = ScriptedServer { number, request in
            if number == 2 { await isFree.wait() }
            return request.document.contains("recipes") ? titled(number) : bread
        }
        try await withAgedStore(server) { app, wait in
            for operation in [recipeList, recipe(2)] { _ = try await app.fetch(operation) }
            wait(100)
            let options = FetchOptions(maxAge: .seconds(60), staleAllowed: true)
            _ = try await app.fetch(recipeList, options: options)
            _ = try await server.requests(3, within: .seconds(20))
            _ = try await app.fetch(recipe(2), options: options)
            #expect(try await server.requests(4, within: .seconds(20)).last?.operationName == "One")
            isFree.set()
            var states = try app.watch(recipeList).makeAsyncIterator()
            while let state = try await next(&states), state.response.map(title) != "Soup 2" {}
        }
    }

    @Test("What is old is fetched again in the background with the headers of the program's options")
    func staleHeaders() async throws {
        let server = server()
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            let tenant = GraphQLRequest.Header(name: "x-tenant", value: "7")
            let options = FetchOptions(headers: [tenant], maxAge: .seconds(60), staleAllowed: true)
            _ = try await app.fetch(recipeList, options: options)
            var states = try app.watch(recipeList).makeAsyncIterator()
            while let state = try await next(&states), state.response.map(title) != "Soup 1" {}
            #expect(server.requests.map(\.headers) == [[], [tenant]])
        }
    }

    @Test("A maximum age that code gives to an interface holds for the types that say nothing of their own")
    func interfaceAge() async throws {
        try await withAgedStore(server(), { try $0.setMaxAge(.seconds(30), of: "Contribution") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(29)
            #expect(try app.read(recipeList).isExpired == false)
            wait(1)
            #expect(try app.read(recipeList).isExpired)
        }
    }

    @Test("A maximum age from code takes the place of the schema's own, be it less or more", arguments: [10, 90])
    func ageInPlaceOfSchema(seconds: Int) async throws {
        let text = fixtureSchema + " extend type Recipe @cacheControl(maxAge: 30)"
        try await withAgedStore(
            server(), schema: text, { try $0.setMaxAge(.seconds(seconds), of: "Recipe") }
        ) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(TimeInterval(seconds) - 1)
            #expect(try app.read(recipeList).isExpired == false)
            wait(1)
            #expect(try app.read(recipeList).isExpired)
        }
    }

    @Test("An object that a queued mutation alone shows is not expired, for it has not come yet")
    func shownAlone() async throws {
        let card = GraphQLFragment("fragment Card on Recipe { title rating }")
        try await withAgedStore(.away, { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, _ in
            try await app.write("Recipe:1", card, ["title": "Soup", "rating": 1])
            try await app.remove("Recipe:1", as: .evicted)
            let expected: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Stew", "rating": 5]]
            try await app.enqueue(giveStars("1", 5), options: MutationOptions(optimisticResponse: expected))
            let shown = try app.read("Recipe:1", card)
            #expect(shown["title"]?.string == "Stew")
            #expect(!shown.isExpired)
        }
    }

    @Test("An answer that a queued mutation changes is as old as what the server sent of it, and expires as that does")
    func ageUnderMutation() async throws {
        try await withAgedStore(server(), { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(20)
            let expected: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Stew", "rating": 5]]
            try await app.enqueue(giveStars("1", 5), options: MutationOptions(optimisticResponse: expected))
            let shown = try app.read(recipeList)
            #expect(title(shown) == "Stew")
            #expect(shown.age == .seconds(20) && !shown.isExpired)
            wait(10)
            #expect(try app.read(recipeList).isExpired)
        }
    }

    @Test("A cacheFirst watcher asks no server for what is only older than it may be")
    func staleWatchAsksNobody() async throws {
        let server = server()
        try await withAgedStore(server, { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(30)
            var states = try app.watch(recipeList, policy: .cacheFirst).makeAsyncIterator()
            let state = try #require(try await next(&states))
            #expect(state.isStale && !state.isFetching)
            #expect(state.complete.map(title) == "Soup 0")
            #expect(server.requests.count == 1)
        }
    }

    @Test("cacheOnly and networkFirst take nothing from the cache that is older than the schema allows")
    func schemaAgeOfPolicies() async throws {
        let server = ScriptedServer { number, _ in
            guard number == 0 else { throw TransportError.away }
            return titled(number)
        }
        try await withAgedStore(server, { try $0.setMaxAge(.seconds(30), of: "Recipe") }) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(29)
            for policy in [FetchPolicy.cacheOnly, .networkFirst] {
                let young = try await app.fetch(recipeList, policy: policy)
                #expect(title(young) == "Soup 0")
            }
            wait(1)
            await expectCode(.miss) { _ = try await app.fetch(recipeList, policy: .cacheOnly) }
            await expectCode(.transportUnreachable) { _ = try await app.fetch(recipeList, policy: .networkFirst) }
        }
    }

    @Test("With staleAllowed, cacheFirst answers with what is old without waiting for the server")
    func staleAtOnce() async throws {
        let (isAnswered, isTold) = (Flag(), Flag())
        let server = ScriptedServer { number, _ in
            if number > 0 { await isAnswered.wait() }
            return titled(number)
        }
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            let fetching = Task {
                defer { isTold.set() }
                return try await app.fetch(
                    recipeList, options: FetchOptions(timeout: .seconds(10), maxAge: .seconds(60), staleAllowed: true))
            }
            // Well before the server's time is over.
            for _ in 0..<1_000 where !isTold.isSet { try await Task.sleep(for: .milliseconds(2)) }
            #expect(isTold.isSet && !isAnswered.isSet)
            isAnswered.set()
            let old = try await fetching.value
            #expect(title(old) == "Soup 0")
            try await eventually { try title(app.read(recipeList)) == "Soup 1" }
        }
    }

    @Test("What is old is fetched again in the background by the next call, where the one before failed")
    func staleAfterFailure() async throws {
        let server = ScriptedServer { number, _ in
            guard number != 1 else { throw TransportError.away }
            return titled(number)
        }
        try await withAgedStore(server) { app, wait in
            _ = try await app.fetch(recipeList)
            wait(100)
            let options = FetchOptions(maxAge: .seconds(60), staleAllowed: true)
            _ = try await app.fetch(recipeList, options: options)
            try await eventually { server.requests.count == 2 }
            // Whether that has ended already nobody is told.
            for _ in 0..<2_000 where server.requests.count < 3 {
                _ = try await app.fetch(recipeList, options: options)
                try await Task.sleep(for: .milliseconds(2))
            }
            try #require(server.requests.count == 3)
            try await eventually { try title(app.read(recipeList)) == "Soup 2" }
        }
    }
}
