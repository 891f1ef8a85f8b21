import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Destinations of downloads that cannot be had", .timeLimit(.minutes(10)))
struct BadDestinationTests {
    enum Harm: String, Sendable, CaseIterable {
        case taken, folder, gone, file

        var code: LarderError.Code { self == .taken ? .destinationExists : .destinationUnusable }

        /// What is done to the folder of the destination, and undone.
        func happen(to file: URL) throws {
            let (files, folder) = (FileManager.default, file.deletingLastPathComponent())
            switch self {
            case .taken: try Data("mine".utf8).write(to: file)
            case .folder: try files.createDirectory(at: file, withIntermediateDirectories: false)
            case .gone: try files.removeItem(at: folder)
            case .file:
                try files.removeItem(at: folder)
                try Data("mine".utf8).write(to: folder)
            }
        }

        func undo(at file: URL) throws {
            let (files, folder) = (FileManager.default, file.deletingLastPathComponent())
            switch self {
            case .taken, .folder: try files.removeItem(at: file)
            case .gone: break
            case .file: try files.removeItem(at: folder)
            }
            try files.createDirectory(at: folder, withIntermediateDirectories: true)
        }
    }

    private static let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }

    /// Runs `body` with a download to a folder of its own.
    private func withDownload(_ body: (Depot, Transfer, _ file: URL) async throws -> Void) async throws {
        try await withDepot { depot in
            depot.storage.keep(Self.bytes, at: Depot.location)
            let folder = depot.folder.appending(path: "there")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            let file = folder.appending(path: "copy")
            try await body(depot, try await depot.app.transfers.download(Depot.location, to: file), file)
        }
    }

    private func expectRetried(_ download: Transfer, _ file: URL, _ depot: Depot) async throws {
        try await download.retry()
        try await depot.drain()
        try await download.finished()
        #expect(try Array(Data(contentsOf: file)) == Self.bytes)
        #expect(depot.partials.isEmpty)
    }

    @Test("What became of it while the download waited is told, nothing is asked, and it can be tried again",
        arguments: Harm.allCases)
    func waiting(harm: Harm) async throws {
        try await withDownload { depot, download, file in
            try harm.happen(to: file)
            try await depot.drain()
            await expectCode(harm.code) { try await download.finished() }
            #expect(depot.storage.calls.isEmpty && depot.partials.isEmpty)
            if harm == .taken { #expect(try Data(contentsOf: file) == Data("mine".utf8)) }
            try harm.undo(at: file)
            try await expectRetried(download, file, depot)
        }
    }

    @Test("What becomes of it while bytes arrive is told, nothing is left, and it can be tried again",
        arguments: Harm.allCases)
    func arriving(harm: Harm) async throws {
        try await withDownload { depot, download, file in
            let times = Countdown(1)
            depot.storage.onCall { call in
                if case .get = call, times.take() { try? harm.happen(to: file) }
            }
            try await depot.drain()
            await expectCode(harm.code) { try await download.finished() }
            #expect(depot.partials.isEmpty)
            if harm == .taken { #expect(try Data(contentsOf: file) == Data("mine".utf8)) }
            try harm.undo(at: file)
            try await expectRetried(download, file, depot)
        }
    }

    @Test("A name that is too long for a file is told when the download is queued")
    func longName() async throws {
        try await withDepot { depot in
            depot.storage.keep(Self.bytes, at: Depot.location)
            for (count, isPossible) in [(255, true), (256, false)] {
                let file = depot.folder.appending(path: String(repeating: "n", count: count))
                if isPossible {
                    let download = try await depot.app.transfers.download(Depot.location, to: file)
                    try await depot.drain()
                    try await download.finished(within: .zero)
                } else {
                    await expectCode(.destinationUnusable) {
                        _ = try await depot.app.transfers.download(Depot.location, to: file)
                    }
                }
            }
        }
    }

    @Test("A partial file that was removed, or replaced, while bytes arrived does no harm to them", arguments: [
        false, true,
    ])
    func lostPartial(isReplaced: Bool) async throws {
        try await withDownload { depot, download, file in
            let partial = depot.folder.appending(path: "store/transfers/\(download.id).part")
            depot.storage.onAnswer { call in
                guard case .get(let range) = call, range.upperBound == Int64(Self.bytes.count) else { return }
                try? FileManager.default.removeItem(at: partial)
                if isReplaced { try? Data("another's".utf8).write(to: partial) }
            }
            try await depot.drain { $0.connectionsPerHost = 1 }
            try await download.finished(within: .zero)
            #expect(try Array(Data(contentsOf: file)) == Self.bytes)
            #expect(depot.partials.isEmpty)
            let names = try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
            #expect(names == ["copy"])
        }
    }

    @Test(
        "A folder that may not be written is told when the download is queued, when it begins and when it ends",
        .enabled(if: canMount, "only root can make a volume"))
    func readOnly() async throws {
        try await withDepot { depot in
            depot.storage.keep(Self.bytes, at: Depot.location)
            try await withSmallVolume(1 << 20) { volume in
                let file = volume.appending(path: "copy")
                let download = try await depot.app.transfers.download(Depot.location, to: file)
                try setReadOnly(true, volume)
                await expectCode(.destinationUnusable) {
                    _ = try await depot.app.transfers.download(Depot.location, to: file)
                }
                try await depot.drain()
                await expectCode(.destinationUnusable) { try await download.finished() }
                #expect(depot.storage.calls.isEmpty && depot.partials.isEmpty)
                try setReadOnly(false, volume)
                let times = Countdown(1)
                depot.storage.onCall { call in
                    if case .get = call, times.take() { try? setReadOnly(true, volume) }
                }
                try await download.retry()
                try await depot.drain()
                await expectCode(.destinationUnusable) { try await download.finished() }
                #expect(depot.partials.isEmpty)
                try setReadOnly(false, volume)
                try await expectRetried(download, file, depot)
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == ["copy"])
            }
        }
    }

    @Test(
        "A disk without room for a download is told before a byte is asked for, and one that fills up when it is full",
        .enabled(if: canMount, "only root can make a volume"))
    func fullDisk() async throws {
        try await withDepot { depot in
            depot.storage.keep(Self.bytes + Self.bytes + Self.bytes, at: Depot.location)
            try await withSmallVolume(40 << 10) { volume in
                try FileManager.default.createSymbolicLink(
                    at: depot.folder.appending(path: "store/transfers"), withDestinationURL: volume)
                let (file, filler) = (depot.folder.appending(path: "copy"), volume.appending(path: "filler"))
                try Data(repeating: 1, count: 24 << 10).write(to: filler)
                let download = try await depot.app.transfers.download(Depot.location, to: file)
                try await depot.drain()
                await expectCode(.diskFull) { try await download.finished() }
                #expect(depot.storage.calls == [.head(Depot.location.key)])
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == ["filler"])
                try FileManager.default.removeItem(at: filler)
                let times = Countdown(1)
                depot.storage.onCall { call in
                    guard case .get(let range) = call, range.lowerBound > 9000, times.take() else { return }
                    try? Data(repeating: 1, count: 28 << 10).write(to: filler)
                }
                try await download.retry()
                try await depot.drain { $0.connectionsPerHost = 1 }
                await expectCode(.diskFull) { try await download.finished() }
                #expect(!FileManager.default.fileExists(atPath: file.path))
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == ["filler"])
                try FileManager.default.removeItem(at: filler)
                try await download.retry()
                try await depot.drain()
                try await download.finished()
                #expect(try Array(Data(contentsOf: file)) == Self.bytes + Self.bytes + Self.bytes)
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path).isEmpty)
            }
        }
    }
}
