import Foundation
import Larder
import LarderHTTP
import RecipeServer
import Testing

@Suite("The recipe server", .timeLimit(.minutes(10)))
struct RecipeServerTests {
    /// The JSON that a new server answers to one operation after the other.
    private func answers(_ documents: String..., variables: String = "{}") async throws -> [JSONValue] {
        try await withRecipes { _, transport in
            var answers: [JSONValue] = []
            for document in documents {
                let request = GraphQLRequest.query(document, name: nil, variables: variables)
                let answer = try await transport.send(request, within: .ample)
                answers.append(try #require(JSONValue(answer.body)))
            }
            return answers
        }
    }

    private func withRecipes<Result>(
        _ body: (RecipeServer, HTTPTransport) async throws -> Result
    ) async throws -> Result {
        let server = try await RecipeServer.start()
        let outcome: Swift.Result<Result, any Error>
        do {
            outcome = .success(
                try await HTTPTransport.withTransport(to: server.url) { try await body(server, $0) }
            )
        } catch {
            outcome = .failure(error)
        }
        try await server.stop()
        return try outcome.get()
    }

    @Test("An object comes with its relations, in the order asked for")
    func answersAnObject() async throws {
        try await withRecipes { server, transport in
            let document = """
                query Recipe($id: ID!) {
                  recipe(id: $id) {
                    __typename id name: title minutes rating ratingCount createdAt author { id name }
                    ingredients { amount unit ingredient { id name isVegan } }
                    comments(first: 1) { items { id stars recipe { id } } next total }
                    steps { id number }
                  }
                }
                """
            // An integer is as good an ID as a string.
            let request = GraphQLRequest.query(document, name: "Recipe", variables: #"{"id":2}"#)
            let answer = try await transport.send(request, within: .ample)
            #expect(answer.status == 200)
            #expect(answer.text == Self.secondRecipe)
            #expect(server.requestCount == 1)
            #expect(server.objectCount == 9_730)
        }
    }

    @Test("Pages follow each other by their cursor")
    func pages() async throws {
        let answer = try await answers(
            """
            {
              a: recipes(first: 2) { ...P } b: recipes(first: 2, after: "2") { ...P } c: recipes(after: "999") { ...P }
            }
            fragment P on RecipePage { items { title } next total }
            """
        )
        #expect(
            answer == [
                [
                    "data": [
                        "a": [
                            "items": [
                                ["title": "Grandmother's white cabbage gratin"], ["title": "Spiced tofu dumplings"],
                            ], "next": "2", "total": 1_000,
                        ],
                        "b": [
                            "items": [["title": "Pickled lime fritters"], ["title": "Smoky onion salad"]],
                            "next": "4", "total": 1_000,
                        ],
                        "c": ["items": [["title": "Fragrant walnuts salad"]], "next": nil, "total": 1_000],
                    ]
                ]
            ]
        )
    }

    @Test("An interface and a union answer by what each object is")
    func answersAbstractTypes() async throws {
        let answer = try await answers(
            """
            {
              latest(limit: 1) { __typename id createdAt ... on Recipe { title } ... on Comment { text } }
              search(text: "ra", limit: 1) { __typename ... on Recipe { title } ... on Author { name } }
              authors: search(text: "ravi", limit: 1) { __typename ... on Recipe { title } ... on Author { name } }
            }
            """
        )
        #expect(
            answer == [
                [
                    "data": [
                        "latest": [
                            [
                                "__typename": "Comment", "id": "3591", "createdAt": "2024-03-06T10:41:00Z",
                                "text": "My children asked for seconds!",
                            ]
                        ],
                        "search": [["__typename": "Recipe", "title": "Grandmother's white cabbage gratin"]],
                        "authors": [["__typename": "Author", "name": "Ravi Ito"]],
                    ]
                ]
            ]
        )
    }

    @Test("Filters, defaults of variables, and conditions are honoured")
    func coercesVariables() async throws {
        let answer = try await answers(
            """
            query Q($cuisine: Cuisine = NORDIC, $minutes: Int, $all: Boolean!) {
              recipes(first: 1, filter: {cuisine: $cuisine, maximumMinutes: $minutes}) {
                total @include(if: $all)
                items @skip(if: $all) { id }
              }
            }
            """, variables: #"{"all":true,"minutes":30}"#
        )
        #expect(answer == [["data": ["recipes": ["total": 13]]]])
    }

    @Test("A field that fails is null beside its error, and an unknown id is null without one")
    func answersDataWithErrors() async throws {
        let answer = try await answers(
            #"{ recipe(id: "25") { id nutrition { kilocalories } } none: recipe(id: "0") { id } }"#
        )
        #expect(
            answer == [
                [
                    "data": ["recipe": ["id": "25", "nutrition": nil], "none": nil],
                    "errors": [
                        [
                            "message": "The nutrition of this recipe cannot be computed.",
                            "locations": [["line": 1, "column": 25]], "path": ["recipe", "nutrition"],
                            "extensions": ["code": "NOT_COMPUTED"],
                        ]
                    ],
                ]
            ]
        )
    }

    @Test("A field that must not be null takes what surrounds it with it when it fails")
    func propagatesNull() async throws {
        let answer = try await answers(
            #"{ recipe(id: "7") { id comments(first: 5000) { total } } other: recipe(id: "8") { id } }"#
        )
        #expect(answer[0]["data"] == ["recipe": nil, "other": ["id": "8"]])
        #expect(answer[0]["errors", 0, "path"] == ["recipe", "comments"])
    }

    @Test("A mutation's change is seen afterwards, and one that fails changes nothing")
    func mutates() async throws {
        let answers = try await answers(
            #"mutation { renameRecipe(id: 7, title: "New \u00e9") { id title } rateRecipe(id: 7, stars: 6) { id } }"#,
            """
            mutation {
              addComment(recipe: "7", author: "1", text: "Good", stars: 5) { id stars createdAt recipe { ratingCount } }
            }
            """,
            #"{ recipe(id: "7") { title ratingCount comments(after: "5") { items { text author { id } } } } }"#
        )
        #expect(answers[0]["data"] == ["renameRecipe": ["id": "7", "title": "New é"], "rateRecipe": nil])
        #expect(answers[0]["errors", 0, "path"] == ["rateRecipe"])
        #expect(
            answers[1] == [
                "data": [
                    "addComment": [
                        "id": "3592", "stars": 5, "createdAt": "2024-03-06T10:42:00Z", "recipe": ["ratingCount": 4],
                    ]
                ]
            ]
        )
        #expect(
            answers[2] == [
                "data": [
                    "recipe": [
                        "title": "New é", "ratingCount": 4,
                        "comments": ["items": [["text": "Good", "author": ["id": "1"]]]],
                    ]
                ]
            ]
        )
    }

    @Test("A repeat of a mutation that took effect is answered as it was; one that was refused may come again")
    func tellsRepeats() async throws {
        try await withRecipes { server, transport in
            func rate(_ stars: Int, key: String) async throws -> JSONValue? {
                var request = GraphQLRequest.query(
                    "mutation { rateRecipe(id: 7, stars: \(stars)) { ratingCount } }", name: nil)
                request.kind = .mutation
                request.headers = [.init(name: RecipeServer.idempotencyHeader, value: key)]
                return JSONValue(try await transport.send(request, within: .ample).body)
            }
            #expect(try await rate(6, key: "a")?["errors", 0, "path"] == ["rateRecipe"])
            #expect(server.effectCount == 0)
            let answer = try await rate(5, key: "a")
            #expect(try await rate(5, key: "a") == answer)
            #expect(server.effectCount == 1)
            #expect(try await rate(5, key: "b") != answer)
            #expect((server.mutationCount, server.effectCount) == (4, 2))
        }
    }

    @Test("Started again it listens at its address, with what it held and has counted")
    func startsAgain() async throws {
        try await withRecipes { server, transport in
            var rename = GraphQLRequest.query(#"mutation { renameRecipe(id: 1, title: "x") { id } }"#, name: nil)
            rename.kind = .mutation
            _ = try await transport.send(rename, within: .ample)
            try await server.stop()
            try await server.startAgain()
            try await server.startAgain()
            let query = GraphQLRequest.query("{ recipe(id: 1) { title } }", name: nil)
            // Connections of before may not be known to be closed yet.
            try await HTTPTransport.withTransport(to: server.url) { new in
                try await expect(#"{"data":{"recipe":{"title":"x"}}}"#, from: new, for: query)
            }
            #expect((server.requestCount, server.mutationCount, server.effectCount) == (2, 1, 1))
        }
    }

    @Test(
        "An operation that cannot be executed is an error without data, with status 400",
        arguments: [
            "{", "{ nope }", "{ recipe { id } }", "{ recipe(id: 1) }", "{ recipe(id: 1) { id { x } } }",
            "{ recipe(id: 1, x: 2) { id } }", "{ recipe(id: $id) { id } }",
            "query ($id: ID!) { recipe(id: $id) { id } }",
            "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }", "{ ...None }",
            "{ ... on None { id } }", "query A { latest { id } } query B { latest { id } }",
            "subscription { latest { id } }", "query ($a: Recipe) { latest { id } }", "{ latest @none { id } }",
        ]
    )
    func refusesRequests(document: String) async throws {
        try await withRecipes { _, transport in
            let answer = try await transport.send(.query(document, name: nil), within: .ample)
            let json = try #require(JSONValue(answer.body))
            #expect(answer.status == 400)
            #expect(json["errors"]?.array?.isEmpty == false)
            #expect(json["data"] == nil)
        }
    }

    @Test("Queries are taken by GET, and mutations are not")
    func takesGET() async throws {
        let server = try await RecipeServer.start()
        let options = options { $0.method = .getForQueries }
        try await HTTPTransport.withTransport(to: server.url, options: options) { transport in
            let query = GraphQLRequest.query("{ recipe(id: 1) { id } }", name: nil)
            try await expect(#"{"data":{"recipe":{"id":"1"}}}"#, from: transport, for: query)
            var mutation = query
            mutation.document = #"mutation { renameRecipe(id: 1, title: "x") { id } }"#
            let error = try await transportError { try await transport.send(mutation, within: .ample) }
            #expect(error.status == 405)
        }
        try await server.stop()
    }

    @Test("After it has stopped, twice, it is unreachable, and connections it had are closed")
    func stops() async throws {
        try await withRecipes { server, transport in
            let query = GraphQLRequest.query("{ recipe(id: 1) { id } }", name: nil)
            try await expect(#"{"data":{"recipe":{"id":"1"}}}"#, from: transport, for: query)
            try await server.stop()
            try await server.stop()
            let error = try await transportError { try await transport.send(query, within: .ample) }
            #expect(error.code == .unreachable || error.code == .interrupted)
        }
    }

    @Test("An answer held back longer than the deadline is not waited for")
    func holdsBack() async throws {
        try await withRecipes { server, transport in
            server.latency = .seconds(30)
            let query = GraphQLRequest.query("{ recipe(id: 1) { id } }", name: nil)
            let error = try await transportError {
                try await transport.send(query, within: .milliseconds(100))
            }
            #expect(error.code == .timedOut)
        }
    }

    private static let secondRecipe =
        #"{"data":{"recipe":{"__typename":"Recipe","id":"2","name":"Spiced tofu dumplings","minutes":115,"#
        + #""rating":1.75,"ratingCount":4,"createdAt":"2024-01-01T01:41:00Z","#
        + #""author":{"id":"39","name":"Dalia Rossi"},"ingredients":["#
        + #"{"amount":112.5,"unit":"GRAM","ingredient":{"id":"25","name":"tofu","isVegan":true}},"#
        + #"{"amount":3.0,"unit":"PIECE","ingredient":{"id":"4","name":"carrot","isVegan":true}},"#
        + #"{"amount":87.5,"unit":"GRAM","ingredient":{"id":"18","name":"rice","isVegan":true}},"#
        + #"{"amount":150.0,"unit":"GRAM","ingredient":{"id":"54","name":"cod","isVegan":false}},"#
        + #"{"amount":187.5,"unit":"GRAM","ingredient":{"id":"13","name":"kale","isVegan":true}},"#
        + #"{"amount":1.0,"unit":"PIECE","ingredient":{"id":"1","name":"onion","isVegan":true}}],"#
        + #""comments":{"items":[{"id":"8","stars":2,"recipe":{"id":"2"}}],"next":"1","total":5},"#
        + #""steps":[{"id":"6","number":1},{"id":"7","number":2},{"id":"8","number":3},{"id":"9","number":4},"#
        + #"{"id":"10","number":5},{"id":"11","number":6},{"id":"12","number":7}]}}}"#
}
