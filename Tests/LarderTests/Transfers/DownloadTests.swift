import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Downloads", .timeLimit(.minutes(10)))
struct DownloadTests {
    private static func bytes(_ count: Int) -> [UInt8] {
        var random = SeededNumbers(seed: 3)
        return (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) }
    }

    @Test(
        "An object arrives byte for byte, and nothing is left in the store's folder",
        arguments: [0, 1, 1024, 1025, 50_000], [false, true])
    func arrives(count: Int, tellsChecksums: Bool) async throws {
        try await withTransferFixture(tellsChecksums: tellsChecksums) { fixture in
            let bytes = Self.bytes(count)
            let download = try await fixture.download(of: bytes)
            try await fixture.drain()
            let status = try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == bytes)
            #expect(status.size == Int64(count) && status.arrived == Int64(count))
            #expect(fixture.partials.isEmpty)
        }
    }

    @Test("A file that is there stays as it is, unless it may be replaced")
    func existing() async throws {
        try await withTransferFixture { fixture in
            fixture.storage.keep(Self.bytes(3000), at: TransferFixture.location)
            let (file, bytes) = try fixture.file(bytes: 10)
            // It comes while the object is on its way.
            let other = fixture.folder.appending(path: "other")
            let late = try await fixture.app.transfers.download(TransferFixture.location, to: other)
            fixture.storage.onCall { call in
                if case .get = call { try? Data(bytes).write(to: other) }
            }
            try await fixture.drain()
            await expectCode(.destinationExists) { try await late.finished() }
            #expect(try Array(Data(contentsOf: other)) == bytes)
            #expect(fixture.partials.isEmpty)
            let replacing = try await fixture.app.transfers.download(
                TransferFixture.location, to: file, options: .init(replacesFile: true))
            try await fixture.drain()
            try await replacing.finished()
            #expect(try Array(Data(contentsOf: file)) == Self.bytes(3000))
        }
    }

    @Test("Ranges that have arrived are not asked for again")
    func resumed() async throws {
        try await withTransferFixture { fixture in
            let bytes = Self.bytes(10_000)
            let download = try await fixture.download(of: bytes)
            let failures = Countdown(2)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .get(let range) = call, range.lowerBound > 5000, failures.take() {
                    throw ObjectError(.interrupted, "for a test")
                }
            }
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == bytes)
            let asked = fixture.storage.calls.compactMap { if case .get(let range) = $0 { range } else { nil } }
            #expect(Set(asked).count == asked.count && asked.count == 10)
        }
    }

    @Test("A download goes on in ranges of the size that it was begun with, though another runner wants others")
    func keepsRanges() async throws {
        try await withTransferFixture { fixture in
            let bytes = Self.bytes(5_000)
            let download = try await fixture.download(of: bytes)
            let isStopped = Flag()
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .get(let range) = call, range.lowerBound >= 2_048 else { return }
                isStopped.set()
                throw ObjectError(.unreachable, "away")
            }
            try await fixture.runner { $0.connectionsPerHost = 1 }.whileRunning { await isStopped.wait() }
            fixture.storage.onCall { _ in }
            try await fixture.drain { $0.partSize = 2_048 }
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == bytes)
            let asked = fixture.storage.calls.compactMap { if case .get(let range) = $0 { range } else { nil } }
            let starts = asked.map(\.lowerBound).sorted()
            #expect(starts == [0, 1_024, 2_048, 3_072, 4_096])
        }
    }

    @Test("An object that becomes another meanwhile is not mixed with it")
    func changed() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: Self.bytes(10_000))
            let changes = Countdown(1)
            fixture.storage.onCall { [storage = fixture.storage] call in
                if case .get(let range) = call, range.lowerBound > 5000, changes.take() {
                    storage.keep([1, 2, 3], at: TransferFixture.location)
                }
            }
            try await fixture.drain()
            await expectCode(.init(rawValue: "object.changed")) { try await download.finished() }
            #expect(!FileManager.default.fileExists(atPath: fixture.copy.path) && fixture.partials.isEmpty)
            try await download.retry()
            try await fixture.drain()
            try await download.finished()
            #expect(try Array(Data(contentsOf: fixture.copy)) == [1, 2, 3])
        }
    }

    @Test("A download fails when its object has changed since an earlier runner began it")
    func changedMeanwhile() async throws {
        try await withTransferFixture { fixture in
            let bytes = Self.bytes(10_000)
            let download = try await fixture.download(of: bytes)
            fixture.storage.onCall { call throws(ObjectError) in
                if case .get(let range) = call, range.lowerBound > 5000 { throw ObjectError(.unreachable, "away") }
            }
            try await fixture.runner { $0.pauseForAnHour() }.run(untilFailureOf: download)
            #expect(try download.status().arrived > 0)
            fixture.storage.onCall { _ in }
            fixture.storage.keep(bytes.reversed(), at: TransferFixture.location)
            // Pausing and resuming also ends the wait before the next attempt.
            try await download.pause()
            try await download.resume()
            try await fixture.drain()
            await expectCode(.init(rawValue: "object.changed")) { try await download.finished() }
            #expect(!FileManager.default.fileExists(atPath: fixture.copy.path) && fixture.partials.isEmpty)
        }
    }

    @Test("A source that is missing, or may not be read, fails with its reason")
    func missing() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download()
            try await fixture.drain()
            await expectCode(.init(rawValue: "object.notFound")) { try await download.finished() }
            #expect(fixture.partials.isEmpty && !FileManager.default.fileExists(atPath: fixture.copy.path))
        }
    }

    @Test("A partial file that was lost, or damaged, is made good", arguments: [false, true])
    func damaged(tellsChecksums: Bool) async throws {
        try await withTransferFixture(tellsChecksums: tellsChecksums) { fixture in
            let bytes = Self.bytes(10_000)
            for isRemoved in [false, true] {
                let download = try await fixture.download(of: bytes, options: .init(replacesFile: true))
                let failures = Countdown(1)
                fixture.storage.onCall { call throws(ObjectError) in
                    if case .get(let range) = call, range.lowerBound > 5000, failures.take() {
                        throw ObjectError(.interrupted, "for a test")
                    }
                }
                try await fixture.runner { $0.pauseForAnHour() }.run(untilFailureOf: download)
                let name = try #require(fixture.partials.first)
                let partial = fixture.folder.appending(path: "store/transfers/\(name)")
                if isRemoved {
                    try FileManager.default.removeItem(at: partial)
                } else {
                    let handle = try FileHandle(forUpdating: partial)
                    try handle.write(contentsOf: [UInt8](repeating: 0, count: 100))
                    try handle.close()
                }
                // Which also ends its pause.
                try await download.pause()
                try await download.resume()
                try await fixture.drain()
                try await download.finished()
                #expect(try Array(Data(contentsOf: fixture.copy)) == bytes)
            }
        }
    }

    @Test("A download whose partial file was lost begins its progress anew")
    func progressAnew() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: Self.bytes(10_000))
            fixture.storage.onCall { call throws(ObjectError) in
                if case .get(let range) = call, range.lowerBound > 5000 { throw ObjectError(.unreachable, "away") }
            }
            let runner = fixture.runner {
                $0.connectionsPerHost = 1
                $0.pauseForAnHour()
            }
            try await runner.run(untilFailureOf: download)
            #expect(try download.status().arrived > 0)
            let name = try #require(fixture.partials.first)
            try FileManager.default.removeItem(at: fixture.folder.appending(path: "store/transfers/\(name)"))
            let (isAskedAgain, mayGoOn) = (Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .get = call else { return }
                isAskedAgain.set()
                await mayGoOn.wait()
            }
            // Which also ends its pause.
            try await download.pause()
            try await download.resume()
            try await fixture.expectProgress(of: download, 0, once: isAskedAgain, thenSetting: mayGoOn)
        }
    }

    @Test("The progress of a download that goes on begins with the parts that have arrived before")
    func progressGoesOn() async throws {
        try await withTransferFixture { fixture in
            let download = try await fixture.download(of: Self.bytes(10_000))
            let (failures, isAskedAgain, mayGoOn) = (Countdown(1), Flag(), Flag())
            fixture.storage.onCall { call throws(ObjectError) in
                guard case .get(let range) = call, range.lowerBound > 5000 else { return }
                if failures.take() { throw ObjectError(.interrupted, "for a test") }
                isAskedAgain.set()
                await mayGoOn.wait()
            }
            try await fixture.expectProgress(of: download, 5_120, once: isAskedAgain, thenSetting: mayGoOn) {
                $0.connectionsPerHost = 1
            }
        }
    }

    @Test(
        "A file on another volume appears there whole, and a full volume is told and left as it was",
        .enabled(if: canMount, "only root can make a volume"))
    func otherVolume() async throws {
        try await withTransferFixture { fixture in
            let bytes = Self.bytes(50_000)
            fixture.storage.keep(bytes, at: TransferFixture.location)
            try await withSmallVolume(200 << 10) { volume in
                for (number, code) in [(1, nil), (2, nil), (3, nil), (4, LarderError.Code.diskFull)] {
                    let file = volume.appending(path: "copy \(number)")
                    let download = try await fixture.app.transfers.download(TransferFixture.location, to: file)
                    try await fixture.drain()
                    if let code {
                        await expectCode(code) { try await download.finished() }
                    } else {
                        try await download.finished()
                        #expect(try Array(Data(contentsOf: file)) == bytes)
                    }
                    #expect(fixture.partials.isEmpty)
                }
                let names = try FileManager.default.contentsOfDirectory(atPath: volume.path)
                #expect(names.sorted() == ["copy 1", "copy 2", "copy 3"])
            }
        }
    }
}
