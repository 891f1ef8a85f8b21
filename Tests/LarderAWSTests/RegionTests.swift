import Foundation
import Larder
import NIOHTTP1
import Synchronization
import Testing

@testable import LarderAWS

@Suite("Regions that a storage says, and that are none", .timeLimit(.minutes(10)))
struct RegionTests {
    private static let body = ObjectBody(Array("soup".utf8))

    private func put(_ transport: S3Transport) async throws(ObjectError) {
        _ = try await transport.put(Self.body, to: .somewhere, ObjectAttributes(), idle: .ample)
    }

    @Test(
        "One garbled answer does not spoil the bucket",
        arguments: [
            "eu west 1", "eu-west-1\u{FFFD}", "eu/west", "-eu", "e.u", "eu_west", String(repeating: "r", count: 64), "",
        ])
    func garbled(region: String) async throws {
        try await ScriptedStorage.run { request in
            request.number == 0
                ? .error(.movedPermanently, "PermanentRedirect", more: "<Region>\(region)</Region>") : .stored()
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .wrongRegion)
            try await put(transport)
            #expect(storage.requests.map(\.signedRegion) == ["us-east-1", "us-east-1"])
        }
    }

    @Test(
        "A storage that names the bucket's host alone says its region by that",
        arguments: [
            ("photos.s3.eu-west-1.amazonaws.com", "eu-west-1"), ("photos.s3-eu-west-1.amazonaws.com", "eu-west-1"),
            ("photos.s3.cn-north-1.amazonaws.com.cn", "cn-north-1"), ("photos.s3.amazonaws.com", "us-east-1"),
        ])
    func byHost(host: String, region: String) async throws {
        let location = ObjectLocation(bucket: "photos", key: "a/b", region: "ap-south-1")
        try await ScriptedStorage.run { request in
            request.number == 0
                ? .error(.movedPermanently, "PermanentRedirect", more: "<Endpoint>\(host)</Endpoint>") : .stored()
        } _: { storage, transport in
            _ = try await transport.put(Self.body, to: location, ObjectAttributes(), idle: .ample)
            #expect(storage.requests.map(\.signedRegion) == ["ap-south-1", region])
        }
    }

    @Test("A region to which a request was sent in vain is not learned")
    func notTaken() async throws {
        try await ScriptedStorage.run { request in
            switch request.number {
            case 0: .error(.movedPermanently, "PermanentRedirect", more: "<Region>eu-wost-1</Region>")
            case 1: .error(.forbidden, "SignatureDoesNotMatch")
            default: .stored()
            }
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .invalidCredentials)
            try await put(transport)
            #expect(storage.requests.map(\.signedRegion) == ["us-east-1", "eu-wost-1", "us-east-1"])
        }
    }

    @Test("The region that a transport has learned of one bucket is not taken for that of another")
    func otherBucket() async throws {
        try await ScriptedStorage.run { request in
            request.number == 0
                ? .error(.movedPermanently, "PermanentRedirect", more: "<Region>eu-west-1</Region>") : .stored()
        } _: { storage, transport in
            try await put(transport)
            let other = ObjectLocation(bucket: "papers", key: "a/b")
            _ = try await transport.put(Self.body, to: other, ObjectAttributes(), idle: .ample)
            #expect(storage.requests.map(\.signedRegion) == ["us-east-1", "eu-west-1", "us-east-1"])
        }
    }

    @Test("A transport repeats a request for its region, its time and its credentials, once for each of them")
    func threeReasons() async throws {
        try await ScriptedStorage.run { request in
            switch request.number {
            case 0: .error(.movedPermanently, "PermanentRedirect", more: "<Region>eu-west-1</Region>")
            case 1: .error(.forbidden, "RequestTimeTooSkewed", headers: ["Date": "Tue, 01 Jan 2030 12:00:00 GMT"])
            case 2: .error(.badRequest, "ExpiredToken")
            default: .stored()
            }
        } _: { storage, transport in
            let renewing = S3Transport(region: transport.region, options: transport.options, client: transport.client) {
                _, _ in .test
            }
            try await put(renewing)
            #expect(
                storage.requests.map(\.signedRegion) == ["us-east-1", "eu-west-1", "eu-west-1", "eu-west-1"])
        }
    }

    @Test("A region that was learned and is not taken any more is forgotten")
    func moved() async throws {
        let home = Mutex("eu-west-1")
        try await ScriptedStorage.run { request in
            let home = home.withLock { $0 }
            if request.signedRegion == home { return .stored() }
            // Whatever it says of the place, it says to those who come from where the bucket was at first.
            return request.signedRegion == "us-east-1"
                ? .error(.movedPermanently, "PermanentRedirect", headers: ["x-amz-bucket-region": home])
                : .error(.forbidden, "SignatureDoesNotMatch")
        } _: { storage, transport in
            try await put(transport)
            home.withLock { $0 = "ap-south-1" }
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .invalidCredentials)
            try await put(transport)
            try await put(transport)
            #expect(
                storage.requests.map(\.signedRegion) == [
                    "us-east-1", "eu-west-1", "eu-west-1", "us-east-1", "ap-south-1", "ap-south-1",
                ])
        }
    }

    @Test("A region that was learned, and whose storage cannot be reached any more, is forgotten")
    func unreachable() async throws {
        var options = S3Transport.Options()
        // Nothing listens there.
        options.endpoint = URL(string: "http://127.0.0.1:1")
        try await S3Transport.withTransport(
            region: "us-east-1", credentials: { _ in .test }, options: options
        ) { transport in
            transport.learn(region: "eu-west-1", of: "photos")
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .unreachable)
            #expect(transport.region(of: "photos", said: nil) == "us-east-1")
        }
    }

    @Test("A presigned URL is of the region and of the time that were learned of the storage")
    func presigned() async throws {
        try await ScriptedStorage.run { request in
            switch request.number {
            case 0: .error(.movedPermanently, "PermanentRedirect", more: "<Region>eu-west-1</Region>")
            case 1:
                .error(.forbidden, "RequestTimeTooSkewed", headers: ["Date": "Tue, 01 Jan 2030 12:00:00 GMT"])
            default: .stored()
            }
        } configure: {
            $0.wallClock = { Date(timeIntervalSince1970: 1_000_000_000) }
        } _: { _, transport in
            try await put(transport)
            let location = ObjectLocation(bucket: "photos", key: "a/b", region: "ap-south-1")
            let url = try await transport.presignedURL(.get, location, expiresAfter: .seconds(60), within: .ample)
            let items = URLComponents(url: url, resolvingAgainstBaseURL: false)?.queryItems ?? []
            let query = Dictionary(items.map { ($0.name, $0.value) }) { $1 }
            #expect(query["X-Amz-Date"] == "20300101T120000Z")
            #expect(query["X-Amz-Credential"]??.hasSuffix("/20300101/eu-west-1/s3/aws4_request") == true)
        }
    }

    @Test("A region whose storage refuses a request for another reason is learned all the same")
    func refusedThere() async throws {
        try await ScriptedStorage.run { request in
            switch request.number {
            case 0: .error(.movedPermanently, "PermanentRedirect", more: "<Region>eu-west-1</Region>")
            case 1: .error(.forbidden, "AccessDenied")
            default: .stored()
            }
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .accessDenied)
            try await put(transport)
            #expect(storage.requests.map(\.signedRegion) == ["us-east-1", "eu-west-1", "eu-west-1"])
        }
    }

    @Test("A refusal that names no reason but another region, there as well, is one of the region")
    func refusedEverywhere() async throws {
        try await ScriptedStorage.run { _ in
            var reply = Reply.error(.badRequest, "")
            (reply.body, reply.headers) = ([], ["x-amz-bucket-region": "eu-west-1"])
            return reply
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .wrongRegion && error.status == 400)
            #expect(storage.requests.map(\.signedRegion) == ["us-east-1", "eu-west-1"])
        }
    }

    @Test("A refusal that names neither a reason nor a region is one of the request")
    func unexplained() async throws {
        try await ScriptedStorage.run { _ in
            var reply = Reply.error(.badRequest, "")
            reply.body = []
            return reply
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .rejected && error.status == 400)
            #expect(storage.requests.count == 1)
        }
    }

    @Test("Of a refusal that breaks off the status is known")
    func brokenOff() async throws {
        try await ScriptedStorage.run { _ in
            var reply = Reply.error(.forbidden, "AccessDenied")
            reply.headers.add(name: "Content-Length", value: "100000")
            reply.ending = .cut
            return reply
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.uploads(in: "bucket", region: nil, prefix: "", within: .ample)
            }
            #expect(error.code == .accessDenied && error.status == 403)
        }
    }

    @Test("Each request for an object, its parts and its uploads is signed for the region that its place names")
    func named() async throws {
        let location = ObjectLocation(bucket: "photos", key: "a/b", region: "ap-south-1")
        let upload = MultipartUpload(location: location, id: "u")
        let part = UploadedPart(number: 1, size: 4, etag: "\"e\"")
        let sink = Collected().sink()
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { storage, transport in
            // Whether the answers can be used does not matter here.
            _ = try? await transport.get(0..<4, of: location, etag: "\"e\"", into: sink, idle: .ample)
            _ = try? await transport.putPart(1, Self.body, of: upload, idle: .ample)
            _ = try? await transport.parts(of: upload, within: .ample)
            _ = try? await transport.completeUpload(upload, [part], within: .ample)
            try? await transport.abortUpload(upload, within: .ample)
            _ = try? await transport.uploads(in: "photos", region: "ap-south-1", prefix: "a", within: .ample)
            let regions = storage.requests.map(\.signedRegion)
            #expect(regions.count >= 6 && regions.allSatisfy { $0 == "ap-south-1" }, "\(regions)")
        }
    }

    @Test("An upload in parts is begun, and an object looked at, in the region that the place names")
    func begunAndLookedAt() async throws {
        let location = ObjectLocation(bucket: "photos", key: "a/b", region: "ap-south-1")
        let begun = "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
        try await ScriptedStorage.run { request in
            request.method == .POST ? .xml(.ok, begun) : .stored()
        } _: { storage, transport in
            let upload = try await transport.beginUpload(to: location, ObjectAttributes(), within: .ample)
            #expect(upload.location == location)
            _ = try await transport.object(at: location, within: .ample)
            let regions = storage.requests.map(\.signedRegion)
            #expect(regions.count >= 2 && regions.allSatisfy { $0 == "ap-south-1" }, "\(regions)")
        }
    }
}
