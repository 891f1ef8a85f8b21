import NIOCore
import NIOPosix

/// A wire to a server that does to some connections what bad networks and servers do, after so many bytes.
final class FaultyWire: Sendable {
    enum Fault: Sendable {
        /// The connection breaks.
        case cut
        /// Nothing moves any more.
        case stall
        /// Nothing moves for a while.
        case delay(TimeAmount)
        /// A byte becomes another.
        case corrupt
        /// This is answered, and the connection closed.
        case answer(String)
    }

    struct Plan: Sendable {
        var fault: Fault
        /// After so many bytes of the client's, or of the server's.
        var bytes: Int
        var isAnswer = false
    }

    private let group: MultiThreadedEventLoopGroup
    private let channel: any Channel
    /// `http://127.0.0.1:PORT`
    let url: String

    /// - Parameter plan: What is done to the next connection; nil for nothing.
    private init(
        group: MultiThreadedEventLoopGroup, port: Int, plan: @escaping @Sendable () -> Plan?
    ) async throws {
        self.group = group
        channel = try await ServerBootstrap(group: group)
            .childChannelOption(.autoRead, value: true)
            .childChannelInitializer { client in
                // The server's side is opened before anything of the client's is read.
                ClientBootstrap(group: client.eventLoop).connect(host: "127.0.0.1", port: port).flatMapThrowing {
                    server in
                    let plan = plan()
                    let forth = plan.flatMap { $0.isAnswer ? nil : $0 }
                    let back = plan.flatMap { $0.isAnswer ? $0 : nil }
                    try client.pipeline.syncOperations.addHandler(WireEnd(to: server, plan: forth))
                    try server.pipeline.syncOperations.addHandler(WireEnd(to: client, plan: back))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        url = "http://127.0.0.1:\(channel.localAddress?.port ?? 0)"
    }

    /// Runs `body` with a wire to a port of this machine.
    static func run<Result>(
        to port: Int, plan: @escaping @Sendable () -> Plan?, _ body: (FaultyWire) async throws -> Result
    ) async throws -> Result {
        let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
        do {
            let wire = try await FaultyWire(group: group, port: port, plan: plan)
            let result = try await body(wire)
            try await wire.channel.close()
            try await group.shutdownGracefully()
            return result
        } catch {
            try? await group.shutdownGracefully()
            throw error
        }
    }
}

/// One end of a connection: hands on what it reads to the other.
private final class WireEnd: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let other: any Channel
    private var plan: FaultyWire.Plan?
    private var isSilent = false
    private var isHeld = false
    private var held: [ByteBuffer] = []

    init(to other: any Channel, plan: FaultyWire.Plan?) {
        self.other = other
        self.plan = plan
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var bytes = unwrapInboundIn(data)
        guard !isSilent else { return }
        if let plan, bytes.readableBytes > plan.bytes {
            self.plan = nil
            switch plan.fault {
            case .cut:
                if let start = bytes.readSlice(length: plan.bytes) { pass(start) }
                isSilent = true
                context.close(promise: nil)
                other.close(promise: nil)
                return
            case .stall:
                isSilent = true
                return
            case .delay(let time):
                isHeld = true
                let loop = context.eventLoop
                let end = NIOLoopBound(self, eventLoop: loop)
                loop.scheduleTask(in: time) { end.value.release() }
            case .corrupt:
                let place = bytes.readerIndex + plan.bytes
                if let byte = bytes.getInteger(at: place, as: UInt8.self) {
                    bytes.setInteger(byte ^ 0x20, at: place)
                }
            case .answer(let text):
                isSilent = true
                var answer = context.channel.allocator.buffer(capacity: text.utf8.count)
                answer.writeString(text)
                let context = NIOLoopBound(context, eventLoop: context.eventLoop)
                context.value.writeAndFlush(NIOAny(answer)).whenComplete { _ in context.value.close(promise: nil) }
                other.close(promise: nil)
                return
            }
        } else {
            plan?.bytes -= bytes.readableBytes
        }
        pass(bytes)
    }

    private func pass(_ bytes: ByteBuffer) {
        if isHeld { held.append(bytes) } else { other.writeAndFlush(bytes, promise: nil) }
    }

    private func release() {
        isHeld = false
        for bytes in held { other.writeAndFlush(bytes, promise: nil) }
        held = []
    }

    func channelInactive(context: ChannelHandlerContext) {
        if !isSilent || !isHeld { other.close(promise: nil) }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
