import LarderGraphQL
import NIOCore
import NIOHTTP1

/// One connection: GraphQL over HTTP for POST and GET at `/graphql`.
final class RecipeHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// Bytes of a request's body above which it is refused.
    private static let largestBody = 4 << 20

    private let service: RecipeService
    private var head: HTTPRequestHead?
    private var body: [UInt8] = []

    init(service: RecipeService) { self.service = service }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body = []
        case .body(let chunk):
            if body.count <= Self.largestBody { body += chunk.readableBytesView }
        case .end:
            guard let head else { return }
            let reply = reply(to: head)
            body = []
            send(reply, keepAlive: head.isKeepAlive, context: context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        context.close(promise: nil)
    }

    // MARK: - Answering

    private struct Reply {
        var status: HTTPResponseStatus
        var type = "application/json; charset=utf-8"
        var headers: HTTPHeaders = [:]
        var body: [UInt8]

        static func text(_ status: HTTPResponseStatus, _ text: String, headers: HTTPHeaders = [:]) -> Reply {
            Reply(status: status, type: "text/plain; charset=utf-8", headers: headers, body: Array(text.utf8))
        }
    }

    private func reply(to head: HTTPRequestHead) -> Reply {
        guard head.uri.prefix(while: { $0 != "?" }) == "/graphql" else {
            return .text(.notFound, "Operations are taken at /graphql.\n")
        }
        service.count()
        let wire: WireRequest?
        switch head.method {
        case .POST:
            guard body.count <= Self.largestBody else { return .text(.payloadTooLarge, "The request is too large.\n") }
            let type = head.headers.first(name: "Content-Type") ?? ""
            guard type.lowercased().hasPrefix("application/json") else {
                return .text(.unsupportedMediaType, "Send application/json.\n")
            }
            wire = WireRequest(json: body)
        case .GET:
            wire = WireRequest(uri: head.uri)
        default:
            return .text(.methodNotAllowed, "Use POST or GET.\n", headers: ["Allow": "GET, POST"])
        }
        let takesGraphQL = head.headers[canonicalForm: "Accept"]
            .contains { $0.hasPrefix("application/graphql-response+json") }
        guard let wire else {
            let error = ExecutionError("The request holds no operation.", code: "BAD_REQUEST")
            return answer(Executor.Answer(data: nil, errors: [error]), status: .badRequest, takesGraphQL)
        }
        do throws(ExecutionError) {
            let prepared = try service.executor.prepare(wire.request)
            guard head.method == .POST || prepared.operation.kind == .query else {
                return .text(.methodNotAllowed, "By GET there are only queries.\n", headers: ["Allow": "POST"])
            }
            let key = head.headers.first(name: RecipeServer.idempotencyHeader)
            return answer(service.execute(prepared, idempotencyKey: key), status: .ok, takesGraphQL)
        } catch {
            // The older type has 200 for every well-formed request.
            let status: HTTPResponseStatus = takesGraphQL ? .badRequest : .ok
            return answer(Executor.Answer(data: nil, errors: [error]), status: status, takesGraphQL)
        }
    }

    private func answer(_ answer: Executor.Answer, status: HTTPResponseStatus, _ takesGraphQL: Bool) -> Reply {
        let type = takesGraphQL ? "application/graphql-response+json" : "application/json"
        return Reply(status: status, type: "\(type); charset=utf-8", body: answer.json)
    }

    private func send(_ reply: Reply, keepAlive: Bool, context: ChannelHandlerContext) {
        let latency = service.latency
        guard latency > .zero else { return write(reply, keepAlive: keepAlive, context: context) }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: TimeAmount(latency)) {
            let (handler, context) = bound.value
            if context.channel.isActive { handler.write(reply, keepAlive: keepAlive, context: context) }
        }
    }

    private func write(_ reply: Reply, keepAlive: Bool, context: ChannelHandlerContext) {
        var headers = reply.headers
        headers.add(name: "Content-Type", value: reply.type)
        headers.add(name: "Content-Length", value: String(reply.body.count))
        let head = HTTPResponseHead(version: .http1_1, status: reply.status, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: reply.body)))), promise: nil)
        let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        guard !keepAlive else { return }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        written.whenComplete { _ in bound.value.close(promise: nil) }
    }
}
