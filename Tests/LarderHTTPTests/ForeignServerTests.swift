import Larder
import LarderHTTP
import LarderTestSupport
import Testing

@Suite(
    "Against a GraphQL server that is not ours",
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"),
    .timeLimit(.minutes(10))
)
struct ForeignServerTests {
    private func withTransport<Result>(
        options: HTTPTransport.Options = .init(), _ body: (HTTPTransport) async throws -> Result
    ) async throws -> Result {
        try await ForeignServer.run { server in
            try await HTTPTransport.withTransport(to: server.url, options: options, body)
        }
    }

    private func json(
        _ document: String, variables: String = "{}", name: String? = nil, from transport: HTTPTransport
    ) async throws -> JSONValue {
        let request = GraphQLRequest.query(document, name: name, variables: variables)
        let answer = try await transport.send(request, within: .ample)
        return try #require(JSONValue(answer.body))
    }

    @Test("A query with variables and fragments is answered, by POST and by GET", arguments: [false, true])
    func answers(byGET: Bool) async throws {
        let options = options { $0.method = byGET ? .getForQueries : .post }
        try await withTransport(options: options) { transport in
            let answer = try await json(
                """
                query Found($text: String!, $unit: Unit = PARSEC) {
                  search(text: $text) {
                    __typename
                    ... on Body { id }
                    ... on Star { ...Place distance(unit: $unit) }
                    ... on Planet { discovered star { ...Place } }
                  }
                }
                fragment Place on Star { coordinates constellation { code } }
                """, variables: #"{"text":"Proxima Centauri"}"#, name: "Found", from: transport
            )
            let coordinates: JSONValue = ["hours": 14.5, "degrees": -62.7]
            let star: JSONValue = ["coordinates": coordinates, "constellation": ["code": "CEN"]]
            #expect(
                answer == [
                    "data": [
                        "search": [
                            [
                                "__typename": "Star", "id": "s4", "coordinates": coordinates,
                                "constellation": ["code": "CEN"], "distance": 1.3,
                            ],
                            ["__typename": "Planet", "id": "p1", "discovered": "2016-08-24", "star": star],
                            ["__typename": "Planet", "id": "p2", "discovered": "2022-02-10", "star": star],
                        ]
                    ]
                ]
            )
        }
    }

    @Test("Data with errors, and errors without data at status 400, are answers")
    func answersErrors() async throws {
        try await withTransport { transport in
            let partial = try await transport.send(
                .query(#"{ star(id: "s8") { name age companions { id } } broken }"#, name: nil), within: .ample
            )
            #expect(partial.status == 200)
            let json = try #require(JSONValue(partial.body))
            #expect(json["data"] == ["star": ["name": "Betelgeuse", "age": nil, "companions": []], "broken": nil])
            #expect(json["errors", 0, "path"] == ["star", "age"])
            #expect(json["errors", 1, "extensions"] == ["code": "OUT_OF_ORDER"])

            for document in ["{ nope }", "{ brokenForced }", "{"] {
                let answer = try await transport.send(.query(document, name: nil), within: .ample)
                #expect(answer.status == 400)
                #expect(JSONValue(answer.body)?["errors"]?.array?.count == 1)
            }
        }
    }

    @Test("A mutation changes what a later query sees")
    func mutates() async throws {
        try await withTransport { transport in
            let mutation = GraphQLRequest(
                kind: .mutation, operationName: nil,
                document: "mutation ($id: ID!) { renameBody(id: $id, name: \"Wega\") { __typename name } }",
                documentHash: GraphQLRequest.someHash, variables: Array(#"{"id":"s1"}"#.utf8)
            )
            let answer = try await transport.send(mutation, within: .ample)
            #expect(JSONValue(answer.body) == ["data": ["renameBody": ["__typename": "Star", "name": "Wega"]]])
            let later = try await json(#"{ constellation(code: "LYR") { brightest { name } } }"#, from: transport)
            #expect(later == ["data": ["constellation": ["brightest": ["name": "Wega"]]]])
        }
    }

    @Test("A slow field is given up at the deadline, and the next query is answered")
    func timesOut() async throws {
        try await withTransport { transport in
            let slow = GraphQLRequest.query("{ sleep(ms: 20000) }", name: nil)
            let error = try await transportError {
                try await transport.send(slow, within: .milliseconds(200))
            }
            #expect(error.code == .timedOut)
            let answer = try await json("{ sleep(ms: 1) }", from: transport)
            #expect(answer == ["data": ["sleep": 1]])
        }
    }

    @Test("A server that has ended is unreachable")
    func reportsEnd() async throws {
        try await ForeignServer.run { server in
            try await HTTPTransport.withTransport(to: server.url) { transport in
                let answer = try await json("{ sleep(ms: 0) }", from: transport)
                #expect(answer == ["data": ["sleep": 0]])
                await server.stop()
                #expect(await !server.isRunning)
                let error = try await transportError {
                    try await transport.send(.query("{ sleep(ms: 0) }", name: nil), within: .ample)
                }
                #expect(error.code == .unreachable || error.code == .interrupted)
            }
        }
    }
}
