import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import Testing

@Suite(
    "Frames that no good server sends, by graphql-transport-ws", .timeLimit(.minutes(10)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct HostileFrameTests {
    private static let ack = #"{"text": "{\"type\":\"connection_ack\"}"}"#
    private static let pong = #"{"text": "{\"type\":\"pong\"}"}"#

    private static func event(_ id: String, _ text: String) -> String {
        #"{\"type\":\"next\",\"id\":\"\#(id)\",\"payload\":{\"data\":{\"changed\":{\"__typename\":\"Item\",\"id\":\"1\",\"text\":\"\#(text)\",\"version\":1}}}}"#
    }

    /// Follows a server that says what a script says, after it has acknowledged the connection and read the start with
    /// its ping.
    private func run(
        _ steps: String, greets: Bool = true, choosesProtocol: Bool = true,
        _ change: (inout HTTPTransport.Options) -> Void = { _ in },
        _ body: (Partition, Subscription) async throws -> Void
    ) async throws {
        let begin = greets ? #"{"wait": 1}, \#(Self.ack), {"wait": 2}\#(steps.isEmpty ? "" : ", ")"# : ""
        let script = steps == "null" ? "null" : "[\(begin)\(steps)]"
        let server = try await ServerProcess.start(
            "frames.py",
            [#"{"subprotocol": \#(choosesProtocol ? #""graphql-transport-ws""# : "null"), "script": \#(script)}"#])
        try await withStarted(server, stop: { await $0.stop() }) { server in
            var options = HTTPTransport.Options()
            options.subscriptions.pacing.backoff = Backoff(first: .milliseconds(50), cap: .milliseconds(200))
            change(&options)
            let url = try #require(URL(string: "http://127.0.0.1:\(server.words[0])/graphql"))
            try await HTTPTransport.withTransport(to: url, options: options) { transport in
                try await withTemporaryFolder { folder in
                    let store = try Store.open(
                        at: folder,
                        schema: try Schema(
                            parsing: """
                                type Query { items: [Item!]! }
                                type Subscription { changed: Item! }
                                type Item { id: ID! text: String version: Int! }
                                """))
                    let app = try store.partition(server: transport)
                    try await body(app, try await app.subscribe(EventServer.changed))
                    try store.close()
                }
            }
        }
    }

    /// The first error that the subscription tells.
    private func error(_ subscription: Subscription) async -> LarderError? {
        for await event in subscription { if case .state(let state) = event, let error = state.error { return error } }
        return nil
    }

    private func text(_ app: Partition) -> String? {
        try? app.read("Item:1", GraphQLFragment("fragment F on Item { text }"))["text"]?.string
    }

    @Test("A server that opens a socket and does not choose the protocol is not spoken to")
    func noProtocol() async throws {
        try await run("", greets: false, choosesProtocol: false) { _, subscription in
            #expect(await error(subscription)?.code == .transportUnusableAnswer)
            // It is tried again.
            await subscription.wait(for: .connecting)
        }
    }

    @Test(
        "A message that cannot be one ends the connection with a typed error, and another is opened",
        arguments: [
            #"{"text": "hello"}"#, #"{"text": ""}"#, #"{"text": "[]"}"#, #"{"text": "{\"type\":7}"}"#,
            #"{"text": "{\"type\":\"surprise\"}"}"#, #"{"text": "{\"type\":\"next\",\"id\":\"ID\"}"}"#,
            #"{"text": "{\"type\":\"error\",\"id\":\"ID\"}"}"#, #"{"binary": "{}"}"#, #"{"length": 67108864}"#,
            #"{"length": 9223372036854775807}"#, #"{"flood": 67108864}"#, #"{"raw": "HTTP/1.1 200 OK\r\n\r\n"}"#,
        ])
    func unusable(step: String) async throws {
        try await run(step) { _, subscription in
            let error = await error(subscription)
            #expect(error?.code == .transportUnusableAnswer, "\(step)")
            // It is tried again.
            await subscription.wait(for: .connecting)
        }
    }

    @Test("A message that is longer than the options allow ends the connection with an error that says so")
    func longMessage() async throws {
        try await run(#"{"flood": 2097152}"#) { options in
            options.subscriptions.maximumMessageSize = 1 << 19
        } _: { _, subscription in
            let transport = await error(subscription)?.cause as? TransportError
            #expect(transport?.code == .unusableAnswer)
            #expect(transport?.message.contains("longer message than is allowed") == true)
        }
    }

    @Test("Of texts that come at once those count, in their order, that come before one that cannot be one")
    func atOnce() async throws {
        let texts = [Self.event("ID", "first"), Self.event("ID", "second"), "hello"].map { "\"\($0)\"" }
        try await run(#"{"texts": [\#(texts.joined(separator: ","))]}"#) { _, subscription in
            var told: [String?] = []
            var code: LarderError.Code?
            for await event in subscription {
                switch event {
                case .data(let response): told.append(response["changed"]?["text"]?.string)
                case .state(let state): code = code ?? state.error?.code
                case .missed: break
                }
                if told.count == 2, code != nil { break }
            }
            #expect(told == ["first", "second"] && code == .transportUnusableAnswer)
        }
    }

    @Test("A text in fragments is one text")
    func fragments() async throws {
        let event = Self.event("ID", "whole")
        let parts = [event.prefix(19), event.dropFirst(19).prefix(27), event.dropFirst(46)].map { "\"\($0)\"" }
        // No part ends in the midst of what JSON writes as two characters.
        try await run(#"{"parts": [\#(parts.joined(separator: ","))]}"#) { app, subscription in
            #expect(await subscription.nextData() != nil)
            #expect(text(app) == "whole")
        }
    }

    @Test("What comes before the acknowledgement, of other ids and after the completion is dropped")
    func dropped() async throws {
        let steps = """
            {"wait": 1}, {"text": "\(Self.event("1", "early"))"}, \(Self.ack), {"wait": 2},
            {"text": "\(Self.event("77", "foreign"))"}, {"text": "{\\"type\\":\\"complete\\",\\"id\\":\\"77\\"}"},
            {"text": "{\\"type\\":\\"error\\",\\"id\\":\\"78\\",\\"payload\\":[]}"},
            {"text": "{\\"type\\":\\"complete\\",\\"id\\":\\"ID\\"}"}, {"text": "\(Self.event("ID", "late"))"}
            """
        try await run(steps, greets: false) { app, subscription in
            await subscription.wait(for: .ended)
            #expect(subscription.state.error == nil)
            try await Task.sleep(for: .milliseconds(50))
            #expect(text(app) == nil)
        }
    }

    @Test(
        "Errors as a list, as one object and as nonsense end the subscription with a typed error",
        arguments: [
            #"[{\"message\":\"no\"}]"#, #"{\"message\":\"no\"}"#, #"[]"#, #"null"#, #"7"#, #"[7, {\"x\":1}]"#,
        ])
    func errors(payload: String) async throws {
        let step = #"{"text": "{\"type\":\"error\",\"id\":\"ID\",\"payload\":\#(payload)}"}"#
        try await run(step) { _, subscription in
            await subscription.wait(for: .ended)
            #expect(subscription.state.error?.code == .serverErrors)
        }
    }

    @Test(
        "A start that is never acknowledged, a silent server and one that does not answer the handshake are timed out")
    func silent() async throws {
        // The server is reached in time, so that it is its answer that does not come.
        for (steps, opening) in [("", Duration.seconds(60)), ("null", .seconds(12))] {
            try await run(steps) { options in
                options.subscriptions.pacing.starting = .milliseconds(200)
                options.subscriptions.pacing.opening = opening
            } _: { _, subscription in
                #expect(await error(subscription)?.code == .transportTimedOut)
            }
        }
    }

    @Test("A server that opens a socket and does not take the connection up is not waited for any longer than allowed")
    func noAcknowledgement() async throws {
        try await run(#"{"wait": 1}"#, greets: false) { options in
            options.subscriptions.pacing.opening = .seconds(1)
        } _: { _, subscription in
            try await waitUntil("the wait ends") { subscription.state.error != nil }
            #expect(subscription.state.error?.code == .transportTimedOut)
        }
    }

    @Test("A connection that was taken up in time outlasts that time")
    func outlastsOpening() async throws {
        let event = #"{"text": "\#(Self.event("ID", "later"))"}"#
        try await run(#"\#(Self.pong), \#(Self.pong), {"sleep": 1.5}, \#(event)"#) { options in
            options.subscriptions.pacing.opening = .seconds(1)
        } _: { _, subscription in
            await subscription.wait(for: .live)
            for await event in subscription {
                guard case .state(let state) = event else { break }
                try #require(state.error == nil)
            }
        }
    }

    @Test("A ping is answered by a pong that says the same")
    func ping() async throws {
        let steps = #"{"ping": "are you there?"}, {"text": "\#(Self.event("ID", "answered"))"}"#
        try await run(steps) { app, subscription in
            try await waitUntil("the server has its pong") { text(app) == "answered" }
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("A connection that the server closes is closed by the client as well, with the server's code")
    func closedByServer() async throws {
        // Each connection says how one before it was closed.
        let event = #"{"text": "\#(Self.event("ID", "CODE"))"}"#
        try await run(#"\#(event), {"close": 1001}"#) { app, subscription in
            try await waitUntil("the server has its answer") { text(app) == "1001" }
            withExtendedLifetime(subscription) {}
        }
    }

    @Test("The error of a connection that the server closes has the code and the reason that the server gave")
    func closedWithReason() async throws {
        try await run(#"{"close": 4500, "reason": "out of stock"}"#) { _, subscription in
            let error = await error(subscription)
            let transport = try #require(error?.cause as? TransportError)
            let closed = try #require(transport.cause as? WebSocketClosed)
            #expect(closed.code == 4500 && closed.reason == "out of stock")
            #expect(transport.message.contains("out of stock"))
        }
    }

    @Test(
        "A connection that the server closes without a code, or ends without a close, ends with no code",
        arguments: [#"{"close": null}"#, #"{"cut": true}"#])
    func closedWithoutCode(step: String) async throws {
        try await run(step) { _, subscription in
            let error = await error(subscription)
            #expect(error?.code == .transportInterrupted)
            let transport = try #require(error?.cause as? TransportError)
            let closed = try #require(transport.cause as? WebSocketClosed)
            #expect(closed.code == nil && closed.reason.isEmpty)
        }
    }

    @Test("A server that sends and reads nothing is given up after the time of the options")
    func deaf() async throws {
        // The connection's first message is more than there is room for on its way.
        let payload: [String: Value] = ["x": .string(String(repeating: "x", count: 8 << 20))]
        let (begun, silence) = (SuspendingClock.now, Duration.seconds(2))
        try await run(#"{"deaf": 30}"#, greets: false) { options in
            options.subscriptions.silence = silence
            options.subscriptions.pacing.opening = .seconds(60)
            options.subscriptions.payload = { payload }
        } _: { _, subscription in
            #expect(await error(subscription)?.code == .transportTimedOut)
            try requireNear(begun + silence)
        }
    }

    @Test("One pong is no acknowledgement, since it may not have been asked for")
    func unaskedPong() async throws {
        try await run(Self.pong) { options in
            options.subscriptions.pacing.starting = .milliseconds(200)
        } _: { _, subscription in
            #expect(await error(subscription)?.code == .transportTimedOut)
        }
    }

    @Test("A payload that cannot be had is told, and tried again")
    func noPayload() async throws {
        struct None: Error {}
        try await run("") { options in
            options.subscriptions.payload = { throw None() }
        } _: { _, subscription in
            #expect(await error(subscription)?.code == .transportNotPrepared)
        }
    }

    @Test("A connection that another takes the place of is closed with the code of a normal end")
    func goodbye() async throws {
        try await run(#"{"text": "\#(Self.event("ID", "CODE"))"}"#) { options in
            options.subscriptions.lifetime = .milliseconds(200)
            options.subscriptions.pacing.draining = .milliseconds(50)
        } _: { app, subscription in
            try await waitUntil("the server was told of an end") { text(app) == "1000" }
            withExtendedLifetime(subscription) {}
        }
    }
}
