import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import NIOPosix
import Synchronization
import Testing

@Suite("Handshakes that open no socket", .timeLimit(.minutes(5)))
struct HandshakeTests {
    private func refusal(
        _ reply: Reply, headers: [GraphQLRequest.Header] = [], query: [URLQueryItem] = []
    ) async throws -> (error: TransportError, dates: [String?], request: Received?) {
        try await ScriptedServer.run({ _ in reply }) { server in
            let dates = Mutex<[String?]>([])
            let url = query.isEmpty ? server.url : server.url.appending(queryItems: query)
            var connection = WebSocketConnection(url: url, subprotocols: ["ours"])
            connection.headers = headers
            connection.heard = { date in dates.withLock { $0.append(date) } }
            let error = try await transportError { [connection] in
                try await connection.run(on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .ample) { _, _ in }
            }
            // What it has of the answer is all that it wants.
            if reply.ending == .hang { try await server.waitUntil("the client closes") { $0.exchangesBroken == 1 } }
            return (error, dates.withLock { $0 }, server.requests.first)
        }
    }

    @Test("A status of 401 or 403 says that the proof of who asks was not taken", arguments: [401, 403])
    func notSignedIn(status: Int) async throws {
        let error = try await refusal(Reply(status: .init(statusCode: status))).error
        #expect(error.code == .notSignedIn)
        #expect(error.status == status)
    }

    @Test("Another status is told, with the pause that the server asks for", arguments: [200, 404, 503])
    func status(status: Int) async throws {
        let reply = Reply(status: .init(statusCode: status), headers: ["Retry-After": "7"])
        let error = try await refusal(reply).error
        #expect(error.code == .status)
        #expect(error.status == status)
        #expect(error.phase == .beforeSending)
        #expect(error.retryAfter == .seconds(7))
    }

    @Test("A server's Retry-After with a date is measured by its own Date header")
    func retryAfterDate() async throws {
        let reply = Reply(
            status: .serviceUnavailable,
            headers: ["Retry-After": "Sun, 06 Nov 1994 08:50:07 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"])
        #expect(try await refusal(reply).error.retryAfter == .seconds(30))
    }

    @Test("The server's time is known from a refusal too, and its connection is closed at once")
    func date() async throws {
        let date = "Sun, 06 Nov 1994 08:49:37 GMT"
        let refusal = try await refusal(Reply(status: .forbidden, headers: ["Date": date], ending: .hang))
        #expect(refusal.dates == [date])
        #expect(refusal.error.code == .notSignedIn)
    }

    @Test("The request names the host of its URL, whatever the headers say, and has the other headers")
    func host() async throws {
        let given = [("Host", "other.example"), ("host", "third.example"), ("x-tenant", "7")]
        let refusal = try await refusal(
            Reply(status: .notFound), headers: given.map { .init(name: $0.0, value: $0.1) })
        let headers = try #require(refusal.request?.headers)
        #expect(headers["Host"].count == 1)
        #expect(headers.first(name: "Host")?.hasPrefix("127.0.0.1:") == true)
        #expect(headers["x-tenant"] == ["7"])
        #expect(headers["Sec-WebSocket-Protocol"] == ["ours"])
    }

    @Test("A subscription's handshake has the headers that the program gives for a request without document")
    func givenHeaders() async throws {
        let options = options {
            $0.headersForRequest = { request in
                [.init(name: "Authorization", value: "for \(request.document.utf8.count) bytes")]
            }
        }
        try await withServer(options: options) { _ in
            Reply(status: .forbidden)
        } _: { server, transport in
            let line = SubscriptionLine(commands: AsyncStream { $0.finish() }) { _ in }
            let error = try await transportError { try await transport.carry(line, openedWithin: .ample) }
            #expect(error.code == .notSignedIn)
            #expect(server.requests.map { $0.headers["Authorization"] } == [["for 0 bytes"]])
        }
    }

    @Test("The request has the query of its URL")
    func query() async throws {
        let refusal = try await refusal(
            Reply(status: .notFound), query: [.init(name: "tenant", value: "7")])
        #expect(refusal.request?.uri == "/graphql?tenant=7")
    }

    @Test("No socket is opened to a URL with a user, or of another scheme", arguments: ["ws://user@", "ftp://"])
    func unusableURL(begin: String) async throws {
        let url = try #require(URL(string: "\(begin)127.0.0.1:1/graphql"))
        let connection = WebSocketConnection(url: url, subprotocols: ["ours"])
        let error = try await transportError {
            try await connection.run(on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .ample) { _, _ in }
        }
        #expect(error.code == .unusableRequest)
    }

    @Test("A socket of the scheme ws is asked for in the clear, and one of wss by TLS alone", arguments: ["ws", "wss"])
    func schemes(scheme: String) async throws {
        try await ScriptedServer.run({ _ in Reply(status: .forbidden) }) { server in
            let port = try #require(server.url.port)
            let url = try #require(URL(string: "\(scheme)://127.0.0.1:\(port)/graphql"))
            let connection = WebSocketConnection(url: url, subprotocols: ["ours"])
            let error = try await transportError {
                try await connection.run(on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .ample) { _, _ in }
            }
            #expect((error.code == .notSignedIn) == (scheme == "ws"), "\(error)")
            #expect(server.requests.count == (scheme == "ws" ? 1 : 0))
        }
    }

    @Test("A socket whose handshake has a head of more than 32 KiB is not asked for")
    func longHead() async throws {
        let long = GraphQLRequest.Header(name: "X-Long", value: String(repeating: "x", count: 33_000))
        let refusal = try await refusal(Reply(status: .notFound), headers: [long])
        #expect(refusal.error.code == .unusableRequest && refusal.request == nil)
    }

    @Test("A task that was cancelled before waits for no server")
    func cancelledBefore() async throws {
        try await ScriptedServer.run({ _ in .hang }) { server in
            let connection = WebSocketConnection(url: server.url, subprotocols: ["ours"])
            let opening = Task {
                try? await Task.sleep(for: .ample)
                return await #expect(throws: TransportError.self) {
                    try await connection.run(
                        on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .seconds(30)
                    ) { _, _ in }
                }
            }
            let cancelled = SuspendingClock.now
            opening.cancel()
            #expect(await opening.value?.code == .cancelled)
            try requireNear(cancelled)
        }
    }
}
