import Foundation
import Larder
import LarderAWS
import LarderTestSupport
import NIOHTTP1
import Synchronization
import Testing

@Suite("Transfers with a storage that does other than it should", .timeLimit(.minutes(10)))
struct LyingStorageTests {
    enum FalseLength: String, Sendable, CaseIterable {
        /// Of the object: fewer bytes than it has, more, none at all, no number.
        case shorter, longer, empty, unsaid
        /// Of a range: other bytes, all of the object, fewer than said, more than asked for.
        case otherRange, ignoredRange, closedEarly, shortRange, longRange
        /// Another object's.
        case otherTag

        var code: ObjectError.Code {
            switch self {
            case .unsaid: .unusableAnswer
            case .closedEarly: .interrupted
            case .otherTag: .changed
            default: .wrongLength
            }
        }
    }

    /// A storage of one object, that lies.
    private static func answer(_ request: Received, _ lie: FalseLength?) -> Reply {
        let bytes = TransferBench.bytes
        guard request.method == .GET else {
            var said = bytes.count
            switch lie {
            case .shorter: said = 2000
            case .longer: said = 3500
            case .empty: said = 0
            case .unsaid: return Reply(headers: ["ETag": "\"e\"", "Transfer-Encoding": "chunked"])
            default: break
            }
            return Reply(headers: ["ETag": "\"e\""], body: [UInt8](repeating: 0, count: said))
        }
        guard let match = request.headers.first(name: "range")?.wholeMatch(of: /bytes=(\d+)-(\d+)/)?.output,
            let first = Int(match.1), let last = Int(match.2), first < bytes.count
        else { return .error(.rangeNotSatisfiable, "InvalidRange") }
        let range = first..<min(last + 1, bytes.count)
        var reply = Reply.bytes(Array(bytes[range]), range, of: bytes.count)
        switch lie {
        case .otherRange: reply = .bytes(Array(bytes[1..<1025]), 1..<1025, of: bytes.count)
        case .ignoredRange: reply = Reply(headers: ["ETag": "\"e\""], body: bytes)
        case .closedEarly:
            reply.headers.add(name: "Content-Length", value: String(range.count))
            reply.body = Array(reply.body.prefix(500))
            reply.ending = .cut
        case .shortRange: reply.body.removeLast()
        case .longRange: reply.body.append(0)
        case .otherTag: reply.headers.replaceOrAdd(name: "ETag", value: "\"other\"")
        default: break
        }
        return reply
    }

    @Test(
        "A download from it fails with its reason, leaves nothing, and is whole once it tells the truth",
        arguments: FalseLength.allCases)
    func download(lie: FalseLength) async throws {
        let isHonest = Mutex(false)
        try await TransferBench.run { bench in
            try await ScriptedStorage.run({ Self.answer($0, isHonest.withLock { $0 } ? nil : lie) }) { _, storage in
                let download = try await bench.app.transfers.download(.somewhere, to: bench.copy)
                try await bench.runner(storage).drain()
                try await bench.expectFailed(download, lie.code)
                isHonest.withLock { $0 = true }
                try await download.retry()
                try await bench.runner(storage).drain()
                try await download.finished()
                #expect(try Array(Data(contentsOf: bench.copy)) == TransferBench.bytes)
            }
        }
    }

    @Test("A size that it says once, and another one afterwards, is not believed", arguments: [0, 2000, 3500])
    func otherSizeOnce(size: Int) async throws {
        let bytes = TransferBench.bytes
        let heads = Mutex(0)
        try await TransferBench.run { bench in
            try Data("old".utf8).write(to: bench.copy)
            try await ScriptedStorage.run { request in
                guard request.method == .HEAD else { return Self.answer(request, nil) }
                let count = heads.withLock { heads in
                    heads += 1
                    return heads
                }
                let said = count == 1 ? size : bytes.count
                return Reply(headers: ["ETag": "\"e\""], body: [UInt8](repeating: 0, count: said))
            } _: { _, storage in
                let download = try await bench.app.transfers.download(
                    .somewhere, to: bench.copy, options: .init(replacesFile: true))
                try await bench.runner(storage).drain()
                try await download.finished(within: .zero)
                #expect(try Array(Data(contentsOf: bench.copy)) == bytes)
            }
        }
    }

    @Test(
        "An object that has no bytes arrives as an empty file, however its first byte is refused",
        arguments: [
            Reply.error(.rangeNotSatisfiable, "InvalidRange"), Reply(headers: ["ETag": "\"e\""]),
            Reply(headers: ["ETag": "\"e\"", "Transfer-Encoding": "chunked"]),
        ])
    func nothing(first: Reply) async throws {
        try await TransferBench.run { bench in
            try await ScriptedStorage.run { request in
                request.method == .HEAD ? Reply(headers: ["ETag": "\"e\""]) : first
            } _: { _, storage in
                let download = try await bench.app.transfers.download(.somewhere, to: bench.copy)
                try await bench.runner(storage).drain()
                #expect(try await download.finished(within: .zero).size == 0)
                #expect(try Data(contentsOf: bench.copy).isEmpty)
            }
        }
    }

    @Test("An object that has become another by the time it is verified is told as changed")
    func otherTagAtEnd() async throws {
        let heads = Mutex(0)
        try await TransferBench.run { bench in
            try await ScriptedStorage.run { request in
                guard request.method == .HEAD else { return Self.answer(request, nil) }
                let isFirst = heads.withLock { heads in
                    heads += 1
                    return heads == 1
                }
                return Reply(headers: ["ETag": isFirst ? "\"e\"" : "\"f\""], body: TransferBench.bytes)
            } _: { _, storage in
                let download = try await bench.app.transfers.download(.somewhere, to: bench.copy)
                try await bench.runner(storage).drain()
                try await bench.expectFailed(download, .changed)
            }
        }
    }

    @Test("A storage whose ETags are all weak can be downloaded from: in one piece, and by no condition")
    func weakTags() async throws {
        let tag = "W/\"e\""
        try await TransferBench.run { bench in
            try await ScriptedStorage.run { request in
                // As RFC 9110 has it, a weak tag matches none.
                guard !request.headers.contains(name: "if-match") else {
                    return .error(.preconditionFailed, "PreconditionFailed")
                }
                var reply = Self.answer(request, nil)
                reply.headers.replaceOrAdd(name: "ETag", value: tag)
                return reply
            } _: { storage, transport in
                let download = try await bench.app.transfers.download(.somewhere, to: bench.copy)
                try await bench.runner(transport).drain()
                #expect(try await download.finished(within: .zero).etag == tag)
                #expect(try Array(Data(contentsOf: bench.copy)) == TransferBench.bytes)
                #expect(storage.requests.count { $0.method == .GET } == 1)
            }
        }
    }

    @Test("An upload that it says to have, and has other bytes of, fails with its reason")
    func upload() async throws {
        try await TransferBench.run { bench in
            try await ScriptedStorage.run({ _ in .stored(crc32c: "AAAAAA==") }) { _, storage in
                let upload = try await bench.app.transfers.upload(bench.source, to: .somewhere)
                try await bench.runner(storage).drain()
                try await bench.expectFailed(upload, .checksum)
                #expect(try upload.status().attempts == 3)
            }
        }
    }

    @Test("A bucket whose region cannot be found out ends both with that")
    func region() async throws {
        try await TransferBench.run { bench in
            try await ScriptedStorage.run({ _ in .error(.movedPermanently, "PermanentRedirect") }) { _, storage in
                let upload = try await bench.app.transfers.upload(bench.source, to: .somewhere)
                let download = try await bench.app.transfers.download(.somewhere, to: bench.copy)
                try await bench.runner(storage).drain()
                try await bench.expectFailed(upload, .wrongRegion)
                try await bench.expectFailed(download, .wrongRegion)
            }
        }
    }

    @Test("A bucket that is in another region than was said is sent to there")
    func otherRegion() async throws {
        try await TransferBench.run { bench in
            let script: ScriptedStorage.Script = { request in
                guard request.signedRegion == "eu-west-1" else {
                    return .error(.movedPermanently, "PermanentRedirect", headers: ["x-amz-bucket-region": "eu-west-1"])
                }
                return request.method == .PUT
                    ? .stored(crc32c: checksumText(TransferBench.bytes))
                    : Self.answer(request, nil)
            }
            try await ScriptedStorage.run(script) { _, storage in
                let place = ObjectLocation(bucket: "photos", key: "a", region: "us-west-2")
                let upload = try await bench.app.transfers.upload(bench.source, to: place)
                let download = try await bench.app.transfers.download(place, to: bench.copy)
                try await bench.runner(storage).drain()
                try await upload.finished(within: .zero)
                try await download.finished(within: .zero)
                #expect(try Array(Data(contentsOf: bench.copy)) == TransferBench.bytes)
            }
        }
    }
}
