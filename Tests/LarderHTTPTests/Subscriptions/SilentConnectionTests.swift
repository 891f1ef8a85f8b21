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
        _ steps: String, silence: Duration,
        _ body: (inout WebSocketConnection.Messages, WebSocketConnection.Writer) async throws -> Void
    ) async throws {
        try await ForeignServer.run("frames.py", #"{"subprotocol": "ours", "script": [\#(steps)]}"#) { server in
            var connection = WebSocketConnection(url: server.url, subprotocols: ["ours"])
            connection.silence = silence
            try await connection.run(on: MultiThreadedEventLoopGroup.singleton, openedBy: .now + .ample, body)
        }
    }

    private func countTexts(_ messages: [WebSocketMessage]) -> Int {
        messages.count { if case .text = $0 { true } else { false } }
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
