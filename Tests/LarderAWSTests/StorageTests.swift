import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite(
    "Against a storage that checks signatures",
    .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"),
    .timeLimit(.minutes(10))
)
struct StorageTests {
    @Test(
        "An object comes back as it was put, in every form that bytes are sent in",
        arguments: [
            S3Transport.Options.Payload.automatic, .unsignedTrailer, .signedTrailer, .signed, .unsigned,
        ], [0, 1, 8_192, 1_000_000])
    func roundTrip(payload: S3Transport.Options.Payload, size: Int) async throws {
        try await withStorage {
            $0.payload = payload
        } _: { server, transport in
            let bytes = randomBytes(size)
            let location = server.location()
            let attributes = ObjectAttributes(contentType: "video/quicktime", metadata: ["made-by": "a  test"])
            let stored = try await transport.put(ObjectBody(bytes), to: location, attributes, idle: .ample)
            #expect(stored.size == Int64(size))
            #expect(stored.crc32c == CRC32C(of: bytes).value)

            let seen = try await transport.object(at: location, within: .ample)
            #expect(seen.size == Int64(size))
            #expect(seen.etag == stored.etag)
            #expect(seen.attributes == attributes)

            guard size > 0 else { return }
            let collected = Collected()
            let got = try await transport.get(
                0..<Int64(size), of: location, etag: stored.etag, into: collected.sink(), idle: .ample)
            #expect(collected.bytes == bytes)
            #expect(collected.isInOrder)
            #expect(got.size == Int64(size))
        }
    }

    @Test("Ranges arrive, and nothing but them")
    func ranges() async throws {
        try await withStorage { server, transport in
            let bytes = randomBytes(300_000)
            let location = server.location()
            let stored = try await transport.put(ObjectBody(bytes), to: location, ObjectAttributes(), idle: .ample)
            for range in [0..<1, 0..<100_000, 100_000..<200_001, 299_999..<300_000] as [Range<Int64>] {
                let collected = Collected()
                let got = try await transport.get(
                    range, of: location, etag: stored.etag, into: collected.sink(), idle: .ample)
                #expect(collected.bytes == Array(bytes[Int(range.lowerBound)..<Int(range.upperBound)]))
                #expect(got.size == 300_000)
            }
        }
    }

    @Test("A range past the end is a wrong length, and nothing arrives")
    func rangePastEnd() async throws {
        try await withStorage { server, transport in
            let location = server.location()
            let stored = try await transport.put(
                ObjectBody(randomBytes(10)), to: location, ObjectAttributes(), idle: .ample)
            for range in [5..<11, 10..<11, 100..<200] as [Range<Int64>] {
                let collected = Collected()
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.get(
                        range, of: location, etag: stored.etag, into: collected.sink(), idle: .ample)
                }
                #expect(error.code == .wrongLength)
                #expect(collected.bytes.isEmpty)
            }
        }
    }

    @Test("An object that was replaced is no longer the one that is meant")
    func replaced() async throws {
        try await withStorage { server, transport in
            let location = server.location()
            let first = try await transport.put(ObjectBody([1]), to: location, ObjectAttributes(), idle: .ample)
            _ = try await transport.put(ObjectBody([2]), to: location, ObjectAttributes(), idle: .ample)
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.get(
                    0..<1, of: location, etag: first.etag, into: Collected().sink(), idle: .ample)
            }
            #expect(error.code == .changed)
        }
    }

    @Test(
        "Keys hold every character",
        arguments: [
            "a b", "a+b", "a%20b", "100%", "ä/é/ß", "🍲🥣", "a&b=c?d#e", "\"quoted\" 'too'", "<xml>&amp;", "a\\b",
            "tab\tand\u{1}control\u{7F}", "trailing/", "a:b;c,d", "*(){}[]^`|~$@!", "-._~",
            "ends.", String(repeating: "ä", count: 400),
        ])
    func keys(key: String) async throws {
        try await withStorage { server, transport in
            let location = server.location(key)
            let bytes = Array(key.utf8)
            let stored = try await transport.put(ObjectBody(bytes), to: location, ObjectAttributes(), idle: .ample)
            let collected = Collected()
            _ = try await transport.get(
                0..<Int64(bytes.count), of: location, etag: stored.etag, into: collected.sink(), idle: .ample)
            #expect(collected.bytes == bytes)
        }
    }

    @Test("A refusal of something missing says what it is")
    func missing() async throws {
        try await withStorage { server, transport in
            let absent = try await objectError { () async throws(ObjectError) in
                try await transport.object(at: server.location(), within: .ample)
            }
            #expect(absent.code == .notFound)
            #expect(absent.serverCode == "NoSuchKey")
            let elsewhere = ObjectLocation(bucket: "no-such-bucket", key: "a")
            let bucket = try await objectError { () async throws(ObjectError) in
                try await transport.put(ObjectBody([1]), to: elsewhere, ObjectAttributes(), idle: .ample)
            }
            #expect(bucket.code == .noSuchBucket)
            #expect(bucket.status == 404)
        }
    }

    @Test("Wrong keys are invalid credentials, also where the answer has no body")
    func wrongCredentials() async throws {
        try await withStorage { server, _ in
            let location = server.location()
            try await withTransport(to: server, secret: "wrong") { transport in
                let put = try await objectError { () async throws(ObjectError) in
                    try await transport.put(ObjectBody([1]), to: location, ObjectAttributes(), idle: .ample)
                }
                #expect(put.code == .invalidCredentials)
                #expect(put.serverCode == "SignatureDoesNotMatch")
                let head = try await objectError { () async throws(ObjectError) in
                    try await transport.object(at: location, within: .ample)
                }
                #expect(head.code == .invalidCredentials)
            }
            try await withTransport(to: server, accessKeyID: "AKIANOBODY") { transport in
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.put(ObjectBody([1]), to: location, ObjectAttributes(), idle: .ample)
                }
                #expect(error.code == .invalidCredentials)
                #expect(error.serverCode == "InvalidAccessKeyId")
            }
        }
    }
}
