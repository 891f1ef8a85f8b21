import Foundation
import Larder
import Testing

@testable import LarderAWS

@Suite("Texts of a storage's answers")
struct AnswerTextTests {
    @Test(
        "A checksum has four bytes, and that of an object's parts is none",
        arguments: [("4waSgw==", 0xE306_9283), ("AAAA", nil), ("AAAAAAA=", nil), ("4waSgw==-2", nil), ("", nil)]
            as [(String, UInt32?)])
    func checksum(text: String, expected: UInt32?) { #expect(Checksums.crc32c(text) == expected) }

    @Test(
        "A status without an error's name is a server fault, but 501 is a rejection and 503 asks for a pause",
        arguments: [
            (307, .serverFault), (409, .serverFault), (500, .serverFault), (502, .serverFault), (504, .serverFault),
            (599, .serverFault), (501, .rejected), (503, .throttled),
        ] as [(Int, ObjectError.Code)])
    func statuses(status: Int, code: ObjectError.Code) { #expect(S3ErrorCode.code(nil, status: status) == code) }

    @Test(
        "S3's name of an error decides its code, whatever the status",
        arguments: [
            ("ServiceUnavailable", .throttled), ("OperationAborted", .serverFault), ("NoSuchKey", .notFound),
            ("PreconditionFailed", .changed), ("InvalidRange", .wrongLength),
        ] as [(String, ObjectError.Code)])
    func names(name: String, code: ObjectError.Code) { #expect(S3ErrorCode.code(name, status: 400) == code) }

    @Test("Elements may stand in each other, 32 deep", arguments: [32, 33])
    func depth(count: Int) {
        let text = String(repeating: "<a>", count: count) + String(repeating: "</a>", count: count)
        #expect((XMLNode(Array(text.utf8)) != nil) == (count == 32))
    }

    @Test("A list of as many parts as an object may have is read, where the storage gives it at once")
    func longList() {
        let part = """
            <Part><PartNumber>1</PartNumber><LastModified>2026-01-01T00:00:00.000Z</LastModified>\
            <ETag>d41d8cd98f00b204e9800998ecf8427e</ETag><Size>5242880</Size>\
            <ChecksumCRC32C>4waSgw==</ChecksumCRC32C></Part>
            """
        let text = "<ListPartsResult>\(String(repeating: part, count: 10_000))</ListPartsResult>"
        #expect(XMLNode(Array(text.utf8))?.all("Part").count == 10_000)
    }

    @Test(
        "A clock that differs from the server's by four minutes signs as it is",
        arguments: [("13:50:40", false), ("13:50:41", true), ("13:42:40", false), ("13:42:39", true)])
    func clock(time: String, isCorrected: Bool) {
        // At 13:46:40.
        let clock = SigningClock { Date(timeIntervalSince1970: 1_000_000) }
        clock.hear("Mon, 12 Jan 1970 \(time) GMT")
        #expect(clock.correct(from: 0) == isCorrected)
    }

    @Test("Each of several requests that a server refused for the same wrong time is signed once more")
    func refusedTogether() {
        let clock = SigningClock { Date(timeIntervalSince1970: 1_000_000) }
        // Both were signed by this machine's clock.
        for _ in 0..<2 {
            clock.hear("Mon, 12 Jan 1970 15:46:40 GMT")
            #expect(clock.correct(from: 0))
        }
        #expect(clock.offset == 7_200)
        #expect(!clock.correct(from: clock.offset))
    }

    @Test(
        "An error takes the host id from the answer's header, or else from its body",
        arguments: ["H7", nil])
    func hostID(name: String?) async throws {
        var reply = Reply.error(.forbidden, "AccessDenied", more: "<HostId>H1</HostId>")
        if let name { reply.headers.add(name: "x-amz-id-2", value: name) }
        try await ScriptedStorage.run { [reply] _ in
            reply
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.parts(of: MultipartUpload(location: .somewhere, id: "u"), within: .ample)
            }
            #expect(error.hostID == name ?? "H1")
        }
    }

    @Test("A storage's Retry-After with a date is measured by its own Date header")
    func retryAfterDate() async throws {
        try await ScriptedStorage.run { _ in
            .error(
                .serviceUnavailable, "SlowDown",
                headers: ["Retry-After": "Sun, 06 Nov 1994 08:50:07 GMT", "Date": "Sun, 06 Nov 1994 08:49:37 GMT"])
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.parts(of: MultipartUpload(location: .somewhere, id: "u"), within: .ample)
            }
            #expect(error.code == .throttled && error.retryAfter == .seconds(30))
        }
    }

    @Test("The error has both ids of the request where the storage has put another object together")
    func refusedCompletion() async throws {
        let etag = "\"00000000000000000000000000000000-1\""
        var reply = Reply.xml(
            .ok, "<CompleteMultipartUploadResult><ETag>\(etag)</ETag></CompleteMultipartUploadResult>")
        reply.headers.add(name: "x-amz-request-id", value: "R7")
        reply.headers.add(name: "x-amz-id-2", value: "H7")
        let part = UploadedPart(number: 1, size: 1, etag: "\"0cc175b9c0f1b6a831c399e269772661\"")
        try await ScriptedStorage.run { [reply] _ in
            reply
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.completeUpload(
                    MultipartUpload(location: .somewhere, id: "u"), [part], within: .ample)
            }
            #expect(error.code == .checksum && error.requestID == "R7" && error.hostID == "H7")
        }
    }

    @Test(
        "The error has the ids of the request where the transport refuses an answer itself", arguments: [true, false])
    func refusedHere(isSent: Bool) async throws {
        var reply = isSent ? Reply.stored(crc32c: "AAAAAA==") : .bytes([1], 1..<2, of: 9)
        reply.headers.add(name: "x-amz-request-id", value: "R7")
        reply.headers.add(name: "x-amz-id-2", value: "H7")
        try await ScriptedStorage.run { [reply] _ in
            reply
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                isSent
                    ? try await transport.put(ObjectBody([1]), to: .somewhere, ObjectAttributes(), idle: .ample)
                    : try await transport.get(
                        0..<1, of: .somewhere, etag: "\"e\"", into: Collected().sink(), idle: .ample)
            }
            #expect(error.code == (isSent ? .checksum : .wrongLength))
            #expect(error.requestID == "R7" && error.hostID == "H7")
        }
    }

    @Test("Bytes are sent 256 KiB at a time, unless the program says otherwise")
    func standardChunk() { #expect(S3Transport.Options().chunkSize == 256 << 10) }

    @Test("An answer of a storage may have 8 MiB, unless the program says otherwise")
    func standardLimit() { #expect(S3Transport.Options().maximumAnswerSize == 8 << 20) }

    @Test("A part is sent whose number the limits of the options allow, and none past it", arguments: [2, 3])
    func fewerParts(number: Int) async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } configure: {
            $0.limits.maximumParts = 2
        } _: { storage, transport in
            let upload = MultipartUpload(location: .somewhere, id: "u")
            _ = try? await transport.putPart(number, ObjectBody([1]), of: upload, idle: .ample)
            #expect(storage.requests.count == (number == 2 ? 1 : 0))
        }
    }
}
