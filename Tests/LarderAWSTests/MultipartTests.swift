import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite(
    "Uploads in parts, against a storage that checks signatures",
    .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"),
    .timeLimit(.minutes(10))
)
struct MultipartTests {
    private static let sizes = [200_000, 150_000, 70_001]
    private static let bytes = randomBytes(sizes.reduce(0, +))

    /// The bytes of each part.
    private static var parts: [[UInt8]] {
        var (parts, at): ([[UInt8]], Int) = ([], 0)
        for size in sizes {
            parts.append(Array(bytes[at..<(at + size)]))
            at += size
        }
        return parts
    }

    @Test(
        "Parts become one object with the bytes of all",
        arguments: [S3Transport.Options.Payload.automatic, .unsignedTrailer, .signed])
    func whole(payload: S3Transport.Options.Payload) async throws {
        try await withStorage {
            $0.payload = payload
        } _: { server, transport in
            let location = server.location()
            let attributes = ObjectAttributes(contentType: "video/mp4", metadata: ["made-by": "a test"])
            let upload = try await transport.beginUpload(to: location, attributes, within: .ample)
            var sent: [UploadedPart] = []
            // In any order: the last first.
            for (index, bytes) in Self.parts.enumerated().reversed() {
                sent.insert(
                    try await transport.putPart(index + 1, ObjectBody(bytes), of: upload, idle: .ample), at: 0)
            }
            let listed = try await transport.parts(of: upload, within: .ample)
            #expect(listed.map(\.number) == [1, 2, 3])
            #expect(listed.map(\.etag) == sent.map(\.etag))
            #expect(listed.map(\.size) == Self.sizes.map { Int64($0) })

            let object = try await transport.completeUpload(upload, sent, within: .ample)
            #expect(object.size == Int64(Self.bytes.count))
            let seen = try await transport.object(at: location, within: .ample)
            #expect(seen.etag == object.etag)
            #expect(seen.attributes == attributes)
            let collected = Collected()
            _ = try await transport.get(
                0..<Int64(Self.bytes.count), of: location, etag: object.etag, into: collected.sink(), idle: .ample)
            #expect(collected.bytes == Self.bytes)
        }
    }

    @Test("The checksum of the whole follows from its parts' checksums, and the storage says the same")
    func wholeChecksum() async throws {
        try await withStorage { server, transport in
            let location = server.location()
            let upload = try await transport.beginUpload(to: location, ObjectAttributes(), within: .ample)
            var sent: [UploadedPart] = []
            for (index, bytes) in Self.parts.enumerated() {
                sent.append(try await transport.putPart(index + 1, ObjectBody(bytes), of: upload, idle: .ample))
            }
            let object = try await transport.completeUpload(upload, sent, within: .ample)
            #expect(object.crc32c == CRC32C(of: Self.bytes).value)
            let seen = try await transport.object(at: location, within: .ample)
            #expect(seen.crc32c == object.crc32c)
        }
    }

    @Test("An object is put together from what is listed after a restart")
    func resumed() async throws {
        try await withStorage { server, transport in
            let location = server.location()
            let upload = try await transport.beginUpload(to: location, ObjectAttributes(), within: .ample)
            for (index, bytes) in Self.parts.enumerated() {
                _ = try await transport.putPart(index + 1, ObjectBody(bytes), of: upload, idle: .ample)
            }
            let object = try await withTransport(to: server) { again in
                let listed = try await again.parts(of: upload, within: .ample)
                return try await again.completeUpload(upload, listed, within: .ample)
            }
            #expect(object.size == Int64(Self.bytes.count))
        }
    }

    @Test("A part that is sent again replaces the one before")
    func replaced() async throws {
        try await withStorage { server, transport in
            let location = server.location()
            let upload = try await transport.beginUpload(to: location, ObjectAttributes(), within: .ample)
            _ = try await transport.putPart(1, ObjectBody([1, 2, 3]), of: upload, idle: .ample)
            let part = try await transport.putPart(1, ObjectBody([4, 5]), of: upload, idle: .ample)
            let listed = try await transport.parts(of: upload, within: .ample)
            #expect(listed.map(\.etag) == [part.etag])
            let object = try await transport.completeUpload(upload, [part], within: .ample)
            #expect(object.crc32c == CRC32C(of: [4, 5]).value)
        }
    }

    @Test("Uploads that were begun are listed by the beginning of their keys, whatever is in them")
    func listed() async throws {
        try await withStorage { server, transport in
            let prefix = server.location("").key
            let keys = ["a b+c", "ä 100%", "<&>\"'", "z/é"].map { prefix + $0 }
            var begun: [MultipartUpload] = []
            for key in keys {
                let location = ObjectLocation(bucket: server.bucket, key: key)
                begun.append(try await transport.beginUpload(to: location, ObjectAttributes(), within: .ample))
            }
            let uploads = try await transport.uploads(
                in: server.bucket, region: nil, prefix: prefix, within: .ample)
            #expect(Set(uploads) == Set(begun))
            for upload in begun { try await transport.abortUpload(upload, within: .ample) }
            let left = try await transport.uploads(in: server.bucket, region: nil, prefix: prefix, within: .ample)
            #expect(left.isEmpty)
        }
    }

    @Test("An upload that was given up is gone, and giving it up again is no error")
    func aborted() async throws {
        try await withStorage { server, transport in
            let upload = try await transport.beginUpload(
                to: server.location(), ObjectAttributes(), within: .ample)
            _ = try await transport.putPart(1, ObjectBody([1]), of: upload, idle: .ample)
            try await transport.abortUpload(upload, within: .ample)
            try await transport.abortUpload(upload, within: .ample)
            let listing = try await objectError { () async throws(ObjectError) in
                try await transport.parts(of: upload, within: .ample)
            }
            #expect(listing.code == .noSuchUpload)
        }
    }

    @Test("A part that is missing, is another, or is too small leaves the object incomplete")
    func incomplete() async throws {
        try await withStorage { server, transport in
            let upload = try await transport.beginUpload(
                to: server.location(), ObjectAttributes(), within: .ample)
            let small = try await transport.putPart(1, ObjectBody([1]), of: upload, idle: .ample)
            let last = try await transport.putPart(2, ObjectBody([2]), of: upload, idle: .ample)
            var other = last
            other.etag = "\"d41d8cd98f00b204e9800998ecf8427e\""
            var missing = last
            missing.number = 3
            for parts in [[small, last], [other], [missing]] {
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.completeUpload(upload, parts, within: .ample)
                }
                #expect(error.code == .incomplete)
            }
        }
    }

    @Test("There is no part 0 and none past the last that is allowed")
    func numbers() async throws {
        try await withStorage { server, transport in
            let upload = MultipartUpload(location: server.location(), id: "any")
            for number in [-1, 0, 10_001] {
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.putPart(number, ObjectBody([1]), of: upload, idle: .ample)
                }
                #expect(error.code == .unusableRequest)
            }
        }
    }
}
