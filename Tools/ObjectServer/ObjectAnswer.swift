import NIOCore
import NIOHTTP1

/// What a request is answered with.
struct ObjectAnswer {
    var status = HTTPResponseStatus.ok
    var headers: HTTPHeaders = [:]
    var body = ByteBuffer()
    /// Bytes that are sent instead of `body`.
    var bytes: (object: ObjectShelf.Object, range: Range<Int>)?

    /// How long what follows the headers is; nil where nothing can.
    var length: Int? { status == .noContent ? nil : bytes?.range.count ?? body.readableBytes }

    static func xml(_ name: String, _ content: String) -> ObjectAnswer {
        ObjectAnswer(
            headers: ["Content-Type": "application/xml"], body: ByteBuffer(string: "<\(name)>\(content)</\(name)>"))
    }

    static func error(_ status: HTTPResponseStatus, _ code: String, _ message: String) -> ObjectAnswer {
        var answer = xml("Error", "<Code>\(code)</Code><Message>\(message)</Message>")
        answer.status = status
        return answer
    }

    static func failure(_ error: any Error) -> ObjectAnswer {
        .error(.internalServerError, "InternalError", "\(error)")
    }

    static let noUpload = error(.notFound, "NoSuchUpload", "There is no such upload.")
    static let notImplemented = error(.notImplemented, "NotImplemented", "This small storage cannot do that.")
}

extension ObjectShelf {
    /// Answers a request whose body was read to its end.
    ///
    /// - Parameters:
    ///   - bytes: The bytes of an object that were its body.
    ///   - body: Its body, where it was none.
    func answer(to request: ObjectRequest, _ bytes: KeptBytes?, body: ByteBuffer) -> ObjectAnswer {
        let path = request.path
        switch request.action {
        case .begin: return .xml("InitiateMultipartUploadResult", "<UploadId>\(begin(path))</UploadId>")
        case .listUploads(let prefix):
            let uploads = uploads("\(path)/\(prefix)").map { upload in
                let key = String(upload.path.dropFirst(path.count + 1))
                    .addingPercentEncoding(withAllowedCharacters: .alphanumerics)
                return "<Upload><Key>\(key ?? "")</Key><UploadId>\(upload.id)</UploadId></Upload>"
            }
            return .xml(
                "ListMultipartUploadsResult",
                "<EncodingType>url</EncodingType>\(uploads.joined())<IsTruncated>false</IsTruncated>")
        case .putPart(let number, let upload):
            guard let bytes, let part = put(number, of: upload, bytes) else { return .noUpload }
            return ObjectAnswer(headers: ["ETag": "\"\(part.bytes.tag)\""])
        case .listParts(let upload):
            guard let parts = list(upload) else { return .noUpload }
            let list = parts.map { part in
                "<Part><PartNumber>\(part.number)</PartNumber><ETag>\"\(part.bytes.tag)\"</ETag>"
                    + "<Size>\(part.bytes.size)</Size></Part>"
            }
            return .xml("ListPartsResult", list.joined() + "<IsTruncated>false</IsTruncated>")
        case .complete(let upload):
            let wanted = String(buffer: body)
                .matches(of: /<PartNumber>([0-9]{1,5})<\/PartNumber><ETag>(?:"|&quot;)?([0-9a-z-]+)[^<]*<\/ETag>/)
                .map { (number: Int($0.1) ?? 0, tag: String($0.2)) }
            guard let object = complete(upload, wanted) else {
                return .error(.badRequest, "InvalidPart", "There are no such parts.")
            }
            return .xml("CompleteMultipartUploadResult", "<ETag>\(object.etag)</ETag>")
        case .abort(let upload):
            abort(upload)
            return ObjectAnswer(status: .noContent)
        case .put:
            guard let bytes else { return .notImplemented }
            return ObjectAnswer(headers: ["ETag": put(bytes, at: path).etag])
        case .get, .head: return object(request)
        }
    }

    private func object(_ request: ObjectRequest) -> ObjectAnswer {
        guard let object = object(request.path) else {
            return .error(.notFound, "NoSuchKey", "There is no such object.")
        }
        let wanted = request.head.headers.first(name: "If-Match")
        guard wanted == nil || wanted == object.etag else {
            return .error(.preconditionFailed, "PreconditionFailed", "It is another object by now.")
        }
        guard let (range, isPart) = request.range(of: object.size) else {
            return .error(.rangeNotSatisfiable, "InvalidRange", "There are no such bytes.")
        }
        var answer = ObjectAnswer(headers: ["ETag": object.etag, "Accept-Ranges": "bytes"], bytes: (object, range))
        if isPart {
            answer.status = .partialContent
            answer.headers.add(
                name: "Content-Range", value: "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(object.size)")
        }
        if case .get = request.action { countRange() }
        return answer
    }
}
