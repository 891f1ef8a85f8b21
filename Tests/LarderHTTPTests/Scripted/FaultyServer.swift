import Foundation
import LarderTestSupport
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization
import Testing

/// What goes wrong in an exchange, and where.
struct Fault: Sendable, CustomStringConvertible {
    enum Point: Sendable, Hashable {
        /// When the connection has been accepted.
        case connected
        /// In the TLS handshake: when the client has said something, or after so many bytes of the server's answer.
        case hello
        case handshake(Int)
        /// After so many bytes of the request.
        case receiving(Int)
        /// When the whole request is there, and nothing is done.
        case received
        /// When what was asked for is done, and so many bytes of the answer were sent.
        case answering(Int)
    }

    enum Damage: Sendable, CaseIterable { case close, reset, garbage, stall }

    var point: Point
    var harm: Damage

    var description: String { "\(harm) at \(point)" }

    /// Whether nothing of the request can have been sent.
    var isBeforeSending: Bool {
        switch point {
        case .hello, .handshake: true
        // Of what is not closed at once nothing is known.
        case .connected, .receiving, .received, .answering: false
        }
    }
}

/// A GraphQL server of one mutation and a query for its root type's name, on bare TCP or TLS, that fails once where a
/// test says.
final class FaultyServer: Sendable {
    struct State {
        var fault: Fault?
        /// How often something was done, and how many requests came, of each recipe.
        var effects: [String: Int] = [:]
        var requests: [String: Int] = [:]
        var keys: Set<String> = []
    }

    let url: URL
    let state: Mutex<State>
    private let channel: any Channel
    private let tellsRepeats: Bool

    private init(url: URL, state: consuming Mutex<State>, channel: any Channel, tellsRepeats: Bool) {
        (self.url, self.channel, self.tellsRepeats) = (url, channel, tellsRepeats)
        self.state = state
    }

    static func run(
        tellsRepeats: Bool, certificate: TestCertificate?, _ body: (FaultyServer) async throws -> Void
    ) async throws {
        let security = try certificate?.serverContext()
        let holder = Holder()
        let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard let server = holder.server.withLock({ $0 }) else { return }
                    let line = FaultyLine(server)
                    try channel.pipeline.syncOperations.addHandler(line)
                    if let security {
                        try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: security))
                    }
                    try channel.pipeline.syncOperations.addHandler(FaultyAnswerer(server, line))
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(channel.localAddress?.port)
        let url = try #require(URL(string: "\(security == nil ? "http" : "https")://localhost:\(port)/graphql"))
        let server = FaultyServer(
            url: url, state: Mutex(State()), channel: channel, tellsRepeats: tellsRepeats)
        holder.server.withLock { $0 = server }
        defer { holder.server.withLock { $0 = nil } }
        do { try await body(server) } catch {
            try await channel.close()
            throw error
        }
        try await channel.close()
    }

    private final class Holder: Sendable { let server = Mutex<FaultyServer?>(nil) }

    func arm(_ fault: Fault?) { state.withLock { $0.fault = fault } }

    /// The fault, once, if this is its place.
    func take(_ isHere: (Fault.Point) -> Bool) -> Fault.Damage? {
        state.withLock { state in
            guard let fault = state.fault, isHere(fault.point) else { return nil }
            state.fault = nil
            return fault.harm
        }
    }

    var point: Fault.Point? { state.withLock { $0.fault?.point } }

    func noteRequest(of recipe: String) { state.withLock { $0.requests[recipe, default: 0] += 1 } }

    func carryOut(_ recipe: String, key: String?) {
        state.withLock { state in
            if tellsRepeats, let key, !state.keys.insert(key).inserted { return }
            state.effects[recipe, default: 0] += 1
        }
    }

    static func answer(_ recipe: String) -> [UInt8] {
        answer(body: #"{"data":{"rate":{"__typename":"Recipe","id":"\#(recipe)","rating":5}}}"#)
    }

    /// To a runner that asks whether the server is there.
    static let presence = answer(body: #"{"data":{"__typename":"Query"}}"#)

    private static func answer(body: String) -> [UInt8] {
        Array(
            """
            HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n\
            Connection: close\r\n\r\n\(body)
            """.utf8)
    }
}

/// The network's end of a connection, under TLS where there is any.
final class FaultyLine: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let server: FaultyServer
    private var context: ChannelHandlerContext?
    private var written = 0
    private var isBroken = false

    init(_ server: FaultyServer) { self.server = server }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }
    func handlerRemoved(context: ChannelHandlerContext) { self.context = nil }

    func channelActive(context: ChannelHandlerContext) {
        context.fireChannelActive()
        if let harm = server.take({ $0 == .connected }) { suffer(harm) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if !isBroken, let harm = server.take({ $0 == .hello }) { suffer(harm) }
        if !isBroken { context.fireChannelRead(data) }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        guard !isBroken else {
            promise?.succeed()
            return
        }
        var bytes = unwrapOutboundIn(data)
        if case .handshake(let count)? = server.point, written + bytes.readableBytes > count {
            let part = bytes.readSlice(length: max(0, count - written)) ?? ByteBuffer()
            context.writeAndFlush(wrapOutboundOut(part), promise: promise)
            if let harm = server.take({ _ in true }) { suffer(harm) }
            return
        }
        written += bytes.readableBytes
        context.write(wrapOutboundOut(bytes), promise: promise)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func suffer(_ harm: Fault.Damage) {
        guard let context else { return }
        isBroken = true
        switch harm {
        case .stall: break
        case .close: context.close(promise: nil)
        case .reset:
            // With nothing to linger for, a connection is reset and not closed.
            (context.channel as? any SocketOptionProvider)?.setSoLinger(linger(l_onoff: 1, l_linger: 0))
                .assumeIsolated().whenComplete { _ in context.close(promise: nil) }
        case .garbage:
            let garbage = ByteBuffer(repeating: 0xFF, count: 64)
            context.writeAndFlush(wrapOutboundOut(garbage)).assumeIsolated().whenComplete { _ in
                context.close(promise: nil)
            }
        }
    }
}

/// Reads a request, does what it asks for, and answers.
final class FaultyAnswerer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let server: FaultyServer
    private let line: FaultyLine
    private var received: [UInt8] = []
    private var isDone = false

    init(_ server: FaultyServer, _ line: FaultyLine) { (self.server, self.line) = (server, line) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDone else { return }
        received += unwrapInboundIn(data).readableBytesView
        let count = received.count
        if let harm = server.take({ if case .receiving(let limit) = $0 { count >= limit } else { false } }) {
            isDone = true
            // Whatever has come is heard, if not understood.
            if case .mutation(let recipe, _)? = Request(whole: received) { server.noteRequest(of: recipe) }
            return line.suffer(harm)
        }
        guard let request = Request(whole: received) else { return }
        isDone = true
        guard case .mutation(let recipe, let key) = request else { return finish(FaultyServer.presence, context) }
        server.noteRequest(of: recipe)
        if let harm = server.take({ $0 == .received }) { return line.suffer(harm) }
        server.carryOut(recipe, key: key)
        let answer = FaultyServer.answer(recipe)
        guard case .answering(let sent)? = server.point, let harm = server.take({ _ in true }) else {
            return finish(answer, context)
        }
        let part = ByteBuffer(bytes: answer.prefix(sent))
        context.writeAndFlush(wrapOutboundOut(part)).assumeIsolated().whenComplete { [line] _ in line.suffer(harm) }
    }

    private func finish(_ answer: [UInt8], _ context: ChannelHandlerContext) {
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: answer))).assumeIsolated().whenComplete { _ in
            context.close(promise: nil)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    private enum Request {
        case mutation(_ recipe: String, key: String?)
        case query

        /// Nil where the bytes are not all of one.
        init?(whole bytes: [UInt8]) {
            let text = String(decoding: bytes, as: UTF8.self)
            guard let end = text.range(of: "\r\n\r\n") else { return nil }
            let lines = text[..<end.lowerBound].split(separator: "\r\n").map(String.init)
            func header(_ name: String) -> String? {
                lines.first { $0.lowercased().hasPrefix("\(name):") }.map {
                    $0.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
                }
            }
            let body = Array(text[end.upperBound...].utf8)
            guard let length = header("content-length").flatMap({ Int($0) }), body.count >= length,
                let request = JSONValue(body)
            else { return nil }
            self =
                request["variables", "recipe"]?.string.map { .mutation($0, key: header("idempotency-key")) } ?? .query
        }
    }
}
