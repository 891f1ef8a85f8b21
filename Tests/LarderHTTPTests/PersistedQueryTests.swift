import Larder
import LarderHTTP
import Testing

@Suite("Persisted queries", .timeLimit(.minutes(10)))
struct PersistedQueryTests {
    private static let notFound =
        #"{"errors":[{"message":"PersistedQueryNotFound","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}]}"#
    private static let notSupported = #"{"errors":[{"message":"PersistedQueryNotSupported"}]}"#
    private static let persisted: JSONValue = [
        "persistedQuery": ["version": 1, "sha256Hash": .string(GraphQLRequest.someHash)]
    ]

    private static let automatic = options { $0.persistedQueries = .automatic }

    @Test("A query that the server knows is sent by its hash alone")
    func sendsHash() async throws {
        try await withServer(options: Self.automatic) { server, transport in
            try await expect(nameAnswer, from: transport, for: .query())
            #expect(server.requests.map(\.json) == [["operationName": "Name", "extensions": Self.persisted]])
        }
    }

    @Test("A query that the server does not know is sent again with its text", arguments: [200, 400])
    func resendsText(status: Int) async throws {
        try await withServer(options: Self.automatic) { request in
            request.json["query"] == nil ? .json(Self.notFound, status: .init(statusCode: status)) : .json(nameAnswer)
        } _: { server, transport in
            try await expect(nameAnswer, from: transport, for: .query())
            #expect(
                server.requests.map(\.json) == [
                    ["operationName": "Name", "extensions": Self.persisted],
                    ["operationName": "Name", "query": "query Name { name }", "extensions": Self.persisted],
                ]
            )
        }
    }

    @Test("A server without persisted queries is asked by hash only once")
    func remembersRefusal() async throws {
        try await withServer(options: Self.automatic) { request in
            request.json["query"] == nil ? .json(Self.notSupported) : .json(nameAnswer)
        } _: { server, transport in
            try await expect(nameAnswer, from: transport, for: .query())
            try await expect(nameAnswer, from: transport, for: .query())
            let text: [String: JSONValue] = ["operationName": "Name", "query": "query Name { name }"]
            #expect(
                server.requests.map(\.json) == [["operationName": "Name", "extensions": Self.persisted], text, text]
            )
        }
    }

    @Test("A mutation is sent with its text")
    func sendsMutationsWithText() async throws {
        try await withServer(options: Self.automatic) { server, transport in
            _ = try await transport.send(.mutation(), within: .ample)
            #expect(
                server.requests.map(\.json) == [
                    ["operationName": "Rename", "query": "mutation Rename { rename }"]
                ])
        }
    }

    @Test("By GET, the hash is in the URL, and so is the text the second time")
    func getsHash() async throws {
        let options = options {
            $0.persistedQueries = .automatic
            $0.method = .getForQueries
        }
        try await withServer(options: options) { request in
            request.parameters["query"] == nil ? .json(Self.notFound) : .json(nameAnswer)
        } _: { server, transport in
            try await expect(nameAnswer, from: transport, for: .query())
            #expect(server.requests.map(\.method) == [.GET, .GET])
            #expect(server.requests.map { $0.parameters["query"] } == [nil, "query Name { name }"])
            let extensions = server.requests.map { JSONValue(($0.parameters["extensions"] ?? "").utf8) }
            #expect(extensions == [Self.persisted, Self.persisted])
        }
    }

    @Test("A trusted document never goes as text, and the server's refusal is the answer")
    func sendsTrustedDocumentsByHash() async throws {
        let options = options { $0.persistedQueries = .trustedDocuments }
        try await withServer(options: options) { _ in
            .json(Self.notFound)
        } _: { server, transport in
            try await expect(Self.notFound, from: transport, for: .query())
            try await expect(Self.notFound, from: transport, for: .mutation())
            #expect(server.requests.map { $0.json["query"] } == [nil, nil])
            #expect(server.requests.map { $0.json["extensions"] } == [Self.persisted, Self.persisted])
        }
    }

    @Test("Data that only mentions the refusal is data")
    func isNotMisled() async throws {
        let answer = #"{"data":{"name":"PersistedQueryNotFound"},"errors":[{"message":"PersistedQueryNotFound"}]}"#
        try await withServer(options: Self.automatic) { _ in
            .json(answer)
        } _: { server, transport in
            try await expect(answer, from: transport, for: .query())
            #expect(server.requests.count == 1)
        }
    }

    @Test(
        "A hash that is none is refused",
        arguments: [
            "\"}", String(repeating: "g", count: 64), String(repeating: "A", count: 64),
            String(repeating: "a", count: 63), String(repeating: "0", count: 65),
        ])
    func refusesBadHash(hash: String) async throws {
        try await withServer(options: Self.automatic) { server, transport in
            var request = GraphQLRequest.query()
            request.documentHash = hash
            let error = try await transportError { try await transport.send(request, within: .ample) }
            #expect(error.code == .unusableRequest)
            #expect(server.requests.isEmpty)
        }
    }

    @Test(
        "A server says by a message or by a code alone that it lacks a query, or any",
        arguments: [
            (#"{"message":"PersistedQueryNotFound"}"#, 4),
            (#"{"message":"no","extensions":{"code":"PERSISTED_QUERY_NOT_FOUND"}}"#, 4),
            (#"{"message":"PersistedQueryNotSupported"}"#, 3),
            (#"{"message":"no","extensions":{"code":"PERSISTED_QUERY_NOT_SUPPORTED"}}"#, 3),
        ], ["", #""data":null,"#])
    func readsRefusals(refusal: (error: String, requestCount: Int), before: String) async throws {
        let (error, requestCount) = refusal
        try await withServer(options: Self.automatic) { request in
            .json(request.json["query"] == nil ? #"{\#(before)"errors":[\#(error)]}"# : nameAnswer)
        } _: { server, transport in
            for _ in 0..<2 { try await expect(nameAnswer, from: transport, for: .query()) }
            #expect(server.requests.count == requestCount)
        }
    }
}
