import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Downloads whose bytes are not those of the object", .timeLimit(.minutes(10)))
struct DamagedDownloadTests {
    private static let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }

    @Test("Bytes that became others on their way are received again", arguments: [false, true])
    func once(tellsChecksums: Bool) async throws {
        try await withDepot(tellsChecksums: tellsChecksums) { depot in
            depot.storage.keep(Self.bytes, at: Depot.location)
            let file = depot.folder.appending(path: "copy")
            let download = try await depot.app.transfers.download(Depot.location, to: file)
            depot.storage.damages.withLock { $0 = Countdown(1) }
            try await depot.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: file)) == Self.bytes)
            #expect(depot.storage.calls.count { if case .get = $0 { true } else { false } } == 20)
        }
    }

    @Test("A size that the storage says once, and another one when the bytes are verified, is not believed")
    func otherSize() async throws {
        try await withDepot { depot in
            depot.storage.keep(Self.bytes, at: Depot.location)
            depot.storage.saidSizes.withLock { $0 = [0] }
            let file = depot.folder.appending(path: "copy")
            try Data("old".utf8).write(to: file)
            let download = try await depot.app.transfers.download(
                Depot.location, to: file, options: .init(replacesFile: true))
            try await depot.drain()
            try await download.finished(within: .zero)
            #expect(try Array(Data(contentsOf: file)) == Self.bytes)
        }
    }

    @Test("A storage that never has what it says it has is given up, and nothing is left", arguments: [false, true])
    func always(tellsChecksums: Bool) async throws {
        try await withDepot(tellsChecksums: tellsChecksums) { depot in
            depot.storage.keep(Self.bytes, at: Depot.location)
            let file = depot.folder.appending(path: "copy")
            let download = try await depot.app.transfers.download(Depot.location, to: file)
            depot.storage.damages.withLock { $0 = Countdown(.max) }
            try await depot.drain()
            await expectCode(.damagedDownload) { try await download.finished() }
            #expect(!FileManager.default.fileExists(atPath: file.path) && depot.partials.isEmpty)
            depot.storage.damages.withLock { $0 = Countdown(0) }
            try await download.retry()
            try await depot.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: file)) == Self.bytes)
        }
    }
}
