import AsyncHTTPClient
import Larder
import NIOHTTP1

/// The head of the answer to a request for a range, which was found to be of that range and of nothing else.
struct RangeAnswer: Sendable {
    let range: Range<Int64>
    let object: StoredObject
    /// The checksum of the object, where the range is all of it.
    let wholeChecksum: UInt32?
    private let status: Int
    private let headers: HTTPHeaders

    init(_ response: HTTPClientResponse, range: Range<Int64>, etag: String) throws(S3Refusal) {
        self.range = range
        (status, headers) = (Int(response.status.code), response.headers)
        let length = headers.first(name: "Content-Length").flatMap { Int64($0) }
        let said = ObjectError(
            .wrongLength, "", status: status, requestID: headers.requestID, hostID: headers.hostID)
        func refusal(_ code: ObjectError.Code, _ message: String) -> S3Refusal {
            var error = said
            (error.code, error.message) = (code, message)
            return S3Refusal(error)
        }
        let whole: Int64?
        switch status {
        case 206:
            guard let text = headers.first(name: "Content-Range"), let content = ContentRange(text) else {
                throw refusal(.wrongLength, "The storage sends a part of the object and does not say which.")
            }
            guard content.range == range else {
                throw refusal(
                    .wrongLength, "The storage sends the bytes \(content.range) where \(range) were asked for.")
            }
            whole = content.size
        case 200:
            // A range that is all of the object may be answered as if there were none.
            guard range.lowerBound == 0, length == range.upperBound else {
                throw refusal(.wrongLength, "The storage ignores the range that it was asked for.")
            }
            whole = length
        default:
            throw refusal(.unusableAnswer, "The storage answers a request for bytes with the status \(status).")
        }
        if let length, length != Int64(range.count) {
            throw refusal(.wrongLength, "The storage sends \(length) bytes where \(range.count) were asked for.")
        }
        // An object may be kept with an encoding, and is of that length then. What is encoded on the way is of another.
        let encoding = headers.first(name: "Content-Encoding")?.lowercased() ?? "identity"
        guard encoding == "identity" || length != nil else {
            throw refusal(.unusableAnswer, "The bytes come encoded (\(encoding.prefix(80))), which was not asked for.")
        }
        object = try headers.object(size: whole)
        guard object.etag == etag else {
            throw refusal(.changed, "The object has the ETag \(object.etag) by now, no longer \(etag).")
        }
        wholeChecksum = range.lowerBound == 0 && whole == range.upperBound ? object.crc32c : nil
    }

    func error(_ code: ObjectError.Code, _ message: String) -> ObjectError {
        ObjectError(code, message, status: status, requestID: headers.requestID, hostID: headers.hostID)
    }
}

/// `Content-Range` (RFC 9110, section 14.4): `bytes 0-9/100`, or `/*` where the whole is not known.
struct ContentRange: Sendable, Hashable {
    let range: Range<Int64>
    let size: Int64?

    init?(_ text: String) {
        guard let match = text.wholeMatch(of: /(?i)bytes +([0-9]+)-([0-9]+)\/([0-9]+|\*)/), let first = Int64(match.1),
            let last = Int64(match.2), last >= first, last < .max
        else { return nil }
        range = first..<(last + 1)
        size = Int64(match.3)
        if size == nil, match.3 != "*" { return nil }
        if let size, size <= last { return nil }
    }
}
