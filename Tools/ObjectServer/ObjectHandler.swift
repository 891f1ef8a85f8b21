import Foundation
import NIOCore
import NIOHTTP1

/// One connection: as much of S3's protocol as uploads in parts and downloads by ranges need.
///
/// Whoever asks is served: signatures are not looked at.
final class ObjectStorageHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// Bytes of a request's body above which the connection is closed.
    private static let largestBody = 32 << 20

    private let shelf: ObjectShelf
    private var head: HTTPRequestHead?
    private var body = ByteBuffer()

    init(shelf: ObjectShelf) { self.shelf = shelf }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head):
            self.head = head
            body.clear()
            if head.method == .PUT, let (number, upload) = Query(head)?.part { shelf.expect(number, of: upload) }
        case .body(var chunk):
            guard body.readableBytes + chunk.readableBytes <= Self.largestBody else {
                return context.close(promise: nil)
            }
            body.writeBuffer(&chunk)
        case .end:
            guard let head else { return }
            let answer: Answer
            do { answer = try self.answer(to: head) } catch {
                answer = .error(.internalServerError, "InternalError", "\(error)")
            }
            body.clear()
            send(answer, to: head, context)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    // MARK: Answering

    private struct Answer {
        var status = HTTPResponseStatus.ok
        var headers: HTTPHeaders = [:]
        var body = ByteBuffer()

        static func xml(_ name: String, _ content: String) -> Answer {
            Answer(
                headers: ["Content-Type": "application/xml"],
                body: ByteBuffer(string: "<\(name)>\(content)</\(name)>"))
        }

        static func error(_ status: HTTPResponseStatus, _ code: String, _ message: String) -> Answer {
            var answer = xml("Error", "<Code>\(code)</Code><Message>\(message)</Message>")
            answer.status = status
            return answer
        }

        static let noUpload = error(.notFound, "NoSuchUpload", "There is no such upload.")
    }

    private func answer(to head: HTTPRequestHead) throws -> Answer {
        guard let query = Query(head) else { return .error(.badRequest, "InvalidURI", "That is no address.") }
        let path = query.path
        switch (head.method, query["uploadId"]) {
        case (.POST, nil) where query["uploads"] != nil:
            return .xml("InitiateMultipartUploadResult", "<UploadId>\(shelf.begin(path))</UploadId>")
        case (.GET, nil) where query["uploads"] != nil:
            let uploads = shelf.uploads("\(path)/\(query["prefix"] ?? "")").map { upload in
                let key = String(upload.path.dropFirst(path.count + 1))
                    .addingPercentEncoding(withAllowedCharacters: .alphanumerics)
                return "<Upload><Key>\(key ?? "")</Key><UploadId>\(upload.id)</UploadId></Upload>"
            }
            return .xml(
                "ListMultipartUploadsResult",
                "<EncodingType>url</EncodingType>\(uploads.joined())<IsTruncated>false</IsTruncated>")
        case (.PUT, let upload?):
            guard let number = query.part?.number else { break }
            guard let part = try shelf.put(number, of: upload, Data(body.readableBytesView)) else { return .noUpload }
            return Answer(headers: ["ETag": "\"\(part.tag)\""])
        case (.GET, let upload?):
            guard let parts = shelf.list(upload) else { return .noUpload }
            let list = parts.map { part in
                "<Part><PartNumber>\(part.number)</PartNumber><ETag>\"\(part.tag)\"</ETag>"
                    + "<Size>\(part.size)</Size></Part>"
            }
            return .xml("ListPartsResult", list.joined() + "<IsTruncated>false</IsTruncated>")
        case (.POST, let upload?):
            return complete(upload)
        case (.DELETE, let upload?):
            shelf.abort(upload)
            return Answer(status: .noContent)
        case (.GET, nil) where query.isEmpty, (.HEAD, nil) where query.isEmpty:
            return try object(path, head)
        default: break
        }
        return .error(.notImplemented, "NotImplemented", "This small storage cannot do that.")
    }

    /// What a request is about.
    private struct Query {
        let path: String
        private let items: [URLQueryItem]

        init?(_ head: HTTPRequestHead) {
            guard let uri = URLComponents(string: head.uri) else { return nil }
            (path, items) = (uri.path, uri.queryItems ?? [])
        }

        var isEmpty: Bool { items.isEmpty }
        subscript(name: String) -> String? { items.first { $0.name == name }.map { $0.value ?? "" } }

        var part: (number: Int, upload: String)? {
            guard let upload = self["uploadId"], let number = self["partNumber"].flatMap({ Int($0) }), number > 0
            else { return nil }
            return (number, upload)
        }
    }

    private func complete(_ upload: String) -> Answer {
        let text = String(buffer: body)
        let wanted = text.matches(of: /<PartNumber>([0-9]{1,5})<\/PartNumber><ETag>[^<]*?([0-9a-f]{32})[^<]*<\/ETag>/)
            .map { (number: Int($0.1) ?? 0, tag: String($0.2)) }
        guard let object = shelf.complete(upload, wanted) else {
            return .error(.badRequest, "InvalidPart", "There are no such parts.")
        }
        return .xml("CompleteMultipartUploadResult", "<ETag>\(object.etag)</ETag>")
    }

    private func object(_ path: String, _ head: HTTPRequestHead) throws -> Answer {
        guard let object = shelf.object(path) else { return .error(.notFound, "NoSuchKey", "There is no such object.") }
        let wanted = head.headers.first(name: "If-Match")
        guard wanted == nil || wanted == object.etag else {
            return .error(.preconditionFailed, "PreconditionFailed", "It is another object by now.")
        }
        var answer = Answer(headers: ["ETag": object.etag, "Accept-Ranges": "bytes"])
        var range = 0..<object.size
        if let text = head.headers.first(name: "Range") {
            guard let match = text.wholeMatch(of: /bytes=([0-9]+)-([0-9]+)/), let first = Int(match.1),
                let last = Int(match.2), first <= last, first < object.size
            else { return .error(.rangeNotSatisfiable, "InvalidRange", "There are no such bytes.") }
            range = first..<min(last, object.size - 1) + 1
            answer.status = .partialContent
            answer.headers.add(
                name: "Content-Range", value: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(object.size)")
        }
        if head.method == .HEAD {
            answer.headers.add(name: "Content-Length", value: String(range.count))
        } else {
            answer.body = ByteBuffer(bytes: try shelf.bytes(range, of: object))
            shelf.countRange()
        }
        return answer
    }

    private func send(_ answer: Answer, to request: HTTPRequestHead, _ context: ChannelHandlerContext) {
        var headers = answer.headers
        if !headers.contains(name: "Content-Length"), answer.status != .noContent {
            headers.add(name: "Content-Length", value: String(answer.body.readableBytes))
        }
        let head = HTTPResponseHead(version: .http1_1, status: answer.status, headers: headers)
        context.write(wrapOutboundOut(.head(head)), promise: nil)
        if answer.body.readableBytes > 0 {
            context.write(wrapOutboundOut(.body(.byteBuffer(answer.body))), promise: nil)
        }
        let written = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        guard !request.isKeepAlive else { return }
        let bound = NIOLoopBound(context, eventLoop: context.eventLoop)
        written.whenComplete { _ in bound.value.close(promise: nil) }
    }
}
