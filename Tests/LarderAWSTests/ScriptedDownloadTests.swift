import Foundation
import Larder
import LarderAWS
import NIOHTTP1
import Synchronization
import Testing

@Suite("Downloads from a storage that is not as it should be", .timeLimit(.minutes(10)))
struct ScriptedDownloadTests {
    private static let whole = randomBytes(1_000)

    /// What comes of asking for bytes 100 to 199 of an object with the ETag "e".
    private func get(
        _ reply: Reply, _ range: Range<Int64> = 100..<200, into collected: Collected = Collected(),
        idle: Duration = .ample
    ) async throws -> ObjectError {
        try await ScriptedStorage.run { _ in
            reply
        } _: { _, transport in
            try await objectError { () async throws(ObjectError) in
                try await transport.get(range, of: .somewhere, etag: "\"e\"", into: collected.sink(), idle: idle)
            }
        }
    }

    @Test("A range that is as it was asked for arrives")
    func right() async throws {
        try await ScriptedStorage.run { _ in
            .bytes(Array(Self.whole[100..<200]), 100..<200, of: 1_000)
        } _: { storage, transport in
            let collected = Collected()
            let object = try await transport.get(
                100..<200, of: .somewhere, etag: "\"e\"", into: collected.sink(), idle: .ample)
            #expect(collected.bytes == Array(Self.whole[100..<200]))
            #expect(object.size == 1_000)
            #expect(storage.requests[0].headers.first(name: "range") == "bytes=100-199")
            #expect(storage.requests[0].headers.first(name: "if-match") == "\"e\"")
        }
    }

    @Test("A download asks the storage for the checksum of the object")
    func asksForChecksum() async throws {
        try await ScriptedStorage.run { _ in
            .bytes(Self.whole, 0..<1_000, of: 1_000)
        } _: { storage, transport in
            _ = try await transport.get(
                0..<1_000, of: .somewhere, etag: "\"e\"", into: Collected().sink(), idle: .ample)
            #expect(storage.requests.map { $0.headers.first(name: "x-amz-checksum-mode") } == ["ENABLED"])
        }
    }

    @Test("A storage that ignores the range is refused before a byte arrives")
    func ignoredRange() async throws {
        let collected = Collected()
        let error = try await get(
            Reply(headers: ["ETag": "\"e\""], body: Self.whole), into: collected)
        #expect(error.code == .wrongLength)
        #expect(collected.bytes.isEmpty)
    }

    @Test("Offsets go past what four bytes hold")
    func farRange() async throws {
        let start = Int64(6) << 30
        try await ScriptedStorage.run { _ in
            .bytes([1, 2, 3], Int(start)..<Int(start + 3), of: 7 << 30)
        } _: { storage, transport in
            let offsets = Mutex<[Int64]>([])
            let sink = ObjectSink(write: { offset, _ in offsets.withLock { $0.append(offset) } })
            let object = try await transport.get(
                start..<(start + 3), of: .somewhere, etag: "\"e\"", into: sink, idle: .ample)
            #expect(object.size == 7 << 30)
            #expect(offsets.withLock { $0 } == [start])
            #expect(storage.requests[0].headers.first(name: "range") == "bytes=6442450944-6442450946")
        }
    }

    @Test("The whole may come without being called a range")
    func wholeWithoutRange() async throws {
        try await ScriptedStorage.run { _ in
            Reply(headers: ["ETag": "\"e\""], body: Self.whole)
        } _: { _, transport in
            let collected = Collected()
            let object = try await transport.get(
                0..<1_000, of: .somewhere, etag: "\"e\"", into: collected.sink(), idle: .ample)
            #expect(collected.bytes == Self.whole)
            #expect(object.size == 1_000)
        }
    }

    static let wrongRanges = [
        "bytes 0-99/1000", "bytes 100-198/1000", "bytes 100-200/1000", "bytes 100-199/150", "bytes */1000",
        "items 100-199/1000", "bytes 199-100/1000", "bytes 100-199", "",
        "bytes 100-99999999999999999999/1000", "bytes 9223372036854775807-9223372036854775807/*",
    ]

    @Test("Another range than was asked for is a wrong length", arguments: wrongRanges)
    func otherRange(field: String) async throws {
        let collected = Collected()
        let reply = Reply(
            status: .partialContent, headers: ["ETag": "\"e\"", "Content-Range": field],
            body: Array(Self.whole[100..<200]))
        let error = try await get(reply, into: collected)
        #expect(error.code == .wrongLength)
        #expect(collected.bytes.isEmpty)
    }

    @Test("Another length than that of the range is a wrong length, before a byte arrives", arguments: [50, 1_000])
    func otherLength(count: Int) async throws {
        let collected = Collected()
        let error = try await get(.bytes(Array(Self.whole[..<count]), 100..<200, of: 1_000), into: collected)
        #expect(error.code == .wrongLength)
        #expect(collected.bytes.isEmpty)
    }

    @Test("More or fewer bytes than the range has are a wrong length, where no length was said", arguments: [50, 150])
    func unsaidLength(count: Int) async throws {
        var reply = Reply.bytes(Array(Self.whole[..<count]), 100..<200, of: 1_000)
        reply.headers.add(name: "Transfer-Encoding", value: "chunked")
        let collected = Collected()
        let error = try await get(reply, into: collected)
        #expect(error.code == .wrongLength)
        #expect(collected.bytes.count <= 100)
    }

    @Test("A connection that is closed within the bytes is an interruption, and what came is kept in order")
    func closedEarly() async throws {
        var reply = Reply.bytes(Array(Self.whole[100..<150]), 100..<200, of: 1_000)
        reply.headers.add(name: "Content-Length", value: "100")
        reply.ending = .cut
        let collected = Collected()
        let error = try await get(reply, into: collected)
        #expect(error.code == .interrupted)
        #expect(collected.bytes == Array(Self.whole[100..<(100 + collected.bytes.count)]))
    }

    @Test("Bytes of another object are refused before one arrives")
    func otherETag() async throws {
        let collected = Collected()
        let error = try await get(
            .bytes(Array(Self.whole[100..<200]), 100..<200, of: 1_000, etag: "\"f\""), into: collected)
        #expect(error.code == .changed)
        #expect(collected.bytes.isEmpty)
        #expect(try await get(.error(.preconditionFailed, "PreconditionFailed")).code == .changed)
    }

    @Test("Bytes that are encoded on the way are refused; an object that is kept encoded is not")
    func encoded() async throws {
        var onTheWay = Reply.bytes(Array(Self.whole[100..<200]), 100..<200, of: 1_000)
        onTheWay.headers.add(name: "Content-Encoding", value: "gzip")
        let kept = onTheWay
        onTheWay.headers.add(name: "Transfer-Encoding", value: "chunked")
        #expect(try await get(onTheWay).code == .unusableAnswer)
        try await ScriptedStorage.run { _ in
            kept
        } _: { _, transport in
            let collected = Collected()
            _ = try await transport.get(
                100..<200, of: .somewhere, etag: "\"e\"", into: collected.sink(), idle: .ample)
            #expect(collected.bytes == Array(Self.whole[100..<200]))
        }
    }

    @Test("Why a storage refuses a HEAD is asked by a GET, whose answer has a body", arguments: [400, 403, 404])
    func refusedHead(status: Int) async throws {
        try await ScriptedStorage.run { request in
            request.method == .HEAD
                ? Reply(status: .init(statusCode: status)) : .error(.init(statusCode: status), "ExpiredToken")
        } _: { storage, transport in
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.object(at: .somewhere, within: .ample)
            }
            #expect(error.code == .expiredCredentials && error.serverCode == "ExpiredToken")
            #expect(storage.requests.map(\.method) == [.HEAD, .GET])
        }
    }

    @Test("The SHA-256 of an object is told, that of its parts is not")
    func digest() async throws {
        let digest = [UInt8](repeating: 7, count: 32)
        let text = Data(digest).base64EncodedString()
        for (value, expected) in [(text, digest), (text + "-3", nil), ("AAAAAA==", nil), ("?", nil)] {
            let reply = Reply.stored(headers: ["x-amz-checksum-sha256": value])
            try await ScriptedStorage.run { _ in
                reply
            } _: { _, transport in
                let object = try await transport.object(at: .somewhere, within: .ample)
                #expect(object.sha256 == expected, "\(value)")
            }
        }
    }

    @Test("Damaged bytes of a whole object are told by its checksum")
    func damaged() async throws {
        var reply = Reply.bytes(Self.whole, 0..<1_000, of: 1_000)
        reply.headers.add(name: "x-amz-checksum-crc32c", value: "AAAAAA==")
        reply.headers.add(name: "x-amz-request-id", value: "R7")
        let error = try await get(reply, 0..<1_000)
        #expect(error.code == .checksum && error.requestID == "R7")
        // Of parts it says nothing of the whole.
        reply.headers.replaceOrAdd(name: "x-amz-checksum-crc32c", value: "AAAAAA==-3")
        try await ScriptedStorage.run { [reply] _ in
            reply
        } _: { _, transport in
            let collected = Collected()
            _ = try await transport.get(
                0..<1_000, of: .somewhere, etag: "\"e\"", into: collected.sink(), idle: .ample)
            #expect(collected.bytes == Self.whole)
        }
    }

    @Test("A storage that sends no more times out")
    func stalled() async throws {
        var reply = Reply.bytes(Array(Self.whole[100..<150]), 100..<200, of: 1_000)
        reply.headers.add(name: "Content-Length", value: "100")
        reply.ending = .hang
        #expect(try await get(reply, idle: .milliseconds(200)).code == .timedOut)
        #expect(try await get(.hang, idle: .milliseconds(200)).code == .timedOut)
    }

    struct FullDisk: Error {}

    @Test("A sink that can take no more is a local error with its cause")
    func fullSink() async throws {
        try await ScriptedStorage.run { _ in
            .bytes(Array(Self.whole[100..<200]), 100..<200, of: 1_000)
        } _: { _, transport in
            let sink = ObjectSink(write: { _, _ in throw FullDisk() })
            let error = try await objectError { () async throws(ObjectError) in
                try await transport.get(100..<200, of: .somewhere, etag: "\"e\"", into: sink, idle: .ample)
            }
            #expect(error.code == .local)
            #expect(error.cause is FullDisk)
        }
    }

    @Test("A download waits for its sink before it gives it as many bytes")
    func pacedSink() async throws {
        try await ScriptedStorage.run { _ in
            .bytes(Array(Self.whole[100..<200]), 100..<200, of: 1_000)
        } _: { _, transport in
            let counts = Mutex((waited: 0, written: 0, isEarly: false))
            let sink = ObjectSink(
                write: { _, bytes in
                    counts.withLock { counts in
                        counts.written += bytes.count
                        if counts.written > counts.waited { counts.isEarly = true }
                    }
                },
                pace: { count in counts.withLock { $0.waited += count } })
            _ = try await transport.get(100..<200, of: .somewhere, etag: "\"e\"", into: sink, idle: .ample)
            let (waited, written, isEarly) = counts.withLock { $0 }
            #expect(waited == 100 && written == 100 && !isEarly)
        }
    }

    @Test("A receiver may be cancelled")
    func cancelled() async throws {
        var reply = Reply.bytes(Array(Self.whole[100..<150]), 100..<200, of: 1_000)
        reply.headers.add(name: "Content-Length", value: "100")
        reply.ending = .hang
        try await ScriptedStorage.run { [reply] _ in
            reply
        } _: { _, transport in
            let started = AsyncStream.makeStream(of: Void.self)
            let sink = ObjectSink(write: { _, _ in started.continuation.yield() })
            let task = Task {
                try await objectError { () async throws(ObjectError) in
                    try await transport.get(100..<200, of: .somewhere, etag: "\"e\"", into: sink, idle: .ample)
                }
            }
            for await _ in started.stream { break }
            task.cancel()
            let error = try await task.value
            #expect(error.code == .cancelled)
        }
    }

    @Test("A request for no bytes is refused before it is sent")
    func noBytes() async throws {
        #expect(try await get(.hang, 5..<5).code == .unusableRequest)
    }
}
