import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import Testing

@Suite(
    "Against a storage that checks signatures",
    .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)")
)
struct StorageTests {
    @Test(
        "An object comes back as it was put, in every form that bytes are sent in",
        arguments: [
            S3Transport.Options.Payload.automatic, .unsignedTrailer, .signedTrailer, .signed, .unsigned,
        ], [0, 1, 8_192, 1_000_000])
    func roundTrip(payload: S3Transport.Options.Payload, size: Int) async throws {
        try await withStorage { $0.payload = payload } _: { server, transport in
            let bytes = randomBytes(size)
            let location = server.location("a/b.bin")
            let attributes = ObjectAttributes(contentType: "video/quicktime", metadata: ["made-by": "a test"])
            let stored = try await transport.put(ObjectBody(bytes), to: location, attributes, idle: .ample)
            #expect(stored.size == Int64(size))

            let seen = try await transport.object(at: location, deadline: .ample)
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
}
