import Foundation
import Larder
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOWebSocket
import Synchronization

/// A WebSocket server on the loopback interface: it acknowledges connections, answers pings and sends what it is told
/// to, as a server of `graphql-transport-ws` does; or it echoes what it gets.
final class EventServer: Sendable {
    /// How it answers.
    enum Manner: Sendable {
        case graphQL, echo
    }

    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let server: Mutex<(any Channel)?> = Mutex(nil)
    private let connections = Mutex<[any Channel]>([])

    /// Runs the body with a server, given its port.
    static func run<Result>(
        _ manner: Manner, _ body: (EventServer, Int) async throws -> Result
    ) async throws -> Result {
        let server = EventServer()
        let port = try await server.start(manner)
        do {
            let result = try await body(server, port)
            try await server.stop()
            return result
        } catch {
            try await server.stop()
            throw error
        }
    }

    private func start(_ manner: Manner) async throws -> Int {
        let upgrader = NIOWebSocketServerUpgrader(
            maxFrameSize: 1 << 20,
            shouldUpgrade: { channel, head in
                var headers = HTTPHeaders()
                if let offered = head.headers.first(name: "Sec-WebSocket-Protocol") {
                    headers.add(name: "Sec-WebSocket-Protocol", value: offered)
                }
                return channel.eventLoop.makeSucceededFuture(headers)
            },
            upgradePipelineHandler: { channel, _ in
                self.connections.withLock { $0.append(channel) }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(Conversation(manner))
                }
            })
        let channel = try await ServerBootstrap(group: group)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.pipeline.configureHTTPServerPipeline(
                    withServerUpgrade: (upgraders: [upgrader], completionHandler: { _ in }))
            }
            .bind(host: "127.0.0.1", port: 0).get()
        server.withLock { $0 = channel }
        guard let port = channel.localAddress?.port else { throw BenchFailure("the server has no port") }
        return port
    }

    private func stop() async throws {
        cut()
        try await server.withLock { $0 }?.close()
        try await group.shutdownGracefully()
    }

    /// Ends all connections.
    func cut() {
        let open = connections.withLock { connections in
            defer { connections = [] }
            return connections
        }
        for channel in open { channel.close(promise: nil) }
    }

    /// Sends texts on the last connection.
    func send(_ texts: [ByteBuffer]) {
        guard let channel = connections.withLock({ $0.last }) else { return }
        channel.eventLoop.execute {
            for text in texts { channel.write(WebSocketFrame(fin: true, opcode: .text, data: text), promise: nil) }
            channel.flush()
        }
    }
}

private final class Conversation: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let manner: EventServer.Manner

    init(_ manner: EventServer.Manner) { self.manner = manner }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        switch (frame.opcode, manner) {
        case (.text, .echo): send(frame.unmaskedData, context)
        case (.text, .graphQL):
            var text = frame.unmaskedData
            if text.place(of: #""connection_init""#) != nil {
                send(ByteBuffer(string: #"{"type":"connection_ack"}"#), context)
            } else if let place = text.place(of: #""type":"ping""#) {
                text.setString(#""type":"pong""#, at: place)
                send(text, context)
            }
        case (.connectionClose, _): context.close(promise: nil)
        default: break
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) { context.flush() }

    private func send(_ text: ByteBuffer, _ context: ChannelHandlerContext) {
        context.write(wrapOutboundOut(WebSocketFrame(fin: true, opcode: .text, data: text)), promise: nil)
    }
}

extension ByteBuffer {
    /// The index of the first occurrence; nil where there is none.
    fileprivate func place(of wanted: StaticString) -> Int? {
        withUnsafeReadableBytes { bytes in
            guard let start = bytes.baseAddress else { return nil }
            let last = bytes.count - wanted.utf8CodeUnitCount
            let found = stride(from: 0, through: last, by: 1).first { offset in
                memcmp(start + offset, wanted.utf8Start, wanted.utf8CodeUnitCount) == 0
            }
            return found.map { readerIndex + $0 }
        }
    }
}

/// The floors' client: a bare WebSocket that counts the texts it gets and hands each to a closure.
final class BareSocket: Sendable {
    private let channel: any Channel
    private let texts: Texts

    final class Texts: ChannelInboundHandler, Sendable {
        typealias InboundIn = WebSocketFrame

        private let state = Mutex<(count: Int, awaited: Int, continuation: CheckedContinuation<Void, Never>?)>(
            (0, 0, nil))
        private let body: @Sendable (ByteBuffer) -> Void

        init(_ body: @escaping @Sendable (ByteBuffer) -> Void) { self.body = body }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let frame = unwrapInboundIn(data)
            guard frame.opcode == .text else { return }
            body(frame.data)
            let continuation = state.withLock { state -> CheckedContinuation<Void, Never>? in
                state.count += 1
                guard state.count >= state.awaited else { return nil }
                defer { state.continuation = nil }
                return state.continuation
            }
            continuation?.resume()
        }

        func wait(for count: Int) async {
            await withCheckedContinuation { continuation in
                let isThere = state.withLock { state in
                    if state.count >= count { return true }
                    (state.awaited, state.continuation) = (count, continuation)
                    return false
                }
                if isThere { continuation.resume() }
            }
        }
    }

    private init(_ channel: any Channel, _ texts: Texts) { (self.channel, self.texts) = (channel, texts) }

    static func open(
        _ port: Int, on group: any EventLoopGroup, _ body: @escaping @Sendable (ByteBuffer) -> Void
    ) async throws -> BareSocket {
        let texts = Texts(body)
        let upgrade = try await ClientBootstrap(group: group)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    let upgrader = NIOTypedWebSocketClientUpgrader<Void>(maxFrameSize: 1 << 20) { channel, _ in
                        channel.eventLoop.makeCompletedFuture {
                            try channel.pipeline.syncOperations.addHandler(texts)
                        }
                    }
                    var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/graphql")
                    head.headers.add(name: "Host", value: "127.0.0.1:\(port)")
                    head.headers.add(name: "Sec-WebSocket-Protocol", value: "graphql-transport-ws")
                    let configuration = NIOUpgradableHTTPClientPipelineConfiguration(
                        upgradeConfiguration: NIOTypedHTTPClientUpgradeConfiguration(
                            upgradeRequestHead: head, upgraders: [upgrader],
                            notUpgradingCompletionHandler: { channel in
                                channel.eventLoop.makeFailedFuture(ChannelError.inputClosed)
                            }))
                    let upgraded = try channel.pipeline.syncOperations.configureUpgradableHTTPClientPipeline(
                        configuration: configuration)
                    return upgraded.map { channel }
                }
            }
        return BareSocket(try await upgrade.get(), texts)
    }

    func send(_ sent: [ByteBuffer]) {
        channel.eventLoop.execute { [channel] in
            for text in sent {
                channel.write(
                    WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: text), promise: nil)
            }
            channel.flush()
        }
    }

    /// Waits until so many texts have come.
    func wait(for count: Int) async { await texts.wait(for: count) }

    func close() async throws { try await channel.close() }
}
