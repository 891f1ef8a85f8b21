import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Several storages in one partition", .timeLimit(.minutes(10)))
struct NamedStorageTests {
    private let archive = ObjectLocation(bucket: "media", key: "a", storage: "archive")
    private let photos = ObjectLocation(bucket: "media", key: "a", storage: "photos")

    private func runner(
        _ fixture: TransferFixture, _ storages: [String: MemoryStorage], hasUnnamed: Bool = true
    ) -> TransferRunner {
        fixture.runner(storage: hasUnnamed ? fixture.storage : nil, named: storages)
    }

    /// The keys of what a storage has.
    private func objects(_ storage: MemoryStorage) -> [String] {
        storage.state.withLock { $0.objects.keys.map(\.key).sorted() }
    }

    @Test("Each transfer goes to the storage that it names, and one without a name to that without")
    func places() async throws {
        try await withTransferFixture { fixture in
            let (first, second) = (MemoryStorage(), MemoryStorage())
            let (file, bytes) = try fixture.file(bytes: 100)
            for key in ["1", "2"] {
                for storage in [nil, "archive", "photos"] {
                    let location = ObjectLocation(bucket: "media", key: key + (storage ?? ""), storage: storage)
                    _ = try await fixture.app.transfers.upload(file, to: location)
                }
            }
            try await runner(fixture, ["archive": first, "photos": second]).drain()
            #expect(objects(fixture.storage) == ["1", "2"])
            #expect(objects(first) == ["1archive", "2archive"])
            #expect(objects(second) == ["1photos", "2photos"])
            let copy = fixture.folder.appending(path: "copy")
            let location = ObjectLocation(bucket: "media", key: "2photos", storage: "photos")
            _ = try await fixture.app.transfers.download(location, to: copy)
            try await runner(fixture, ["archive": first, "photos": second]).drain()
            #expect(try [UInt8](Data(contentsOf: copy)) == bytes)
        }
    }

    @Test("The executor outside of the program has the uploads to the storage without a name, and no others")
    func background() async throws {
        try await withTransferFixture { fixture in
            let (other, background) = (MemoryStorage(), ScriptedBackground(fixture.storage))
            let (file, _) = try fixture.file(bytes: 100)
            let named = try await fixture.app.transfers.upload(file, to: archive)
            let unnamed = try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: "a"))
            let runner = fixture.runner(storage: fixture.storage, named: ["archive": other]) {
                $0.background = background
            }
            try await runner.whileRunning {
                try await named.finished()
                try await eventually { background.handedOver == [unnamed.id.uuid] }
                #expect(objects(other) == ["a"])
            }
        }
    }

    @Test("A runner hands no download from a named storage over to a background executor")
    func backgroundDownload() async throws {
        try await withTransferFixture { fixture in
            let (other, background) = (MemoryStorage(), ScriptedBackground(fixture.storage))
            other.keep([1, 2, 3], at: archive)
            let copy = fixture.folder.appending(path: "copy")
            let download = try await fixture.app.transfers.download(archive, to: copy)
            let runner = fixture.runner(storage: fixture.storage, named: ["archive": other]) {
                $0.background = background
            }
            try await runner.run(until: { try !background.handedOver.isEmpty || download.status().isEnded })
            #expect(background.handedOver.isEmpty)
            #expect(try Array(Data(contentsOf: copy)) == [1, 2, 3])
        }
    }

    @Test("A transfer whose storage the runner lacks waits and says so, and holds up nothing")
    func missing() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            // More than a runner passes over.
            let waiting = try await fixture.app.transfers.upload(
                (0..<1_100).map {
                    (file, ObjectLocation(bucket: "b", key: "\($0)", storage: "archive"), UploadOptions())
                })
            let other = try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: "x"))
            try await runner(fixture, ["photos": MemoryStorage()]).drain()
            #expect(try other.status().state == .done)
            for transfer in waiting {
                let status = try transfer.status()
                #expect(status.state == .pending && status.attempts == 0)
                #expect(status.failure?.code == .noStorage)
                #expect(status.failure?.message.contains("\"archive\"") == true)
            }
            let archive = MemoryStorage()
            try await runner(fixture, ["archive": archive]).drain()
            #expect(objects(archive).count == 1_100)
            // The last thousand that are done are remembered.
            #expect(try waiting.suffix(900).allSatisfy { try $0.status().state == .done && $0.status().failure == nil })
        }
    }

    @Test("Progress names the storage that is missing")
    func progress() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await fixture.app.transfers.upload(file, to: archive)
            try await fixture.runner().whileRunning {
                var reason: TransferProgress.WaitingReason?
                for await progress in upload.progress where progress.waiting == .noStorage(named: "archive") {
                    reason = progress.waiting
                    break
                }
                #expect(reason == .noStorage(named: "archive"))
            }
        }
    }

    @Test("Followers of all transfers hear that a storage is missing, and later that a runner has it")
    func followed() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await fixture.app.transfers.upload(file, to: archive)
            var events = fixture.app.transfers.events.makeAsyncIterator()
            try await fixture.drain()
            #expect(await events.next(isolation: #isolation)?.failure?.code == .noStorage)
            try await upload.pause()
            #expect(await events.next(isolation: #isolation)?.state == .paused)
            // It takes up nothing that is paused, but it has the storage.
            try await runner(fixture, ["archive": MemoryStorage()]).drain()
            let status = await events.next(isolation: #isolation)
            #expect(status?.state == .paused && status?.failure == nil)
        }
    }

    @Test("A storage that does not take the credentials holds up no other, and its transfers say what they wait for")
    func refused() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let isSignedIn = Flag()
            let storage = MemoryStorage()
            storage.onCall { _ throws(ObjectError) in
                if !isSignedIn.isSet { throw ObjectError(.invalidCredentials, "who?", status: 403) }
            }
            let transfers = fixture.app.transfers
            let first = try await transfers.upload(file, to: archive, options: UploadOptions(priority: 1))
            let others = try await transfers.upload(
                (0..<20).map { (file, ObjectLocation(bucket: "media", key: "\($0)"), UploadOptions()) })
            let runner = fixture.runner(storage: fixture.storage, named: ["archive": storage]) {
                $0.pauseForAnHour()
                $0.maximumTransfers = 2
            }
            try await runner.whileRunning {
                for other in others { #expect(try await other.finished(within: .seconds(300)).state == .done) }
                let second = try await transfers.upload(file, to: .init(bucket: "media", key: "b", storage: "archive"))
                var progress = second.progress.makeAsyncIterator()
                while let step = await progress.next(isolation: #isolation), step.waiting != .notSignedIn {}
                #expect(runner.state == .running)
                isSignedIn.set()
                runner.resume()
                for upload in [first, second] {
                    #expect(try await upload.finished(within: .seconds(300)).state == .done)
                }
            }
        }
    }

    @Test("A drain waits while one of several storages does not take the credentials")
    func refusedDrain() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let faults = Countdown(2)
            let storage = MemoryStorage()
            storage.onCall { _ throws(ObjectError) in
                if faults.take() { throw ObjectError(.expiredCredentials, "who?", status: 403) }
            }
            let upload = try await fixture.app.transfers.upload(file, to: archive)
            try await runner(fixture, ["archive": storage]).drain()
            #expect(try upload.status().state == .done)
        }
    }

    @Test("An upload whose storage's name is another storage's by now begins anew there")
    func renamed() async throws {
        try await withTransferFixture { fixture in
            let (file, bytes) = try fixture.file(bytes: 10_000)
            let (old, new) = (MemoryStorage(), MemoryStorage())
            old.onCall { call throws(ObjectError) in
                if call == .putPart(5) { throw ObjectError(.unreachable, "away") }
            }
            let upload = try await fixture.app.transfers.upload(file, to: archive)
            try await runner(fixture, ["archive": old]).run(untilFailureOf: upload)
            try await runner(fixture, ["archive": new]).drain()
            #expect(new.object(archive)?.bytes == bytes)
            // The parts at the storage of before are not this runner's to clear away.
            #expect(old.state.withLock { $0.uploads.count } == 1)
        }
    }

    @Test("A runner with named storages alone leaves the other transfers waiting")
    func unnamedMissing() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: "x"))
            try await runner(fixture, ["photos": MemoryStorage()], hasUnnamed: false).drain()
            #expect(try upload.status().failure?.code == .noStorage)
            try await fixture.drain()
            #expect(try upload.status().state == .done)
        }
    }

    @Test("A runner without any storage is refused")
    func none() async throws {
        try await withTransferFixture { fixture in
            let error = await #expect(throws: LarderError.self) {
                try await runner(fixture, [:], hasUnnamed: false).run()
            }
            #expect(error?.code == .notRunnable)
        }
    }

    @Test("The name outlives a restart")
    func restart() async throws {
        try await withTemporaryFolder { folder in
            var (store, app) = try TransferFixture.open(folder)
            let file = folder.appending(path: "file")
            try Data("abc".utf8).write(to: file)
            let id = try await app.transfers.upload(file, to: photos).id
            try store.close()
            (store, app) = try TransferFixture.open(folder)
            #expect(try app.transfers[id].status().location == photos)
            try store.close()
        }
    }

    @Test("An upload of one key does not wait for one of the same key at another storage")
    func sameKey() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            // Without its storage, the first stays.
            _ = try await fixture.app.transfers.upload(file, to: archive)
            let second = try await fixture.app.transfers.upload(file, to: photos)
            try await runner(fixture, ["photos": MemoryStorage()]).drain()
            #expect(try second.status().state == .done)
        }
    }

    @Test("The parts of an upload are aborted at its own storage, by a runner that has it")
    func abort() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 10_000)
            let storage = MemoryStorage()
            storage.onCall { call throws(ObjectError) in
                if call == .putPart(5) { throw ObjectError(.unreachable, "away") }
            }
            let upload = try await fixture.app.transfers.upload(file, to: archive)
            try await runner(fixture, ["archive": storage]).run(untilFailureOf: upload)
            try await upload.cancel()
            try await fixture.drain()
            #expect(try upload.status().state == .cancelling)
            #expect(!fixture.storage.calls.contains { if case .abort = $0 { true } else { false } })
            try await runner(fixture, ["archive": storage]).drain()
            #expect(try upload.status().state == .cancelled)
            #expect(storage.state.withLock { $0.uploads.isEmpty })
        }
    }

    @Test("An upload that its storage neither knows nor aborts is aborted there later, in its region, and nowhere else")
    func left() async throws {
        try await withTransferFixture { fixture in
            let place = ObjectLocation(bucket: "media", key: "a", region: "eu-west-1", storage: "archive")
            let (file, _) = try fixture.file(bytes: 10_000)
            let storage = MemoryStorage()
            storage.forgetForAMoment()
            let upload = try await fixture.app.transfers.upload(file, to: place)
            try await runner(fixture, ["archive": storage]).drain()
            #expect(try upload.status().state == .done)
            #expect(storage.state.withLock { $0.uploads.count } == 1)
            storage.onCall { _ in }
            try await runner(fixture, ["archive": storage]).drain()
            #expect(storage.state.withLock { $0.uploads.isEmpty && $0.aborted.map(\.location) == [place] })
            #expect(!fixture.storage.calls.contains { if case .abort = $0 { true } else { false } })
        }
    }

    @Test(
        "A storage's name is refused that is empty, has a zero byte or more than 255 bytes",
        arguments: ["", "a\u{0}b", String(repeating: "é", count: 128)])
    func badName(name: String) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 1)
            let error = await #expect(throws: LarderError.self) {
                try await fixture.app.transfers.upload(file, to: .init(bucket: "b", key: "k", storage: name))
            }
            #expect(error?.code == .invalidTransfer)
        }
    }

    @Test(
        "A storage's name may have any characters, and up to 255 bytes",
        arguments: ["\"", "a,b", "日本 語", "[]", "'; --", "\\", String(repeating: "n", count: 255)])
    func oddName(name: String) async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 1)
            let storage = MemoryStorage()
            _ = try await fixture.app.transfers.upload(file, to: .init(bucket: "b", key: "k", storage: name))
            try await runner(fixture, [name: storage]).drain()
            #expect(objects(storage) == ["k"])
        }
    }

    @Test("The progress of a transfer that names no storage says that the one without a name is missing")
    func progressOfUnnamed() async throws {
        try await withTransferFixture { fixture in
            let (file, _) = try fixture.file(bytes: 100)
            let upload = try await fixture.app.transfers.upload(file, to: .init(bucket: "media", key: "x"))
            let runner = runner(fixture, ["photos": MemoryStorage()], hasUnnamed: false)
            try await runner.whileRunning {
                try await eventually { try upload.status().failure?.code == .noStorage }
                var progress = upload.progress.makeAsyncIterator()
                #expect(await progress.next(isolation: #isolation)?.waiting == .noStorage(named: nil))
            }
        }
    }
}
