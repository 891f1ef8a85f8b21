import Larder
import LarderFiles
package import NIOCore
import NIOWebSocket

/// The other side has closed the socket, with one of WebSocket's codes (RFC 6455, section 7.4) or of the protocol on it.
package struct WebSocketClosed: Error {
    /// Nil where the other side gave none, or the connection ended without a close.
    package var code: UInt16?
    /// As it came: at most 123 bytes.
    package var reason: String
}

/// How long a silent peer is borne. Sent down the pipeline once a server has told its own time.
struct WebSocketSilence: Sendable {
    var limit: Duration
}

/// Ends the connection from this side; the reader of the texts is told the error.
struct WebSocketEnd: Sendable {
    var error: any Error
    /// Whether the server is told, so that it can tell an end from a failure.
    var saysGoodbye = false
}

/// The program has ended the connection.
struct WebSocketFinished: Error {}

/// What comes on a connection, in its order.
package enum WebSocketMessage: Sendable {
    case text(ByteBuffer)
    /// The other side has answered a ping.
    case alive
    /// The other side says nothing for longer than it should, and not yet for so long that the connection is given up.
    case silent
}

/// Makes texts of frames and frames of texts, answers pings, and ends a connection whose other side is silent. The
/// messages that one read of the socket brings are handed on together.
///
/// What may not be sent, or says nothing, ends the connection with an error: it is not passed over.
final class WebSocketText: ChannelDuplexHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = [WebSocketMessage]
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = WebSocketFrame

    private var silence: Duration
    private let pings: Bool
    /// Whether the pipeline asks for more: nothing is expected of the other side while its messages wait here. The
    /// channel has asked already, after the answer to the handshake, when this handler is added.
    private var isReading = true
    /// What this read has brought by now.
    private var arrived: [WebSocketMessage] = []
    private var lastRead = ContinuousClock.now
    /// Since when the server takes nothing.
    private var unwritableSince: ContinuousClock.Instant?
    private var watch: Scheduled<Void>?
    private var hasEnded = false
    /// Whether the reader was told of the silence that lasts.
    private var hasToldSilence = false

    /// - Parameters:
    ///   - silence: After how long without a byte the connection is given up.
    ///   - pings: Whether the other side is asked to say something after half of that time.
    init(silence: Duration, pings: Bool) {
        self.silence = silence
        self.pings = pings
    }

    func handlerAdded(context: ChannelHandlerContext) { look(context) }

    func handlerRemoved(context: ChannelHandlerContext) { watch?.cancel() }

    func read(context: ChannelHandlerContext) {
        if !isReading { (isReading, lastRead) = (true, .now) }
        context.read()
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        isReading = false
        handOn(context)
        context.fireChannelReadComplete()
    }

    private func handOn(_ context: ChannelHandlerContext) {
        guard !arrived.isEmpty else { return }
        context.fireChannelRead(wrapInboundOut(arrived))
        arrived = []
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        (lastRead, hasToldSilence) = (.now, false)
        let frame = unwrapInboundIn(data)
        switch frame.opcode {
        case .text: arrived.append(.text(frame.unmaskedData))
        // A server that sends pings and reads nothing gets no more pongs than there is room for.
        case .ping: if context.channel.isWritable { write(.pong, frame.unmaskedData, context) }
        case .pong: arrived.append(.alive)
        case .connectionClose:
            var data = frame.unmaskedData
            let code = data.readInteger(as: UInt16.self)
            write(.connectionClose, frame.unmaskedData, context)
            end(WebSocketClosed(code: code, reason: String(buffer: data)), context)
        default: end(TransportError(.unusableAnswer, "The server sent a message that is no text."), context)
        }
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        let frame = WebSocketFrame(fin: true, opcode: .text, maskKey: .random(), data: unwrapOutboundIn(data))
        context.write(wrapOutboundOut(frame), promise: promise)
    }

    func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
        switch event {
        case let event as WebSocketSilence:
            silence = event.limit
            watch?.cancel()
            look(context)
            promise?.succeed()
        case let event as WebSocketEnd:
            if event.saysGoodbye {
                var code = ByteBuffer()
                code.writeInteger(UInt16(1_000))
                write(.connectionClose, code, context)
            }
            end(event.error, context)
            promise?.succeed()
        default: context.triggerUserOutboundEvent(event, promise: promise)
        }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        unwritableSince = context.channel.isWritable ? nil : .now
        context.fireChannelWritabilityChanged()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketError.invalidFrameLength, is NIOWebSocketFrameAggregator.Error:
            end(
                TransportError(.unusableAnswer, "The server sent a longer message than is allowed.", cause: error),
                context)
        case is NIOWebSocketError:
            end(TransportError(.unusableAnswer, "What came back is not WebSocket.", cause: error), context)
        default: end(error, context)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        end(WebSocketClosed(code: nil, reason: ""), context)
        context.fireChannelInactive()
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer, _ context: ChannelHandlerContext) {
        let frame = WebSocketFrame(fin: true, opcode: opcode, maskKey: .random(), data: data)
        context.writeAndFlush(wrapOutboundOut(frame), promise: nil)
    }

    private func end(_ error: any Error, _ context: ChannelHandlerContext) {
        guard !hasEnded else { return }
        hasEnded = true
        watch?.cancel()
        handOn(context)
        context.fireErrorCaught(error)
        context.close(promise: nil)
    }

    private func look(_ context: ChannelHandlerContext) {
        let silent = isReading ? lastRead.duration(to: .now) : .zero
        guard silent < silence else {
            return end(TransportError(.timedOut, "The server said nothing for \(silence)."), context)
        }
        if let unwritableSince, unwritableSince.duration(to: .now) >= silence {
            return end(TransportError(.timedOut, "The server read nothing for \(silence)."), context)
        }
        if pings, silent >= silence / 2 { write(.ping, ByteBuffer(), context) }
        // Where the other side is asked, it has had time to answer; otherwise it speaks several times within the limit.
        if !hasToldSilence, silent >= silence * (pings ? 3 : 1) / (pings ? 4 : 3) {
            hasToldSilence = true
            context.fireChannelRead(wrapInboundOut([.silent]))
            context.fireChannelReadComplete()
        }
        watch = context.eventLoop.assumeIsolated().scheduleTask(in: .nanoseconds((silence / 10).nanoseconds)) {
            self.look(context)
        }
    }
}

extension Duration {
    /// For NIO, which counts in nanoseconds; at most a day.
    var nanoseconds: Int64 {
        let bounded = min(self, .seconds(86_400))
        return bounded.components.seconds * 1_000_000_000 + bounded.components.attoseconds / 1_000_000_000
    }
}
