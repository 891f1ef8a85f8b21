import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import NIOPosix
import Synchronization
import Testing

@Suite(
    "Silence on a WebSocket", .timeLimit(.minutes(5)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct SilentConnectionTests {
    /// Reads from a server that says what a script says.
    private func run(
        _ steps: String, silence: Duration, pings: Bool = true,
        _ body: (inout WebSocketConnection.Messages, WebSocketConnection.Writer) async throws -> Void
    ) async throws {
        try await ForeignServer.run("frames.py", #"{"subprotocol": "ours", "script": [\#(steps)]}"#) { server in
            var connection = WebSocketConnection(url: server.url, subprotocols: ["ours"])
            (connection.silence, connection.pings) = (silence, pings)
            try await connection.run(on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .ample, body)
        }
    }

    private func countTexts(_ messages: [WebSocketMessage]) -> Int {
        messages.count { if case .text = $0 { true } else { false } }
    }

    @Test("A server that answers pings is not given up, though it sends nothing else")
    func answersPings() async throws {
        try await run("", silence: .seconds(4)) { messages, _ in
            var answers = 0
            while answers < 2, let together = try await messages.next() {
                answers += together.count { if case .alive = $0 { true } else { false } }
            }
            #expect(answers >= 2)
        }
    }

    @Test("A silent server gets a ping after half of the time, and its answer comes before a silence is told")
    func askedInTime() async throws {
        try await run("", silence: .seconds(8)) { messages, _ in
            let together = try await messages.next()
            let isAnswer = if case .alive? = together?.first { true } else { false }
            #expect(isAnswer)
        }
    }

    @Test("The server's time is known from the answer that opens a socket")
    func date() async throws {
        try await ForeignServer.run("frames.py", #"{"subprotocol": "ours", "script": []}"#) { server in
            let dates = Mutex<[String?]>([])
            var connection = WebSocketConnection(url: server.url, subprotocols: ["ours"])
            connection.heard = { date in dates.withLock { $0.append(date) } }
            try await connection.run(on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .ample) { _, _ in }
            let told = dates.withLock { $0 }
            #expect(told.count == 1 && told.first??.hasSuffix("GMT") == true)
        }
    }

    @Test("Each of two silences is told once")
    func toldAgain() async throws {
        try await run(#"{"wait": 1}, {"text": "{}"}"#, silence: .seconds(6), pings: false) { messages, writer in
            var told: [String] = []
            while told.count < 3, let together = try await messages.next() {
                for message in together {
                    switch message {
                    case .text: told.append("text")
                    case .alive: told.append("alive")
                    case .silent:
                        told.append("silent")
                        _ = await writer.write([Array(#"{"type":"x"}"#.utf8)])
                    }
                }
            }
            #expect(told == ["silent", "text", "silent"])
        }
    }

    @Test("A message whose bytes come slowly keeps its connection, though all of it takes longer than a silence may")
    func slowMessage() async throws {
        let parts = Array(repeating: #"" ""#, count: 8).joined(separator: ", ")
        try await run(#"{"parts": [\#(parts)], "pause": 0.5}"#, silence: .seconds(2)) { messages, _ in
            var texts = 0
            while texts < 1, let together = try await messages.next() { texts += countTexts(together) }
            #expect(texts == 1)
        }
    }

    @Test("Without pings, a silence is told after a third of the time for which the server may be silent")
    func toldSilence() async throws {
        // The text comes after a third, and well before the end.
        try await run(#"{"sleep": 1.8}, {"text": ""}"#, silence: .seconds(3), pings: false) { messages, _ in
            let first = try await messages.next()
            let together = try #require(first)
            let isSilent = if case .silent? = together.first { true } else { false }
            #expect(together.count == 1 && isSilent)
        }
    }

    @Test("A server is not asked where no pings are wanted, and is given up when its time is over")
    func noPings() async throws {
        let error = await #expect(throws: TransportError.self) {
            try await run("", silence: .seconds(3), pings: false) { messages, _ in
                while let together = try await messages.next() {
                    let isAnswered = together.contains { if case .alive = $0 { true } else { false } }
                    #expect(!isAnswered)
                }
            }
        }
        #expect(error?.code == .timedOut)
    }

    @Test("A ping that the server does not answer is told as a silence before the connection is given up")
    func unansweredPing() async throws {
        try await run(#"{"sleep": 30}"#, silence: .seconds(2)) { messages, _ in
            let together = try await messages.next()
            let isSilent = if case .silent? = together?.first { true } else { false }
            #expect(isSilent)
        }
    }

    @Test("A server is not given up while what it has sent waits for its reader, however long that is")
    func slowReader() async throws {
        let texts = Array(repeating: #"{"flood": 2097152}"#, count: 10).joined(separator: ", ")
        try await run(texts, silence: .seconds(2)) { messages, _ in
            // Nothing tells of a reader who does not read.
            try await Task.sleep(for: .seconds(5))
            var texts = 0
            while texts < 10, let together = try await messages.next() { texts += countTexts(together) }
            #expect(texts == 10)
        }
    }
}
