import NIOCore
import NIOHTTP1

/// A request as it reached the scripted storage.
struct Received: Sendable {
    /// 0 for the first request of the storage's life.
    var number: Int
    var method: HTTPMethod
    /// As it stood in the request line.
    var target: String
    var headers: HTTPHeaders
    /// What had come of the body when it was answered.
    var body: [UInt8] = []

    var path: String { String(target.prefix { $0 != "?" }) }

    /// The region that it was signed for.
    var signedRegion: String? {
        let credential = headers.first(name: "authorization")?.split(separator: "Credential=").last
        let words = credential?.split(separator: "/") ?? []
        return words.count > 2 ? String(words[2]) : nil
    }
}

/// What the scripted storage does with a request.
struct Reply: Sendable {
    enum Ending: Sendable {
        /// The whole body, and the end of the message.
        case complete
        /// The connection is closed after what was written.
        case cut
        /// Nothing more comes, and the connection stays open.
        case hang
    }

    var status: HTTPResponseStatus = .ok
    var headers: HTTPHeaders = [:]
    var body: [UInt8] = []
    var ending: Ending = .complete
    /// Whether even the head is held back; for `cut` and `hang`.
    var isSilent = false
    /// Answers when so many bytes of the body have come, and reads no further; nil: when all have.
    var afterBytes: Int?
    /// Holds back the body for so long, when the head is out.
    var bodyDelay: TimeAmount?
    /// Closes the connection after the reply, with whatever is still on its way.
    var closes = false

    static func xml(_ status: HTTPResponseStatus, _ body: String, _ headers: HTTPHeaders = [:]) -> Reply {
        var all = headers
        all.add(name: "Content-Type", value: "application/xml")
        return Reply(status: status, headers: all, body: Array(body.utf8))
    }

    /// An error as S3 writes it.
    static func error(
        _ status: HTTPResponseStatus, _ code: String, _ message: String = "No.", more: String = "",
        headers: HTTPHeaders = [:]
    ) -> Reply {
        .xml(
            status,
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <Error><Code>\(code)</Code><Message>\(message)</Message>\(more)<RequestId>R1</RequestId></Error>
            """, headers)
    }

    /// Says that all has been stored, with a checksum and an ETag.
    static func stored(crc32c: String? = nil, etag: String = "\"e\"", headers: HTTPHeaders = [:]) -> Reply {
        var all = headers
        all.add(name: "ETag", value: etag)
        if let crc32c { all.add(name: "x-amz-checksum-crc32c", value: crc32c) }
        return Reply(headers: all)
    }

    /// Bytes of an object.
    static func bytes(_ bytes: [UInt8], _ range: Range<Int>, of size: Int, etag: String = "\"e\"") -> Reply {
        Reply(
            status: .partialContent,
            headers: ["ETag": etag, "Content-Range": "bytes \(range.lowerBound)-\(range.upperBound - 1)/\(size)"],
            body: bytes)
    }

    static let hang = Reply(ending: .hang, isSilent: true)
    static let cut = Reply(ending: .cut, isSilent: true)
}
