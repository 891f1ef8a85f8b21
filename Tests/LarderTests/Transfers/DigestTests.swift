import Crypto
import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Transfers of bytes whose SHA-256 is known", .timeLimit(.minutes(10)))
struct DigestTests {
    private static let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
    private static let digest = Array(SHA256.hash(data: bytes))
    private static let other = Array(SHA256.hash(data: [1]))

    /// Queues an upload of a file of these bytes that is said to have this digest.
    private func upload(
        _ bytes: [UInt8], saying digest: [UInt8], _ fixture: TransferFixture
    ) async throws -> (upload: Transfer, file: URL) {
        let file = fixture.folder.appending(path: "source")
        try Data(bytes).write(to: file)
        let options = UploadOptions(sha256: digest)
        return (try await fixture.app.transfers.upload(file, to: TransferFixture.location, options: options), file)
    }

    @Test("A file that has it is sent, in one piece or in parts", arguments: [100, 10_000])
    func uploaded(size: Int) async throws {
        try await withTransferFixture { fixture in
            let bytes = Array(Self.bytes.prefix(size))
            let upload = try await upload(bytes, saying: Array(SHA256.hash(data: bytes)), fixture).upload
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }

    @Test("Of a file that has another nothing is sent", arguments: [100, 10_000])
    func refused(size: Int) async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(Array(Self.bytes.prefix(size)), saying: Self.other, fixture).upload
            try await fixture.drain()
            await expectCode(.otherContent) { try await upload.finished() }
            #expect(fixture.storage.calls.isEmpty)
        }
    }

    @Test("A retried upload sends nothing of a file that has changed")
    func retried() async throws {
        try await withTransferFixture { fixture in
            let (upload, file) = try await self.upload(Self.bytes, saying: Self.digest, fixture)
            fixture.storage.onCall { _ throws(ObjectError) in throw ObjectError(.accessDenied, "not yet") }
            try await fixture.drain()
            await expectCode(.objectAccessDenied) { try await upload.finished() }
            fixture.storage.onCall { _ in }
            try Data(Self.bytes + [1]).write(to: file)
            try await upload.retry()
            try await fixture.drain()
            await expectCode(.otherContent) { try await upload.finished() }
            #expect(fixture.storage.calls.isEmpty)
        }
    }

    @Test("An object that has it arrives", arguments: [false, true])
    func downloaded(isSaid: Bool) async throws {
        try await withTransferFixture { fixture in
            if isSaid { fixture.storage.saidDigest.withLock { $0 = Self.digest } }
            let download = try await fixture.download(of: Self.bytes, options: DownloadOptions(sha256: Self.digest))
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == Self.bytes)
        }
    }

    @Test("An object that has another never gets to its place, and nothing of it stays", arguments: [false, true])
    func unexpected(isReplaced: Bool) async throws {
        try await withTransferFixture { fixture in
            if isReplaced { try Data([7]).write(to: fixture.copy) }
            let options = DownloadOptions(replacesFile: isReplaced, sha256: Self.other)
            let download = try await fixture.download(of: Self.bytes, options: options)
            try await fixture.drain()
            await expectCode(.otherContent) { try await download.finished() }
            #expect((try? Data(contentsOf: fixture.copy)) == (isReplaced ? Data([7]) : nil))
            #expect(fixture.partials.isEmpty)
        }
    }

    @Test("Where the storage says that the object has another, nothing of it is received")
    func said() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.saidDigest.withLock { $0 = Self.digest }
            let download = try await fixture.download(of: Self.bytes, options: DownloadOptions(sha256: Self.other))
            try await fixture.drain()
            await expectCode(.otherContent) { try await download.finished() }
            #expect(!fixture.storage.calls.contains { if case .get = $0 { true } else { false } })
        }
    }

    @Test("The storage's checksum is compared, also where the program gives none")
    func damaged() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.saidDigest.withLock { $0 = Self.other }
            let download = try await fixture.download(of: Self.bytes)
            try await fixture.drain()
            await expectCode(.damagedDownload) { try await download.finished() }
        }
    }

    @Test("A digest of the wrong length is refused when the transfer is queued", arguments: [0, 31, 33])
    func invalid(length: Int) async throws {
        try await withTransferFixture { fixture in
            let digest = [UInt8](repeating: 0, count: length)
            let file = fixture.folder.appending(path: "source")
            try Data([1]).write(to: file)
            await expectCode(.invalidTransfer) {
                _ = try await fixture.app.transfers.upload(
                    file, to: TransferFixture.location, options: UploadOptions(sha256: digest))
            }
            await expectCode(.invalidTransfer) {
                _ = try await fixture.app.transfers.download(
                    TransferFixture.location, to: fixture.folder.appending(path: "copy"),
                    options: DownloadOptions(sha256: digest))
            }
            #expect(try fixture.app.transfers.all().isEmpty)
        }
    }

    @Test("Of a file that has another nothing is handed over to an executor")
    func refusedHandOver() async throws {
        try await withTransferFixture { fixture in
            let upload = try await upload(Self.bytes, saying: Self.other, fixture).upload
            let background = ScriptedBackground(fixture.storage)
            let runner = fixture.runner { $0.background = background }
            try await runner.run(until: { try !background.handedOver.isEmpty || upload.status().isEnded })
            #expect(background.handedOver.isEmpty && fixture.storage.calls.isEmpty)
            #expect(try upload.status().failure?.code == .otherContent)
        }
    }

    @Test("An object that has another never gets to its place where an executor has received it")
    func unexpectedFromExecutor() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: Self.bytes, options: DownloadOptions(sha256: Self.other))
            let background = ScriptedBackground(fixture.storage)
            try await fixture.runner { $0.background = background }.run(until: { !background.handedOver.isEmpty })
            try background.receive(download.id.uuid, as: Self.bytes)
            try await fixture.drain { $0.background = background }
            await expectCode(.otherContent) { try await download.finished() }
            #expect(!FileManager.default.fileExists(atPath: fixture.copy.path) && fixture.partials.isEmpty)
        }
    }
}
