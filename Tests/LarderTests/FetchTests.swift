import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Fetching", .timeLimit(.minutes(10)))
struct FetchTests {
    @Test("cacheFirst asks the server once, and then the cache")
    func cacheFirst() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            let first = try await app.fetch(recipeList)
            let second = try await app.fetch(recipeList)
            #expect(first == second)
            #expect(second["recipes"]?[1]?["title"]?.string == "Bread")
            #expect(second["recipes"]?[0]?["id"] == nil, "what the cache added is not shown")
            #expect(server.requests.count == 1)
        }
    }

    @Test("The document that is sent asks for types and key fields")
    func sentDocument() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            let request = try #require(server.requests.first)
            #expect(request.operationName == "List")
            #expect(request.variables == Array("{}".utf8))
            #expect(request.documentHash.count == 64)
            #expect(request.document.components("__typename") == 2)
            #expect(request.document.components("id") >= 2)
        }
    }

    @Test("getMovie(id:) hits although the movie is in the cache only from a list")
    func fieldPolicy() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            let soup = try app.read(recipe(1))
            #expect(soup["recipe"]?["title"]?.string == "Soup")
            #expect(soup["recipe"]?["author"]?["name"]?.string == "Ada")
            let several = try app.read(GraphQLOperation("{ recipesByID(ids: [2, 1]) { title } }"))
            #expect(several["recipesByID"]?.elements.compactMap { $0["title"]?.string } == ["Bread", "Soup"])
        }
    }

    @Test("cacheOnly throws a miss that names the paths")
    func cacheOnly() async throws {
        try await withStoreFixture { app in
            let error = await #expect(throws: LarderError.self) { try await app.fetch(recipe(9), policy: .cacheOnly) }
            #expect(error?.code == .miss)
            #expect(error?.missing.map(\.description) == ["recipe"])
        }
    }

    @Test("networkFirst answers from the cache when the server is away, and only then")
    func networkFirst() async throws {
        let isAway = Flag()
        let server = listServer(failing: isAway)
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList, policy: .networkFirst)
            isAway.set()
            let cached = try await app.fetch(recipeList, policy: .networkFirst)
            #expect(cached["recipes"]?.count == 2)
            let error = await #expect(throws: LarderError.self) {
                try await app.fetch(recipe(9), policy: .networkFirst)
            }
            #expect(error?.code.rawValue == "transport.unreachable")
            let strict = await #expect(throws: LarderError.self) {
                try await app.fetch(recipeList, policy: .networkOnly)
            }
            #expect(strict?.code.rawValue == "transport.unreachable")
        }
    }

    @Test("networkFirst answers from the cache where no user is signed in, and networkOnly throws notSignedIn")
    func signedOut() async throws {
        let isSignedOut = Flag()
        let server = listServer(failing: isSignedOut, TransportError(.notSignedIn, "the sign-in has ended"))
        try await withStoreFixture(server) { (app) throws in
            _ = try await app.fetch(recipeList, policy: .networkFirst)
            isSignedOut.set()
            #expect(try await app.fetch(recipeList, policy: .networkFirst)["recipes"]?.count == 2)
            let error = await #expect(throws: LarderError.self) {
                try await app.fetch(recipeList, policy: .networkOnly)
            }
            #expect(error?.code == .transportNotSignedIn)
        }
    }

    @Test(
        "networkFirst does not answer from the cache where the server has answered, with errors or with what does not fit"
    )
    func networkFirstRefused() async throws {
        let answers = Mutex([#"{"errors":[{"message":"no"}]}"#, #"{"data":{"recipes":7}}"#, recipeListAnswer])
        let server = ScriptedServer { _ in answers.withLock { $0.removeLast() } }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList, policy: .networkFirst)
            for code in [LarderError.Code.recordsResponseMismatch, .serverErrors] {
                let error = await #expect(throws: LarderError.self) {
                    try await app.fetch(recipeList, policy: .networkFirst)
                }
                #expect(error?.code == code)
            }
        }
    }

    @Test("networkFirst answers from the cache where the server has not answered by the deadline")
    func networkFirstLate() async throws {
        let isLate = Flag()
        let server = listServer(failing: isLate, TransportError(.timedOut, "late"))
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList, policy: .networkFirst)
            isLate.set()
            let cached = try await app.fetch(recipeList, policy: .networkFirst)
            #expect(cached["recipes"]?.count == 2)
            #expect(server.requests.count == 2)
        }
    }

    @Test("networkFirst tells a cancelled caller so, and does not answer from the cache")
    func networkFirstCancelled() async throws {
        let isCancelled = Flag()
        let server = listServer(failing: isCancelled, TransportError(.cancelled, "the task was cancelled"))
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList, policy: .networkFirst)
            isCancelled.set()
            let error = await #expect(throws: LarderError.self) {
                try await app.fetch(recipeList, policy: .networkFirst)
            }
            #expect(error?.code == .cancelled)
        }
    }

    @Test("cacheAndNetwork gives the cached answer and then the server's")
    func cacheAndNetwork() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            var answers: [Response] = []
            for try await answer in app.fetches(recipeList, policy: .cacheAndNetwork) { answers.append(answer) }
            #expect(answers.count == 2)
            #expect(answers.first == answers.last)
            #expect(server.requests.count == 2)
        }
    }

    @Test("cacheAndNetwork gives the cache's answer first and the server's after it, where the two differ")
    func cacheAndNetworkDiffer() async throws {
        let server = ScriptedServer { number, _ in recipeListAnswer.replacing("Soup", with: "Soup \(number)") }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            let titles = try await app.fetchedTitles(.cacheAndNetwork)
            #expect(titles == ["Soup 0", "Soup 1"])
        }
    }

    @Test("Without a network cacheAndNetwork gives the cache's answer and then the error, and fetch throws the error")
    func cacheAndNetworkAway() async throws {
        let isAway = Flag()
        let server = listServer(failing: isAway)
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            isAway.set()
            var titles: [String?] = []
            var told: LarderError?
            do {
                for try await answer in app.fetches(recipeList, policy: .cacheAndNetwork) {
                    titles.append(answer["recipes"]?[0]?["title"]?.string)
                }
            } catch let error as LarderError { told = error }
            #expect(titles == ["Soup"])
            #expect(told?.code.rawValue == "transport.unreachable")
            let thrown = await #expect(throws: LarderError.self) {
                try await app.fetch(recipeList, policy: .cacheAndNetwork)
            }
            #expect(thrown?.code.rawValue == "transport.unreachable")
        }
    }

    @Test("The answers of networkOnly are the server's alone, although the cache knows one")
    func answersOfServerAlone() async throws {
        let server = ScriptedServer { number, _ in recipeListAnswer.replacing("Soup", with: "Soup \(number)") }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            let titles = try await app.fetchedTitles(.networkOnly)
            #expect(titles == ["Soup 1"])
        }
    }

    @Test("cacheAndNetwork gives the server's answer alone where the cache does not know everything")
    func cacheAndNetworkMissing() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            var answers: [Response] = []
            for try await answer in app.fetches(recipeList, policy: .cacheAndNetwork) { answers.append(answer) }
            #expect(answers.count == 1 && answers.first?.isComplete == true)
        }
    }

    @Test("Data and errors together: the error policy decides, and the cache keeps what it knew of the field")
    func dataAndErrors() async throws {
        let broken = """
            {"data":{"recipe":{"__typename":"Recipe","id":"1","title":"Soup!","author":null}},
             "errors":[{"message":"no author","path":["recipe","author"],"errorType":"Lookup"}]}
            """
        let server = ScriptedServer { $0.operationName == "One" ? broken : recipeListAnswer }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            let failed = await #expect(throws: LarderError.self) {
                try await app.fetch(recipe(1), policy: .networkOnly)
            }
            #expect(failed?.code == .serverErrors)
            #expect(failed?.errors.first?.errorType == "Lookup")
            #expect(failed?.response?["recipe"]?["title"]?.string == "Soup!")

            let partial = try await app.fetch(
                recipe(1), policy: .networkOnly, options: FetchOptions(errorPolicy: .partial))
            #expect(partial["recipe"]?["author"]?.isNull == true)
            #expect(partial.errors.first?.path?.description == "recipe.author")
            let ignored = try await app.fetch(
                recipe(1), policy: .networkOnly, options: FetchOptions(errorPolicy: .ignore))
            #expect(ignored.errors.isEmpty && ignored.age == .zero)

            let cached = try app.read(recipe(1))
            #expect(cached["recipe"]?["title"]?.string == "Soup!")
            #expect(cached["recipe"]?["author"]?["name"]?.string == "Ada")
        }
    }

    @Test("data: null writes nothing and is thrown")
    func nullData() async throws {
        let server = ScriptedServer { _ in #"{"data":null,"errors":[{"message":"down"}]}"# }
        try await withStoreFixture(server) { app in
            for policy in ErrorPolicy.allCases {
                let error = await #expect(throws: LarderError.self) {
                    try await app.fetch(recipeList, options: FetchOptions(errorPolicy: policy))
                }
                #expect(error?.code == .serverErrors)
            }
            #expect(throws: LarderError.self) { try app.read(recipeList) }
        }
    }

    @Test("A mutation is sent at once; its objects are stored and itself is not")
    func mutation() async throws {
        let server = ScriptedServer { request in
            request.kind == .mutation
                ? #"{"data":{"rate":{"__typename":"Recipe","id":"1","title":"Best soup"}}}"# : recipeListAnswer
        }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            let rate = GraphQLOperation(
                "mutation Rate($input: Rating!) { rate(input: $input) { title } }",
                variables: ["input": ["recipe": "1", "stars": 5]])
            let answer = try await app.send(rate, within: .seconds(300))
            #expect(answer["rate"]?["title"]?.string == "Best soup")
            #expect(try app.read(recipeList)["recipes"]?[0]?["title"]?.string == "Best soup")
            #expect(
                String(decoding: try #require(server.requests.last).variables, as: UTF8.self)
                    == #"{"input":{"recipe":"1","stars":5}}"#)
            await #expect(throws: LarderError.self) { try await app.fetch(rate) }
        }
    }

    @Test(
        "A mutation that is sent at once has the time that it was given, and not that of the options",
        arguments: [true, false])
    func immediateDeadline(isTyped: Bool) async throws {
        let transport = ScriptedServer.away
        try await withStoreFixture(transport) { app in
            let before = SuspendingClock.now
            let options = FetchOptions(timeout: .seconds(900))
            if isTyped {
                _ = try? await app.send(Rate(), within: .seconds(1), options: options)
            } else {
                _ = try? await app.send(rateAtOnce, within: .seconds(1), options: options)
            }
            let after = SuspendingClock.now
            let deadline = try #require(transport.deadlines.first)
            #expect(deadline >= before + .seconds(1) && deadline <= after + .seconds(1))
        }
    }

    @Test("An answer comes back in the program's own type")
    func typed() async throws {
        struct List: TypedOperation {
            struct Data: Decodable, Sendable, Equatable {
                struct Recipe: Decodable, Sendable, Equatable { var title: String }
                var recipes: [Recipe]
            }
            var operation: GraphQLOperation { GraphQLOperation("{ recipes(first: 2) { title } }") }
        }
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            let fetched = try await app.fetch(List())
            #expect(fetched.recipes.map(\.title) == ["Soup", "Bread"])
            #expect(try app.read(List()) == fetched)
        }
    }

    @Test("A mutation is not read from the root of the queries, and not watched")
    func mutationIsNoQuery() async throws {
        // Query and Mutation have a field of the same name.
        let schema = "type Query { stars: Int } type Mutation { stars: Int } type Subscription { stars: Int }"
        try await withStoreFixture(schema: schema) { (app) throws in
            try await app.write(GraphQLOperation("{ stars }"), ["stars": 3])
            for document in ["mutation { stars }", "subscription { stars }"] {
                let operation = GraphQLOperation(document)
                #expect(throws: LarderError.self) { try app.read(operation) }
                #expect(throws: LarderError.self) { try app.read(operation, allowsPartial: true) }
                #expect(throws: LarderError.self) { _ = try app.prepare(operation) }
                #expect(throws: LarderError.self) { _ = try app.watch(operation) }
                await #expect(throws: LarderError.self) { _ = try await app.watch(named: "w", operation) }
                await #expect(throws: LarderError.self) { _ = try await app.fetch(operation, policy: .cacheOnly) }
                await #expect(throws: LarderError.self) { try await app.update(operation) { _ in } }
                await #expect(throws: LarderError.self) {
                    for try await _ in app.fetches(operation, policy: .cacheAndNetwork) {
                        Issue.record("The mutation was answered from the root of the queries")
                    }
                }
            }
        }
    }

    @Test("Of the schemas that a store was opened with, the compiled forms of a few are kept")
    func compiledSchemas() async throws {
        try await withTemporaryFolder { folder in
            for number in 0..<12 {
                let store = try Store.open(at: folder, schemaText: ["type Query { a\(number): Int }"])
                try store.close()
            }
            let kept = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "schemas").path)
            #expect(kept.count == 4)
            // The one that is used is among them, and opening with an older one makes it anew.
            let store = try Store.open(at: folder, schemaText: ["type Query { a0: Int }"])
            try await store.partition().write(GraphQLOperation("{ a0 }"), ["a0": 1])
            try store.close()
        }
    }

    @Test("Without a transport the network is refused at once")
    func noTransport() async throws {
        try await withStoreFixture { app in
            let error = await #expect(throws: LarderError.self) { try await app.fetch(recipeList) }
            #expect(error?.code == .noTransport)
            await expectCode(.noTransport) { _ = try await app.fetch(recipeList, policy: .networkFirst) }
            // What the cache knows stands in.
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let cached = try await app.fetch(recipeList, policy: .networkFirst)
            #expect(cached["recipes"]?[0]?["title"]?.string == "Soup")
            await expectCode(.noTransport) { _ = try await app.fetch(recipeList, policy: .networkOnly) }
        }
    }

    @Test("Fetched data is there after the store was closed and opened again")
    func reopening() async throws {
        try await withTemporaryFolder { folder in
            for round in 0..<2 {
                let store = try Store.open(at: folder, schemaText: [fixtureSchema])
                let server = ScriptedServer { _ in recipeListAnswer }
                let app = try store.partition(server: server)
                #expect(try await app.fetch(recipeList)["recipes"]?.count == 2)
                #expect(server.requests.count == 1 - round)
                try store.close()
                let error = #expect(throws: LarderError.self) { try app.read(recipeList) }
                #expect(error?.code == .parked)
            }
        }
    }

    private struct List: TypedOperation {
        struct Data: Decodable, Sendable { var recipes: [Recipe] }
        struct Recipe: Decodable, Sendable { var title: String }
        var operation: GraphQLOperation { recipeList }
    }

    private struct Rate: TypedOperation {
        struct Data: Decodable, Sendable { var rate: List.Recipe }
        var operation: GraphQLOperation { rateAtOnce }
    }

    @Test("The headers and the time of the options are those of each request that is sent with them, and of no other")
    func requestOptions() async throws {
        let server = ScriptedServer { request in
            request.kind == .mutation
                ? #"{"data":{"rate":{"__typename":"Recipe","id":"1","title":"Soup"}}}"# : recipeListAnswer
        }
        try await withStoreFixture(server) { app in
            let tenant = GraphQLRequest.Header(name: "x-tenant", value: "7")
            let options = FetchOptions(timeout: .seconds(900), headers: [tenant])
            let begun = SuspendingClock.now
            _ = try await app.fetch(recipeList, policy: .networkOnly, options: options)
            _ = try await app.fetch(List(), policy: .networkOnly, options: options)
            for try await _ in app.fetches(recipeList, policy: .networkOnly, options: options) {}
            _ = try await app.send(rateAtOnce, options: options)
            _ = try await app.send(Rate(), options: options)
            #expect(server.requests.map(\.headers) == Array(repeating: [tenant], count: 5))
            #expect(server.deadlines.allSatisfy { $0 >= begun + .seconds(900) })
            _ = try await app.fetch(recipeList, policy: .networkOnly)
            #expect(server.requests.last?.headers == [])
        }
    }

    @Test("What a mutation that is sent at once took effect of is returned with its errors where the options say so")
    func mutationErrors() async throws {
        let server = ScriptedServer { _ in
            #"{"data":{"rate":{"__typename":"Recipe","id":"1","title":"Soup"}},"errors":[{"message":"late"}]}"#
        }
        try await withStoreFixture(server) { app in
            let error = await #expect(throws: LarderError.self) { _ = try await app.send(rateAtOnce) }
            #expect(error?.code == .serverErrors && error?.errors.map(\.message) == ["late"])
            let partial = try await app.send(rateAtOnce, options: FetchOptions(errorPolicy: .partial))
            #expect(partial.errors.map(\.message) == ["late"] && partial["rate"]?["title"]?.string == "Soup")
            let ignored = try await app.send(rateAtOnce, options: FetchOptions(errorPolicy: .ignore))
            #expect(ignored.errors.isEmpty && ignored["rate"]?["title"]?.string == "Soup")
        }
    }

    @Test("A request has its variables as values; of bytes that are no JSON object it has none")
    func variableValues() {
        func values(_ json: String) -> [String: Value] {
            GraphQLRequest(
                kind: .query, operationName: nil, document: "{ a }", documentHash: "", variables: Array(json.utf8)
            ).variableValues
        }
        #expect(values(#"{"input":{"recipe":"1","stars":5}}"#) == ["input": ["recipe": "1", "stars": 5]])
        for json in ["", "[1]", "{"] { #expect(values(json) == [:]) }
    }

    @Test("Of the operations of a document the one is asked that is named, and of its fragments likewise")
    func named() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            let document = "query Other { latest { id } } query List { recipes(first: 2) { title author { name } } }"
            let answer = try await app.fetch(GraphQLOperation(document, name: "List"))
            #expect(answer["recipes"]?.count == 2 && server.requests.map(\.operationName) == ["List"])
            let fragments = "fragment A on Recipe { rating } fragment B on Recipe { title }"
            let title = try app.read("Recipe:1", GraphQLFragment(fragments, name: "B"))["title"]?.string
            #expect(title == "Soup")
            await expectCode(.miss) { _ = try app.read("Recipe:1", GraphQLFragment(fragments, name: "A")) }
        }
    }
}

extension String {
    /// How often a name occurs as a word.
    fileprivate func components(_ name: String) -> Int {
        split { !($0.isLetter || $0 == "_" || $0.isNumber) }.count { $0 == name }
    }
}

private let rateAtOnce = GraphQLOperation(#"mutation { rate(input: {recipe: "1", stars: 5}) { title } }"#)
