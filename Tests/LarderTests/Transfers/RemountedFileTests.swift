import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("Files whose device has another number, as after a restart of the machine", .timeLimit(.minutes(10)))
struct RemountedFileTests {
    private func table(_ fixture: TransferFixture) throws -> TransferTable {
        try fixture.app.core.operationsStore.database().transfers
    }

    /// Notes something of a transfer, as an attempt before.
    private func note(_ notes: [TransferNote], of transfer: Transfer, _ fixture: TransferFixture) async throws {
        let begun = try await table(fixture).begin(transfer.id.uuid, owner: "before", now: Date())
        let attempt = try #require(begun).attempt
        try await table(fixture).note(attempt, notes)
        try await table(fixture).release(attempt)
    }

    private func moved(_ file: URL) throws -> FileIdentity {
        var identity = try FileIdentity(ofSource: file.path)
        identity.device += 1
        return identity
    }

    @Test("A source is sent, and its device noted anew", arguments: [100, 20_000])
    func source(count: Int) async throws {
        try await withTransferFixture { fixture in
            let (upload, file, bytes) = try await fixture.upload(bytes: count)
            try await note([.file(try moved(file))], of: upload, fixture)
            try await fixture.drain()
            try await upload.finished()
            #expect(fixture.storage.object(TransferFixture.location)?.bytes == bytes)
            #expect(try table(fixture).find(upload.id.uuid)?.file == FileIdentity(ofSource: file.path))
        }
    }

    @Test(
        "A source whose device changes while it is open is another file, whatever else is the same",
        .enabled(if: canMount, "may not mount a tmpfs"))
    func deviceChanges() async throws {
        try await withSmallVolume(1 << 20) { first in
            try await withSmallVolume(1 << 20) { second in
                let files = [first, second].map { $0.appending(path: "source") }
                for file in files {
                    try Data(count: 100).write(to: file)
                    let time = Date(timeIntervalSince1970: 1_000)
                    try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
                }
                let one = try FileIdentity(ofSource: files[0].path)
                let other = try FileIdentity(ofSource: files[1].path)
                try #require(one != other && one.isSame(as: other))
                let source = try SourceFile(path: files[0].path, identity: other, FileSystem())
                try source.check()
                let moved = try FileSystem().open(files[1].path)
                #expect(dup2(moved.descriptor, source.segment(0).descriptor) >= 0)
                let error = #expect(throws: LarderError.self) { try source.check() }
                #expect(error?.code == .sourceChanged)
            }
        }
    }

    @Test("Bytes that have arrived in a partial file are not received again")
    func partialFile() async throws {
        try await withTransferFixture { fixture in
            let (_, bytes) = try fixture.file(bytes: 20_000)
            let download = try await fixture.download(of: bytes)
            let failures = Countdown(1)
            fixture.storage.onCall { call throws(ObjectError) in
                if call == .get(9216..<10_240), failures.take() { throw ObjectError(.unreachable, "away") }
            }
            let runner = fixture.runner {
                $0.connectionsPerHost = 1
                $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20))
            }
            try await runner.run(untilFailureOf: download)
            let partial = PartialFile.path(of: download.id.uuid, in: fixture.folder.appending(path: "store"))
            try await note([.file(try moved(URL(filePath: partial)))], of: download, fixture)
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == bytes)
            #expect(fixture.storage.calls.count { if case .get = $0 { true } else { false } } == 20)
        }
    }

    @Test(
        "A file that was put in its place before a kill is the download's, if it has its bytes",
        arguments: [true, false], [true, false])
    func movedFile(isSame: Bool, isRemounted: Bool) async throws {
        try await withTransferFixture { fixture in
            let (_, bytes) = try fixture.file(bytes: 2000)
            let download = try await fixture.download(of: bytes, options: .init(replacesFile: true))
            var other = bytes
            other[700] ^= 1
            try Data(isSame ? bytes : other).write(to: fixture.copy)
            let etag = try #require(fixture.storage.object(TransferFixture.location)).etag
            let identity = try isRemounted ? moved(fixture.copy) : FileIdentity(ofSource: fixture.copy.path)
            try await note(
                [
                    .object(etag: etag, size: 2000, crc32c: nil), .partSize(1024), .file(identity),
                    .parts([
                        .init(number: 1, size: 1024, crc32c: CRC32C(of: bytes[..<1024]).value),
                        .init(number: 2, size: 976, crc32c: CRC32C(of: bytes[1024...]).value),
                    ]),
                ], of: download, fixture)
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == bytes)
            #expect(fixture.storage.calls.isEmpty == isSame)
        }
    }

    @Test(
        "A copy on another volume that was made before a kill is the download's, if it has its bytes",
        arguments: [true, false])
    func copiedFile(isSame: Bool) async throws {
        try await withTransferFixture { fixture in
            let (_, bytes) = try fixture.file(bytes: 2000)
            let download = try await fixture.download(of: bytes)
            var other = bytes
            other[700] ^= 1
            try Data(isSame ? bytes : other).write(to: fixture.copy)
            _ = try await noteArrived(download, bytes, fixture)
            try await fixture.drain()
            #expect(try download.status().failure?.code == (isSame ? nil : .destinationExists))
            #expect(try Array(Data(contentsOf: fixture.copy)) == (isSame ? bytes : other))
            #expect(!fixture.storage.calls.contains { if case .get = $0 { true } else { false } })
        }
    }

    /// Makes the partial file of 2,000 bytes that have arrived, and notes them: it stays until the copy is noted.
    private func noteArrived(_ download: Transfer, _ bytes: [UInt8], _ fixture: TransferFixture) async throws -> URL {
        let store = fixture.folder.appending(path: "store")
        let partial = URL(filePath: PartialFile.path(of: download.id.uuid, in: store))
        try FileManager.default.createDirectory(
            at: partial.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data(bytes).write(to: partial)
        let object = try #require(fixture.storage.object(TransferFixture.location))
        try await note(
            [
                .object(etag: object.etag, size: 2000, crc32c: CRC32C(of: bytes).value), .partSize(1024),
                .file(try FileIdentity(ofSource: partial.path)),
                .parts([
                    .init(number: 1, size: 1024, crc32c: CRC32C(of: bytes[..<1024]).value),
                    .init(number: 2, size: 976, crc32c: CRC32C(of: bytes[1024...]).value),
                ]),
            ], of: download, fixture)
        return partial
    }

    @Test("The partial file beside a copy on another volume stays until it is noted that the download is done")
    func keptUntilNoted() async throws {
        try await withTransferFixture { fixture in
            let (_, bytes) = try fixture.file(bytes: 2000)
            let download = try await fixture.download(of: bytes)
            try Data(bytes).write(to: fixture.copy)
            let partial = try await noteArrived(download, bytes, fixture)
            let isThere = Mutex<Bool?>(nil)
            try await fixture.drain {
                $0.reached = { step in
                    guard step == .finished else { return }
                    isThere.withLock { $0 = FileManager.default.fileExists(atPath: partial.path) }
                }
            }
            #expect(isThere.withLock { $0 } == true)
            #expect(try download.status().state == .done && fixture.partials.isEmpty)
        }
    }
}
