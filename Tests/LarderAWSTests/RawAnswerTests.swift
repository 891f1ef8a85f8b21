import Foundation
import Larder
import LarderAWS
import NIOCore
import NIOPosix
import Testing

@Suite("Answers that no server of HTTP's writes", .timeLimit(.minutes(10)))
struct RawAnswerTests {
    private func run(
        _ answer: String, then drop: String? = nil, _ body: (S3Transport) async throws -> Void
    ) async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { $0.pipeline.addHandler(SameAnswer(answer, then: drop)) }
            .bind(host: "127.0.0.1", port: 0).get()
        var options = S3Transport.Options()
        options.endpoint = URL(string: "http://127.0.0.1:\(server.localAddress?.port ?? 0)")
        try await S3Transport.withTransport(
            region: "us-east-1", credentials: { _ in .test }, options: options, body)
        try await server.close()
    }

    private func put(_ transport: S3Transport, idle: Duration) async throws(ObjectError) -> StoredObject {
        try await transport.put(ObjectBody(Array("soup".utf8)), to: .somewhere, ObjectAttributes(), idle: idle)
    }

    @Test("A status below 100 is no answer, and ends nothing but its exchange", arguments: ["000", "007", "099"])
    func below(status: String) async throws {
        try await run("HTTP/1.1 \(status) No\r\ncontent-length: 2\r\n\r\nno") { transport in
            let asked = try await objectError { () async throws(ObjectError) in
                try await transport.object(at: .somewhere, within: .ample)
            }
            #expect(asked.code == .unusableAnswer)
            let sent = try await objectError { () async throws(ObjectError) in
                try await put(transport, idle: .ample)
            }
            #expect(sent.code == .unusableAnswer)
        }
    }

    @Test("A refusal whose bytes come one by one does not keep an exchange for ever")
    func drops() async throws {
        let head = "HTTP/1.1 400 No\r\ntransfer-encoding: chunked\r\n\r\n"
        try await run(head, then: "1\r\n \r\n") { transport in
            let idle = Duration.milliseconds(500)
            _ = try await objectError { () async throws(ObjectError) in
                try await transport.get(0..<100, of: .somewhere, etag: "\"e\"", into: Collected().sink(), idle: idle)
            }
            _ = try await objectError { () async throws(ObjectError) in try await put(transport, idle: idle) }
        }
    }
}

/// Answers whatever it is asked by the same bytes, and goes on with others that come one after the other.
private final class SameAnswer: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let answer: String
    private let drop: String?

    init(_ answer: String, then drop: String?) {
        self.answer = answer
        self.drop = drop
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let channel = context.channel
        channel.writeAndFlush(ByteBuffer(string: answer), promise: nil)
        guard let drop else { return }
        let pause = TimeAmount.milliseconds(20)
        context.eventLoop.scheduleRepeatedTask(initialDelay: pause, delay: pause) { task in
            guard channel.isActive else { return task.cancel() }
            channel.writeAndFlush(ByteBuffer(string: drop), promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
