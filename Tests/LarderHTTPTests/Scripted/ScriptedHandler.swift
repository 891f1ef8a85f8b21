import NIOCore
import NIOHTTP1

/// One connection of a scripted server.
final class ScriptedHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let script: ScriptedServer.Script
    private let log: ServerLog
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []
    private var owesReply = false
    private var closesItself = false

    init(script: @escaping ScriptedServer.Script, log: ServerLog) {
        self.script = script
        self.log = log
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
        case .body(let chunk):
            body += chunk.readableBytesView
        case .end:
            guard let head else { return }
            owesReply = true
            let received = log.seen.withLock { seen in
                let received = Received(
                    number: seen.requests.count, method: head.method, uri: head.uri, headers: head.headers, body: body
                )
                seen.requests.append(received)
                return received
            }
            let reply = script(received)
            guard let gate = reply.gate else { return write(reply, context: context) }
            let (loop, bound) = (context.eventLoop, NIOLoopBound((self, context), eventLoop: context.eventLoop))
            gate.whenOpen {
                loop.execute {
                    let (handler, context) = bound.value
                    if context.channel.isActive { handler.write(reply, context: context) }
                }
            }
        }
    }

    private func write(_ reply: Reply, context: ChannelHandlerContext) {
        if !reply.isSilent {
            var headers = reply.headers
            if reply.ending == .complete, !headers.contains(name: "Content-Length") {
                headers.add(name: "Content-Length", value: String(reply.body.count))
            }
            let head = HTTPResponseHead(version: .http1_1, status: reply.status, headers: headers)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: reply.body)))), promise: nil)
        }
        switch reply.ending {
        case .complete:
            owesReply = false
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        case .cut:
            closesItself = true
            context.close(promise: nil)
        case .hang:
            break
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        if owesReply, !closesItself { log.seen.withLock { $0.exchangesBroken += 1 } }
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }
}
