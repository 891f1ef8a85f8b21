import Foundation
import Larder
import LarderHTTP
import Synchronization
import Testing

@Suite("The request that is sent", .timeLimit(.minutes(10)))
struct RequestTests {
    @Test("A query is a POST with its name, text and variables as JSON")
    func postsJSON() async throws {
        try await withServer { server, transport in
            let document = "query Name($a: String) {\n\t\"\"\"é \\ \u{1}\"\"\" name }"
            let answer = try await transport.send(
                .query(document, variables: #"{"a":"\"x\"","b":[1,null]}"#), within: .ample
            )
            #expect(answer == GraphQLAnswer(body: Array(nameAnswer.utf8), status: 200))
            let request = try #require(server.requests.first)
            #expect(request.method == .POST)
            #expect(request.uri == "/graphql")
            #expect(request.headers["content-type"] == ["application/json"])
            #expect(request.headers["accept"] == ["application/graphql-response+json, application/json;q=0.9"])
            #expect(
                request.json == [
                    "operationName": "Name", "query": .string(document),
                    "variables": ["a": "\"x\"", "b": [1, nil]],
                ]
            )
        }
    }

    @Test("A transport tells repeats as its options say, and by itself not at all")
    func tellsRepeats() async throws {
        let told = options { $0.idempotency = .header(name: "Idempotency-Key") }
        try await withServer(options: told) { _, transport in
            #expect(transport.idempotency == .header(name: "Idempotency-Key"))
        }
        try await withServer { _, transport in
            #expect(transport.idempotency == nil)
        }
    }

    @Test("An anonymous operation without variables is sent as its text alone")
    func leavesOutWhatIsNotThere() async throws {
        try await withServer { server, transport in
            _ = try await transport.send(.query("{ name }", name: nil), within: .ample)
            #expect(server.requests.first?.json == ["query": "{ name }"])
        }
    }

    @Test("A query goes by GET where asked, and a mutation still by POST")
    func getsQueries() async throws {
        let options = options { $0.method = .getForQueries }
        try await withServer(options: options) { server, transport in
            _ = try await transport.send(
                .query("query Name { name(a: \"ü&=+ #?\") }", variables: #"{"a":"100 %"}"#), within: .ample
            )
            _ = try await transport.send(.mutation(), within: .ample)
            try #require(server.requests.count == 2)
            #expect(server.requests[0].method == .GET)
            #expect(server.requests[0].body.isEmpty)
            #expect(server.requests[0].headers["content-type"].isEmpty)
            #expect(
                server.requests[0].parameters == [
                    "operationName": "Name", "query": "query Name { name(a: \"ü&=+ #?\") }",
                    "variables": #"{"a":"100 %"}"#,
                ]
            )
            #expect(server.requests[1].method == .POST)
        }
    }

    @Test("A query whose URL would be too long goes by POST although GET was asked for")
    func postsWhatIsTooLongForURL() async throws {
        let options = options {
            $0.method = .getForQueries
            $0.maximumURLLength = 300
        }
        try await withServer(options: options) { server, transport in
            let long = "query Name { " + String(repeating: "name ", count: 100) + "}"
            _ = try await transport.send(.query(long), within: .ample)
            _ = try await transport.send(.query(), within: .ample)
            #expect(server.requests.map(\.method) == [.POST, .GET])
        }
    }

    @Test("A URL may be just as long as is allowed")
    func longestURL() async throws {
        let limit = 300
        let options = options {
            $0.method = .getForQueries
            $0.maximumURLLength = limit
        }
        try await withServer(options: options) { server, transport in
            func document(_ count: Int) -> String { "query Name { \(String(repeating: "n", count: count)) }" }
            _ = try await transport.send(.query(document(1)), within: .ample)
            let first = try #require(server.requests.first)
            let origin = transport.endpoint.absoluteString.utf8.count - transport.endpoint.path().utf8.count
            let room = limit - origin - first.uri.utf8.count
            _ = try await transport.send(.query(document(1 + room)), within: .ample)
            _ = try await transport.send(.query(document(2 + room)), within: .ample)
            #expect(server.requests.map(\.method) == [.GET, .GET, .POST])
        }
    }

    @Test("A query in the endpoint's URL is kept")
    func keepsEndpointQuery() async throws {
        try await ScriptedServer.run { _ in
            .json(nameAnswer)
        } _: { server in
            let endpoint = server.url.appending(queryItems: [.init(name: "tenant", value: "7")])
            let options = options { $0.method = .getForQueries }
            try await HTTPTransport.withTransport(to: endpoint, options: options) { transport in
                _ = try await transport.send(.query(), within: .ample)
                _ = try await transport.send(.mutation(), within: .ample)
            }
            try #require(server.requests.count == 2)
            #expect(server.requests[0].parameters["tenant"] == "7")
            #expect(server.requests[0].parameters["operationName"] == "Name")
            #expect(server.requests[1].uri == "/graphql?tenant=7")
        }
    }

    @Test("Headers come from the options, the closure and the request, the later replacing the earlier")
    func gathersHeaders() async throws {
        let calls = Counter()
        let options = options {
            $0.headers = [.init(name: "X-One", value: "options"), .init(name: "X-Two", value: "options")]
            $0.headersForRequest = { request in
                calls.add()
                return [
                    .init(name: "x-two", value: "closure \(request.operationName ?? "") \(calls.count)"),
                    .init(name: "X-Three", value: "closure"),
                ]
            }
        }
        try await withServer(options: options) { server, transport in
            let own = GraphQLRequest.Header(name: "X-THREE", value: "request")
            _ = try await transport.send(.query(headers: [own]), within: .ample)
            _ = try await transport.send(.query(), within: .ample)
            try #require(server.requests.count == 2)
            #expect(server.requests[0].headers["X-One"] == ["options"])
            #expect(server.requests[0].headers["X-Two"] == ["closure Name 1"])
            #expect(server.requests[0].headers["X-Three"] == ["request"])
            #expect(server.requests[1].headers["X-Two"] == ["closure Name 2"])
            #expect(server.requests[1].headers["X-Three"] == ["closure"])
        }
    }

    @Test("A transport that is made of a URL and options sends the headers that the options give")
    func byURL() async throws {
        let options = options { $0.headersForRequest = { _ in [.init(name: "Authorization", value: "Bearer t")] } }
        try await ScriptedServer.run { _ in
            .json(nameAnswer)
        } _: { server in
            _ = try await HTTPTransport.http(server.url, options: options).send(.query(), within: .ample)
            #expect(server.requests.map { $0.headers["Authorization"] } == [["Bearer t"]])
        }
    }

    @Test(
        "A header that HTTP does not allow is refused before anything is sent, and its value is not told",
        arguments: [
            GraphQLRequest.Header(name: "Authorization", value: "secret\r\nX-Evil: 1"),
            GraphQLRequest.Header(name: "X-Zero", value: "secret\0"),
            GraphQLRequest.Header(name: "X Y", value: "secret"), GraphQLRequest.Header(name: "", value: "secret"),
            GraphQLRequest.Header(name: "X:\n", value: "secret"),
            GraphQLRequest.Header(name: "content-length", value: "7"),
            GraphQLRequest.Header(name: "Transfer-Encoding", value: "secret"),
        ]
    )
    func refusesBadHeaders(_ header: GraphQLRequest.Header) async throws {
        try await withServer { server, transport in
            let request = GraphQLRequest.query(headers: [header])
            let error = try await transportError { try await transport.send(request, within: .ample) }
            #expect(error.code == .unusableRequest)
            #expect(!error.description.contains("secret"))
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A header that one source gives twice is sent twice")
    func headerGivenTwice() async throws {
        try await withServer { server, transport in
            let headers = ["a", "b"].map { GraphQLRequest.Header(name: "X-Way", value: $0) }
            _ = try await transport.send(.query(headers: headers), within: .ample)
            #expect(server.requests.first?.headers["x-way"] == ["a", "b"])
        }
    }

    @Test(
        "The content type that is signed is the one that is sent",
        arguments: [nil, "application/graphql+json"] as [String?])
    func signedType(own: String?) async throws {
        let headers = own.map { [GraphQLRequest.Header(name: "Content-Type", value: $0)] } ?? []
        try await withServer { server, transport in
            let signed = Mutex<[String]>([])
            let signer = RequestSigner(identity: "a") { _, headers, _ in
                signed.withLock { $0 = headers.map(\.value) }
                return [.init(name: "X-Proof", value: "p")]
            }
            _ = try await transport.send(.query(headers: headers), deadline: .now + .ample, signer: signer)
            let sent = try #require(server.requests.first).headers["Content-Type"]
            #expect(sent == [own ?? "application/json"])
            #expect(signed.withLock(\.self) == sent)
        }
    }

    @Test("An error that the closure for headers throws is the error of the request")
    func reportsHeaderErrors() async throws {
        struct NoToken: Error {}
        let thrown: [(any Error & Sendable, TransportError.Code)] = [
            (NoToken(), .notPrepared), (CancellationError(), .notPrepared),
            (TransportError(.unreachable, "no sign-in server"), .unreachable),
        ]
        for (cause, code) in thrown {
            let options = options { $0.headersForRequest = { _ in throw cause } }
            try await withServer(options: options) { server, transport in
                let error = try await transportError { try await transport.send(.query(), within: .ample) }
                #expect(error.code == code)
                #expect(server.requests.isEmpty)
            }
        }
    }

    @Test("A subscription is refused")
    func refusesSubscriptions() async throws {
        try await withServer { server, transport in
            var request = GraphQLRequest.query("subscription S { s }", name: "S")
            request.kind = .subscription
            let error = try await transportError { try await transport.send(request, within: .ample) }
            #expect(error.code == .unusableRequest)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A fragment of the endpoint is not sent, and takes nothing of the query with it")
    func leavesFragment() async throws {
        try await ScriptedServer.run { _ in
            .json(nameAnswer)
        } _: { server in
            let url = try #require(URL(string: "\(server.url)#part"))
            let options = options { $0.method = .getForQueries }
            try await HTTPTransport.withTransport(to: url, options: options) { transport in
                _ = try await transport.send(.query(), within: .ample)
                #expect(server.requests.map { $0.parameters["query"] } == ["query Name { name }"])
            }
        }
    }

    @Test("What the options say of repeats and of refusals is what the queue is told")
    func told() throws {
        let endpoint = try #require(URL(string: "http://127.0.0.1/graphql"))
        let refusals = ServerRefusals(statuses: [409], errorKinds: ["BUSY"])
        let options = options { ($0.refusals, $0.idempotency) = (refusals, .variable(name: "key")) }
        let transport = HTTPTransport(endpoint: endpoint, client: .shared, options: options)
        #expect(transport.refusals == refusals && transport.idempotency == .variable(name: "key"))
    }

    @Test("A signer is told the date of each answer, a refusal's and a success's", arguments: [200, 403])
    func toldDates(status: Int) async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let dates = Mutex<[String?]>([])
        try await withServer { _ in
            .json(nameAnswer, status: .init(statusCode: status), headers: ["Date": date])
        } _: { _, transport in
            let signer = RequestSigner(
                identity: "a", heard: { heard in dates.withLock { $0.append(heard) } }, headers: { _, _, _ in [] })
            _ = try await transport.send(.query(), deadline: .now + .ample, signer: signer)
        }
        #expect(dates.withLock { $0 } == [date])
    }

    @Test("The program's headers replace the content type and the types that the transport accepts by itself")
    func ownTypes() async throws {
        let own = [
            GraphQLRequest.Header(name: "accept", value: "application/json"),
            GraphQLRequest.Header(name: "CONTENT-TYPE", value: "application/graphql+json"),
        ]
        try await withServer(options: options { $0.headers = own }) { server, transport in
            _ = try await transport.send(.query(), within: .ample)
            let sent = try #require(server.requests.first).headers
            #expect(sent["Accept"] == ["application/json"])
            #expect(sent["Content-Type"] == ["application/graphql+json"])
        }
    }
}
