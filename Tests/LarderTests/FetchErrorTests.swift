import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

@Suite("Errors of fetches and reads", .timeLimit(.minutes(10)))
struct FetchErrorTests {
    @Test("An answer that does not fit the program's own type is a data error, whether it is fetched or read")
    func misfitType() async throws {
        struct Numbered: TypedOperation {
            struct Data: Decodable, Sendable {
                struct Recipe: Decodable, Sendable { var title: Int }
                var recipes: [Recipe]
            }
            var operation: GraphQLOperation { GraphQLOperation("{ recipes(first: 2) { title } }") }
        }
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { app in
            await expectCode(.data) { _ = try await app.fetch(Numbered()) }
            await expectCode(.data) { _ = try app.read(Numbered()) }
        }
    }

    @Test(
        "networkFirst answers from the cache where errors come with 401, 429 or 5xx, and throws those with another status",
        arguments: [(400, false), (422, false), (401, true), (429, true), (503, true)])
    func networkFirstStatus(status: Int, isFromCache: Bool) async throws {
        let server = ScriptedServer(search: nil) { _, number, _ in
            if number == 0 { return GraphQLAnswer(recipeListAnswer) }
            return GraphQLAnswer(body: Array(#"{"errors":[{"message":"no"}]}"#.utf8), status: status)
        }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList, policy: .networkFirst)
            do {
                let answer = try await app.fetch(recipeList, policy: .networkFirst)
                #expect(isFromCache && answer["recipes"]?.count == 2)
            } catch { #expect(!isFromCache && (error as? LarderError)?.code == .serverErrors, "\(error)") }
        }
    }

    @Test("Documents that do not parse, fit the schema or have their variables are typed errors")
    func badOperations() async throws {
        try await withStoreFixture { app in
            func code(_ operation: GraphQLOperation) -> LarderError.Code? {
                do throws(LarderError) {
                    _ = try app.read(operation)
                    return nil
                } catch { return error.code }
            }
            #expect(code(GraphQLOperation("query {")) == .syntax)
            #expect(code(GraphQLOperation("{ nothing }")) == .operation)
            #expect(code(GraphQLOperation("query A { latest { id } } query B { latest { id } }")) == .operation)
            #expect(code(GraphQLOperation("query A { latest { id } }", name: "B")) == .operation)
            #expect(code(GraphQLOperation("query($id: ID!) { recipe(id: $id) { title } }")) == .variables)
            #expect(code(GraphQLOperation("{ latest { id } }", variables: ["x": 1])) == .variables)
            let rate = "mutation($input: Rating!) { rate(input: $input) { id } }"
            for input in [
                ["recipe": "1"], ["recipe": "1", "stars": .null], ["recipe": "1", "stars": 1, "x": 1],
                ["recipe": "1", "stars": "five"], ["recipe": ["1", "2"], "stars": 1],
            ] as [Value] {
                await expectCode(.variables) {
                    _ = try await app.enqueue(GraphQLOperation(rate, variables: ["input": input]))
                }
            }
        }
    }

    @Test("The answers of networkFirst are the cache's where the server is away")
    func answersOfNetworkFirst() async throws {
        let isAway = Flag()
        let server = listServer(failing: isAway)
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            isAway.set()
            let titles = try await app.fetchedTitles(.networkFirst)
            #expect(titles == ["Soup"])
        }
    }

    @Test("The answers of cacheFirst are the cache's alone, and ask no server, where the cache has all")
    func answersOfCacheFirst() async throws {
        let server = ScriptedServer { number, _ in recipeListAnswer.replacing("Soup", with: "Soup \(number)") }
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList)
            let titles = try await app.fetchedTitles(.cacheFirst)
            #expect(titles == ["Soup 0"])
            #expect(server.requests.count == 1)
        }
    }

    @Test(
        "networkFirst answers from the cache in whatever way the attempt failed",
        arguments: [TransportError.Code.interrupted, .status, .unusableAnswer, .notPrepared, .insecure])
    func networkFirstFailed(code: TransportError.Code) async throws {
        let isFailing = Flag()
        let server = listServer(failing: isFailing, TransportError(code, "as told"))
        try await withStoreFixture(server) { app in
            _ = try await app.fetch(recipeList, policy: .networkFirst)
            isFailing.set()
            let cached = try await app.fetch(recipeList, policy: .networkFirst)
            #expect(cached["recipes"]?.count == 2)
            #expect(server.requests.count == 2)
        }
    }

    @Test("A syntax error names the line and the column at which the document is wrong")
    func syntaxPlace() async throws {
        try await withStoreFixture { app in
            let document = "query {\n  recipe(id: 1) { title } }\n}"
            let error = await larderError { try app.read(GraphQLOperation(document)) }
            #expect(error?.code == .syntax && error?.message.contains(":3:1:") == true, "\(error?.message ?? "none")")
        }
    }

    @Test("A schema error names the line and the column at which the schema is wrong")
    func schemaPlace() {
        for (text, line) in [("type Query {\n  a: Nothing\n}", 2), ("type Query {\n  a: Int\n}\n}", 4)] {
            let error = #expect(throws: LarderError.self) { try Schema(parsing: text) }
            let message = error?.message ?? "none"
            #expect(error?.code == .schema && message.contains(#/:[0-9]+:[0-9]+: /#), "\(message)")
            #expect(message.contains(":\(line):"), "\(message)")
        }
    }

    @Test("The errors of an answer whose status is a refusal say the status, and for how long the server asks to wait")
    func refusedWithStatus() async throws {
        let server = ScriptedServer(search: nil) { _, _, _ in
            let body = #"{"data":null,"errors":[{"message":"slow down"}]}"#
            return GraphQLAnswer(body: Array(body.utf8), status: 429, retryAfter: .seconds(7))
        }
        try await withStoreFixture(server) { app in
            let error = await larderError { try await app.fetch(recipeList) }
            #expect(error?.code == .serverErrors && error?.errors.map(\.message) == ["slow down"])
            let cause = error?.cause as? TransportError
            #expect(cause?.status == 429 && cause?.retryAfter == .seconds(7))
        }
    }

    @Test("The error of an answer that does not fit the operation names the place")
    func misfitPlace() async throws {
        let server = ScriptedServer { _ in
            #"{"data":{"recipes":[{"__typename":"Recipe","id":"1","title":7,"author":null}]}}"#
        }
        try await withStoreFixture(server) { app in
            let error = await larderError { try await app.fetch(recipeList) }
            #expect(error?.code == .recordsResponseMismatch)
            #expect(error?.message.hasSuffix(", at recipes[0].title") == true, "\(error?.message ?? "none")")
        }
    }

    @Test("A miss says what the cache lacks, and has what there is")
    func missing() async throws {
        try await withStoreFixture { app in
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Soup"])
            let more = GraphQLFragment("fragment F on Recipe { title rating author { name } }")
            let error = await larderError { try app.read("Recipe:1", more) }
            #expect(error?.code == .miss && error?.missing.map(\.description) == ["rating", "author"])
            #expect(error?.response?["title"]?.string == "Soup")
        }
    }

    @Test("Only a query is fetched, watched or updated, and only a mutation queued: others are refused")
    func otherKinds() async throws {
        let server = ScriptedServer { _ in recipeListAnswer }
        try await withStoreFixture(server) { (app) async throws in
            let rate = giveStars("1", 5)
            await expectCode(.operation) { _ = try await app.fetch(rate) }
            await expectCode(.operation) { _ = try app.watch(rate) }
            await expectCode(.operation) { try await app.update(rate) { _ in } }
            await expectCode(.operation) { _ = try await app.enqueue(recipeList) }
            #expect(server.requests.isEmpty)
            #expect(try app.mutations().isEmpty)
        }
    }
}
