import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization
import Testing

/// A server on the loopback interface that does with each request what a test says, whatever a storage would do.
final class ScriptedStorage: Sendable {
    typealias Script = @Sendable (Received) -> Reply

    let url: URL
    private let seen: SeenRequests

    /// Requests that were answered.
    var requests: [Received] { seen.requests.withLock { $0 } }

    private init(url: URL, seen: SeenRequests) {
        self.url = url
        self.seen = seen
    }

    /// Runs `body` with a storage that follows `script`, which is asked when a request's head has come, and a
    /// transport to it.
    static func run<Result>(
        _ script: @escaping Script, configure: (inout S3Transport.Options) -> Void = { _ in },
        credentials: @escaping S3Transport.CredentialSource = { _ in .test }, certificate: TestCertificate? = nil,
        _ body: (ScriptedStorage, S3Transport) async throws -> Result
    ) async throws -> Result {
        let seen = SeenRequests()
        let security = try certificate.map { try $0.serverContext() }
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.autoRead, value: true)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    if let security {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: security))
                    }
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false)
                    try channel.pipeline.syncOperations.addHandler(ScriptedConnection(script: script, seen: seen))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(channel.localAddress?.port)
        var options = S3Transport.Options()
        let url = URL(string: security == nil ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)")
        options.endpoint = url
        configure(&options)
        let storage = ScriptedStorage(url: try #require(url), seen: seen)
        let outcome: Swift.Result<Result, any Error>
        do {
            var client = S3Transport.clientConfiguration
            if let certificate, certificate.isTrusted {
                client.tlsConfiguration = try certificate.clientConfiguration()
            }
            outcome = .success(
                try await HTTPClient.withHTTPClient(configuration: client) { [options] client in
                    try await body(
                        storage,
                        S3Transport(region: "us-east-1", credentials: credentials, options: options, client: client))
                })
        } catch {
            outcome = .failure(error)
        }
        try await channel.close()
        return try outcome.get()
    }
}

/// What a scripted storage has seen.
final class SeenRequests: Sendable {
    let requests = Mutex<[Received]>([])
    let count = Mutex(0)
}

/// One connection of a scripted storage.
final class ScriptedConnection: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let script: ScriptedStorage.Script
    private let seen: SeenRequests
    private var received: Received?
    private var reply: Reply?

    init(script: @escaping ScriptedStorage.Script, seen: SeenRequests) {
        self.script = script
        self.seen = seen
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            let number = seen.count.withLock { count in
                defer { count += 1 }
                return count
            }
            let received = Received(number: number, method: head.method, target: head.uri, headers: head.headers)
            self.received = received
            reply = script(received)
            answerIfDue(context, isWhole: false)
        case .body(let chunk):
            received?.body += chunk.readableBytesView
            answerIfDue(context, isWhole: false)
        case .end:
            answerIfDue(context, isWhole: true)
        }
    }

    private func answerIfDue(_ context: ChannelHandlerContext, isWhole: Bool) {
        guard let reply, let received else { return }
        if !isWhole {
            guard let due = reply.afterBytes, received.body.count >= due else { return }
            // From here on it does not even take what comes.
            context.channel.setOption(.autoRead, value: false).whenComplete { _ in }
        }
        self.reply = nil
        seen.requests.withLock { $0.append(received) }
        write(reply, to: received, context)
    }

    private func write(_ reply: Reply, to received: Received, _ context: ChannelHandlerContext) {
        if !reply.isSilent {
            var headers = reply.headers
            if !headers.contains(name: "Content-Length"), !headers.contains(name: "Transfer-Encoding") {
                headers.add(name: "Content-Length", value: String(reply.body.count))
            }
            let head = HTTPResponseHead(version: .http1_1, status: reply.status, headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            if let delay = reply.bodyDelay {
                context.flush()
                let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
                context.eventLoop.scheduleTask(in: delay) { bound.value.0.finish(reply, received, bound.value.1) }
                return
            }
        }
        finish(reply, received, context)
    }

    private func finish(_ reply: Reply, _ received: Received, _ context: ChannelHandlerContext) {
        if !reply.isSilent {
            if received.method != .HEAD {
                context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: reply.body)))), promise: nil)
            }
            context.flush()
        }
        switch reply.ending {
        case .complete:
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            if reply.closes { context.close(promise: nil) }
        case .cut:
            context.close(promise: nil)
        case .hang:
            break
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}

extension Credentials.CloudCredentials {
    /// Keys that the AWS documentation uses in its examples.
    static let test = Credentials.CloudCredentials(
        accessKeyID: "AKIAIOSFODNN7EXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        expires: nil)
}

extension ObjectLocation {
    /// A place in a bucket of no importance.
    static let somewhere = ObjectLocation(bucket: "photos", key: "a/b")
}
