import Larder
import LarderAWS
import NIOHTTP1
import Testing

@Suite("Heads and names of any size", .timeLimit(.minutes(10)))
struct BoundedNameTests {
    private static let body = ObjectBody(Array("soup".utf8))
    private static let upload = MultipartUpload(location: .somewhere, id: "u")
    /// More than the channel of the HTTP client takes before it is full.
    private static let long = String(repeating: "a", count: 66_000)

    private static func name(_ size: Int) -> String { String(repeating: "n", count: size) }

    @Test(
        "The name of an upload is taken up to 2 KiB, and no longer one is kept to be sent again",
        arguments: [
            (2_048, true), (2_049, false), (66_000, false),
        ])
    func uploadName(size: Int, isTaken: Bool) async throws {
        let id = "<UploadId>\(Self.name(size))</UploadId>"
        let answer = "<InitiateMultipartUploadResult>\(id)</InitiateMultipartUploadResult>"
        try await ScriptedStorage.run { _ in
            .xml(.ok, answer)
        } _: { _, transport in
            do throws(ObjectError) {
                let upload = try await transport.beginUpload(to: .somewhere, ObjectAttributes(), within: .ample)
                #expect(isTaken && upload.id.utf8.count == size)
            } catch {
                #expect(!isTaken && error.code == .unusableAnswer)
            }
        }
    }

    @Test("A name of an object, a part or a place in a list that has more than 2 KiB is refused")
    func otherNames() async throws {
        let long = Self.name(2_049)
        let replies: [Reply] = [
            .stored(etag: "\"\(long)\""), .stored(headers: ["x-amz-version-id": long]),
            .xml(.ok, "<CompleteMultipartUploadResult><ETag>\(long)</ETag></CompleteMultipartUploadResult>"),
            .xml(.ok, "<ListPartsResult><Part><PartNumber>1</PartNumber><ETag>\(long)</ETag></Part></ListPartsResult>"),
            .xml(
                .ok,
                "<ListMultipartUploadsResult><Upload><Key>k</Key><UploadId>\(long)</UploadId></Upload>"
                    + "</ListMultipartUploadsResult>"),
            .xml(
                .ok,
                "<ListMultipartUploadsResult><Upload><Key>\(long)</Key><UploadId>u</UploadId></Upload>"
                    + "</ListMultipartUploadsResult>"),
            .xml(
                .ok,
                "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated>"
                    + "<NextKeyMarker>\(long)</NextKeyMarker></ListMultipartUploadsResult>"),
            .xml(
                .ok,
                "<ListMultipartUploadsResult><IsTruncated>true</IsTruncated><NextKeyMarker>k</NextKeyMarker>"
                    + "<NextUploadIdMarker>\(long)</NextUploadIdMarker></ListMultipartUploadsResult>"),
        ]
        for (number, reply) in replies.enumerated() {
            try await ScriptedStorage.run { _ in
                reply
            } _: { storage, transport in
                let error = try await objectError { () async throws(ObjectError) in
                    switch number {
                    case 0: _ = try await transport.putPart(1, Self.body, of: Self.upload, idle: .ample)
                    case 1: _ = try await transport.put(Self.body, to: .somewhere, ObjectAttributes(), idle: .ample)
                    case 2:
                        let parts = [UploadedPart(number: 1, size: 1, etag: "\"e\"")]
                        _ = try await transport.completeUpload(Self.upload, parts, within: .ample)
                    case 3: _ = try await transport.parts(of: Self.upload, within: .ample)
                    default: _ = try await transport.uploads(in: "photos", region: nil, prefix: "", within: .ample)
                    }
                }
                #expect(error.code == .unusableAnswer, "\(number)")
                #expect(storage.requests.count == 1)
            }
        }
    }

    @Test("A region of 70,000 bytes is no region: the request is not sent there")
    func region() async throws {
        let region = Self.name(70_000)
        try await ScriptedStorage.run { _ in
            .error(.movedPermanently, "PermanentRedirect", more: "<Region>\(region)</Region>")
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.put(Self.body, to: .somewhere, ObjectAttributes(), idle: .ample)
            }
            #expect(error.code == .wrongRegion && error.message.utf8.count < 1_000)
            #expect(storage.requests.count == 1)
        }
    }

    @Test("A storage's text for people is shortened: it is kept with the transfer")
    func labels() async throws {
        try await ScriptedStorage.run { _ in
            .error(.badRequest, Self.long, Self.long, headers: ["x-amz-id-2": Self.name(9_000)])
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.parts(of: Self.upload, within: .ample)
            }
            #expect("\(error)".utf8.count < 2_000 && (error.hostID?.utf8.count ?? 0) < 1_000)
        }
    }

    @Test("A head of more than 32 KiB is refused before it is sent, by a long token or by a name that a row holds")
    func heads() async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } credentials: { _ in
            .init(accessKeyID: "K", secretAccessKey: "s", sessionToken: Self.long, expires: nil)
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.put(Self.body, to: .somewhere, ObjectAttributes(), idle: .ample)
            }
            #expect(error.code == .unusableRequest && storage.requests.isEmpty)
        }
        let held = MultipartUpload(location: .somewhere, id: Self.long)
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { storage, transport in
            for number in 0..<6 {
                let error = try await objectError { () async throws(ObjectError) in
                    switch number {
                    case 0: _ = try await transport.putPart(1, Self.body, of: held, idle: .ample)
                    case 1: _ = try await transport.parts(of: held, within: .ample)
                    case 2: try await transport.abortUpload(held, within: .ample)
                    case 3:
                        let parts = [UploadedPart(number: 1, size: 1, etag: "\"e\"")]
                        _ = try await transport.completeUpload(held, parts, within: .ample)
                    case 4:
                        let attributes = ObjectAttributes(contentType: Self.long)
                        _ = try await transport.put(Self.body, to: .somewhere, attributes, idle: .ample)
                    default:
                        _ = try await transport.get(
                            0..<1, of: .somewhere, etag: Self.long, into: Collected().sink(), idle: .ample)
                    }
                }
                #expect(error.code == .unusableRequest, "\(number)")
            }
            #expect(storage.requests.isEmpty)
        }
    }

    @Test("A head of 31 KiB with a body is sent")
    func largestHead() async throws {
        let attributes = ObjectAttributes(contentType: String(repeating: "a", count: 31 << 10))
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { storage, transport in
            _ = try await transport.put(.pattern(1 << 20), to: .somewhere, attributes, idle: .ample)
            #expect(storage.requests.first?.headers.first(name: "content-type")?.utf8.count == 31 << 10)
        }
    }

    @Test("A version of more than 2 KiB is refused, also of an object that is put together from parts")
    func completedVersion() async throws {
        let answer = "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>"
        try await ScriptedStorage.run { _ in
            .xml(.ok, answer, ["x-amz-version-id": Self.name(2_049)])
        } _: { _, transport in
            let parts = [UploadedPart(number: 1, size: 1, etag: "\"e\"")]
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.completeUpload(Self.upload, parts, within: .ample)
            }
            #expect(error.code == .unusableAnswer)
        }
    }
}
