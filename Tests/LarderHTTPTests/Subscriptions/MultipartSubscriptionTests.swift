import Foundation
import Larder
import LarderTestSupport
import Testing

@testable import LarderHTTP

@Suite(
    "Subscriptions by the multipart protocol", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct MultipartSubscriptionTests {
    static let multipart = options { $0.subscriptions.carrier = .multipart }

    private func run(_ body: (EventServer) async throws -> Void) async throws {
        try await EventServer.run("strawberry", { $0.subscriptions.carrier = .multipart }, body)
    }

    @Test("An event is in the cache when its reader is told")
    func tells() async throws {
        try await run { server in
            let subscription = try await server.subscribed()
            #expect(server.text("1") == "one")
            // Of two, neither waits for what comes behind it.
            for text in ["uno", "due"] {
                try await server.order(#"{"set": {"1": "\#(text)"}}"#)
                #expect(await subscription.nextData()?["changed"]?["text"]?.string == text)
                #expect(server.text("1") == text)
            }
        }
    }

    @Test("What changed while the connection was down is caught up")
    func catchesUp() async throws {
        try await run { server in
            let subscription = try await server.subscribed()
            try await server.cut(subscription, missing: #"{"set": {"1": "first", "2": "second"}}"#)
            #expect(server.text("1") == "first")
            #expect(server.text("2") == "second")
        }
    }

    @Test("A subscription that ends at the server ends here; one that nothing reads any more ends there")
    func ends() async throws {
        try await run { server in
            do {
                let left = try await server.app.subscribe(GraphQLOperation("subscription { changed { id } }"))
                await left.wait(for: .live)
            }
            try await eventually { try await server.order().subscriptions <= 0 }
            let subscription = try await server.subscribed(catchUp: nil)
            try await server.order(#"{"complete": true}"#)
            await subscription.wait(for: .ended)
            #expect(subscription.state.error == nil)
        }
    }

    /// Runs `body` with a scripted server and a partition that subscribes at it.
    private func run(
        at script: @escaping ScriptedServer.Script, _ body: (ScriptedServer, Partition) async throws -> Void
    ) async throws {
        let options = options {
            $0.subscriptions.carrier = .multipart
            $0.subscriptions.pacing.backoff = Backoff(first: .milliseconds(5), cap: .milliseconds(50))
        }
        try await withServer(options: options, script) { server, transport in
            try await withTemporaryFolder { folder in
                let schema = "type Query { a: Int } type Subscription { changed: Int other: Int }"
                let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
                try await body(server, try store.partition(server: transport))
                try store.close()
            }
        }
    }

    /// Subscribes at a server that always answers the same.
    private func run(
        answering reply: Reply, _ body: (ScriptedServer, Subscription) async throws -> Void
    ) async throws {
        try await run(at: { _ in reply }) { server, app in
            try await body(server, try await app.subscribe(GraphQLOperation("subscription { changed }")))
        }
    }

    @Test("An answer that ends without its last boundary is no end of the subscription: it is asked for again")
    func cutShort() async throws {
        try await run(answering: .multipart()) { server, subscription in
            try await server.waitUntil("it is asked for again") { $0.requests.count > 1 }
            #expect(subscription.state.phase != .ended)
        }
    }

    @Test("A subscription whose answer breaks off is asked for again, and another one beside it is not")
    func cutShortAlone() async throws {
        @Sendable func asks(_ request: Received, for field: String) -> Bool {
            request.json["query"]?.string?.contains(field) == true
        }
        try await run(at: { request in
            .multipart(ending: asks(request, for: "other") ? .complete : .hang)
        }) { server, app in
            let kept = try await app.subscribe(GraphQLOperation("subscription { changed }"))
            try await server.waitUntil("the first is asked for") { $0.requests.count == 1 }
            let other = try await app.subscribe(GraphQLOperation("subscription { other }"))
            try await server.waitUntil("the other is asked for again and again") { seen in
                seen.requests.count { asks($0, for: "other") } > 3
            }
            #expect(server.requests.count { asks($0, for: "changed") } == 1)
            withExtendedLifetime([kept, other]) {}
        }
    }

    @Test("Where the server does not take the proof of who asks, a sign-in is awaited", arguments: [401, 403])
    func refused(status: Int) async throws {
        try await run(answering: Reply(status: .init(statusCode: status))) { _, subscription in
            for await event in subscription {
                guard case .state(let state) = event, let error = state.error else { continue }
                #expect(error.code == .transportNotSignedIn && state.phase == .connecting)
                break
            }
        }
    }

    /// The errors of the first state that has one, with whether the subscription has ended by it.
    private func failure(_ subscription: Subscription) async -> (error: LarderError, isEnd: Bool)? {
        for await event in subscription {
            if case .state(let state) = event, let error = state.error { return (error, state.phase == .ended) }
        }
        return nil
    }

    @Test("A part that says why no event can come any more breaks the subscription off, which is begun again")
    func broken() async throws {
        let part = #"{"payload":null,"errors":[{"message":"lost the way"}]}"#
        try await run(answering: .multipart(part, then: "--b--")) { server, subscription in
            let failure = try #require(await failure(subscription))
            #expect(failure.error.errors.map(\.message) == ["lost the way"])
            #expect(!failure.isEnd)
            try await server.waitUntil("it is begun again") { $0.requests.count > 1 }
        }
    }

    @Test(
        "Errors in place of a stream end the subscription, unless they are the server's own fault",
        arguments: [(200, true), (400, true), (499, true), (500, false), (503, false)])
    func refusedWithErrors(status: Int, ends: Bool) async throws {
        let reply = Reply.json(#"{"errors":[{"message":"no"}]}"#, status: .init(statusCode: status))
        try await run(answering: reply) { server, subscription in
            let failure = try #require(await failure(subscription))
            #expect(failure.error.code == .serverErrors)
            #expect(failure.error.errors.map(\.message) == ["no"])
            #expect(failure.isEnd == ends)
            if !ends { try await server.waitUntil("it is begun again") { $0.requests.count > 1 } }
        }
    }

    @Test("An answer that is neither a stream nor errors is told with its status", arguments: [200, 404])
    func noStream(status: Int) async throws {
        try await run(answering: .json(#"{"data":{}}"#, status: .init(statusCode: status))) { server, subscription in
            let failure = try #require(await failure(subscription))
            #expect(failure.error.code == .transportStatus)
            #expect(!failure.isEnd)
        }
    }

    private func parts(_ text: String, _ size: Int, limit: Int = 100) throws -> (parts: [String], isAtEnd: Bool) {
        var reader = MultipartReader(boundary: "b", limit: limit)
        let bytes = Array(text.utf8)
        var parts: [String] = []
        for start in stride(from: 0, to: bytes.count, by: size) {
            parts += try reader.parts(in: bytes[start..<min(start + size, bytes.count)])
                .map { String(decoding: $0, as: UTF8.self) }
        }
        return (parts, reader.isAtEnd)
    }

    @Test("Parts come whole however their bytes do", arguments: [1, 2, 3, 7, 1_000])
    func reads(size: Int) throws {
        let text =
            "preamble\r\n--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\n\r\n"
            + #"{"payload":{"a":"}\"{\\"}}"# + "\r\n--b\n\n{\"x\": {\"--b\": 1}}\n--b--"
        let read = try parts(text, size)
        #expect(read.parts == ["{}", #"{"payload":{"a":"}\"{\\"}}"#, #"{"x": {"--b": 1}}"#])
        #expect(read.isAtEnd)
        #expect(try parts("--b\r\n\r\n{}\r\n--b\r\n--b--\r\n", size).isAtEnd)
    }

    @Test("A part may be as long as the limit, and a line has 8 KiB at most")
    func longest() throws {
        let part = #"{"\#(String(repeating: "x", count: 94))":1}"#
        #expect(part.utf8.count == 100)
        #expect(try parts("--b\r\n\r\n\(part)", 7).parts == [part])
        #expect(throws: TransportError.self) { _ = try parts("--b\r\n\r\n\(part)", 7, limit: 99) }
        for (count, isTaken) in [(8_192, true), (8_193, false)] {
            let text = "--b\n\(String(repeating: "x", count: count))\n\n{}"
            #expect((try? parts(text, 1_000).parts == ["{}"]) == (isTaken ? true : nil), "\(count)")
        }
    }

    @Test("Each subscription may keep a connection: there may be 128, where the protocol is this one")
    func connectionCount() {
        func count(_ carrier: HTTPTransport.SubscriptionOptions.Carrier) -> Int {
            var options = HTTPTransport.Options()
            options.subscriptions.carrier = carrier
            return HTTPTransport.clientConfiguration(for: options).connectionPool
                .concurrentHTTP1ConnectionsPerHostSoftLimit
        }
        #expect(count(.multipart) == 128)
        #expect(count(.webSocket) < 128)
    }

    @Test("A subscription that is stopped is told as completed, and not as broken")
    func stopped() async throws {
        try await withServer(options: Self.multipart) { _ in
            .multipart(ending: .hang)
        } _: { _, transport in
            let line = HeardLine()
            let carrying = Task { try await line.carry(by: transport) }
            try await waitUntil("it has begun") { line.told.count == 3 }
            line.command(.stop(id: "1"))
            line.end()
            try await carrying.value
            let all = line.told
            #expect(all.last?.hasPrefix("completed") == true)
            #expect(!all.contains { $0.hasPrefix("broken") })
        }
    }

    @Test("An answer that ends without a part has begun no subscription")
    func noPart() async throws {
        try await withServer(options: Self.multipart) { _ in
            var reply = Reply.multipart()
            reply.body = Array("--b--\r\n".utf8)
            return reply
        } _: { _, transport in
            let line = HeardLine(endsWithSubscription: true)
            try await line.carry(by: transport)
            let all = line.told
            #expect(all.count == 2 && all.last?.hasPrefix("completed") == true, "\(all)")
        }
    }

    @Test(
        "The first part says that the subscription has begun, be it a heartbeat, an event or an error",
        arguments: [
            ("{}", "alive"), (#"{"payload":{"data":{"name":"x"}}}"#, "event"),
            (#"{"payload":null,"errors":[{"message":"no"}]}"#, "failed"),
        ])
    func firstPart(part: String, kind: String) async throws {
        try await withServer(options: Self.multipart) { _ in
            .multipart(part, then: "--b--\r\n")
        } _: { _, transport in
            let line = HeardLine(endsWithSubscription: true)
            try await line.carry(by: transport)
            let kinds = line.told.map { String($0.prefix { $0 != "(" }) }
            #expect(Array(kinds.prefix(3)) == ["opened", "started", kind])
            #expect(!kinds.contains("broken"), "\(kinds)")
        }
    }

    @Test("A subscription whose request the server does not answer in time breaks off")
    func unanswered() async throws {
        let options = options {
            $0.subscriptions.carrier = .multipart
            $0.subscriptions.pacing.opening = .milliseconds(100)
        }
        try await withServer(options: options) { _ in
            .hang
        } _: { _, transport in
            let line = HeardLine()
            let carrying = Task { try await line.carry(by: transport) }
            try await waitUntil("it is given up") { !line.faults.isEmpty }
            line.end()
            try await carrying.value
            #expect(line.faults == [.timedOut])
        }
    }

    @Test("A subscription whose head is larger than 32 KiB is not asked for, and ends the line")
    func longHead() async throws {
        let options = options {
            $0.subscriptions.carrier = .multipart
            $0.headers = [.init(name: "X-Long", value: String(repeating: "x", count: 33_000))]
        }
        try await withServer(options: options) { _ in
            .json("{}")
        } _: { server, transport in
            // The line ends with one that was asked for all the same, so that it does not go on for ever.
            let line = HeardLine(endsWithSubscription: true)
            let error = try await transportError { try await line.carry(by: transport) }
            #expect(error.code == .unusableRequest)
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A subscription's request has the headers that the program gives for it")
    func givenHeaders() async throws {
        let options = options {
            $0.subscriptions.carrier = .multipart
            $0.headersForRequest = { request in
                [.init(name: "Authorization", value: "for \(request.operationName ?? "none")")]
            }
        }
        try await withServer(options: options) { _ in
            Reply(status: .unauthorized)
        } _: { server, transport in
            let request = GraphQLRequest(
                kind: .subscription, operationName: "Follow", document: "subscription Follow { changed }",
                documentHash: GraphQLRequest.someHash, variables: Array("{}".utf8))
            let error = try await transportError { try await HeardLine(request).carry(by: transport) }
            #expect(error.code == .notSignedIn)
            #expect(server.requests.map { $0.headers["Authorization"] } == [["for Follow"]])
        }
    }

    @Test("A query that begins after a subscription has begun joins none that began before it")
    func asksAgainAfterStart() async throws {
        let gate = Gate()
        try await withServer(options: Self.multipart) { request in
            request.headers.first(name: "Accept")?.hasPrefix("multipart") == true
                ? .multipart(ending: .hang) : .json(nameAnswer).gated(gate)
        } _: { server, transport in
            // One of the requests is the subscription's own.
            try await expectAskedAgainAfterStart(transport, at: server, gate, requests: 3)
        }
    }

    @Test("A part that is longer than the options allow breaks its subscription off")
    func longPart() async throws {
        let part = #"{"payload":{"data":{"name":"\#(String(repeating: "x", count: 200))"}}}"#
        let options = options {
            $0.subscriptions.carrier = .multipart
            $0.subscriptions.maximumMessageSize = 100
        }
        try await withServer(options: options) { _ in
            .multipart(part, ending: .hang)
        } _: { _, transport in
            let line = HeardLine()
            let carrying = Task { try await line.carry(by: transport) }
            try await waitUntil("it breaks off") { !line.faults.isEmpty }
            #expect(line.faults.last == .unusableAnswer)
            line.end()
            try await carrying.value
        }
    }

    @Test("A part is there with its last byte, before the boundary behind it")
    func isImmediate() throws {
        let read = try parts("--b\r\n\r\n{\"a\":1}", 1)
        #expect(read.parts == [#"{"a":1}"#])
        #expect(!read.isAtEnd)
    }

    @Test(
        "What is no part, or too long, is an error",
        arguments: [
            "--b\r\n\r\n[1]", "--b\r\n\r\n7", "--b\r\n\r\n\"x\"", "--b\r\n\r\n{\"" + String(repeating: "x", count: 100),
            String(repeating: "x", count: 9_000),
        ])
    func refuses(text: String) {
        let error = #expect(throws: TransportError.self) { _ = try parts(text, 5) }
        #expect(error?.code == .unusableAnswer)
    }

    @Test("The boundary is what the content type says")
    func boundary() {
        #expect(MultipartReader.boundary(of: #"multipart/mixed; boundary="graph ql"; x=1"#) == "graph ql")
        #expect(MultipartReader.boundary(of: "Multipart/Mixed;subscriptionSpec=1.0,application/json;BOUNDARY=g") == "g")
        #expect(MultipartReader.boundary(of: "multipart/mixed") == "-")
        #expect(MultipartReader.boundary(of: "application/json; boundary=g") == nil)
        #expect(MultipartReader.boundary(of: "") == nil)
    }

    @Test("A subscription's request goes by POST and with its text, whatever the options say of queries")
    func byPostWithText() async throws {
        let options = options {
            ($0.method, $0.persistedQueries) = (.getForQueries, .trustedDocuments)
            $0.subscriptions.carrier = .multipart
        }
        try await withServer(options: options) { _ in
            Reply(status: .unauthorized)
        } _: { server, transport in
            let request = GraphQLRequest(
                kind: .subscription, operationName: nil, document: "subscription { changed }",
                documentHash: GraphQLRequest.someHash, variables: Array("{}".utf8))
            let error = try await transportError { try await HeardLine(request).carry(by: transport) }
            #expect(error.code == .notSignedIn)
            #expect(server.requests.map(\.method) == [.POST])
            #expect(server.requests.first?.json["query"]?.string == request.document)
        }
    }
}
