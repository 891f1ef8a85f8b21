import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Downloads whose bytes are not the object's", .timeLimit(.minutes(10)))
struct DamagedDownloadTests {
    private static let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }

    @Test("Bytes that became others on their way are received again", arguments: [false, true])
    func once(tellsChecksums: Bool) async throws {
        try await withTransferFixture(tellsChecksums: tellsChecksums) { fixture in
            let download = try await fixture.download(of: Self.bytes)
            fixture.storage.damages.withLock { $0 = Countdown(1) }
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == Self.bytes)
            #expect(fixture.storage.calls.count { if case .get = $0 { true } else { false } } == 20)
        }
    }

    @Test("A download that is received once more begins its progress anew")
    func progressAnew() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: Self.bytes)
            fixture.storage.damages.withLock { $0 = Countdown(1) }
            let (first, isAskedAgain, mayGoOn) = (Countdown(10), Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .get = call, !first.take() else { return }
                isAskedAgain.set()
                await mayGoOn.wait()
            }
            try await fixture.expectProgress(of: download, 0, once: isAskedAgain, thenSetting: mayGoOn)
        }
    }

    @Test("A size that the storage says once, and another one when the bytes are verified, is not believed")
    func otherSize() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.saidSizes.withLock { $0 = [0] }
            try Data("old".utf8).write(to: fixture.copy)
            let download = try await fixture.download(of: Self.bytes, options: .init(replacesFile: true))
            try await fixture.drain()
            try await download.finished(within: .zero)
            #expect(try Array(Data(contentsOf: fixture.copy)) == Self.bytes)
        }
    }

    @Test("A storage that never has what it says it has is given up, and nothing is left", arguments: [false, true])
    func always(tellsChecksums: Bool) async throws {
        try await withTransferFixture(tellsChecksums: tellsChecksums) { fixture in
            let download = try await fixture.download(of: Self.bytes)
            fixture.storage.damages.withLock { $0 = Countdown(.max) }
            try await fixture.drain()
            await expectCode(.damagedDownload) { try await download.finished() }
            #expect(!FileManager.default.fileExists(atPath: fixture.copy.path) && fixture.partials.isEmpty)
            fixture.storage.damages.withLock { $0 = Countdown(0) }
            try await download.retry()
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == Self.bytes)
        }
    }

    @Test("A download compares its bytes with no ETag that is not their digest, such as an encrypted object's")
    func sealed() async throws {
        try await withTransferFixture(MemoryStorage(isSealed: true)) { fixture in
            let place = TransferFixture.location
            let tag = "\"\(String(repeating: "0", count: 32))\""
            fixture.storage.state.withLock {
                $0.objects[place] = .init(bytes: Self.bytes, etag: tag, attributes: .init())
            }
            let download = try await fixture.download()
            try await fixture.drain()
            try await download.finished(within: .zero)
            #expect(try Array(Data(contentsOf: fixture.copy)) == Self.bytes)
        }
    }
}
