import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import NIOPosix
import Testing

@Suite(
    "Silence on a WebSocket", .timeLimit(.minutes(5)),
    .enabled(if: ForeignServer.isAvailable, "\(ForeignServer.requirement)"))
struct SilentConnectionTests {
    /// Reads from a server that says what a script says.
    private func run(
        _ steps: String, silence: Duration, pings: Bool = false,
        _ body: (inout WebSocketConnection.Messages, WebSocketConnection.Writer) async throws -> Void
    ) async throws {
        try await ForeignServer.run("frames.py", #"{"subprotocol": "ours", "script": [\#(steps)]}"#) { server in
            var connection = WebSocketConnection(url: server.url, subprotocols: ["ours"])
            connection.silence = silence
            connection.pings = pings
            try await connection.run(on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .ample, body)
        }
    }

    private func countTexts(_ messages: [WebSocketMessage]) -> Int {
        messages.count { if case .text = $0 { true } else { false } }
    }

    @Test("A server that answers pings is not given up, however long it says nothing else")
    func answersPings() async throws {
        try await run("", silence: .seconds(4), pings: true) { messages, _ in
            var answers = 0
            while answers < 2, let together = try await messages.next() {
                answers += together.count { if case .alive = $0 { true } else { false } }
            }
            #expect(answers >= 2)
        }
    }

    @Test("A silence is told once, and the next one is told as well")
    func toldAgain() async throws {
        try await run(#"{"wait": 1}, {"text": "{}"}"#, silence: .seconds(6)) { messages, writer in
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
