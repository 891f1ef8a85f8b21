import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Synchronization
import Testing

@Suite(
    "Transfers over TLS",
    .enabled(if: TestCertificate.canBeMade, "there is no openssl here, which makes the certificate"),
    .timeLimit(.minutes(10)))
struct SecureStorageTests {
    @Test("Bytes sent over TLS arrive in chunks that are not signed, also out of a file")
    func put() async throws {
        try await withTemporaryFolder { folder in
            let bytes = randomBytes(3 << 20)
            let path = folder.appending(path: "file")
            try Data(bytes).write(to: path)
            let file = try FileHandle(forReadingFrom: path)
            var body = ObjectBody(bytes)
            body.file = FileSegment(descriptor: file.fileDescriptor, offset: 0, owner: folder)
            try await ScriptedStorage.run({ _ in .stored() }, certificate: TestCertificate(in: folder)) {
                [body] storage, transport in
                _ = try await transport.put(body, to: .somewhere, ObjectAttributes(), idle: .ample)
                let received = try #require(storage.requests.first)
                #expect(received.headers["x-amz-content-sha256"] == ["STREAMING-UNSIGNED-PAYLOAD-TRAILER"])
                #expect(try unframed(received.body) == bytes)
            }
            try file.close()
        }
    }

    @Test("Bytes received over TLS are those that were sent")
    func get() async throws {
        try await withTemporaryFolder { folder in
            let bytes = randomBytes(3 << 20)
            try await ScriptedStorage.run(
                { _ in .bytes(bytes, 0..<bytes.count, of: bytes.count) }, certificate: TestCertificate(in: folder)
            ) { _, transport in
                let collected = Collected()
                _ = try await transport.get(
                    0..<Int64(bytes.count), of: .somewhere, etag: "\"e\"", into: collected.sink(), idle: .ample)
                #expect(collected.bytes == bytes && collected.isInOrder)
            }
        }
    }

    @Test("Over TLS the storage's checksum is enough: the body is not read again to check the ETag")
    func checksumAlone() async throws {
        try await withTemporaryFolder { folder in
            let soup = Array("soup".utf8)
            let count = Mutex(0)
            let body = ObjectBody(size: Int64(soup.count)) { offset, buffer in
                count.withLock { $0 += buffer.count }
                for at in buffer.indices { buffer[at] = soup[Int(offset) + at] }
            }
            let reply = Reply.stored(crc32c: checksumText(soup), etag: md5ETag("other"))
            try await ScriptedStorage.run({ _ in reply }, certificate: TestCertificate(in: folder)) { _, transport in
                _ = try await transport.put(body, to: .somewhere, ObjectAttributes(), idle: .ample)
            }
            #expect(count.withLock { $0 } == soup.count)
        }
    }

    @Test("Over TLS an ETag that is an MD5 is compared where the storage returns no checksum")
    func etagAlone() async throws {
        try await withTemporaryFolder { folder in
            let reply = Reply.stored(etag: md5ETag("other"))
            try await ScriptedStorage.run({ _ in reply }, certificate: TestCertificate(in: folder)) { _, transport in
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.put(
                        ObjectBody(Array("soup".utf8)), to: .somewhere, ObjectAttributes(), idle: .ample)
                }
                #expect(error.code == .checksum)
            }
        }
    }

    @Test("A refusal over TLS says why, though not all was sent")
    func refused() async throws {
        try await withTemporaryFolder { folder in
            let script: ScriptedStorage.Script = { _ in
                var reply = Reply.error(.forbidden, "AccessDenied")
                reply.afterBytes = 1 << 20
                return reply
            }
            try await ScriptedStorage.run(script, certificate: TestCertificate(in: folder)) { _, transport in
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.put(.pattern(256 << 20), to: .somewhere, ObjectAttributes(), idle: .ample)
                }
                #expect(error.serverCode == "AccessDenied")
            }
        }
    }

    @Test("A storage whose certificate no authority vouches for is not spoken to")
    func untrusted() async throws {
        try await withTemporaryFolder { folder in
            var certificate = try TestCertificate(in: folder)
            certificate.isTrusted = false
            try await ScriptedStorage.run({ _ in .stored() }, certificate: certificate) { storage, transport in
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.put(.pattern(100), to: .somewhere, ObjectAttributes(), idle: .ample)
                }
                #expect(error.code == .insecure)
                #expect(storage.requests.isEmpty)
            }
        }
    }
}
