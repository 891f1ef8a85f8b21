import Foundation
import Larder
import LarderAWS
import Testing

/// The examples of the Amazon S3 API Reference: "Signature Calculations for the Authorization Header" (in a single
/// chunk, in multiple chunks, including trailing headers) and "Using Query Parameters".
@Suite("Signatures that Amazon S3 documents")
struct DocumentedSignatureTests {
    private static let time = SigningTime(Date(timeIntervalSince1970: 1_369_353_600))
    private static let signature = SignatureV4(credentials: .test, time: time, region: "us-east-1")

    struct Example: Sendable, CustomTestStringConvertible {
        var name: String
        var method = "GET"
        var path = "/"
        var query: [String: String] = [:]
        var headers: [String: String] = [:]
        var payload = PayloadHash.empty
        var host = "examplebucket.s3.amazonaws.com"
        var signedHeaders: String
        var signature: String

        var testDescription: String { name }

        var request: CanonicalRequest {
            let added = ["Host": host, "x-amz-content-sha256": payload.headerValue, "x-amz-date": time.stamp]
            return CanonicalRequest(
                method: method, path: path, query: query.map { ($0.key, $0.value) },
                headers: headers.merging(added) { $1 }.map { ($0.key, $0.value) }, payloadHash: payload)
        }
    }

    static let examples = [
        Example(
            name: "GET Object", path: "/test.txt", headers: ["Range": "bytes=0-9"],
            signedHeaders: "host;range;x-amz-content-sha256;x-amz-date",
            signature: "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        Example(
            name: "PUT Object", method: "PUT", path: "/" + URIEncoding.path("test$file.text"),
            headers: ["Date": "Fri, 24 May 2013 00:00:00 GMT", "x-amz-storage-class": "REDUCED_REDUNDANCY"],
            payload: .of("Welcome to Amazon S3.".utf8),
            signedHeaders: "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
            signature: "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"),
        Example(
            name: "GET Bucket Lifecycle", query: ["lifecycle": ""],
            signedHeaders: "host;x-amz-content-sha256;x-amz-date",
            signature: "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
        Example(
            name: "GET Bucket (List Objects)", query: ["prefix": "J", "max-keys": "2"],
            signedHeaders: "host;x-amz-content-sha256;x-amz-date",
            signature: "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"),
        Example(
            name: "PUT Object in chunks", method: "PUT", path: "/examplebucket/chunkObject.txt",
            headers: [
                "x-amz-storage-class": "REDUCED_REDUNDANCY", "Content-Encoding": "aws-chunked",
                "x-amz-decoded-content-length": "66560", "Content-Length": "66824",
            ],
            payload: .signedChunks, host: "s3.amazonaws.com",
            signedHeaders: "content-encoding;content-length;host;x-amz-content-sha256;x-amz-date;"
                + "x-amz-decoded-content-length;x-amz-storage-class",
            signature: "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9"),
        Example(
            name: "PUT Object in chunks with a trailer", method: "PUT", path: "/examplebucket/chunkObject.txt",
            headers: [
                "x-amz-storage-class": "REDUCED_REDUNDANCY", "Content-Encoding": "aws-chunked",
                "x-amz-decoded-content-length": "66560", "x-amz-trailer": "x-amz-checksum-crc32c",
            ],
            payload: .signedTrailer, host: "s3.amazonaws.com",
            signedHeaders: "content-encoding;host;x-amz-content-sha256;x-amz-date;x-amz-decoded-content-length;"
                + "x-amz-storage-class;x-amz-trailer",
            signature: "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e"),
    ]

    @Test("A documented request has the documented signature", arguments: examples)
    func request(example: Example) {
        #expect(example.request.signedHeaders == example.signedHeaders)
        #expect(Self.signature.signature(of: example.request) == example.signature)
    }

    @Test("The canonical request and the header are as documented")
    func header() {
        let request = Self.examples[0].request
        #expect(
            request.text == """
                GET
                /test.txt

                host:examplebucket.s3.amazonaws.com
                range:bytes=0-9
                x-amz-content-sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
                x-amz-date:20130524T000000Z

                host;range;x-amz-content-sha256;x-amz-date
                e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
                """)
        let signature = Self.signature.signature(of: request)
        #expect(
            Self.signature.authorization(of: request, signature: signature)
                == "AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request, "
                + "SignedHeaders=host;range;x-amz-content-sha256;x-amz-date, Signature=\(signature)")
    }

    @Test("A presigned URL is as documented")
    func presigned() {
        let request = CanonicalRequest(
            method: "GET", path: "/test.txt", query: [], headers: [("host", "examplebucket.s3.amazonaws.com")],
            payloadHash: .unsigned)
        #expect(
            Self.signature.presignedQuery(of: request, seconds: 86_400)
                == "X-Amz-Algorithm=AWS4-HMAC-SHA256"
                + "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
                + "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
                + "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404")
    }

    // The body of both examples: 65 KiB of the letter a, in chunks of 64 KiB.
    private static let chunks = [65_536, 1_024, 0].map { [UInt8](repeating: UInt8(ascii: "a"), count: $0) }

    @Test("Spaces and tabs within a header's value count as one space")
    func spaces() {
        let signatures = ["a b", " a  b ", "a\tb", "\ta \t b\t"].map { value in
            Self.signature.signature(
                of: CanonicalRequest(
                    method: "GET", path: "/", query: [], headers: [("host", "h"), ("x-a", value)],
                    payloadHash: .unsigned))
        }
        #expect(Set(signatures).count == 1)
    }

    @Test("Chunks are signed as documented")
    func chunks() {
        var previous = Self.examples[4].signature
        var signatures: [String] = []
        for chunk in Self.chunks {
            previous = Self.signature.signature(ofChunk: PayloadHash.of(chunk).headerValue, after: previous)
            signatures.append(previous)
        }
        #expect(
            signatures == [
                "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648",
                "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497",
                "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9",
            ])
    }

    @Test("A body in signed chunks with a trailer is as documented, byte for byte", arguments: [false, true])
    func trailer(fromElsewhere: Bool) throws {
        let framing = BodyFraming(payload: .signedTrailer, size: 66_560, chunkSize: 65_536)
        var writer = BodyFraming.Writer(framing, signature: Self.signature, seed: Self.examples[5].signature)
        var body: [UInt8] = []
        for chunk in Self.chunks[..<2] {
            if fromElsewhere {
                let head = writer.head(chunk.count) { $1.copyBytes(from: chunk[$0..<($0 + $1.count)]) }
                body += head.readableBytesView + chunk
            } else {
                body += writer.chunk(chunk.count) { $0.copyBytes(from: chunk) }.readableBytesView
            }
        }
        body += writer.trailer().readableBytesView
        let expected = """
            10000;chunk-signature=b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2
            \(String(repeating: "a", count: 65_536))
            400;chunk-signature=1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7
            \(String(repeating: "a", count: 1_024))
            0;chunk-signature=2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992
            x-amz-checksum-crc32c:sOO8/Q==
            x-amz-trailer-signature:d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435


            """.replacing("\n", with: "\r\n")
        #expect(String(decoding: body, as: UTF8.self) == expected)
        #expect(framing.length == Int64(expected.utf8.count))
    }

    @Test(
        "The length of a body in chunks is known beforehand, however long it is",
        arguments: [
            (0, 1 << 20), (1, 1 << 20), (1 << 20, 1 << 20), (10_000, 8_192), (16_384, 8_192),
        ] as [(Int64, Int)])
    func length(size: Int64, chunkSize: Int) {
        for payload in [PayloadHash.unsignedTrailer, .signedTrailer, .unsigned] {
            let framing = BodyFraming(payload: payload, size: size, chunkSize: chunkSize)
            var writer = BodyFraming.Writer(framing, signature: Self.signature, seed: "")
            var (length, left) = (Int64(0), size)
            while left > 0 {
                let count = min(left, Int64(chunkSize))
                left -= count
                let chunk = writer.chunk(Int(count)) {
                    $0.initializeMemory(as: UInt8.self, repeating: 7)
                }
                length += Int64(chunk.readableBytes)
            }
            length += Int64(writer.trailer().readableBytes)
            #expect(framing.length == length)
        }
        let large = BodyFraming(payload: .unsignedTrailer, size: 5 << 30, chunkSize: 1 << 20)
        #expect(large.length == 5_120 * (8 + 1_048_576 + 2) + 3 + 32 + 2)
    }
}
