import AsyncHTTPClient
import Foundation
import Larder
import LarderHTTP
import LarderTestSupport
import NIOCore
import NIOPosix
import NIOSSL
import Testing

@Suite("Answers over HTTP/2", .timeLimit(.minutes(5)))
struct HTTP2AnswerTests {
    @Test(
        "A status that is none is an unusable answer or an interruption, and no trap",
        arguments: [
            "000", "099", "-1", "-404", "1", "99", "1000", "2000", "99999", "+200", "0200", "0x1", "", "abc",
            "99999999999999999999", "100", "101", "103", nil,
        ])
    func impossible(status: String?) async throws {
        try await expectNoAnswer([.head(status, isLast: true)])
    }

    @Test(
        "Frames that are no answer are an unusable answer or an interruption, and no trap",
        arguments: [
            "a body without a head": [.body(isLast: true)],
            "an empty body after a head that another follows": [.head("100"), .body(isLast: true)],
            "trailers after a head that another follows": [.head("103"), .head(nil, isLast: true)],
            "another protocol": [.head("101"), .head("200", isLast: true)],
            "two heads": [.head("200"), .head("404", isLast: true)],
            "two heads, and trailers": [.head("200"), .head("200"), .head(nil, isLast: true)],
            "a negative head in the place of trailers": [.head("200"), .head("-1", isLast: true)],
            "a reset": [.reset],
            "a reset after a head": [.head("200"), .reset],
        ] as [String: [FrameServer.Frame]])
    func noAnswer(name: String, frames: [FrameServer.Frame]) async throws {
        for isEarly in [false, true] { try await expectNoAnswer(frames, isEarly: isEarly) }
    }

    @Test(
        "A status that is one arrives, with and without a body and trailers", arguments: ["404", "500", "599", "999"],
        [[], [.body(isLast: true)], [.body(isLast: false), .head(nil, isLast: true)]] as [[FrameServer.Frame]])
    func real(status: String, rest: [FrameServer.Frame]) async throws {
        try await withServer(answering: [.head("103"), .head(status, isLast: rest.isEmpty)] + rest) { transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect(error.status == Int(status), "\(error)")
        }
    }

    @Test(
        "An answer is read to its end, in pieces and with trailers",
        arguments: [
            [.body(nameAnswer, isLast: true)], [.body(nameAnswer, isLast: false), .head(nil, isLast: true)],
            [.body(String(nameAnswer.prefix(5)), isLast: false), .body(String(nameAnswer.dropFirst(5)), isLast: true)],
        ] as [[FrameServer.Frame]])
    func whole(rest: [FrameServer.Frame]) async throws {
        try await withServer(answering: [.head("103"), .head("200")] + rest) { transport in
            try await expect(nameAnswer, from: transport, for: .query())
        }
    }

    @Test(
        "Answers that end before their requests leave no stream open, and the client closes",
        arguments: ["200", "403"], [[], [FrameServer.Frame.reset]])
    func early(status: String, end: [FrameServer.Frame]) async throws {
        let answer = [.head(status, isLast: true)] + end
        try await withServer(answering: answer, isEarly: true) { transport in
            // More than the streams that the server allows at a time.
            for _ in 0..<20 {
                let error = try await transportError { try await transport.send(.query(), within: .ample) }
                // A stream that is reset may be so before the request has left.
                #expect(error.status == Int(status) || !end.isEmpty && error.code == .interrupted, "\(error)")
            }
        }
    }

    private func expectNoAnswer(_ frames: [FrameServer.Frame], isEarly: Bool = false) async throws {
        try await withServer(answering: frames, isEarly: isEarly) { transport in
            let error = try await transportError { try await transport.send(.query(), within: .ample) }
            #expect([.unusableAnswer, .interrupted].contains(error.code), "\(error)")
        }
    }

    /// Runs `body` with a transport to a server of HTTP/2, and sees that its client closes.
    private func withServer(
        answering frames: [FrameServer.Frame], isEarly: Bool = false, _ body: (HTTPTransport) async throws -> Void
    ) async throws {
        try #require(TestCertificate.canBeMade, "there is no openssl here, which makes the certificate")
        try await withTemporaryFolder { folder in
            let certificate = try TestCertificate(in: folder)
            let context = try certificate.serverContext(protocols: ["h2"])
            let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: context))
                        try channel.pipeline.syncOperations.addHandler(FrameServer(frames, isEarly: isEarly))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
            let port = try #require(channel.localAddress?.port)
            let url = try #require(URL(string: "https://localhost:\(port)/graphql"))
            var configuration = HTTPTransport.clientConfiguration()
            configuration.tlsConfiguration = try certificate.clientConfiguration()
            let client = HTTPClient(configuration: configuration)
            let result: Result<Void, any Error>
            do { result = .success(try await body(HTTPTransport(endpoint: url, client: client))) } catch {
                result = .failure(error)
            }
            let closings = Counter()
            // Closing cannot be cancelled, and is not waited for without a limit.
            Task {
                try await client.shutdown()
                closings.add()
            }
            try await waitUntil("the client closes") { closings.count == 1 }
            try await channel.close()
            try result.get()
        }
    }
}
