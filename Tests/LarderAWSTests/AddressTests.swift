import AsyncHTTPClient
import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import NIOHTTP1
import Testing

@Suite("Where requests go", .timeLimit(.minutes(10)))
struct AddressTests {
    struct Case: Sendable {
        var endpoint: String?
        var bucket = "photos"
        var region: String?
        var addressing = S3Transport.Options.Addressing.automatic
        var host: String
        var path = "/a/b"
    }

    /// Longer than a part of a host's name may be.
    private static let long = String(repeating: "b", count: 64)
    private static let longest = String(repeating: "b", count: 63)

    static let cases = [
        Case(host: "photos.s3.eu-west-1.amazonaws.com"),
        Case(region: "us-east-1", host: "photos.s3.us-east-1.amazonaws.com"),
        Case(region: "cn-north-1", host: "photos.s3.cn-north-1.amazonaws.com.cn"),
        Case(bucket: "my.photos", host: "s3.eu-west-1.amazonaws.com", path: "/my.photos/a/b"),
        Case(bucket: "My_Pantry", host: "s3.eu-west-1.amazonaws.com", path: "/My_Pantry/a/b"),
        Case(bucket: "ab", host: "s3.eu-west-1.amazonaws.com", path: "/ab/a/b"),
        Case(bucket: "abc", host: "abc.s3.eu-west-1.amazonaws.com"),
        Case(bucket: long, host: "s3.eu-west-1.amazonaws.com", path: "/\(long)/a/b"),
        Case(bucket: longest, host: "\(longest).s3.eu-west-1.amazonaws.com"),
        Case(bucket: "MyPantry", host: "s3.eu-west-1.amazonaws.com", path: "/MyPantry/a/b"),
        Case(bucket: "pantry-", host: "s3.eu-west-1.amazonaws.com", path: "/pantry-/a/b"),
        Case(bucket: "-pantry", host: "s3.eu-west-1.amazonaws.com", path: "/-pantry/a/b"),
        Case(addressing: .path, host: "s3.eu-west-1.amazonaws.com", path: "/photos/a/b"),
        Case(endpoint: "https://storage.example", host: "photos.storage.example"),
        Case(endpoint: "http://storage.example:8080/", bucket: "my.photos", host: "my.photos.storage.example:8080"),
        Case(
            endpoint: "http://storage.example", bucket: "my..photos", host: "storage.example",
            path: "/my..photos/a/b"),
        Case(endpoint: "http://storage.example:80", host: "photos.storage.example"),
        Case(endpoint: "https://storage.example:80", host: "photos.storage.example:80"),
        Case(endpoint: "http://storage.example:443", host: "photos.storage.example:443"),
        Case(endpoint: "https://storage.example:443/s3/", host: "photos.storage.example", path: "/s3/a/b"),
        Case(
            endpoint: "https://storage.example/s3", addressing: .path, host: "storage.example",
            path: "/s3/photos/a/b"),
        Case(endpoint: "http://127.0.0.1:9000", host: "127.0.0.1:9000", path: "/photos/a/b"),
        Case(endpoint: "http://localhost:9000", host: "localhost:9000", path: "/photos/a/b"),
        Case(
            endpoint: "http://localhost:9000", addressing: .virtualHost, host: "photos.localhost:9000"),
        Case(endpoint: "http://[::1]:9000", host: "[::1]:9000", path: "/photos/a/b"),
    ]

    @Test("A bucket is named by the host where that can be, and by the path elsewhere", arguments: cases.indices)
    func address(index: Int) async throws {
        let example = Self.cases[index]
        var options = S3Transport.Options()
        options.endpoint = example.endpoint.flatMap { URL(string: $0) }
        options.addressing = example.addressing
        let location = ObjectLocation(bucket: example.bucket, key: "a/b", region: example.region)
        try await S3Transport.withTransport(
            region: "eu-west-1", credentials: { _ in .test }, options: options
        ) { transport in
            #expect(transport.host(of: location) == example.host)
            let url = try await transport.presignedURL(.get, location, expiresAfter: .seconds(1), within: .ample)
            let scheme = example.endpoint.map { String($0.prefix { $0 != ":" }) } ?? "https"
            #expect(url.absoluteString.hasPrefix("\(scheme)://\(example.host)\(example.path)?X-Amz-"))
        }
    }

    @Test(
        "An endpoint that nothing can be sent to is an error of each request",
        arguments: [
            "ftp://storage.example", "storage.example", "http://", "http:///a", "http://storage.example/?a=b",
            "http://user@storage.example",
        ])
    func badEndpoint(text: String) async throws {
        var options = S3Transport.Options()
        options.endpoint = URL(string: text)
        guard options.endpoint != nil else { return }
        try await S3Transport.withTransport(
            region: "eu-west-1", credentials: { _ in .test }, options: options
        ) { transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.object(at: .somewhere, within: .ample)
            }
            #expect(error.code == .unusableRequest)
            #expect(transport.host(of: .somewhere) == "photos")
        }
    }

    static let keys = [
        "a//b", "//", "/", "/a", "a/", ".", "..", "../a", "a/../b", "a/./b", "./a", "a/..", "a b", "a+b", "a%2Fb", "%",
        "a?b#c", "a;b=c&d",
        "\u{0}\u{1}\u{1F}\u{7F}", "line\nbreak\r\n", "ä/é", "🍲", "~-._", "*'()!",
        "\\", "[a]{b}|^`\"<>", String(repeating: "é", count: 512), String(repeating: "🍲", count: 256),
        "e\u{301}", "\u{FEFF}a", "a:b@c", "http://x/",
    ]

    @Test("A key goes over the wire as it is, character by character, and is signed so", arguments: keys)
    func sends(key: String) async throws {
        let date = Date(timeIntervalSince1970: 1_369_353_600)
        try await ScriptedStorage.run { _ in
            .stored()
        } configure: {
            $0.wallClock = { date }
        } _: { storage, transport in
            let location = ObjectLocation(bucket: "photos", key: key)
            _ = try await transport.object(at: location, within: .ample)
            let request = try #require(storage.requests.first)
            #expect(request.target == "/photos/" + URIEncoding.path(key))
            #expect(URIEncoding.decoded(request.path.dropFirst(8)) == key)

            let signed = ["host", "x-amz-checksum-mode", "x-amz-content-sha256", "x-amz-date"]
            let canonical = CanonicalRequest(
                method: "HEAD", path: request.path, query: [],
                headers: signed.map { ($0, request.headers.first(name: $0) ?? "") }, payloadHash: .empty)
            let signature = SignatureV4(credentials: .test, time: SigningTime(date), region: "us-east-1")
            let expected = signature.authorization(of: canonical, signature: signature.signature(of: canonical))
            #expect(request.headers.first(name: "authorization") == expected)
        }
    }

    @Test("Keys go as they are where the bucket is named by the host, too", arguments: keys)
    func sendsToHost(key: String) async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { storage, other in
            var options = other.options
            options.endpoint = URL(string: "http://localhost:\(storage.url.port ?? 0)")
            options.addressing = .virtualHost
            var configuration = S3Transport.clientConfiguration
            configuration.dnsOverride = ["photos.localhost": "127.0.0.1"]
            try await HTTPClient.withHTTPClient(configuration: configuration) { client in
                let transport = S3Transport(
                    region: "us-east-1", credentials: { _ in .test }, options: options, client: client)
                _ = try await transport.object(at: ObjectLocation(bucket: "photos", key: key), within: .ample)
            }
            let request = try #require(storage.requests.first)
            #expect(request.target == "/" + URIEncoding.path(key))
            #expect(request.headers["host"] == ["photos.localhost:\(storage.url.port ?? 0)"])
        }
    }

    @Test("A transport that makes its client itself follows no redirect")
    func ownClient() async throws {
        try await ScriptedStorage.run { _ in
            Reply(status: .found, headers: ["Location": "/elsewhere"])
        } _: { storage, given in
            let transport = S3Transport(region: "us-east-1", credentials: { _ in .test }, options: given.options)
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.parts(of: .init(location: .somewhere, id: "u"), within: .ample)
            }
            #expect(error.code == .wrongRegion)
            #expect(storage.requests.count == 1)
        }
    }

    @Test("A presigned URL is good for a second to seven days")
    func presignedTime() async throws {
        try await S3Transport.withTransport(region: "eu-west-1", credentials: { _ in .test }) { transport in
            for time in [Duration.zero, .seconds(-1), .seconds(604_801)] {
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.presignedURL(.put, .somewhere, expiresAfter: time, within: .ample)
                }
                #expect(error.code == .unusableRequest)
            }
            let url = try await transport.presignedURL(
                .put, .somewhere, expiresAfter: .seconds(604_800), within: .ample)
            #expect(url.absoluteString.contains("X-Amz-Expires=604800&X-Amz-SignedHeaders=host&X-Amz-Signature="))
        }
    }

    @Test("A presigned URL has the token of credentials that have one", arguments: ["TOKEN/+=", nil])
    func presignedToken(token: String?) async throws {
        try await S3Transport.withTransport(
            region: "eu-west-1",
            credentials: { _ in
                .init(accessKeyID: "key", secretAccessKey: "secret", sessionToken: token, expires: nil)
            }
        ) { transport in
            let url = try await transport.presignedURL(.get, .somewhere, expiresAfter: .seconds(60), within: .ample)
            let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            #expect(items.first { $0.name == "X-Amz-Security-Token" }?.value == token)
        }
    }

    @Test("A presigned URL is good for reading, for looking or for writing, and not for two of them")
    func presignedUse() async throws {
        try await S3Transport.withTransport(region: "eu-west-1", credentials: { _ in .test }) { transport in
            var signatures: [String] = []
            var times: Set<Substring> = []
            // All of one second.
            for _ in 0..<10 where times.count != 1 {
                (signatures, times) = ([], [])
                for use in [S3Transport.PresignedUse.get, .head, .put] {
                    let url = try await transport.presignedURL(
                        use, .somewhere, expiresAfter: .seconds(60), within: .ample)
                    let parts = (url.query ?? "").split(separator: "&")
                    signatures += parts.filter { $0.hasPrefix("X-Amz-Signature=") }.map(String.init)
                    times.formUnion(parts.filter { $0.hasPrefix("X-Amz-Date=") })
                }
            }
            #expect(times.count == 1 && Set(signatures).count == 3)
        }
    }

    @Test("A presigned URL waits for credentials no longer than it may")
    func presignedWait() async throws {
        try await S3Transport.withTransport(
            region: "eu-west-1",
            credentials: { _ in
                try await Task.sleep(for: .seconds(30))
                return .test
            }
        ) { transport in
            let error = try await requireEnd { _ in
                _ = try await transport.presignedURL(
                    .get, .somewhere, expiresAfter: .seconds(60), within: .milliseconds(50))
            }
            #expect((error as? ObjectError)?.code == .timedOut)
        }
    }

    @Test("A transport to an environment's bucket is of the bucket's region; without a bucket there is none")
    func environment() throws {
        struct NoSession: Error {}
        let endpoint = try #require(URL(string: "https://example.com/graphql"))
        var environment = BackendEnvironment(name: "movies", api: .init(url: endpoint))
        let error = #expect(throws: LarderError.self) {
            try S3Transport(environment: environment, session: try { throw NoSession() }(), client: .shared)
        }
        #expect(error?.code == .environment && error?.message.contains("movies") == true)
        environment.bucket = .init(name: "photos", region: "eu-north-1")
        let transport = try S3Transport(
            environment: environment, session: try { throw NoSession() }(), client: .shared)
        #expect(transport.region == "eu-north-1")
    }
}
