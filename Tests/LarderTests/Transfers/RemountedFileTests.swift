import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Files whose device has another number, as after a restart of the machine", .timeLimit(.minutes(10)))
struct RemountedFileTests {
    private func table(_ depot: Depot) throws -> TransferTable { try depot.app.core.intent.database().transfers }

    /// Notes something of a transfer, as an attempt before.
    private func note(_ notes: [TransferNote], of transfer: Transfer, _ depot: Depot) async throws {
        let begun = try await table(depot).begin(transfer.id.uuid, owner: "before", now: Date())
        let attempt = try #require(begun).attempt
        try await table(depot).note(attempt, notes)
        try await table(depot).release(attempt)
    }

    private func moved(_ file: URL) throws -> FileIdentity {
        var identity = try FileIdentity(ofSource: file.path)
        identity.device += 1
        return identity
    }

    @Test("A source is sent, and its device noted anew", arguments: [100, 20_000])
    func source(count: Int) async throws {
        try await withDepot { depot in
            let (file, bytes) = try depot.file(bytes: count)
            let upload = try await depot.app.transfers.upload(file, to: Depot.location)
            try await note([.file(try moved(file))], of: upload, depot)
            try await depot.drain()
            try await upload.finished()
            #expect(depot.storage.object(Depot.location)?.bytes == bytes)
            #expect(try table(depot).find(upload.id.uuid)?.file == FileIdentity(ofSource: file.path))
        }
    }

    @Test("What has arrived in a partial file is not received again")
    func partialFile() async throws {
        try await withDepot { depot in
            let (_, bytes) = try depot.file(bytes: 20_000)
            depot.storage.keep(bytes, at: Depot.location)
            let copy = depot.folder.appending(path: "copy")
            let download = try await depot.app.transfers.download(Depot.location, to: copy)
            let failures = Countdown(1)
            depot.storage.onCall { call throws(ObjectError) in
                if call == .get(9216..<10_240), failures.take() { throw ObjectError(.unreachable, "away") }
            }
            let runner = depot.runner {
                $0.connectionsPerHost = 1
                $0.backoff = Backoff(first: .seconds(20), cap: .seconds(20))
            }
            let running = Task { try await runner.run() }
            try await eventually { try download.status().failure != nil }
            running.cancel()
            try await running.value
            let partial = PartialFile.path(of: download.id.uuid, in: depot.folder.appending(path: "store"))
            try await note([.file(try moved(URL(filePath: partial)))], of: download, depot)
            try await depot.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: copy)) == bytes)
            #expect(depot.storage.calls.count { if case .get = $0 { true } else { false } } == 20)
        }
    }

    @Test(
        "A file that was put in its place before a kill is the download's, if it has its bytes",
        arguments: [true, false], [true, false])
    func movedFile(isSame: Bool, isRemounted: Bool) async throws {
        try await withDepot { depot in
            let (_, bytes) = try depot.file(bytes: 2000)
            depot.storage.keep(bytes, at: Depot.location)
            let copy = depot.folder.appending(path: "copy")
            let download = try await depot.app.transfers.download(
                Depot.location, to: copy, options: .init(replacesFile: true))
            var other = bytes
            other[700] ^= 1
            try Data(isSame ? bytes : other).write(to: copy)
            let etag = try #require(depot.storage.object(Depot.location)).etag
            let identity = try isRemounted ? moved(copy) : FileIdentity(ofSource: copy.path)
            try await note(
                [
                    .object(etag: etag, size: 2000, crc32c: nil), .partSize(1024), .file(identity),
                    .parts([
                        .init(number: 1, size: 1024, crc32c: CRC32C(of: bytes[..<1024]).value),
                        .init(number: 2, size: 976, crc32c: CRC32C(of: bytes[1024...]).value),
                    ]),
                ], of: download, depot)
            try await depot.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: copy)) == bytes)
            #expect(depot.storage.calls.isEmpty == isSame)
        }
    }
}
