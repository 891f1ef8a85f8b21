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

    @Test("A file that has it is sent, in one piece or in parts", arguments: [100, 10_000])
    func uploaded(size: Int) async throws {
        try await withTransferFixture { fixture in
            let bytes = Array(Self.bytes.prefix(size))
            let file = fixture.folder.appending(path: "source")
            try Data(bytes).write(to: file)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: UploadOptions(sha256: Array(SHA256.hash(data: bytes))))
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
        }
    }

    @Test("Of a file that has another nothing is sent", arguments: [100, 10_000])
    func refused(size: Int) async throws {
        try await withTransferFixture { fixture in
            let file = fixture.folder.appending(path: "source")
            try Data(Self.bytes.prefix(size)).write(to: file)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: UploadOptions(sha256: Self.other))
            try await fixture.drain()
            await expectCode(.otherContent) { try await upload.finished() }
            #expect(fixture.storage.calls.isEmpty)
        }
    }

    @Test("A retried upload sends nothing of a file that has changed")
    func retried() async throws {
        try await withTransferFixture { fixture in
            let file = fixture.folder.appending(path: "source")
            try Data(Self.bytes).write(to: file)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: UploadOptions(sha256: Self.digest))
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
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            if isSaid { fixture.storage.saidDigest.withLock { $0 = Self.digest } }
            let file = fixture.folder.appending(path: "copy")
            let download = try await fixture.app.transfers.download(
                TransferFixture.location, to: file, options: DownloadOptions(sha256: Self.digest))
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: file)) == Self.bytes)
        }
    }

    @Test("An object that has another never gets to its place, and nothing of it stays", arguments: [false, true])
    func unexpected(isReplaced: Bool) async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            let file = fixture.folder.appending(path: "copy")
            if isReplaced { try Data([7]).write(to: file) }
            let download = try await fixture.app.transfers.download(
                TransferFixture.location, to: file,
                options: DownloadOptions(replacesFile: isReplaced, sha256: Self.other))
            try await fixture.drain()
            await expectCode(.otherContent) { try await download.finished() }
            #expect((try? Data(contentsOf: file)) == (isReplaced ? Data([7]) : nil))
            #expect(fixture.partials.isEmpty)
        }
    }

    @Test("Where the storage says that the object has another, nothing of it is received")
    func said() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            fixture.storage.saidDigest.withLock { $0 = Self.digest }
            let download = try await fixture.app.transfers.download(
                TransferFixture.location, to: fixture.folder.appending(path: "copy"),
                options: DownloadOptions(sha256: Self.other))
            try await fixture.drain()
            await expectCode(.otherContent) { try await download.finished() }
            #expect(!fixture.storage.calls.contains { if case .get = $0 { true } else { false } })
        }
    }

    @Test("The storage's checksum is compared, also where the program gives none")
    func damaged() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            fixture.storage.saidDigest.withLock { $0 = Self.other }
            let download = try await fixture.app.transfers.download(
                TransferFixture.location, to: fixture.folder.appending(path: "copy"))
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
            let file = fixture.folder.appending(path: "source")
            try Data(Self.bytes).write(to: file)
            let upload = try await fixture.app.transfers.upload(
                file, to: TransferFixture.location, options: UploadOptions(sha256: Self.other))
            let background = ScriptedBackground(fixture.storage)
            let runner = fixture.runner { $0.background = background }
            let running = Task { try await runner.run() }
            try await eventually { try !background.handedOver.isEmpty || upload.status().isEnded }
            running.cancel()
            try await running.value
            #expect(background.handedOver.isEmpty && fixture.storage.calls.isEmpty)
            #expect(try upload.status().failure?.code == .otherContent)
        }
    }

    @Test("An object that has another never gets to its place where an executor has received it")
    func unexpectedFromExecutor() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            let file = fixture.folder.appending(path: "copy")
            let download = try await fixture.app.transfers.download(
                TransferFixture.location, to: file, options: DownloadOptions(sha256: Self.other))
            let background = ScriptedBackground(fixture.storage)
            let runner = fixture.runner { $0.background = background }
            let running = Task { try await runner.run() }
            try await eventually { !background.handedOver.isEmpty }
            running.cancel()
            try await running.value
            try background.receive(download.id.uuid, as: Self.bytes)
            try await fixture.drain { $0.background = background }
            await expectCode(.otherContent) { try await download.finished() }
            #expect(!FileManager.default.fileExists(atPath: file.path) && fixture.partials.isEmpty)
        }
    }
}
