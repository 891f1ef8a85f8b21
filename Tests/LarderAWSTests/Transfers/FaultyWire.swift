import NIOCore
import NIOPosix

/// A wire to a server that does to some exchanges what bad networks and servers do, from a byte on.
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
        /// So many bytes pass in a millisecond.
        case throttle(Int)
        /// The client is given this, and the connection closed.
        case answer(WireRefusal)
    }

    /// A byte of a request, or of an answer.
    enum Spot: Sendable, CaseIterable {
        case start, head, bodyStart, middle, end

        /// Its offset. What has no body ends with its head.
        fileprivate func offset(head: Int, body: Int) -> Int {
            let last = head + body - 1
            return switch self {
            case .start: 0
            case .head: head / 2
            case .bodyStart: min(head, last)
            case .middle: min(head + body / 2, last)
            case .end: last
            }
        }
    }

    enum Place: Sendable {
        case spot(Spot)
        /// After so many bytes; nothing happens where there are no more.
        case byte(Int)

        func offset(head: Int, body: Int) -> Int {
            switch self {
            case .spot(let spot): spot.offset(head: head, body: body)
            case .byte(let offset): offset
            }
        }
    }

    enum Side: Sendable, CaseIterable { case request, answer }

    struct Plan: Sendable {
        var fault: Fault
        var side: Side
        var place: Place
    }

    /// What is done to an exchange, whose request has this head; nil for nothing.
    typealias Planner = @Sendable (_ head: String) -> Plan?

    private let channel: any Channel
    /// `http://127.0.0.1:PORT`
    let url: String

    private init(group: MultiThreadedEventLoopGroup, port: Int, plan: @escaping Planner) async throws {
        channel = try await ServerBootstrap(group: group)
            .childChannelOption(.autoRead, value: true)
            .childChannelInitializer { client in
                // The server's side is opened before anything of the client's is read.
                ClientBootstrap(group: client.eventLoop).connect(host: "127.0.0.1", port: port).flatMapThrowing {
                    server in
                    let connection = WireConnection(client: client, server: server, plan: plan)
                    try client.pipeline.syncOperations.addHandler(WireEnd(connection, .request))
                    try server.pipeline.syncOperations.addHandler(WireEnd(connection, .answer))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        url = "http://127.0.0.1:\(channel.localAddress?.port ?? 0)"
    }

    /// Runs `body` with a wire to a port of this machine.
    static func run<Result>(
        to port: Int, plan: @escaping Planner, _ body: (FaultyWire) async throws -> Result
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

/// Hands what one end sends to the connection.
private final class WireEnd: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer

    private let connection: WireConnection
    private let side: FaultyWire.Side

    init(_ connection: WireConnection, _ side: FaultyWire.Side) {
        (self.connection, self.side) = (connection, side)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        connection.take(unwrapInboundIn(data), side)
    }

    func channelInactive(context: ChannelHandlerContext) {
        connection.end(side)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
