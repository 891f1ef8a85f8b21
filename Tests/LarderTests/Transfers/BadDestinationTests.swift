import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Destinations of downloads that cannot be had", .timeLimit(.minutes(10)))
struct BadDestinationTests {
    enum Damage: String, Sendable, CaseIterable {
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

    @Test("A download replaces no pipe, even where it may replace a file")
    func noFile() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            let pipe = fixture.folder.appending(path: "pipe")
            #expect(mkfifo(pipe.path, 0o600) == 0)
            await expectCode(.destinationUnusable) {
                let download = try await fixture.app.transfers.download(
                    TransferFixture.location, to: pipe, options: .init(replacesFile: true))
                try await fixture.drain()
                try await download.finished()
            }
            let found = try FileManager.default.attributesOfItem(atPath: pipe.path)[.type] as? FileAttributeType
            #expect(found != .typeRegular)
        }
    }

    private static let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }

    /// Runs `body` with a download to a folder of its own.
    private func withDownload(_ body: (TransferFixture, Transfer, _ file: URL) async throws -> Void) async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            let folder = fixture.folder.appending(path: "there")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            let file = folder.appending(path: "copy")
            try await body(fixture, try await fixture.app.transfers.download(TransferFixture.location, to: file), file)
        }
    }

    private func expectRetried(_ download: Transfer, _ file: URL, _ fixture: TransferFixture) async throws {
        try await download.retry()
        try await fixture.drain()
        try await download.finished()
        #expect(try Array(Data(contentsOf: file)) == Self.bytes)
        #expect(fixture.partials.isEmpty)
    }

    @Test(
        "A download says what its place became while it waited, asks for nothing, and can be tried again",
        arguments: Damage.allCases)
    func waiting(harm: Damage) async throws {
        try await withDownload { fixture, download, file in
            try harm.happen(to: file)
            try await fixture.drain()
            await expectCode(harm.code) { try await download.finished() }
            #expect(fixture.storage.calls.isEmpty && fixture.partials.isEmpty)
            if harm == .taken { #expect(try Data(contentsOf: file) == Data("mine".utf8)) }
            try harm.undo(at: file)
            try await expectRetried(download, file, fixture)
        }
    }

    @Test(
        "A download says what its place became while bytes arrived, leaves nothing, and can be tried again",
        arguments: Damage.allCases)
    func arriving(harm: Damage) async throws {
        try await withDownload { fixture, download, file in
            let times = Countdown(1)
            fixture.storage.onCall { call in
                if case .get = call, times.take() { try? harm.happen(to: file) }
            }
            try await fixture.drain()
            await expectCode(harm.code) { try await download.finished() }
            #expect(fixture.partials.isEmpty)
            if harm == .taken { #expect(try Data(contentsOf: file) == Data("mine".utf8)) }
            try harm.undo(at: file)
            try await expectRetried(download, file, fixture)
        }
    }

    @Test("A path with a null character is refused, and no file comes to be where the path would end before it")
    func nullCharacter() async throws {
        try await withDownload { fixture, download, file in
            let program = try OtherProgram(fixture.folder.appending(path: "store"))
            try program.run("UPDATE transfer SET path = path || char(0) || '.tail'")
            try await fixture.drain()
            await expectCode(.destinationUnusable) { try await download.finished() }
            #expect(fixture.storage.calls.isEmpty && fixture.partials.isEmpty)
            #expect(!FileManager.default.fileExists(atPath: file.path))
        }
    }

    @Test("A name that is too long for a file is told when the download is queued")
    func longName() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            for (count, isPossible) in [(255, true), (256, false)] {
                let file = fixture.folder.appending(path: String(repeating: "n", count: count))
                if isPossible {
                    let download = try await fixture.app.transfers.download(TransferFixture.location, to: file)
                    try await fixture.drain()
                    try await download.finished(within: .zero)
                } else {
                    await expectCode(.destinationUnusable) {
                        _ = try await fixture.app.transfers.download(TransferFixture.location, to: file)
                    }
                }
            }
        }
    }

    @Test(
        "A partial file that was removed, or replaced, while bytes arrived does no harm to them",
        arguments: [
            false, true,
        ])
    func lostPartial(isReplaced: Bool) async throws {
        try await withDownload { fixture, download, file in
            let partial = fixture.folder.appending(path: "store/transfers/\(download.id).part")
            fixture.storage.onAnswer { call in
                guard case .get(let range) = call, range.upperBound == Int64(Self.bytes.count) else { return }
                try? FileManager.default.removeItem(at: partial)
                if isReplaced { try? Data("another's".utf8).write(to: partial) }
            }
            try await fixture.drain { $0.connectionsPerHost = 1 }
            try await download.finished(within: .zero)
            #expect(try Array(Data(contentsOf: file)) == Self.bytes)
            #expect(fixture.partials.isEmpty)
            let names = try FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path)
            #expect(names == ["copy"])
        }
    }

    @Test(
        "A folder that may not be written is told when the download is queued, when it begins and when it ends",
        .enabled(if: canMount, "only root can make a volume"))
    func readOnly() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes, at: TransferFixture.location)
            try await withSmallVolume(1 << 20) { volume in
                let file = volume.appending(path: "copy")
                let download = try await fixture.app.transfers.download(TransferFixture.location, to: file)
                try setReadOnly(true, volume)
                await expectCode(.destinationUnusable) {
                    _ = try await fixture.app.transfers.download(TransferFixture.location, to: file)
                }
                try await fixture.drain()
                await expectCode(.destinationUnusable) { try await download.finished() }
                #expect(fixture.storage.calls.isEmpty && fixture.partials.isEmpty)
                try setReadOnly(false, volume)
                let times = Countdown(1)
                fixture.storage.onCall { call in
                    if case .get = call, times.take() { try? setReadOnly(true, volume) }
                }
                try await download.retry()
                try await fixture.drain()
                await expectCode(.destinationUnusable) { try await download.finished() }
                #expect(fixture.partials.isEmpty)
                try setReadOnly(false, volume)
                try await expectRetried(download, file, fixture)
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == ["copy"])
            }
        }
    }

    @Test(
        "A disk without room for a download is told before a byte is asked for, and one that fills up when it is full",
        .enabled(if: canMount, "only root can make a volume"))
    func fullDisk() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes + Self.bytes + Self.bytes, at: TransferFixture.location)
            try await withSmallVolume(40 << 10) { volume in
                try FileManager.default.createSymbolicLink(
                    at: fixture.folder.appending(path: "store/transfers"), withDestinationURL: volume)
                let (file, filler) = (fixture.folder.appending(path: "copy"), volume.appending(path: "filler"))
                try Data(repeating: 1, count: 24 << 10).write(to: filler)
                let download = try await fixture.app.transfers.download(TransferFixture.location, to: file)
                try await fixture.drain()
                await expectCode(.diskFull) { try await download.finished() }
                #expect(fixture.storage.calls == [.head(TransferFixture.location.key)])
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == ["filler"])
                try FileManager.default.removeItem(at: filler)
                let times = Countdown(1)
                fixture.storage.onCall { call in
                    guard case .get(let range) = call, range.lowerBound > 9000, times.take() else { return }
                    try? Data(repeating: 1, count: 28 << 10).write(to: filler)
                }
                try await download.retry()
                try await fixture.drain { $0.connectionsPerHost = 1 }
                await expectCode(.diskFull) { try await download.finished() }
                #expect(!FileManager.default.fileExists(atPath: file.path))
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path) == ["filler"])
                try FileManager.default.removeItem(at: filler)
                try await download.retry()
                try await fixture.drain()
                try await download.finished()
                #expect(try Array(Data(contentsOf: file)) == Self.bytes + Self.bytes + Self.bytes)
                #expect(try FileManager.default.contentsOfDirectory(atPath: volume.path).isEmpty)
            }
        }
    }
}
