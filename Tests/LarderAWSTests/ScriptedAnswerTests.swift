import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import NIOHTTP1
import Testing

@Suite("Answers of a storage", .timeLimit(.minutes(10)))
struct ScriptedAnswerTests {
    private static let upload = MultipartUpload(location: .somewhere, id: "u")
    private static let part = UploadedPart(number: 1, size: 1, etag: "\"0cc175b9c0f1b6a831c399e269772661\"")

    private func completing(_ reply: Reply, _ parts: [UploadedPart] = [part]) async throws -> ObjectError? {
        try await ScriptedStorage.run { _ in
            reply
        } _: { _, transport in
            do throws(ObjectError) {
                _ = try await transport.completeUpload(Self.upload, parts, within: .ample)
                return nil
            } catch {
                return error
            }
        }
    }

    /// The error of asking for an upload's parts, which is always answered so, and after how many requests it came.
    private func listing(
        _ reply: Reply, sourceLocation: SourceLocation = #_sourceLocation
    ) async throws -> (error: ObjectError, requests: Int) {
        try await ScriptedStorage.run { _ in
            reply
        } _: { storage, transport in
            let error = try await objectError(sourceLocation: sourceLocation) { () async throws(ObjectError) in
                try await transport.parts(of: Self.upload, within: .ample)
            }
            return (error: error, requests: storage.requests.count)
        }
    }

    @Test("An error within a 200 is an error, also behind the whitespace that keeps the connection open")
    func errorWithinSuccess() async throws {
        let spaces = String(repeating: " \n", count: 1_000)
        let bodies = [
            ("<Error><Code>InternalError</Code></Error>", ObjectError.Code.serverFault),
            ("\(spaces)<Error><Code>InternalError</Code></Error>", .serverFault),
            (
                "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\(spaces)<Error><Code>SlowDown</Code></Error>", .throttled
            ),
            ("<Error><Code>NoSuchUpload</Code></Error>", .noSuchUpload),
            ("<Error><Code>InvalidPart</Code></Error>", .incomplete),
            ("<Error><Code>SomethingNew</Code></Error>", .serverFault),
            ("", .unusableAnswer), ("<CompleteMultipartUploadResult>", .unusableAnswer), ("soup", .unusableAnswer),
            ("<CompleteMultipartUploadResult/>", .unusableAnswer), ("<Other/>", .unusableAnswer),
            ("<Other><ETag>x</ETag></Other>", .unusableAnswer),
        ]
        for (body, code) in bodies {
            let error = try await completing(.xml(.ok, body))
            #expect(error?.code == code, "\(body.suffix(60))")
            #expect(error?.status == 200)
        }
    }

    @Test("A request has the name that the head of its answer says, or else the body", arguments: ["R7", nil])
    func requestID(name: String?) async throws {
        var reply = Reply.error(.forbidden, "AccessDenied")
        if let name { reply.headers.add(name: "x-amz-request-id", value: name) }
        #expect(try await completing(reply)?.requestID == name ?? "R1")
    }

    @Test("A storage that cannot be reached is an error at once, and connecting is not tried over and over")
    func connecting() { #expect(!S3Transport.clientConfiguration.connectionPool.retryConnectionEstablishment) }

    @Test("An answer that is broken off is an interruption")
    func brokenOff() async throws {
        var reply = Reply.xml(.ok, "<CompleteMultipartUploadResult>", ["Content-Length": "1000"])
        reply.ending = .cut
        #expect(try await completing(reply)?.code == .interrupted)
    }

    private static func completed(_ etag: String, more: String = "") -> Reply {
        .xml(
            .ok,
            "\n\n<CompleteMultipartUploadResult><ETag>\(etag)</ETag>\(more)</CompleteMultipartUploadResult>")
    }

    @Test("An object whose ETag is not that of its parts is not theirs")
    func compositeETag() async throws {
        // The MD5 of the 16 bytes of the MD5 of "a".
        #expect(try await completing(Self.completed("&quot;b6ff9a06b7e20bcb2858c5b8ff744aea-1&quot;")) == nil)
        #expect(try await completing(Self.completed("\"00000000000000000000000000000000-1\""))?.code == .checksum)
        #expect(try await completing(Self.completed("\"00000000000000000000000000000000-2\""))?.code == .checksum)
        #expect(try await completing(Self.completed("\"something-else\"")) == nil)
        for (name, value) in [
            ("x-amz-server-side-encryption", "aws:kms"), ("x-amz-server-side-encryption-customer-algorithm", "AES256"),
        ] {
            var encrypted = Self.completed("\"00000000000000000000000000000000-1\"")
            encrypted.headers.add(name: name, value: value)
            #expect(try await completing(encrypted) == nil)
        }
    }

    @Test("An object whose checksum is not that of its parts is not theirs")
    func wholeChecksum() async throws {
        var part = Self.part
        part.crc32c = CRC32C(of: "a".utf8).value
        let wrong = Self.completed("\"x\"", more: "<ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>")
        #expect(try await completing(wrong, [part])?.code == .checksum)
        let right = Self.completed("\"x\"", more: "<ChecksumCRC32C>wdBDMA==</ChecksumCRC32C>")
        #expect(try await completing(right, [part]) == nil)
        // A checksum of the parts' checksums is another number.
        let composite = "<ChecksumType>COMPOSITE</ChecksumType><ChecksumCRC32C>AAAAAA==</ChecksumCRC32C>"
        #expect(try await completing(Self.completed("\"x\"", more: composite), [part]) == nil)
    }

    @Test("Parts that do not ascend are refused before anything is sent")
    func disorder() async throws {
        var second = Self.part
        second.number = 2
        #expect(try await completing(.hang, [second, Self.part])?.code == .unusableRequest)
        #expect(try await completing(.hang, [Self.part, Self.part])?.code == .unusableRequest)
        #expect(try await completing(.hang, [])?.code == .unusableRequest)
    }

    @Test("The last part that is allowed is sent, and none past it", arguments: [(10_000, true), (10_001, false)])
    func lastPart(number: Int, isSent: Bool) async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { storage, transport in
            let part = try? await transport.putPart(number, ObjectBody([1]), of: Self.upload, idle: .ample)
            #expect(part?.number == (isSent ? number : nil))
            #expect(storage.requests.count == (isSent ? 1 : 0))
        }
    }

    @Test("A list of parts is read to its last page")
    func pagesOfParts() async throws {
        let script: ScriptedStorage.Script = { request in
            let isSecond = request.target.contains("part-number-marker=2")
            let numbers = isSecond ? [3] : [1, 2]
            let parts = numbers.map {
                "<Part><PartNumber>\($0)</PartNumber><ETag>&quot;e\($0)&quot;</ETag><Size>5368709120</Size>"
                    + "<ChecksumCRC32C>wdBDMA==</ChecksumCRC32C></Part>"
            }
            let end =
                isSecond
                ? "<IsTruncated>false</IsTruncated>"
                : "<IsTruncated>true</IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker>"
            return .xml(.ok, "<ListPartsResult>\(end)\(parts.joined())</ListPartsResult>")
        }
        try await ScriptedStorage.run(script) { _, transport in
            let parts = try await transport.parts(of: Self.upload, within: .ample)
            #expect(parts.map(\.number) == [1, 2, 3])
            #expect(parts.map(\.etag) == ["\"e1\"", "\"e2\"", "\"e3\""])
            #expect(parts.allSatisfy { $0.size == 5 << 30 && $0.crc32c == CRC32C(of: "a".utf8).value })
        }
    }

    @Test("A list that leads in circles ends with an error")
    func circles() async throws {
        let (error, requests) = try await listing(
            .xml(
                .ok,
                "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>2</NextPartNumberMarker>"
                    + "</ListPartsResult>"))
        #expect(error.code == .unusableAnswer)
        #expect(requests == 2)
    }

    @Test("A list whose places alternate ends at the first that comes again")
    func alternating() async throws {
        try await ScriptedStorage.run { request in
            let key = request.number.isMultiple(of: 2) ? "a" : "b"
            return .xml(
                .ok,
                "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>\(key)</NextKeyMarker>"
                    + "<NextUploadIdMarker>1</NextUploadIdMarker></ListMultipartUploadsResult>")
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.uploads(in: "photos", region: nil, prefix: "", within: .ample)
            }
            #expect(error.code == .unusableAnswer)
            #expect(storage.requests.count == 3)
        }
    }

    @Test("A list that never ends is given up at four times as many bytes as an answer may have")
    func endless() async throws {
        try await ScriptedStorage.run { request in
            .xml(
                .ok,
                "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>\(request.number)"
                    + "</NextKeyMarker>\(String(repeating: " ", count: 9_000))</ListMultipartUploadsResult>")
        } configure: {
            $0.maximumAnswerSize = 10_000
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.uploads(in: "photos", region: nil, prefix: "", within: .ample)
            }
            #expect(error.code == .unusableAnswer)
            #expect(storage.requests.count == 5)
        }
    }

    @Test("A list of parts that goes on at no number is no list: its first page is not taken for all of it")
    func partMarker() async throws {
        let (error, _) = try await listing(
            .xml(
                .ok,
                "<ListPartsResult><IsTruncated>true</IsTruncated><NextPartNumberMarker>two</NextPartNumberMarker>"
                    + "<Part><PartNumber>1</PartNumber><ETag>e</ETag></Part></ListPartsResult>"))
        #expect(error.code == .unusableAnswer)
    }

    @Test(
        "A list that has more and does not say where it goes on is no list: its first page is not taken for all of it",
        arguments: ["", "<NextPartNumberMarker></NextPartNumberMarker>"])
    func unsaidMarker(marker: String) async throws {
        let (error, _) = try await listing(
            .xml(
                .ok,
                "<ListPartsResult><IsTruncated>true</IsTruncated>\(marker)"
                    + "<Part><PartNumber>1</PartNumber><ETag>e</ETag></Part></ListPartsResult>"))
        #expect(error.code == .unusableAnswer)
    }

    @Test("An abort that is answered by an error within a 200 has not aborted")
    func abortErrorWithinSuccess() async throws {
        try await ScriptedStorage.run { request in
            request.number == 0 ? .xml(.ok, "<Error><Code>InternalError</Code></Error>") : Reply(status: .noContent)
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.abortUpload(Self.upload, within: .ample)
            }
            #expect(error.code == .serverFault)
            try await transport.abortUpload(Self.upload, within: .ample)
        }
    }

    @Test("A list of uploads is read to its last page, and its keys are decoded")
    func pagesOfUploads() async throws {
        let script: ScriptedStorage.Script = { request in
            let isSecond = request.target.contains("key-marker=v%2Fa%20b&")
            let (key, end) =
                isSecond
                ? ("v%2F%01%0A%F0%9F%8D%B2", "<IsTruncated>false</IsTruncated>")
                : (
                    "v%2Fa+b",
                    "<IsTruncated>true</IsTruncated><NextKeyMarker>v%2Fa+b</NextKeyMarker>"
                        + "<NextUploadIdMarker>1</NextUploadIdMarker>"
                )
            return .xml(
                .ok,
                "<ListMultipartUploadsResult><EncodingType>url</EncodingType>\(end)"
                    + "<Upload><Key>\(key)</Key><UploadId>u</UploadId></Upload></ListMultipartUploadsResult>")
        }
        try await ScriptedStorage.run(script) { storage, transport in
            let uploads = try await transport.uploads(in: "photos", region: nil, prefix: "v/", within: .ample)
            #expect(uploads.map(\.location.key) == ["v/a b", "v/\u{1}\n🍲"])
            #expect(storage.requests.count == 2)
            #expect(storage.requests.allSatisfy { $0.target.contains("prefix=v%2F") })
        }
    }

    @Test("Uploads of other keys are left out where the storage does not know of prefixes")
    func unknownPrefixes() async throws {
        try await ScriptedStorage.run { _ in
            .xml(
                .ok,
                "<ListMultipartUploadsResult><Upload><Key>w/a</Key><UploadId>1</UploadId></Upload>"
                    + "<Upload><Key>v/a</Key><UploadId>2</UploadId></Upload></ListMultipartUploadsResult>")
        } _: { _, transport in
            let uploads = try await transport.uploads(in: "photos", region: nil, prefix: "v/", within: .ample)
            #expect(uploads.map(\.id) == ["2"])
        }
    }

    @Test("The keys of a list that the storage has not encoded are taken as they are")
    func plainKeys() async throws {
        try await ScriptedStorage.run { _ in
            .xml(
                .ok,
                "<ListMultipartUploadsResult><Upload><Key>v/a+b%20c</Key><UploadId>1</UploadId></Upload>"
                    + "</ListMultipartUploadsResult>")
        } _: { _, transport in
            let uploads = try await transport.uploads(in: "photos", region: nil, prefix: "v/", within: .ample)
            #expect(uploads.map(\.location.key) == ["v/a+b%20c"])
        }
    }

    @Test("Aborting an upload that the storage has forgotten without a trace is done; a missing bucket is an error")
    func forgottenUpload() async throws {
        try await ScriptedStorage.run { request in
            request.number == 0
                ? Reply(status: .notFound)
                : .xml(.notFound, "<Error><Code>NoSuchBucket</Code></Error>")
        } _: { _, transport in
            try await transport.abortUpload(Self.upload, within: .ample)
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.abortUpload(Self.upload, within: .ample)
            }
            #expect(error.code == .noSuchBucket)
        }
    }

    @Test("An answer that is longer than allowed is given up, and one that is as long is not", arguments: [0, 1])
    func longAnswer(excess: Int) async throws {
        let (begin, end) = ("<ListPartsResult><IsTruncated>false</IsTruncated>", "</ListPartsResult>")
        let spaces = String(repeating: " ", count: 10_000 + excess - begin.utf8.count - end.utf8.count)
        try await ScriptedStorage.run { _ in
            .xml(.ok, begin + spaces + end)
        } configure: {
            $0.maximumAnswerSize = 10_000
        } _: { _, transport in
            do throws(ObjectError) {
                _ = try await transport.parts(of: Self.upload, within: .ample)
                #expect(excess == 0)
            } catch { #expect(excess == 1 && error.code == .unusableAnswer) }
        }
    }

    @Test("XML that nests without end, or refers to other files, is no answer")
    func hostileXML() async throws {
        let bodies = [
            String(repeating: "<a>", count: 100_000),
            "<!DOCTYPE a [<!ENTITY e SYSTEM \"file:///etc/passwd\">]><ListPartsResult>&e;</ListPartsResult>",
            "<ListPartsResult><Part><PartNumber>-1</PartNumber><ETag>e</ETag></Part></ListPartsResult>",
            "<ListPartsResult><Part><PartNumber>1</PartNumber></Part></ListPartsResult>",
            "<ListPartsResult><IsTruncated>true</IsTruncated></ListPartsResult>", "\u{0}\u{1}",
        ]
        for body in bodies {
            try await ScriptedStorage.run { _ in
                .xml(.ok, body)
            } _: { _, transport in
                let error = await #expect(throws: ObjectError.self) {
                    try await transport.parts(of: Self.upload, within: .ample)
                }
                #expect(error?.code == .unusableAnswer)
            }
        }
    }

    @Test("A part that is listed twice is one")
    func partTwice() async throws {
        let parts = ["a", "b"].map { "<Part><PartNumber>1</PartNumber><ETag>\($0)</ETag></Part>" }.joined()
        let body = "<ListPartsResult>\(parts)</ListPartsResult>"
        try await ScriptedStorage.run { _ in
            .xml(.ok, body)
        } _: { _, transport in
            let parts = try await transport.parts(of: Self.upload, within: .ample)
            #expect(parts.map(\.etag) == ["b"])
        }
    }

    /// Their places are the test's arguments, since they are too long for its log.
    private static let costlyBodies = [
        "<ListPartsResult " + (0..<300_000).map { "a\($0)=\"\" " }.joined() + "/>",
        "<ListPartsResult>" + String(repeating: "<a/>", count: 1_000_000) + "</ListPartsResult>",
        "<!DOCTYPE a [<!ENTITY e \"eeee\">]><ListPartsResult/>",
        "<?xml version=\"1.0\" encoding=\"UTF-7\"?><ListPartsResult/>",
        "<ListPartsResult><!--" + String(repeating: "-", count: 1_000_000) + "--></ListPartsResult>",
        "<ListPartsResult><![CDATA[" + String(repeating: "]", count: 1_000_000) + "]]></ListPartsResult>",
        "<ListPartsResult>" + String(repeating: "&amp;", count: 1_000_000) + "</ListPartsResult>",
    ]

    @Test("XML that is made to cost time or memory is no answer, and is not read", arguments: costlyBodies.indices)
    func costlyXML(index: Int) async throws {
        let (error, _) = try await listing(.xml(.ok, Self.costlyBodies[index]))
        #expect(error.code == .unusableAnswer)
    }

    @Test("XML with comments, quotation marks and sections that are taken as they are is read")
    func oddXML() async throws {
        let body = """
            \u{FEFF}<?xml version="1.0" encoding="utf-8"?><!-- > < -->
            <ListPartsResult xmlns='http://s3.amazonaws.com/doc/2006-03-01/' a=">"><Part><PartNumber>1</PartNumber>\
            <ETag><![CDATA["<e>"]]></ETag></Part></ListPartsResult><!-- -->
            """
        try await ScriptedStorage.run { _ in
            .xml(.ok, body)
        } _: { _, transport in
            let parts = try await transport.parts(of: Self.upload, within: .ample)
            #expect(parts.map(\.etag) == ["\"<e>\""])
        }
    }

    @Test("A question that is not answered by its deadline times out")
    func deadline() async throws {
        try await ScriptedStorage.run { _ in
            .hang
        } _: { _, transport in
            let error = try await requireEnd { _ = try await transport.object(at: .somewhere, within: .until($0)) }
            #expect((error as? ObjectError)?.code == .timedOut)
        }
    }

    @Test("A storage that does not run is unreachable")
    func unreachable() async throws {
        let url = try await ScriptedStorage.run { _ in
            .hang
        } _: { storage, _ in
            storage.url
        }
        try await ScriptedStorage.run { _ in
            .hang
        } configure: {
            $0.endpoint = url
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.object(at: .somewhere, within: .ample)
            }
            #expect(error.code == .unreachable)
        }
    }

    static let codes: [(HTTPResponseStatus, String, ObjectError.Code)] = [
        (.internalServerError, "InternalError", .serverFault), (.badGateway, "", .serverFault),
        (.serviceUnavailable, "", .throttled), (.tooManyRequests, "", .throttled),
        (.badRequest, "ExpiredToken", .expiredCredentials), (.badRequest, "InvalidToken", .invalidCredentials),
        (.forbidden, "InvalidAccessKeyId", .invalidCredentials), (.forbidden, "AccessDenied", .accessDenied),
        (.forbidden, "", .accessDenied), (.notFound, "NoSuchKey", .notFound), (.notFound, "", .notFound),
        (.forbidden, "InvalidObjectState", .rejected),
        (.notFound, "NoSuchBucket", .noSuchBucket), (.notFound, "NoSuchUpload", .noSuchUpload),
        (.badRequest, "EntityTooSmall", .incomplete), (.badRequest, "InvalidPartOrder", .incomplete),
        (.badRequest, "EntityTooLarge", .tooLarge), (.badRequest, "BadDigest", .checksum),
        (.badRequest, "RequestTimeout", .timedOut), (.badRequest, "InvalidArgument", .rejected),
        (.forbidden, "SignatureDoesNotMatch", .invalidCredentials), (.unauthorized, "", .invalidCredentials),
        (.requestTimeout, "", .timedOut), (.conflict, "", .serverFault), (.preconditionFailed, "", .changed),
        (.payloadTooLarge, "", .tooLarge), (.rangeNotSatisfiable, "", .wrongLength),
        (.imATeapot, "", .rejected), (.notImplemented, "NotImplemented", .rejected), (.notImplemented, "", .rejected),
        (.badRequest, "RequestLimitExceeded", .throttled), (.badRequest, "TokenRefreshRequired", .expiredCredentials),
        (.forbidden, "NotSignedUp", .invalidCredentials), (.badRequest, "IncompleteBody", .interrupted),
    ]

    @Test("Refusals are told apart by their name, and by the status where there is none", arguments: codes.indices)
    func refusals(index: Int) async throws {
        let (status, name, code) = Self.codes[index]
        let (error, _) = try await listing(name.isEmpty ? Reply(status: status) : .error(status, name))
        #expect(error.code == code)
        #expect(error.status == Int(status.code))
        #expect(error.serverCode == (name.isEmpty ? nil : name))
    }

    @Test("A redirect is not followed")
    func redirect() async throws {
        let (error, requests) = try await listing(Reply(status: .found, headers: ["Location": "/elsewhere"]))
        #expect(error.code == .wrongRegion)
        #expect(requests == 1)
    }

    @Test("A client of the program's own that follows redirects is told, and its answer is not taken")
    func redirectFollowed() async throws {
        try await ScriptedStorage.run { request in
            request.path == "/elsewhere" ? .stored() : Reply(status: .found, headers: ["Location": "/elsewhere"])
        } _: { _, given in
            try await HTTPClient.withHTTPClient(configuration: HTTPClient.Configuration()) { client in
                let transport = S3Transport(
                    region: "us-east-1", credentials: { _ in .test }, options: given.options, client: client)
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.object(at: .somewhere, within: .ample)
                }
                #expect(error.code == .unusableAnswer && error.message.contains("followed a redirect"))
            }
        }
    }
}
