import Foundation
import Larder
import LarderTestSupport
import NIOHTTP1
import Synchronization

/// Has an object of `TransferBench.bytes` to be received, and takes another, in one piece or in parts. Half of its
/// answers are garbled until it is told to tell the truth.
final class GarbledStorage: Sendable {
    static let sent = ObjectLocation(bucket: "photos", key: "sent")

    private struct State {
        var numbers: SeededNumbers
        var isHonest = false
        var objects = Objects()

        mutating func any<Value>(of values: [Value], or other: Value) -> Value {
            values.randomElement(using: &numbers) ?? other
        }

        mutating func any(of texts: [String]) -> String { any(of: texts, or: "") }
    }

    /// What it keeps.
    fileprivate struct Objects {
        /// The sizes of parts by their numbers, by upload.
        var uploads: [String: [Int: Int]] = [:]
        var uploadCount = 0
        var isSent = false
    }

    private let state: Mutex<State>

    init(seed: UInt64) { state = Mutex(State(numbers: SeededNumbers(seed: seed))) }

    func tellTheTruth() { state.withLock { $0.isHonest = true } }

    func answer(_ request: Received) -> Reply {
        state.withLock { state in
            var objects = state.objects
            let truth = objects.answer(request)
            guard !state.isHonest, Bool.random(using: &state.numbers) else {
                state.objects = objects
                return truth
            }
            // The request may have taken effect all the same.
            if Bool.random(using: &state.numbers) { state.objects = objects }
            return Self.garbled(truth, &state)
        }
    }

    private static let long = String(repeating: "x", count: 66_000)
    private static let names = [
        "", long, String(repeating: "u", count: 2_000), "a b", "..", "a&amp;b=c?/#", "é\u{301}", "%00", "\u{1F}", "u1",
    ]
    private static let counts = [
        "-1", "0", "1", "2", "10001", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "1e9", "",
        "x", "3000", "4294967296",
    ]
    private static let regions = [
        "", "eu-west-1", long, "a b", "../..", "127.0.0.1", "eu-west-1/x", "US-EAST-1", "é",
    ]
    private static let codes = [
        "PermanentRedirect", "AuthorizationHeaderMalformed", "NoSuchUpload", "NoSuchKey", "NoSuchBucket",
        "InternalError", "RequestTimeTooSkewed", "ExpiredToken", "InvalidPart", "EntityTooSmall", "NotImplemented", "",
        long,
    ]
    private static let statuses = [
        200, 206, 301, 304, 307, 400, 403, 404, 405, 409, 411, 412, 416, 429, 500, 501, 502, 503, 504, 599, 999,
    ]
    private static let pauses = [
        "0", "-1", "-9223372036854775808", "nan", "", "Mon, 01 Jan 1990 00:00:00 GMT", "Mon, 99 Foo 0000 00:00:00 GMT",
        "0.0001", "-99999999999999999999",
    ]
    private static let tags = [
        "", "W/\"e\"", long, "\"\"", "\"", "e", "\"a\"b\"", "\u{1}",
        "\"0123456789abcdef0123456789abcdef-99999999999999999999\"",
    ]

    private static func garbled(_ truth: Reply, _ state: inout State) -> Reply {
        var reply = truth
        switch Int.random(in: 0..<12, using: &state.numbers) {
        case 0: reply.headers.add(name: "x-amz-long", value: long)
        case 1, 2:
            let region = state.any(of: regions)
            let headers: HTTPHeaders = state.any(
                of: [
                    [:], ["x-amz-bucket-region": "eu-west-1"], ["x-amz-bucket-region": "a b"],
                    ["Location": "http://127.0.0.1:1/"],
                ], or: [:])
            let status = HTTPResponseStatus(statusCode: state.any(of: statuses, or: 500))
            return .error(status, state.any(of: codes), more: "<Region>\(region)</Region>", headers: headers)
        case 3:
            let status = HTTPResponseStatus(statusCode: state.any(of: [200, 429, 500, 503], or: 503))
            return .error(status, "SlowDown", headers: ["Retry-After": state.any(of: pauses)])
        case 4, 5: reply.headers.replaceOrAdd(name: "ETag", value: state.any(of: tags))
        case 6:
            reply.headers.replaceOrAdd(name: "Content-Length", value: state.any(of: counts))
            reply.ending = .cut
        case 7: return begun(state.any(of: names))
        case 8:
            let (part, marker) = (part(&state), state.any(of: counts))
            let end = "<IsTruncated>\(state.any(of: ["true", "false", "TRUE", ""]))</IsTruncated>"
            return .xml(
                .ok,
                "<ListPartsResult>\(end)<NextPartNumberMarker>\(marker)</NextPartNumberMarker>\(part)\(part)"
                    + "</ListPartsResult>")
        case 9:
            let (key, name) = (state.any(of: ["sent", "sent2", "s%FFnt", long]), state.any(of: names))
            let end = "<IsTruncated>\(state.any(of: ["true", "false"]))</IsTruncated>"
            let markers =
                "<NextKeyMarker>\(state.any(of: names))</NextKeyMarker>"
                + "<NextUploadIdMarker>\(state.any(of: names))</NextUploadIdMarker>"
            return listed("\(end)\(markers)<Upload><Key>\(key)</Key><UploadId>\(name)</UploadId></Upload>")
        case 10:
            let range = "bytes \(state.any(of: counts))-\(state.any(of: counts))/\(state.any(of: counts + ["*"]))"
            reply.headers.replaceOrAdd(
                name: "Content-Range", value: state.any(of: [range, "bytes */\(state.any(of: counts))", "items 0-1/2"]))
        default:
            reply.ending = .cut
            reply.body = Array(reply.body.prefix(Int.random(in: 0...reply.body.count, using: &state.numbers)))
            reply.isSilent = Bool.random(using: &state.numbers)
        }
        return reply
    }

    private static func part(_ state: inout State) -> String {
        """
        <Part><PartNumber>\(state.any(of: counts))</PartNumber><Size>\(state.any(of: counts))</Size>\
        <ETag>\(state.any(of: names))</ETag></Part>
        """
    }

    fileprivate static func begun(_ name: String) -> Reply {
        .xml(
            .ok, "<InitiateMultipartUploadResult><UploadId>\(name)</UploadId></InitiateMultipartUploadResult>")
    }

    fileprivate static func listed(_ content: String) -> Reply {
        .xml(
            .ok,
            "<ListMultipartUploadsResult><EncodingType>url</EncodingType>\(content)</ListMultipartUploadsResult>")
    }
}

extension GarbledStorage.Objects {
    /// The truth.
    fileprivate mutating func answer(_ request: Received) -> Reply {
        let items = URLComponents(string: request.target)?.queryItems ?? []
        func value(_ name: String) -> String? { items.first { $0.name == name }.map { $0.value ?? "" } }
        if value("uploads") != nil {
            guard request.method == .POST else {
                return GarbledStorage.listed(
                    uploads.keys.sorted().map { "<Upload><Key>sent</Key><UploadId>\($0)</UploadId></Upload>" }.joined())
            }
            uploadCount += 1
            uploads["u\(uploadCount)"] = [:]
            return GarbledStorage.begun("u\(uploadCount)")
        }
        if let upload = value("uploadId") {
            return answer(request, upload, part: value("partNumber").flatMap(Int.init))
        }
        switch request.method {
        case .PUT:
            isSent = true
            return .stored(etag: "\"whole\"")
        case .HEAD:
            let isOfSent = request.path.hasSuffix("/sent")
            guard !isOfSent || isSent else { return Reply(status: .notFound) }
            return Reply(headers: ["ETag": isOfSent ? "\"whole\"" : "\"e\""], body: TransferBench.bytes)
        default: return received(request)
        }
    }

    private func received(_ request: Received) -> Reply {
        let bytes = TransferBench.bytes
        guard let match = request.headers.first(name: "range")?.wholeMatch(of: /bytes=(\d+)-(\d+)/)?.output,
            let first = Int(match.1), let last = Int(match.2), first < bytes.count
        else { return .error(.rangeNotSatisfiable, "InvalidRange") }
        let range = first..<min(last + 1, bytes.count)
        return .bytes(Array(bytes[range]), range, of: bytes.count)
    }

    private mutating func answer(_ request: Received, _ upload: String, part: Int?) -> Reply {
        guard let parts = uploads[upload] else { return .error(.notFound, "NoSuchUpload") }
        switch request.method {
        case .PUT:
            let number = part ?? 0
            // S3's parts have 5 MiB at least: all of the file is one.
            uploads[upload]?[number] = TransferBench.bytes.count
            return .stored(etag: "\"p\(number)\"")
        case .GET:
            let list = parts.sorted { $0.key < $1.key }.map { number, size in
                "<Part><PartNumber>\(number)</PartNumber><Size>\(size)</Size><ETag>&quot;p\(number)&quot;</ETag></Part>"
            }
            return .xml(.ok, "<ListPartsResult>\(list.joined())</ListPartsResult>")
        case .DELETE:
            uploads[upload] = nil
            return Reply(status: .noContent)
        default:
            uploads[upload] = nil
            isSent = true
            return .xml(
                .ok,
                "<CompleteMultipartUploadResult><ETag>&quot;whole&quot;</ETag></CompleteMultipartUploadResult>")
        }
    }
}
