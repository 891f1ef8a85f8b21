import Foundation
import NIOCore
import NIOHTTP1

/// One connection: as much of S3's protocol as uploads and downloads need, with bounded memory.
///
/// Every client is served: signatures are not checked.
final class ObjectHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// Bytes of a request's body above which the connection is closed; not those of objects.
    private static let largestBody = 8 << 20
    /// Bytes of an object that are read and sent at a time.
    private static let chunk = 256 << 10

    /// What is being read.
    private enum Reading {
        case nothing
        case body(ObjectRequest, ByteBuffer)
        case bytes(ObjectRequest, KeptBytes.Writer)
        /// What is answered when the body has been read.
        case refused(HTTPRequestHead, ObjectAnswer)
    }

    private let shelf: ObjectShelf
    private var reading = Reading.nothing

    init(shelf: ObjectShelf) { self.shelf = shelf }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): reading = begin(head)
        case .body(let chunk):
            if !take(chunk) { context.close(promise: nil) }
        case .end:
            let whole = reading
            reading = .nothing
            switch whole {
            case .nothing: break
            case .refused(let head, let answer): send(answer, to: head, context)
            case .body(let request, let body):
                send(shelf.answer(to: request, nil, body: body), to: request.head, context)
            case .bytes(let request, let writer):
                let answer: ObjectAnswer
                do { answer = shelf.answer(to: request, try writer.end(), body: ByteBuffer()) } catch {
                    answer = .failure(error)
                }
                send(answer, to: request.head, context)
            }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Reading

    private func begin(_ head: HTTPRequestHead) -> Reading {
        guard let request = ObjectRequest(head) else { return .refused(head, .notImplemented) }
        if case .putPart(let number, let upload) = request.action { shelf.expect(number, of: upload) }
        guard request.carriesBytes else { return .body(request, ByteBuffer()) }
        do { return .bytes(request, try KeptBytes.Writer(shelf.keeping)) } catch {
            return .refused(head, .failure(error))
        }
    }

    /// - Returns: Whether it was not too much.
    private func take(_ chunk: ByteBuffer) -> Bool {
        // Taken out, so that nothing of it is copied.
        let whole = reading
        reading = .nothing
        switch whole {
        case .nothing, .refused: reading = whole
        case .body(let request, var body):
            guard body.readableBytes + chunk.readableBytes <= Self.largestBody else { return false }
            body.writeImmutableBuffer(chunk)
            reading = .body(request, body)
        case .bytes(let request, var writer):
            do {
                try writer.write(chunk)
                reading = .bytes(request, writer)
            } catch { reading = .refused(request.head, .failure(error)) }
        }
        return true
    }

    // MARK: Sending

    private func send(_ answer: ObjectAnswer, to request: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var headers = answer.headers
        if let length = answer.length { headers.add(name: "Content-Length", value: String(length)) }
        let head = HTTPResponseHead(version: .http1_1, status: answer.status, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        let staysOpen = request.isKeepAlive
        guard request.method != .HEAD else { return finish(context, staysOpen) }
        if let (object, range) = answer.bytes { return send(object, range, context, staysOpen) }
        if answer.body.readableBytes > 0 {
            context.write(wrapOutboundOut(.body(.byteBuffer(answer.body))), promise: nil)
        }
        finish(context, staysOpen)
    }

    /// Sends a chunk, and the next when that is out.
    private func send(
        _ object: ObjectShelf.Object, _ range: Range<Int>, _ context: ChannelHandlerContext, _ staysOpen: Bool
    ) {
        guard !range.isEmpty else { return finish(context, staysOpen) }
        let next = range.prefix(Self.chunk)
        let bytes: ByteBuffer
        do { bytes = ByteBuffer(bytes: try object.read(next)) } catch { return context.close(promise: nil) }
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(.body(.byteBuffer(bytes)))).whenSuccess {
            bound.value.0.send(object, next.upperBound..<range.upperBound, bound.value.1, staysOpen)
        }
    }

    private func finish(_ context: ChannelHandlerContext, _ staysOpen: Bool) {
        let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        guard !staysOpen else { return }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        written.whenComplete { _ in bound.value.close(promise: nil) }
    }
}
