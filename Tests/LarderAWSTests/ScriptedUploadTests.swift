import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import NIOCore
import NIOHTTP1
import Synchronization
import Testing

@Suite("Uploads to a storage that is not as it should be", .timeLimit(.minutes(10)))
struct ScriptedUploadTests {
    private static let body = ObjectBody(Array("soup".utf8))

    private func put(
        _ transport: S3Transport, _ body: ObjectBody = body, idle: Duration = .ample
    ) async throws(ObjectError) -> StoredObject {
        try await transport.put(body, to: .somewhere, ObjectAttributes(), idle: idle)
    }

    @Test("The version that the storage gives an object is told, of one in parts and of one that is looked at as well")
    func version() async throws {
        try await ScriptedStorage.run { request in
            guard request.method == .POST else { return .stored(headers: ["x-amz-version-id": "v7"]) }
            return .xml(
                .ok, "<CompleteMultipartUploadResult><ETag>\"e-1\"</ETag></CompleteMultipartUploadResult>",
                ["x-amz-version-id": "v8"])
        } _: { _, transport in
            #expect(try await put(transport, .pattern(10)).version == "v7")
            let part = UploadedPart(number: 1, size: 10, etag: "\"e\"")
            let whole = try await transport.completeUpload(
                .init(location: .somewhere, id: "u"), [part], within: .ample)
            #expect(whole.version == "v8")
            #expect(try await transport.object(at: .somewhere, within: .ample).version == "v7")
        }
    }

    @Test("A storage that is not Amazon's is asked to put parts together without a checksum of the whole")
    func completion() async throws {
        try await ScriptedStorage.run { _ in
            .xml(.ok, "<CompleteMultipartUploadResult><ETag>\"e-1\"</ETag></CompleteMultipartUploadResult>")
        } _: { storage, transport in
            let part = UploadedPart(number: 1, size: 10, etag: "\"e\"", crc32c: 7)
            _ = try await transport.completeUpload(.init(location: .somewhere, id: "u"), [part], within: .ample)
            let request = try #require(storage.requests.first)
            for name in ["x-amz-checksum-crc32c", "x-amz-checksum-type", "x-amz-mp-object-size"] {
                #expect(!request.headers.contains(name: name))
            }
        }
    }

    @Test("An upload that is refused while it is being sent says why, and is sent no further")
    func refusedEarly() async throws {
        let sent = Mutex(Int64(0))
        let size = Int64(1) << 30
        let body = ObjectBody.pattern(size) { count in sent.withLock { $0 += Int64(count) } }
        for (closes, saysLength, ending, delay) in [
            (false, true, Reply.Ending.complete, nil), (true, true, .complete, nil), (false, false, .complete, nil),
            (true, false, .complete, nil), (false, false, .hang, nil), (false, false, .cut, nil),
            (false, true, .complete, .milliseconds(300)), (true, false, .complete, .milliseconds(300)),
        ] as [(Bool, Bool, Reply.Ending, TimeAmount?)] {
            sent.withLock { $0 = 0 }
            let script: ScriptedStorage.Script = { _ in
                let status: HTTPResponseStatus = delay == nil ? .badRequest : .multipleChoices
                var reply = Reply.error(status, "ExpiredToken", "The provided token has expired.")
                (reply.afterBytes, reply.closes, reply.ending, reply.bodyDelay) = (1 << 20, closes, ending, delay)
                if !saysLength { reply.headers.add(name: "Transfer-Encoding", value: "chunked") }
                return reply
            }
            try await ScriptedStorage.run(script) { _, transport in
                let error = try await objectError { () async throws(ObjectError) in try await put(transport, body) }
                #expect(error.code == .expiredCredentials, "\((closes, saysLength, ending, delay))")
                #expect(error.serverCode == "ExpiredToken")
                #expect(error.requestID == "R1")
                #expect(sent.withLock { $0 } < size / 4)
            }
        }
    }

    @Test(
        "A file's bytes arrive as they are there, in whatever form they are sent",
        arguments: [S3Transport.Options.Payload.unsigned, .unsignedTrailer, .signedTrailer, .signed])
    func fromFile(payload: S3Transport.Options.Payload) async throws {
        try await withTemporaryFolder { folder in
            let bytes = randomBytes(3 << 20)
            let path = folder.appending(path: "file")
            try Data(bytes).write(to: path)
            let file = try FileHandle(forReadingFrom: path)
            // Not from its beginning, and not to its end.
            let range = 70_000..<(2 << 20)
            var body = ObjectBody(Array(bytes[range]))
            body.file = FileSegment(
                descriptor: file.fileDescriptor, offset: Int64(range.lowerBound), owner: folder)
            try await ScriptedStorage.run { _ in
                .stored()
            } configure: {
                $0.payload = payload
            } _: { [body] storage, transport in
                _ = try await put(transport, body)
                let received = try #require(storage.requests.first)
                let isFramed = received.headers.contains(name: "x-amz-trailer")
                #expect(try (isFramed ? unframed(received.body) : received.body) == Array(bytes[range]))
            }
            try file.close()
        }
    }

    @Test("A file that ends while it is sent breaks the exchange, and nothing stands in for what is missing")
    func shortened() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "file")
            try Data(count: 1 << 20).write(to: path)
            let file = try FileHandle(forUpdating: path)
            var body = ObjectBody.pattern(64 << 20)
            body.file = FileSegment(descriptor: file.fileDescriptor, offset: 0, owner: folder)
            try await ScriptedStorage.run { _ in
                .stored()
            } configure: {
                $0.payload = .unsigned
            } _: { [body] _, transport in
                let error = try await objectError { () async throws(ObjectError) in try await put(transport, body) }
                #expect(error.code == .local, "\(error)")
            }
            try file.close()
        }
    }

    @Test("A storage that says it has all before it can have it is not believed")
    func storedEarly() async throws {
        let script: ScriptedStorage.Script = { _ in
            var reply = Reply.stored()
            reply.afterBytes = 1 << 10
            return reply
        }
        try await ScriptedStorage.run(script) { _, transport in
            let body = ObjectBody.pattern(256 << 20)
            let error = try await objectError { () async throws(ObjectError) in try await put(transport, body) }
            #expect([.unusableAnswer, .interrupted].contains(error.code))
        }
    }

    @Test(
        "A storage that answers as soon as it has the last byte is believed",
        arguments: [S3Transport.Options.Payload.unsigned, .unsignedTrailer])
    func storedAtOnce(payload: S3Transport.Options.Payload) async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } configure: {
            $0.payload = payload
        } _: { _, transport in
            for _ in 0..<200 { _ = try await put(transport) }
        }
    }

    @Test(
        "A body that takes turns is sent in pieces of one, and of no less than S3 takes",
        arguments: [(16 << 10, 16 << 10), (1 << 10, 8 << 10)])
    func turns(turn: Int, piece: Int) async throws {
        let pieces = Mutex<[Int]>([])
        var body = ObjectBody.pattern(1 << 20) { count in pieces.withLock { $0.append(count) } }
        body.turn = turn
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { [body] _, transport in
            _ = try await put(transport, body)
        }
        let counts = pieces.withLock { $0 }
        #expect(counts.reduce(0, +) == 1 << 20 && counts.allSatisfy { $0 == piece })
    }

    @Test("Another checksum than what was sent has is an error")
    func otherChecksum() async throws {
        try await ScriptedStorage.run { _ in
            .stored(crc32c: "AAAAAA==")
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .checksum)
        }
    }

    @Test(
        "Without a checksum, an ETag that is an MD5 is compared; one that is none, or of what is encrypted, is not",
        arguments: [
            ("\"b2b8e1e7e9d8cbd0f0a7dbf6c6a1c5ae\"", [:], false),
            ("\"d9d19acd1e9fb21dd2c8bb0aaf3c8a26\"", ["x-amz-server-side-encryption": "aws:kms"], true),
            ("\"d9d19acd1e9fb21dd2c8bb0aaf3c8a26\"", ["x-amz-server-side-encryption": "aws:kms:dsse"], true),
            ("\"d9d19acd1e9fb21dd2c8bb0aaf3c8a26\"", ["x-amz-server-side-encryption": "AES256"], false),
            (
                "\"d9d19acd1e9fb21dd2c8bb0aaf3c8a26\"",
                ["x-amz-server-side-encryption-customer-algorithm": "AES256"], true
            ),
            ("\"not-a-digest\"", [:], true),
        ] as [(String, [String: String], Bool)])
    func etag(etag: String, headers: [String: String], isAccepted: Bool) async throws {
        try await ScriptedStorage.run { _ in
            .stored(etag: etag, headers: HTTPHeaders(headers.map { ($0.key, $0.value) }))
        } _: { _, transport in
            if isAccepted {
                let stored = try await put(transport)
                #expect(stored.etag == etag)
            } else {
                let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
                #expect(error.code == .checksum)
            }
        }
    }

    @Test("An error within a 200 is an error, whatever ETag comes with it")
    func errorWithinSuccess() async throws {
        var reply = Reply.error(.ok, "SlowDown")
        reply.headers.add(name: "ETag", value: "\"e\"")
        try await ScriptedStorage.run { [reply] _ in
            reply
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .throttled)
        }
    }

    @Test("A body's answer that is longer than allowed is given up, and one that is as long is not", arguments: [0, 1])
    func longAnswer(excess: Int) async throws {
        try await ScriptedStorage.run { _ in
            var reply = Reply.stored()
            reply.body = Array(repeating: UInt8(ascii: " "), count: 10_000 + excess)
            return reply
        } configure: {
            $0.maximumAnswerSize = 10_000
        } _: { _, transport in
            do throws(ObjectError) {
                _ = try await put(transport)
                #expect(excess == 0)
            } catch { #expect(excess == 1 && error.code == .unusableAnswer) }
        }
    }

    @Test("Without a checksum, the MD5 of what was sent is accepted as the ETag")
    func rightETag() async throws {
        try await ScriptedStorage.run { _ in
            .stored(etag: md5ETag("soup"))
        } _: { _, transport in
            let stored = try await put(transport)
            #expect(stored.etag == md5ETag("soup"))
        }
    }

    @Test(
        "Over plain HTTP an ETag that is an MD5 is compared, though the storage returns the checksum that it was told",
        arguments: [("soup", true), ("soap", false)])
    func repeatedChecksum(stored: String, isAccepted: Bool) async throws {
        try await ScriptedStorage.run { _ in
            .stored(crc32c: checksumText("soup".utf8), etag: md5ETag(stored))
        } _: { _, transport in
            do throws(ObjectError) {
                _ = try await put(transport)
                #expect(isAccepted)
            } catch { #expect(!isAccepted && error.code == .checksum) }
        }
    }

    @Test("SlowDown is throttling, with the time that the storage asks for")
    func slowDown() async throws {
        try await ScriptedStorage.run { _ in
            .error(.serviceUnavailable, "SlowDown", headers: ["Retry-After": "7", "x-amz-id-2": "H1"])
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .throttled)
            #expect(error.retryAfter == .seconds(7))
            #expect(error.hostID == "H1")
            #expect(error.status == 503)
            #expect(storage.requests.count == 1)
        }
    }

    @Test("A storage that stops taking bytes times out")
    func stalled() async throws {
        try await ScriptedStorage.run { _ in
            var reply = Reply.hang
            reply.afterBytes = 1 << 20
            return reply
        } _: { _, transport in
            let body = ObjectBody.pattern(1 << 30)
            let error = try await objectError { () async throws(ObjectError) in
                try await put(transport, body, idle: .milliseconds(200))
            }
            #expect(error.code == .timedOut)
        }
    }

    @Test("Waiting for leave to send is no idleness")
    func paced() async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { _, transport in
            let body = ObjectBody(Array("soup".utf8)) { _ in try await Task.sleep(for: .seconds(9)) }
            _ = try await put(transport, body, idle: .seconds(8))
        }
    }

    @Test("A connection that breaks while bytes are sent is an interruption")
    func cut() async throws {
        try await ScriptedStorage.run { _ in
            var reply = Reply.cut
            reply.afterBytes = 1 << 20
            return reply
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await put(transport, .pattern(256 << 20))
            }
            #expect(error.code == .interrupted)
        }
    }

    struct Unreadable: Error {}

    @Test("A body that cannot be read is a local error with its cause, and nothing is asked of it afterwards")
    func unreadable() async throws {
        let reads = Mutex((count: 0, isOver: false, late: 0))
        let body = ObjectBody(size: 10 << 20) { offset, _ in
            reads.withLock { reads in
                reads.count += 1
                if reads.isOver { reads.late += 1 }
            }
            if offset > 0 { throw Unreadable() }
        }
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { _, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport, body) }
            reads.withLock { $0.isOver = true }
            #expect(error.code == .local)
            #expect(error.cause is Unreadable)
            try await Task.sleep(for: .milliseconds(50))
            #expect(reads.withLock { $0.late } == 0)
        }
    }

    @Test("A sender may be cancelled, and its wait for leave to send with it")
    func cancelled() async throws {
        try await ScriptedStorage.run { _ in
            .hang
        } _: { _, transport in
            let started = AsyncStream.makeStream(of: Void.self)
            let body = ObjectBody(size: 1 << 20, read: { _, _ in }) { _ in
                started.continuation.yield()
                try await Task.sleep(for: .seconds(3_600))
            }
            let task = Task { try await objectError { () async throws(ObjectError) in try await put(transport, body) } }
            for await _ in started.stream { break }
            task.cancel()
            let error = try await task.value
            #expect(error.code == .cancelled)
        }
    }

    @Test("A bucket that is elsewhere is sent to there, once, and at once from then on")
    func elsewhere() async throws {
        let script: ScriptedStorage.Script = { request in
            guard request.signedRegion != "eu-west-1" else { return .stored() }
            return .error(
                .movedPermanently, "PermanentRedirect", more: "<Endpoint>photos.s3.eu-west-1.amazonaws.com</Endpoint>",
                headers: ["x-amz-bucket-region": "eu-west-1"])
        }
        try await ScriptedStorage.run(script) { storage, transport in
            _ = try await put(transport)
            _ = try await put(transport)
            #expect(storage.requests.map(\.signedRegion) == ["us-east-1", "eu-west-1", "eu-west-1"])
            #expect(storage.requests.allSatisfy { String(decoding: $0.body, as: UTF8.self).contains("soup") })
        }
    }

    @Test(
        "The region is also taken from where else it is said",
        arguments: [
            Reply.error(.badRequest, "AuthorizationHeaderMalformed", more: "<Region>eu-west-1</Region>"),
            .error(.temporaryRedirect, "TemporaryRedirect", more: "<Endpoint>p.s3-eu-west-1.amazonaws.com</Endpoint>"),
            .error(.movedPermanently, "PermanentRedirect", more: "<Endpoint>s3.eu-west-1.amazonaws.com</Endpoint>"),
            .error(.permanentRedirect, "Elsewhere", headers: ["x-amz-bucket-region": "eu-west-1"]),
            .error(.temporaryRedirect, "Elsewhere", headers: ["x-amz-bucket-region": "eu-west-1"]),
            // The head says none, and the body one.
            .error(
                .movedPermanently, "PermanentRedirect", more: "<Region>eu-west-1</Region>",
                headers: ["x-amz-bucket-region": "eu west 1"]),
        ])
    func regionElsewhere(reply: Reply) async throws {
        try await ScriptedStorage.run {
            $0.signedRegion == "eu-west-1" ? .stored() : reply
        } _: { storage, transport in
            _ = try await put(transport)
            #expect(storage.requests.count == 2)
        }
    }

    @Test("A bucket that is never where it is said to be is not looked for for ever")
    func nowhere() async throws {
        try await ScriptedStorage.run { request in
            .error(
                .movedPermanently, "PermanentRedirect",
                headers: request.number == 1 ? ["x-amz-bucket-region": "b"] : ["x-amz-bucket-region": "a"])
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .wrongRegion)
            #expect(storage.requests.count == 2)
        }
    }

    @Test("A wrong clock is corrected by the storage's, once, and at once from then on")
    func skewed() async throws {
        let script: ScriptedStorage.Script = { request in
            let stamp = request.headers.first(name: "x-amz-date") ?? ""
            guard !stamp.hasPrefix("20300101T1200") else { return .stored() }
            return .error(
                .forbidden, "RequestTimeTooSkewed", headers: ["Date": "Tue, 01 Jan 2030 12:00:00 GMT"])
        }
        try await ScriptedStorage.run(script) {
            $0.wallClock = { Date(timeIntervalSince1970: 1_000_000_000) }
        } _: { storage, transport in
            _ = try await put(transport)
            _ = try await put(transport)
            #expect(storage.requests.count == 3)
        }
    }

    @Test("A storage whose own time it does not take is a wrong clock")
    func alwaysSkewed() async throws {
        try await ScriptedStorage.run { _ in
            .error(.forbidden, "RequestTimeTooSkewed", headers: ["Date": "Tue, 01 Jan 2030 12:00:00 GMT"])
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(error.code == .clockSkew)
            #expect(storage.requests.count == 2)
        }
    }

    @Test("Credentials are asked for at each request, and what goes wrong with them is said")
    func credentials() async throws {
        let asked = Mutex(0)
        try await ScriptedStorage.run { _ in
            .stored()
        } credentials: { _ in
            let number = asked.withLock { asked in
                asked += 1
                return asked
            }
            if number == 3 { throw Unreadable() }
            if number == 4 { throw ObjectError(.invalidCredentials, "Signed out.") }
            return Credentials.CloudCredentials(
                accessKeyID: "KEY\(number)", secretAccessKey: "s", sessionToken: "token\(number)", expires: nil)
        } _: { storage, transport in
            _ = try await put(transport)
            _ = try await put(transport)
            #expect(storage.requests.map { $0.headers.first(name: "x-amz-security-token") } == ["token1", "token2"])
            let unavailable = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(unavailable.code == .notPrepared)
            #expect(unavailable.cause is Unreadable)
            let signedOut = try await objectError { () async throws(ObjectError) in try await put(transport) }
            #expect(signedOut.code == .invalidCredentials)
        }
    }

    @Test("A request that cannot be sent is refused before anything is sent")
    func unusable() async throws {
        try await ScriptedStorage.run { _ in
            .stored()
        } _: { storage, transport in
            let places = [
                ObjectLocation(bucket: "photos", key: ""),
                ObjectLocation(bucket: "photos", key: String(repeating: "a", count: 1_025)),
                ObjectLocation(bucket: "", key: "a"), ObjectLocation(bucket: "a/b", key: "a"),
                ObjectLocation(bucket: "..", key: "a"), ObjectLocation(bucket: "a\r\nb", key: "a"),
            ]
            for place in places {
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.put(Self.body, to: place, ObjectAttributes(), idle: .ample)
                }
                #expect(error.code == .unusableRequest, "\(place)")
            }
            let attributes = [
                ObjectAttributes(contentType: "a\r\nx: y"), ObjectAttributes(metadata: ["a b": "c"]),
                ObjectAttributes(metadata: ["a": "é"]), ObjectAttributes(metadata: ["A": "1", "a": "2"]),
                ObjectAttributes(metadata: ["a": "b\tc"]), ObjectAttributes(metadata: ["a": "b\u{7F}"]),
            ]
            for attributes in attributes {
                let error = try await objectError { () async throws(ObjectError) in
                    try await transport.put(Self.body, to: .somewhere, attributes, idle: .ample)
                }
                #expect(error.code == .unusableRequest, "\(attributes)")
            }
            #expect(storage.requests.isEmpty)
        }
    }
}
