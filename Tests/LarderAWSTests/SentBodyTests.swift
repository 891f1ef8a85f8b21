import Foundation
import Larder
import LarderAWS
import LarderFiles
import LarderTestSupport
import NIOHTTP1
import Synchronization
import Testing

@Suite("How the bytes of an object are read and sent", .timeLimit(.minutes(10)))
struct SentBodyTests {
    @Test("Bytes are read and sent 256 KiB at a time")
    func pieces() async throws {
        let pieces = Mutex<[Int]>([])
        let body = ObjectBody.pattern(1 << 20) { count in pieces.withLock { $0.append(count) } }
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { _, transport in
            _ = try await transport.put(body, to: .somewhere, ObjectAttributes(), idle: .ample)
        }
        #expect(pieces.withLock { $0 } == [262_144, 262_144, 262_144, 262_144])
    }

    @Test("Over plain HTTP a file's bytes are sent from the file, and the body is read for the checksum alone")
    func fromFile() async throws {
        try await withTemporaryFolder { folder in
            let bytes = randomBytes(100_000)
            let path = folder.appending(path: "file")
            try Data(bytes).write(to: path)
            let file = try FileHandle(forReadingFrom: path)
            // The body reads as other bytes than the file has, which shows from where the storage's bytes came.
            var body = ObjectBody([UInt8](repeating: 1, count: bytes.count))
            body.file = FileSegment(descriptor: file.fileDescriptor, offset: 0, owner: folder)
            try await ScriptedStorage.run { _ in
                .stored()
            } configure: {
                $0.payload = .unsigned
            } _: { [body] storage, transport in
                let object = try await transport.put(body, to: .somewhere, ObjectAttributes(), idle: .ample)
                #expect(storage.requests.first?.body == bytes)
                #expect(object.crc32c == CRC32C(of: [UInt8](repeating: 1, count: bytes.count)).value)
            }
            try file.close()
        }
    }

    @Test(
        "Over plain HTTP each form of payload declares what it signs, and only a signed body is read twice",
        arguments: [
            (.automatic, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", 1),
            (.signedTrailer, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER", 1),
            (.unsignedTrailer, "STREAMING-UNSIGNED-PAYLOAD-TRAILER", 1), (.unsigned, "UNSIGNED-PAYLOAD", 1),
            (.signed, "9014fac8184d7ba9e1dcd80b8c1e1aa2906af8a01fc1e6e9092e575eabf7b80d", 2),
        ] as [(S3Transport.Options.Payload, String, Int)])
    func forms(payload: S3Transport.Options.Payload, said: String, times: Int) async throws {
        let soup = Array("soup".utf8)
        let count = Mutex(0)
        let body = ObjectBody(size: Int64(soup.count)) { offset, buffer in
            count.withLock { $0 += buffer.count }
            for at in buffer.indices { buffer[at] = soup[Int(offset) + at] }
        }
        try await ScriptedStorage.run { _ in
            .stored()
        } configure: {
            $0.payload = payload
        } _: { storage, transport in
            _ = try await transport.put(body, to: .somewhere, ObjectAttributes(), idle: .ample)
            #expect(storage.requests.first?.headers.first(name: "x-amz-content-sha256") == said)
        }
        #expect(count.withLock { $0 } == times * soup.count)
    }

    @Test(
        "Payloads without trailers send no checksums, in any request of an upload in parts",
        arguments: [S3Transport.Options.Payload.signed, .unsigned])
    func noChecksums(payload: S3Transport.Options.Payload) async throws {
        try await ScriptedStorage.run { request in
            if request.method == .PUT { return .stored() }
            let name = request.target.contains("uploadId=") ? "Complete" : "Initiate"
            let content = "<UploadId>u</UploadId><ETag>e-1</ETag>"
            return .xml(.ok, "<\(name)MultipartUploadResult>\(content)</\(name)MultipartUploadResult>")
        } configure: {
            $0.payload = payload
        } _: { storage, transport in
            let upload = try await transport.beginUpload(to: .somewhere, ObjectAttributes(), within: .ample)
            let part = try await transport.putPart(1, ObjectBody([1, 2]), of: upload, idle: .ample)
            _ = try await transport.completeUpload(upload, [part], within: .ample)
            #expect(storage.requests.count == 3)
            for request in storage.requests {
                let names = request.headers.map { $0.name.lowercased() }
                #expect(!names.contains { $0.contains("checksum") || $0 == "x-amz-trailer" }, "\(names)")
                #expect(!String(decoding: request.body, as: UTF8.self).contains("Checksum"))
            }
        }
    }

    @Test("An upload in parts asks for a checksum of the whole object, and at its end names that of each part")
    func checksumsOfParts() async throws {
        try await ScriptedStorage.run { request in
            if request.method == .PUT { return .stored() }
            let name = request.target.contains("uploadId=") ? "Complete" : "Initiate"
            let content = "<UploadId>u</UploadId><ETag>e-1</ETag>"
            return .xml(.ok, "<\(name)MultipartUploadResult>\(content)</\(name)MultipartUploadResult>")
        } _: { storage, transport in
            let soup = Array("soup".utf8)
            let upload = try await transport.beginUpload(to: .somewhere, ObjectAttributes(), within: .ample)
            let part = try await transport.putPart(1, ObjectBody(soup), of: upload, idle: .ample)
            _ = try await transport.completeUpload(upload, [part], within: .ample)
            let (begun, ended) = (try #require(storage.requests.first), try #require(storage.requests.last))
            #expect(begun.headers.first(name: "x-amz-checksum-algorithm") == "CRC32C")
            #expect(begun.headers.first(name: "x-amz-checksum-type") == "FULL_OBJECT")
            let text = String(decoding: ended.body, as: UTF8.self)
            #expect(text.contains("<ChecksumCRC32C>\(checksumText(soup))</ChecksumCRC32C>"), "\(text)")
        }
    }

    @Test("No write is conditional, neither of a whole object nor of one that is put together from parts")
    func unconditional() async throws {
        let completed = "<CompleteMultipartUploadResult><ETag>e-1</ETag></CompleteMultipartUploadResult>"
        try await ScriptedStorage.run { request in
            request.method == .PUT ? Reply.stored() : .xml(.ok, completed)
        } _: { storage, transport in
            _ = try await transport.put(ObjectBody([1]), to: .somewhere, ObjectAttributes(), idle: .ample)
            let part = UploadedPart(number: 1, size: 1, etag: "\"e\"")
            let upload = MultipartUpload(location: .somewhere, id: "u")
            _ = try await transport.completeUpload(upload, [part], within: .ample)
            #expect(storage.requests.count == 2)
            let names = storage.requests.flatMap { $0.headers.map { $0.name.lowercased() } }
            #expect(!names.contains { $0.hasPrefix("if-") }, "\(names)")
        }
    }
}
