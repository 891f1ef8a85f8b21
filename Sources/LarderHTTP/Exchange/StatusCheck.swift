package import AsyncHTTPClient
import NIOCore
import NIOHTTP1

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

extension HTTPClient.Configuration {
    /// Makes each connection of HTTP/1.1 end by an error where a server's status is none.
    package mutating func refuseImpossibleStatuses() {
        http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                try pipeline.addHandler(StatusCheck(), position: .after(decoder))
            }
        }
    }
}
