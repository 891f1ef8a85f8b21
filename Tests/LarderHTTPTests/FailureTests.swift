import AsyncHTTPClient
import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Testing

@Suite("When it fails", .timeLimit(.minutes(10)))
struct FailureTests {
    /// The error of a query that is sent to `url`.
    private func failure(
        at url: URL, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> TransportError {
        try await HTTPTransport.withTransport(to: url) { transport in
            try await transportError(sourceLocation: sourceLocation) {
                try await transport.send(.query(), within: .ample)
            }
        }
    }

    @Test("A port without a listener is unreachable")
    func reportsRefusal() async throws {
        let error = try await failure(at: try await ScriptedServer.run({ _ in .hang }) { $0.url })
        #expect(error.code == .unreachable)
        #expect(error.status == nil)
    }

    @Test("A host without an address is unreachable")
    func reportsUnknownHost() async throws {
        let url = try #require(URL(string: "http://no-such-host.invalid/graphql"))
        #expect(try await failure(at: url).code == .unreachable)
    }

    @Test(
        "A URL that cannot be sent to is an unusable request",
        arguments: ["ftp://127.0.0.1/graphql", "/graphql", "http:///graphql", "graphql"]
    )
    func reportsBadURL(text: String) async throws {
        let url = try #require(URL(string: text))
        #expect(try await failure(at: url).code == .unusableRequest)
    }

    @Test("A head of more than 32 KiB is an unusable request, which is not sent", arguments: [true, false])
    func reportsLargeHead(isQuery: Bool) async throws {
        let long = GraphQLRequest.Header(name: "Authorization", value: String(repeating: "t", count: 70_000))
        try await withServer(options: options { $0.headers = [long] }) { server, transport in
            let error = try await transportError {
                try await transport.send(isQuery ? .query() : .mutation(), within: .ample)
            }
            #expect(error.code == .unusableRequest)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A head has 32 KiB at most, its first line and all ends of lines included")
    func largestHead() throws {
        var request = HTTPClientRequest(url: "http://h/")
        let rest = "GEThttp://h/ HTTP/1.1\r\n\r\n".utf8.count + "a: \r\n".utf8.count
        request.headers.add(name: "a", value: String(repeating: "x", count: 32_768 - rest))
        try request.requireBoundedHead()
        request.headers.replaceOrAdd(name: "a", value: String(repeating: "x", count: 32_769 - rest))
        let error = #expect(throws: TransportError.self) { try request.requireBoundedHead() }
        #expect(error?.code == .unusableRequest)
    }

    @Test("A URL of more than 32 KiB is an unusable request, which is not sent")
    func reportsLongURL() async throws {
        try await ScriptedServer.run { _ in
            .json(nameAnswer)
        } _: { server in
            let url = try #require(URL(string: "\(server.url)?long=\(String(repeating: "x", count: 33_000))"))
            let error = try await failure(at: url)
            #expect(error.code == .unusableRequest && server.requests.isEmpty)
        }
    }

    static let clientErrors: [(any Error, TransportError.Code)] = [
        (CancellationError(), .cancelled), (HTTPClientError.invalidURL, .unusableRequest),
        (HTTPClientError.emptyHost, .unusableRequest), (HTTPClientError.emptyScheme, .unusableRequest),
        (HTTPClientError.unsupportedScheme("ftp"), .unusableRequest),
        (HTTPClientError.invalidHeaderFieldNames(["a b"]), .unusableRequest),
        (HTTPClientError.invalidHeaderFieldValues(["\u{0}"]), .unusableRequest),
        (HTTPClientError.bodyLengthMismatch, .unusableRequest), (HTTPClientError.alreadyShutdown, .notPrepared),
        (HTTPClientError.deadlineExceeded, .timedOut), (HTTPClientError.readTimeout, .timedOut),
        (HTTPClientError.connectTimeout, .unreachable), (HTTPClientError.tlsHandshakeTimeout, .unreachable),
        (HTTPClientError.getConnectionFromPoolTimeout, .unreachable),
        (HTTPClientError.httpProxyHandshakeTimeout, .unreachable), (HTTPClientError.invalidProxyResponse, .unreachable),
        (HTTPClientError.proxyAuthenticationRequired, .unreachable),
        (HTTPClientError.serverOfferedUnsupportedApplicationProtocol("x"), .insecure),
        (HTTPClientError.redirectLimitReached, .unusableAnswer), (HTTPClientError.cancelled, .interrupted),
        (HTTPClientError.remoteConnectionClosed, .interrupted),
        (ChannelError.connectTimeout(.seconds(1)), .unreachable), (ChannelError.connectPending, .unreachable),
        (ChannelError.eof, .interrupted),
        (IOError(errnoCode: ECONNREFUSED, reason: ""), .unreachable),
        (IOError(errnoCode: EHOSTUNREACH, reason: ""), .unreachable),
        (IOError(errnoCode: ENETUNREACH, reason: ""), .unreachable),
        (IOError(errnoCode: EHOSTDOWN, reason: ""), .unreachable),
        (IOError(errnoCode: ENETDOWN, reason: ""), .unreachable),
        (IOError(errnoCode: EADDRNOTAVAIL, reason: ""), .unreachable),
        (IOError(errnoCode: ETIMEDOUT, reason: ""), .unreachable),
        (IOError(errnoCode: EMFILE, reason: ""), .unreachable),
        (IOError(errnoCode: ECONNRESET, reason: ""), .interrupted),
        (HTTPParserError.invalidEOFState, .interrupted), (HTTPParserError.invalidStatus, .unusableAnswer),
        (NIOSSLError.uncleanShutdown, .interrupted), (NIOSSLError.unableToValidateCertificate, .insecure),
    ]

    @Test("Each error of the client below is told as what it means, and within the sending as none from before it")
    func clientErrors() {
        for (error, code) in Self.clientErrors {
            #expect(TransportError(ofClient: error).code == code, "\(error)")
            let sending = TransportError(ofClient: error, in: .sending)
            #expect(sending.phase == .sending && sending.code.phase == .sending, "\(error)")
        }
    }

    @Test("A client that is made for the transport tries a server that refuses connections once")
    func configuration() {
        let configuration = HTTPTransport.clientConfiguration()
        #expect(!configuration.connectionPool.retryConnectionEstablishment)
    }

    @Test(
        "A user or a password in the URL is refused, and not told",
        arguments: [
            "http://ada:hush@127.0.0.1:1/graphql", "http://hush@127.0.0.1:1/graphql", "http://:hush@127.0.0.1:1/",
        ])
    func refusesUser(text: String) async throws {
        let url = try #require(URL(string: text))
        let error = try await failure(at: url)
        #expect(error.code == .unusableRequest)
        #expect(!"\(error)".contains("hush"))
    }

    @Test("A redirect is told of without the password and the query in it")
    func hidesPasswordOfRedirect() async throws {
        try await ScriptedServer.run { _ in
            .json("", status: .found, headers: ["Location": "https://ada:hush@example.com/graphql?key=quiet"])
        } _: { server in
            let error = try await failure(at: server.url)
            #expect(error.message.contains("https://…@example.com/graphql?…"))
            #expect(!"\(error)".contains("hush") && !"\(error)".contains("quiet"))
        }
    }

    @Test("A client that was shut down is a request that could not be prepared, for now")
    func reportsShutDownClient() async throws {
        try await ScriptedServer.run { _ in
            .json(nameAnswer)
        } _: { server in
            let transport = try await HTTPTransport.withTransport(to: server.url) { $0 }
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .notPrepared)
        }
    }

    @Test("A connection cut before the answer is an interruption")
    func reportsCutBeforeHead() async throws {
        try await withServer { _ in
            .cut
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.mutation(), within: .ample) }
            #expect(error.code == .interrupted)
            #expect(error.status == nil)
        }
    }

    @Test(
        "A connection cut within the body is an interruption, with the status that had come",
        arguments: [200, 500], [true, false]
    )
    func reportsCutInBody(status: Int, chunked: Bool) async throws {
        try await withServer { _ in
            var reply = Reply.json(#"{"data":"#, status: .init(statusCode: status))
            reply.headers.add(
                name: chunked ? "Transfer-Encoding" : "Content-Length", value: chunked ? "chunked" : "1000"
            )
            reply.ending = .cut
            return reply
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .interrupted)
            #expect(error.status == status)
        }
    }

    @Test(
        "An answer that is not HTTP is unusable or an interruption, and no trap",
        arguments: [
            "220 mail.example ESMTP\r\n\r\n", "HTTP/1.1 000 No\r\ncontent-length: 0\r\n\r\n",
        ])
    func reportsForeignProtocol(greeting: String) async throws {
        let group = MultiThreadedEventLoopGroup.singleton
        let channel = try await ServerBootstrap(group: group)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(GreetingHandler(greeting))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(channel.localAddress?.port)
        let url = try #require(URL(string: "http://127.0.0.1:\(port)/"))
        #expect(try await failure(at: url).code == .unusableAnswer)
        try await channel.close()
    }

    @Test("A server without TLS at an https address is insecure")
    func reportsTLSFailure() async throws {
        try await ScriptedServer.run { _ in
            .json(nameAnswer)
        } _: { server in
            let port = try #require(server.url.port)
            let url = try #require(URL(string: "https://127.0.0.1:\(port)/graphql"))
            let error = try await failure(at: url)
            #expect(error.code == .insecure)
        }
    }

    @Test("A deadline that has passed sends nothing")
    func honoursPassedDeadline() async throws {
        let calls = Counter()
        let options = options {
            $0.headersForRequest = { _ in
                calls.add()
                return []
            }
        }
        try await withServer(options: options) { server, transport in
            let error = try await transportError {
                try await transport.send(.query(), within: .seconds(-1))
            }
            #expect(error.code == .timedOut)
            #expect(server.requests.isEmpty)
            #expect(calls.count == 0)
        }
    }

    @Test("A server that never answers is given up at the deadline, and its connection is closed")
    func honoursDeadlineBeforeHead() async throws {
        try await withServer { _ in
            .hang
        } _: { server, transport in
            try await expectGivenUp(.query(), by: transport, at: server, after: .milliseconds(200))
        }
    }

    @Test("A server that stops within the body is given up at the deadline, and its connection is closed")
    func honoursDeadlineInBody() async throws {
        try await withServer { _ in
            Self.halfAnAnswer
        } _: { server, transport in
            try await expectGivenUp(.query(), by: transport, at: server, after: .milliseconds(300))
        }
    }

    @Test("The deadline holds for the closure that supplies headers, even one that ignores cancellation")
    func honoursDeadlineInHeaders() async throws {
        let gate = Gate()
        let options = options {
            $0.headersForRequest = { _ in
                await withCheckedContinuation { continuation in gate.whenOpen { continuation.resume() } }
                return []
            }
        }
        try await withServer(options: options) { server, transport in
            let error = try await requireEnd { _ = try await transport.send(.query(), within: .until($0)) }
            #expect((error as? TransportError)?.code == .timedOut)
            #expect((error as? TransportError)?.phase == .beforeSending)
            gate.open()
            #expect(server.requests.isEmpty)
        }
    }

    @Test("Cancelling the task closes the exchange at the server", arguments: [true, false])
    func cancels(inBody: Bool) async throws {
        for request in [GraphQLRequest.query(), .mutation()] {
            try await withServer { _ in
                inBody ? Self.halfAnAnswer : .hang
            } _: { server, transport in
                try await expectCancelled(request, by: transport, at: server)
            }
        }
    }

    @Test("A task that is cancelled already sends nothing, and the error says so", arguments: [true, false])
    func sendsNothingWhenCancelled(isQuery: Bool) async throws {
        try await withServer { server, transport in
            let gate = Gate()
            let task = Task {
                await withCheckedContinuation { continuation in gate.whenOpen { continuation.resume() } }
                return try await transport.send(isQuery ? .query() : .mutation(), within: .ample)
            }
            task.cancel()
            gate.open()
            let error = try await transportError { try await task.value }
            #expect(error.code == .cancelled && error.phase == .beforeSending)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("After a failure the next request is answered")
    func recovers() async throws {
        try await withServer { request in
            request.number == 0 ? .cut : .json(nameAnswer)
        } _: { _, transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.code == .interrupted)
            try await expect(nameAnswer, from: transport, for: .query())
        }
    }

    private static let halfAnAnswer: Reply = {
        var reply = Reply.json(#"{"data":"#, headers: ["Content-Length": "1000"])
        reply.ending = .hang
        return reply
    }()
}

/// Speaks first, and not HTTP.
private final class GreetingHandler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let greeting: String

    init(_ greeting: String) { self.greeting = greeting }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: greeting)), promise: nil)
    }
}
