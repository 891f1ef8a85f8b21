import Foundation
import Larder
import LarderTestSupport
import LarderURLSession
import Testing

@Suite("Over URLSession", .timeLimit(.minutes(10)))
struct URLSessionTests {

    private func overURLSession<Result>(
        _ script: @escaping ScriptedServer.Script,
        _ change: (inout URLSessionTransport.Options) -> Void,
        _ body: (ScriptedServer, URLSessionTransport) async throws -> Result
    ) async throws -> Result {
        var options = URLSessionTransport.Options()
        change(&options)
        return try await ScriptedServer.run(script) { server in
            try await body(server, URLSessionTransport(endpoint: server.url, options: options))
        }
    }

    private func overURLSession<Result>(
        _ script: @escaping ScriptedServer.Script,
        _ body: (ScriptedServer, URLSessionTransport) async throws -> Result
    ) async throws -> Result {
        try await overURLSession(script, { _ in }, body)
    }

    private func error(
        of request: GraphQLRequest = .query(), from transport: URLSessionTransport,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> TransportError {
        try await transportError(sourceLocation: sourceLocation) {
            try await transport.send(request, within: .ample)
        }
    }

    @Test("A query and a mutation are sent with their headers, as every transport sends them, and are answered")
    func sends() async throws {
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: {
            $0.headers = [.init(name: "Authorization", value: "one"), .init(name: "X-Name", value: "a")]
            $0.headersForRequest = { _ in [.init(name: "authorization", value: "two")] }
        } _: { server, transport in
            let own = GraphQLRequest.Header(name: "AUTHORIZATION", value: "three")
            for request in [GraphQLRequest.query(variables: #"{"a":"\u00e9"}"#, headers: [own]), .mutation()] {
                let answer = try await transport.send(request, within: .ample)
                #expect(answer == GraphQLAnswer(body: Array(nameAnswer.utf8), status: 200))
            }
            let first = try #require(server.requests.first)
            #expect(first.headers["Authorization"] == ["three"])
            #expect(server.requests.last?.headers["Authorization"] == ["two"])
            #expect(first.headers["X-Name"] == ["a"])
            #expect(first.headers["Content-Type"] == ["application/json"])
            #expect(
                String(decoding: first.body, as: UTF8.self)
                    == #"{"operationName":"Name","query":"query Name { name }","variables":{"a":"\u00e9"}}"#)
        }
    }

    @Test("Headers of one name that are given together are all sent")
    func repeatedHeader() async throws {
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: {
            $0.headers = [.init(name: "X-Name", value: "a"), .init(name: "x-name", value: "b")]
        } _: { server, transport in
            _ = try await transport.send(.query(), within: .ample)
            let values = try #require(server.requests.first).headers["X-Name"].flatMap { $0.split(separator: ",") }
            #expect(values.map { $0.trimmingCharacters(in: .whitespaces) } == ["a", "b"])
        }
    }

    @Test("A refused connection is unreachable, and nothing of a mutation has left")
    func refused() async throws {
        let url = try await ScriptedServer.run({ _ in .hang }) { $0.url }
        let error = try await error(of: .mutation(), from: URLSessionTransport(endpoint: url))
        #expect(error.code == .unreachable && error.phase == .beforeSending)
    }

    @Test("A host without an address is unreachable, and nothing of a mutation has left")
    func unknownHost() async throws {
        let url = try #require(URL(string: "http://no-such-host.invalid/graphql"))
        let error = try await error(of: .mutation(), from: URLSessionTransport(endpoint: url))
        #expect(error.code == .unreachable && error.phase == .beforeSending)
    }

    @Test(
        "A URL that cannot be sent to, or names a user, is an unusable request, and the password is not told",
        arguments: ["ftp://127.0.0.1/graphql", "/graphql", "http:///graphql", "http://ada:hush@127.0.0.1:1/graphql"])
    func badURL(text: String) async throws {
        let url = try #require(URL(string: text))
        let error = try await error(from: URLSessionTransport(endpoint: url))
        #expect(error.code == .unusableRequest && error.phase == .beforeSending)
        #expect(!"\(error)".contains("hush"))
    }

    @Test("A header with a line break is refused, and nothing is sent")
    func badHeader() async throws {
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: {
            $0.headers = [.init(name: "X", value: "a\r\nY: b")]
        } _: { server, transport in
            let error = try await error(from: transport)
            #expect(error.code == .unusableRequest)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A connection that is cut before the answer is an interruption, and the mutation may have taken effect")
    func cut() async throws {
        try await overURLSession { _ in
            .cut
        } _: { server, transport in
            let error = try await error(of: .mutation(), from: transport)
            #expect(error.code == .interrupted && error.phase == .sending)
            #expect(server.requests.count == 1, "it is not sent twice")
        }
    }

    @Test("A mutation is sent once, where a kept connection breaks under it")
    func keptConnection() async throws {
        try await overURLSession { request in
            request.number < 3 ? .json(nameAnswer) : .cut
        } _: { server, transport in
            for _ in 0..<3 { _ = try await transport.send(.query(), within: .ample) }
            let error = try await error(of: .mutation(), from: transport)
            #expect(error.phase == .sending)
            #expect(server.requests.count == 4)
        }
    }

    @Test("A connection that is cut within the body is an interruption with the status", arguments: [200, 500])
    func cutInBody(status: Int) async throws {
        try await overURLSession { _ in
            var reply = Reply.json(#"{"data":"#, status: .init(statusCode: status))
            reply.headers.add(name: "Content-Length", value: "1000")
            reply.ending = .cut
            return reply
        } _: { _, transport in
            let error = try await error(of: .mutation(), from: transport)
            #expect(error.code == .interrupted && error.status == status && error.phase == .sending)
        }
    }

    @Test("A redirect is not followed, and the error says where it points", arguments: [301, 302, 303, 307, 308])
    func redirect(status: Int) async throws {
        try await overURLSession { _ in
            .json("", status: .init(statusCode: status), headers: ["Location": "http://elsewhere.invalid/graphql"])
        } _: {
            $0.headers = [.init(name: "Authorization", value: "secret")]
        } _: { server, transport in
            let error = try await error(of: .mutation(), from: transport)
            #expect(error.code == .status && error.status == status)
            #expect(error.message.contains("http://elsewhere.invalid/graphql"))
            #expect(server.requests.count == 1)
        }
    }

    @Test("A refusal is a status with its body and its pause, and is not tried again", arguments: [401, 403, 503])
    func refusal(status: Int) async throws {
        try await overURLSession { _ in
            .json("no", status: .init(statusCode: status), headers: ["Retry-After": "3", "WWW-Authenticate": "Basic"])
        } _: { server, transport in
            let error = try await error(of: .mutation(), from: transport)
            #expect(error.code == .status && error.status == status)
            #expect(error.retryAfter == .seconds(3))
            #expect(error.body == Array("no".utf8))
            #expect(server.requests.count == 1)
        }
    }

    @Test("An answer that is longer than allowed is given up, and one that is as long is not")
    func limit() async throws {
        for chunked in [false, true] {
            try await overURLSession { request in
                let body = #"{"data":""# + String(repeating: "x", count: request.number == 0 ? 1_989 : 100_000) + #""}"#
                return .json(body, headers: chunked ? ["Transfer-Encoding": "chunked"] : [:])
            } _: {
                $0.maximumAnswerSize = 2_000
            } _: { _, transport in
                let whole = try await transport.send(.query(), within: .ample)
                #expect(whole.body.count == 2_000)
                let error = try await error(from: transport)
                #expect(error.code == .unusableAnswer && error.body.count == 1_024)
            }
        }
    }

    @Test("A server that never answers is given up in time, and its connection is closed")
    func timeOut() async throws {
        try await overURLSession { _ in
            .hang
        } _: { server, transport in
            let error = try await expectGivenUp(.mutation(), by: transport, at: server, after: .milliseconds(200))
            #expect(error?.phase == .sending)
        }
    }

    @Test("Cancelling the task closes the exchange at the server")
    func cancels() async throws {
        for request in [GraphQLRequest.query(), .mutation()] {
            try await overURLSession { _ in
                .hang
            } _: { server, transport in
                try await expectCancelled(request, by: transport, at: server)
            }
        }
    }

    @Test("What is cancelled before it is sent is not sent, and the error says so")
    func cancelledBefore() async throws {
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: { server, transport in
            let task = Task {
                try? await Task.sleep(for: .ample)
                return try await transport.send(.mutation(), within: .ample)
            }
            task.cancel()
            let error = try await transportError { try await task.value }
            #expect(error.code == .cancelled && error.phase == .beforeSending)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A time that is over sends nothing")
    func noTime() async throws {
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: { server, transport in
            let error = try await transportError { try await transport.send(.query(), within: .seconds(-1)) }
            #expect(error.code == .timedOut && error.phase == .beforeSending)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A cookie that the server sets is not sent back")
    func cookies() async throws {
        try await overURLSession { _ in
            .json(nameAnswer, headers: ["Set-Cookie": "a=b; Path=/"])
        } _: { server, transport in
            for _ in 0..<2 { _ = try await transport.send(.query(), within: .ample) }
            #expect(server.requests.allSatisfy { $0.headers["Cookie"].isEmpty })
        }
    }

    @Test("A queued mutation is carried out, and an answer over this transport is in the cache")
    func partition() async throws {
        try await overURLSession { request in
            .json(#"{"data":{"rename":"new"}}"#)
        } _: { server, _ in
            try await withTemporaryFolder { folder in
                let schema = try Schema(parsing: "type Query { name: String } type Mutation { rename: String }")
                let store = try Store.open(at: folder, schema: schema)
                let app = try store.partition(server: .urlSession(server.url))
                let receipt = try await app.enqueue(GraphQLOperation("mutation Rename { rename }"))
                try await MutationRunner(app).drain()
                #expect(try await receipt.outcome(within: .ample).isApplied)
                try store.close()
            }
        }
    }

    @Test("What the options say of repeats and of refusals is what the queue is told")
    func told() throws {
        let endpoint = try #require(URL(string: "http://127.0.0.1/graphql"))
        let refusals = ServerRefusals(statuses: [409], errorKinds: ["BUSY"])
        var options = URLSessionTransport.Options()
        (options.refusals, options.idempotency) = (refusals, .variable(name: "key"))
        let transport = URLSessionTransport(endpoint: endpoint, options: options)
        #expect(transport.refusals == refusals && transport.idempotency == .variable(name: "key"))
    }

    @Test("A subscription that is sent as a query is refused, and nothing is sent")
    func subscription() async throws {
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: { server, transport in
            var request = GraphQLRequest.query("subscription S { s }", name: "S")
            request.kind = .subscription
            let error = try await error(of: request, from: transport)
            #expect(error.code == .unusableRequest)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("Where the closure for headers throws, nothing is sent, and the error says so with its cause")
    func withoutHeaders() async throws {
        struct Unsaid: Error {}
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: {
            $0.headersForRequest = { _ in throw Unsaid() }
        } _: { server, transport in
            let error = try await error(of: .mutation(), from: transport)
            #expect(error.code == .notPrepared && error.phase == .beforeSending)
            #expect(error.cause is Unsaid)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A request asks for an answer in JSON, and for none in parts")
    func accepted() async throws {
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: { server, transport in
            for request in [GraphQLRequest.query(), .mutation()] {
                _ = try await transport.send(request, within: .ample)
            }
            #expect(server.requests.count == 2)
            for request in server.requests {
                #expect(request.headers["Accept"] == ["application/graphql-response+json, application/json;q=0.9"])
            }
        }
    }

    @Test("The time of a request over URLSession covers its closure for headers, even one that ignores cancellation")
    func slowHeaders() async throws {
        let gate = Gate()
        try await overURLSession { _ in
            .json(nameAnswer)
        } _: {
            $0.headersForRequest = { _ in
                await withCheckedContinuation { continuation in gate.whenOpen { continuation.resume() } }
                return []
            }
        } _: { server, transport in
            // A request that waited for the closure would end by this, and too late.
            let opening = Task {
                try await Task.sleep(for: .seconds(20))
                gate.open()
            }
            defer { opening.cancel() }
            let error = try await requireEnd { _ = try await transport.send(.query(), within: .until($0)) }
            #expect((error as? TransportError)?.code == .timedOut)
            #expect((error as? TransportError)?.phase == .beforeSending)
            gate.open()
            #expect(server.requests.isEmpty)
        }
    }

    @Test("An answer over URLSession has the age and the maximum age that the server's headers say")
    func ages() async throws {
        try await overURLSession { _ in
            .json(nameAnswer, headers: ["Cache-Control": "private, max-age=60", "Age": "12"])
        } _: { _, transport in
            let answer = try await transport.send(.query(), within: .ample)
            #expect(answer.age == .seconds(12) && answer.maxAge == .seconds(60))
        }
    }

    @Test("An exchange over URLSession that ends leaves another one under way", .timeLimit(.minutes(1)))
    func besideEnded() async throws {
        let gate = Gate()
        try await overURLSession { received in
            var reply = Reply.json(nameAnswer)
            if received.number == 0 { reply.gate = gate }
            return reply
        } _: { server, transport in
            let waiting = Task { try await transport.send(.query(), within: .ample) }
            try await server.waitUntil("the request arrives") { $0.requests.count == 1 }
            _ = try await transport.send(.query(), within: .ample)
            gate.open()
            #expect(try await waiting.value.status == 200)
        }
    }
}
