package import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOHTTP2

/// Ends a connection whose server answers with a status below 100, before the client sees it.
///
/// HTTP's parser takes any three digits. The client takes each head below 200 for one that another follows, and stops
/// the process where the answer ends instead (`HTTPRequestStateMachine.receivedHTTPResponseEnd`).
private final class StatusCheck: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private var hasRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        if case .head(let head) = unwrapInboundIn(data), head.status.code < 100 {
            hasRefused = true
            context.fireErrorCaught(HTTPParserError.invalidStatus)
            context.close(promise: nil)
        }
        if !hasRefused { context.fireChannelRead(data) }
    }
}

/// Ends a stream of HTTP/2 whose frames are no answer, and has an answer end after its request.
///
/// The client stops the process where a status is negative (`HTTPResponseHead.init(http2HeaderBlock:)`), where an
/// answer ends without a head, and where a stream fails after its answer but before all of its request is sent
/// (`HTTP2ClientRequestHandler`, force-unwrapped requests). It also leaves a stream open whose answer says 300 or more
/// before all of the request is sent: the stream then counts against the server's limit for ever, and closing the
/// client waits for it.
private final class StreamCheck: ChannelDuplexHandler {
    typealias InboundIn = HTTP2Frame.FramePayload
    typealias InboundOut = HTTP2Frame.FramePayload
    typealias OutboundIn = HTTP2Frame.FramePayload
    typealias OutboundOut = HTTP2Frame.FramePayload

    /// The final head's.
    private var status: String?
    private var hasRefused = false
    private var hasSentAll = false
    /// The frame that ends an answer below 300 before its request has been sent.
    private var earlyEnd: NIOAny?

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        if unwrapOutboundIn(data).endsStream { hasSentAll = true }
        context.write(data, promise: promise)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasRefused else { return }
        let frame = unwrapInboundIn(data)
        guard isAnswer(frame) else {
            hasRefused = true
            context.fireErrorCaught(HTTPParserError.invalidStatus)
            context.close(promise: nil)
            return
        }
        if !frame.endsStream || hasSentAll {
            context.fireChannelRead(data)
        } else if let status, status >= "300" {
            context.fireChannelRead(data)
            context.close(promise: nil)
        } else {
            earlyEnd = data
        }
    }

    /// A stream closes once both sides have ended it.
    func channelInactive(context: ChannelHandlerContext) {
        if hasSentAll, let earlyEnd { context.fireChannelRead(earlyEnd) }
        context.fireChannelInactive()
    }

    /// Whether what came so far may be an answer: heads below 200, one of three digits, its body, trailers without a
    /// status (RFC 9113, section 8.1).
    private func isAnswer(_ frame: HTTP2Frame.FramePayload) -> Bool {
        if case .headers(let block) = frame, let text = block.headers.first(name: ":status") {
            // HTTP/2 has no 101 (section 8.6).
            guard status == nil, text.utf8.count == 3, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                text >= "100", text != "101"
            else { return false }
            if text >= "200" { status = text }
            return status != nil || !frame.endsStream
        }
        switch frame {
        case .headers, .data: return status != nil
        default: return true
        }
    }
}

extension HTTP2Frame.FramePayload {
    fileprivate var endsStream: Bool {
        switch self {
        case .headers(let headers): headers.endStream
        case .data(let data): data.endStream
        default: false
        }
    }
}

extension HTTPClient.Configuration {
    /// Makes each connection of HTTP/1.1, and each stream of HTTP/2, end by an error where a server's status is none.
    package mutating func refuseImpossibleStatuses() {
        http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                try pipeline.addHandler(StatusCheck(), position: .after(decoder))
            }
        }
        http2StreamChannelDebugInitializer = { channel in
            channel.eventLoop.submit {
                try channel.pipeline.syncOperations.addHandler(StreamCheck(), position: .first)
            }
        }
    }
}
