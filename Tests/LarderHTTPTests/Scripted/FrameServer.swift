import NIOCore

/// Answers each request of a connection of HTTP/2 by the same frames (RFC 9113, section 4.1).
final class FrameServer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    enum Frame: Sendable {
        /// HEADERS with a status, or with another field.
        case head(String?, isLast: Bool = false)
        /// DATA, of at most 255 bytes.
        case body(String = "", isLast: Bool)
        /// RST_STREAM, without an error.
        case reset
    }

    private static let preface = 24
    private static let frameHead = 9

    private let answer: [Frame]
    private let isEarly: Bool
    private var received: [UInt8] = []
    private var offset = FrameServer.preface
    private var hasGreeted = false

    /// - Parameter isEarly: Whether the answer leaves as soon as the request's head has come.
    init(_ answer: [Frame], isEarly: Bool) { (self.answer, self.isEarly) = (answer, isEarly) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        received += Array(unwrapInboundIn(data).readableBytesView)
        if !hasGreeted {
            hasGreeted = true
            // SETTINGS of at most three streams at a time, and that the client's are taken.
            send(context, type: 4, flags: 0, stream: [0, 0, 0, 0], [0, 3, 0, 0, 0, 3])
            send(context, type: 4, flags: 1, stream: [0, 0, 0, 0], [])
        }
        while received.count >= offset + Self.frameHead {
            let head = Array(received[offset...].prefix(Self.frameHead))
            let length = Int(head[0]) << 16 | Int(head[1]) << 8 | Int(head[2])
            guard received.count >= offset + Self.frameHead + length else { return }
            offset += Self.frameHead + length
            let (isHead, isBody, isLast) = (head[3] == 1, head[3] == 0, head[4] & 1 == 1)
            if isEarly ? isHead : (isHead || isBody) && isLast {
                for frame in answer { send(context, frame, stream: Array(head[5...])) }
            }
        }
    }

    private func send(_ context: ChannelHandlerContext, _ frame: Frame, stream: [UInt8]) {
        switch frame {
        case .head(let status, let isLast):
            // A literal field, not indexed, whose name is the eighth of the static table (RFC 7541); `server` is the
            // 54th.
            let bytes = Array((status ?? "none").utf8)
            let name: [UInt8] = status == nil ? [0x0F, 54 - 15] : [0x08]
            send(context, type: 1, flags: isLast ? 5 : 4, stream: stream, name + [UInt8(bytes.count)] + bytes)
        case .body(let text, let isLast):
            send(context, type: 0, flags: isLast ? 1 : 0, stream: stream, Array(text.utf8))
        case .reset:
            send(context, type: 3, flags: 0, stream: stream, [0, 0, 0, 0])
        }
    }

    private func send(
        _ context: ChannelHandlerContext, type: UInt8, flags: UInt8, stream: [UInt8], _ payload: [UInt8]
    ) {
        let head = [0, 0, UInt8(payload.count), type, flags] + stream
        context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: head + payload)), promise: nil)
    }
}
