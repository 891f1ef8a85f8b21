import Foundation
import LarderTestSupport
import Synchronization
import Testing

@testable import Larder

@Suite("A store whose folder moves, or is copied", .timeLimit(.minutes(10)))
struct MovedStoreTests {
    private func open(
        _ folder: URL, home: URL? = nil, tokens: (any DeviceTokens)? = nil, _ transport: (any GraphQLTransport)? = nil,
        log: RecordedLog? = nil
    ) throws -> (Store, Partition) {
        var options = Store.Options()
        if let log { options.logger = log.logger }
        options.home = home
        options.deviceTokens = tokens
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
        return (store, try store.partition(server: transport))
    }

    // MARK: Homes

    /// Queues an upload and a download in one home and carries them out in another one, to which it was moved.
    private func transferAcrossMove(in folder: URL, names homeBefore: URL?, _ before: URL, _ after: URL) async throws {
        try FileManager.default.createDirectory(at: before, withIntermediateDirectories: true)
        let (store, app) = try open(before.appending(path: "store"), home: homeBefore)
        let source = before.appending(path: "Documents/ü/source")
        try FileManager.default.createDirectory(
            at: source.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data([1, 2, 3]).write(to: source)
        let (place, kept) = (ObjectLocation(bucket: "media", key: "up"), ObjectLocation(bucket: "media", key: "down"))
        let upload = try await app.transfers.upload(source, to: place)
        let download = try await app.transfers.download(kept, to: before.appending(path: "Documents/copy"))
        try store.close()
        try FileManager.default.moveItem(at: before, to: after)
        let storage = MemoryStorage()
        storage.keep([4, 5], at: kept)
        let (again, reopened) = try open(after.appending(path: "store"), home: after)
        #expect(
            try reopened.transfers[upload.id].status().file.path == after.appending(path: "Documents/ü/source").path)
        try await TransferRunner(reopened, storage: storage).drain()
        #expect(try await reopened.transfers[upload.id].finished().state == .done)
        #expect(try await reopened.transfers[download.id].finished().state == .done)
        #expect(storage.object(place)?.bytes == [1, 2, 3])
        #expect(try Data(contentsOf: after.appending(path: "Documents/copy")) == Data([4, 5]))
        try again.close()
        try expectSound(after.appending(path: "store"))
    }

    @Test("Transfers find their files after the home that the program names has moved")
    func moved() async throws {
        try await withTemporaryFolder { folder in
            let (before, after) = (folder.appending(path: "one"), folder.appending(path: "two"))
            try await transferAcrossMove(in: folder, names: before, before, after)
        }
    }

    @Test("Whole paths that were stored before there was a home follow an app's container that moved")
    func formerContainer() async throws {
        try await withTemporaryFolder { folder in
            let (before, after) = (
                folder.appending(path: UUID().uuidString), folder.appending(path: UUID().uuidString)
            )
            try await transferAcrossMove(in: folder, names: nil, before, after)
        }
    }

    @Test("Whole paths become relative once a home is named, and follow it from then on")
    func namedLater() async throws {
        try await withTemporaryFolder { folder in
            let (before, after) = (folder.appending(path: "one"), folder.appending(path: "two"))
            try FileManager.default.createDirectory(at: before, withIntermediateDirectories: true)
            let source = before.appending(path: "source")
            try Data([1]).write(to: source)
            let (store, app) = try open(before.appending(path: "store"))
            let upload = try await app.transfers.upload(source, to: ObjectLocation(bucket: "b", key: "k"))
            try store.close()
            let (named, _) = try open(before.appending(path: "store"), home: before)
            #expect(try named.partition().transfers[upload.id].status().file.path == source.path)
            try named.close()
            try FileManager.default.moveItem(at: before, to: after)
            let (again, reopened) = try open(after.appending(path: "store"), home: after)
            let file = try reopened.transfers[upload.id].status().file
            #expect(file.path == after.appending(path: "source").path)
            try again.close()
        }
    }

    @Test("An opening that names no home, as the tools', finds and queues files by the one that was noted")
    func notedHome() async throws {
        try await withTemporaryFolder { folder in
            let home = folder.appending(path: "home")
            try FileManager.default.createDirectory(at: home, withIntermediateDirectories: true)
            try Data([1]).write(to: home.appending(path: "one"))
            try Data([2]).write(to: home.appending(path: "two"))
            let (store, app) = try open(home.appending(path: "store"), home: home)
            let place = ObjectLocation(bucket: "b", key: "one")
            let upload = try await app.transfers.upload(home.appending(path: "one"), to: place)
            try store.close()
            let storage = MemoryStorage()
            let (nameless, other) = try open(home.appending(path: "store"))
            #expect(try other.transfers[upload.id].status().file.path == home.appending(path: "one").path)
            try await TransferRunner(other, storage: storage).drain()
            #expect(storage.object(place)?.bytes == [1])
            let later = try await other.transfers.upload(
                home.appending(path: "two"), to: ObjectLocation(bucket: "b", key: "two"))
            try nameless.close()
            let moved = folder.appending(path: "moved")
            try FileManager.default.moveItem(at: home, to: moved)
            let (again, reopened) = try open(moved.appending(path: "store"), home: moved)
            #expect(try reopened.transfers[later.id].status().file.path == moved.appending(path: "two").path)
            try again.close()
        }
    }

    @Test("Transfers that are half way when the home moves go on with the parts that have arrived")
    func movedHalfWay() async throws {
        try await withTemporaryFolder { folder in
            let (before, after) = (folder.appending(path: "one"), folder.appending(path: "two"))
            try FileManager.default.createDirectory(at: before, withIntermediateDirectories: true)
            let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            try Data(bytes).write(to: before.appending(path: "source"))
            let (up, down) = (ObjectLocation(bucket: "b", key: "up"), ObjectLocation(bucket: "b", key: "down"))
            let storage = MemoryStorage()
            storage.keep(bytes, at: down)
            let isMended = Flag()
            // Neither is there as a whole before the move.
            storage.onCall { call throws(ObjectError) in
                guard !isMended.isSet else { return }
                switch call {
                case .putPart(let number) where number > 4: throw ObjectError(.interrupted, "for a test")
                case .get(let range) where range.lowerBound > 5_000: throw ObjectError(.interrupted, "for a test")
                default: break
                }
            }
            let (store, app) = try open(before.appending(path: "store"), home: before)
            let upload = try await app.transfers.upload(before.appending(path: "source"), to: up)
            let download = try await app.transfers.download(down, to: before.appending(path: "copy"))
            let first = Task { try await Self.runner(app, storage).run() }
            try await eventually {
                let arrived = try [upload, download].map { try $0.status().arrived }
                return arrived[0] >= 4_096 && arrived[1] >= 5_000
            }
            first.cancel()
            try await first.value
            try store.close()
            try FileManager.default.moveItem(at: before, to: after)
            isMended.set()
            let asked = storage.calls.count
            let (again, moved) = try open(after.appending(path: "store"), home: after)
            try await Self.runner(moved, storage).drain()
            #expect(storage.object(up)?.bytes == bytes)
            #expect(try Array(Data(contentsOf: after.appending(path: "copy"))) == bytes)
            for call in storage.calls[asked...] {
                switch call {
                case .putPart(let number): #expect(number > 4)
                case .get(let range): #expect(range.lowerBound > 4_000)
                default: break
                }
            }
            try again.close()
            try expectSound(after.appending(path: "store"))
        }
    }

    private static func runner(_ app: Partition, _ storage: MemoryStorage) -> TransferRunner {
        var options = TransferRunner.Options()
        options.multipartThreshold = 4_000
        options.partSize = 1_024
        options.connectionsPerHost = 1
        options.maximumFaults = 1_000_000
        options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
        return TransferRunner(app, storage: storage, options: options)
    }

    @Test("A file outside of the home keeps its whole path")
    func outside() async throws {
        try await withTemporaryFolder { folder in
            let (home, source) = (folder.appending(path: "home"), folder.appending(path: "homework"))
            try Data([1]).write(to: source)
            let (store, app) = try open(folder.appending(path: "store"), home: home)
            let upload = try await app.transfers.upload(source, to: ObjectLocation(bucket: "b", key: "k"))
            try store.close()
            let (again, reopened) = try open(folder.appending(path: "store"), home: folder.appending(path: "other"))
            #expect(try reopened.transfers[upload.id].status().file.path == source.path)
            try again.close()
        }
    }

    @Test("A file beside a container that moved, in a folder that is still there, keeps its whole path")
    func besideContainer() async throws {
        try await withTemporaryFolder { folder in
            let folders = (0..<3).map { _ in folder.appending(path: UUID().uuidString) }
            for made in folders[..<2] {
                try FileManager.default.createDirectory(at: made, withIntermediateDirectories: true)
            }
            let source = folders[1].appending(path: "source")
            try Data([1]).write(to: source)
            let (store, app) = try open(folders[0].appending(path: "store"), home: folders[0])
            let upload = try await app.transfers.upload(source, to: ObjectLocation(bucket: "b", key: "k"))
            try store.close()
            try FileManager.default.moveItem(at: folders[0], to: folders[2])
            let (again, reopened) = try open(folders[2].appending(path: "store"), home: folders[2])
            #expect(try reopened.transfers[upload.id].status().file.path == source.path)
            try again.close()
        }
    }

    // MARK: Devices

    private func state(_ app: Partition, _ receipt: MutationReceipt) throws -> MutationStatus? {
        try app.mutation(receipt.id).status()
    }

    /// Queues a mutation in a store that is closed then.
    private func queue(in place: URL, tokens: (any DeviceTokens)?) async throws -> MutationReceipt {
        let (store, app) = try open(place, tokens: tokens)
        let receipt = try await app.enqueue(giveStars("1", 5))
        try store.close()
        return receipt
    }

    /// Expects that a store which is opened has set nothing aside.
    private func expectPending(
        _ receipt: MutationReceipt, in place: URL, home: URL? = nil, tokens: (any DeviceTokens)?,
        sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        let (store, app) = try open(place, home: home, tokens: tokens)
        #expect(try state(app, receipt)?.state == .pending, sourceLocation: sourceLocation)
        try store.close()
    }

    @Test("A store that was copied to another device sets aside what it has queued, once, and logs it")
    func otherDevice() async throws {
        try await withTemporaryFolder { folder in
            let (place, copy) = (folder.appending(path: "store"), folder.appending(path: "copy"))
            let here = FileDeviceTokens(folder: folder.appending(path: "here"))
            let server = ScriptedServer.rating()
            let receipt = try await queue(in: place, tokens: here)
            try FileManager.default.copyItem(at: place, to: copy)
            let there = FileDeviceTokens(folder: folder.appending(path: "there"))
            let log = RecordedLog(from: .warning)
            for _ in 0..<2 {
                let (other, copied) = try open(copy, tokens: there, server, log: log)
                try await MutationRunner(copied).drain()
                #expect(try state(copied, receipt)?.state == .deadLetter)
                #expect(try state(copied, receipt)?.failure?.kind == .restored)
                try other.close()
            }
            #expect(server.effects == [])
            #expect(log.texts.withLock { $0.count { $0.contains("the store is a copy") } } == 1)
            let (again, original) = try open(place, tokens: here, server)
            try await MutationRunner(original).drain()
            #expect(try state(original, receipt)?.state == .applied)
            #expect(server.effects == ["1 5"])
            try again.close()
            try expectSound(copy)
        }
    }

    @Test("A copy of a store whose upload is half way sends nothing, and leaves the parts to the original")
    func copiedHalfWay() async throws {
        try await withTemporaryFolder { folder in
            let (place, copy) = (folder.appending(path: "store"), folder.appending(path: "copy"))
            let here = FileDeviceTokens(folder: folder.appending(path: "here"))
            let there = FileDeviceTokens(folder: folder.appending(path: "there"))
            let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
            let source = folder.appending(path: "source")
            try Data(bytes).write(to: source)
            let (up, small) = (ObjectLocation(bucket: "b", key: "up"), ObjectLocation(bucket: "b", key: "small"))
            let storage = MemoryStorage()
            let isMended = Flag()
            storage.onCall { call throws(ObjectError) in
                if case .putPart(let number) = call, number > 4, !isMended.isSet {
                    throw ObjectError(.interrupted, "for a test")
                }
            }
            let (store, app) = try open(place, tokens: here)
            let upload = try await app.transfers.upload(source, to: up)
            let first = Task { try await Self.runner(app, storage).run() }
            try await eventually { try upload.status().arrived >= 4_096 }
            first.cancel()
            try await first.value
            let paused = try await app.transfers.upload(source, to: small)
            try await paused.pause()
            try store.close()
            try FileManager.default.copyItem(at: place, to: copy)
            let (other, copied) = try open(copy, tokens: there)
            let asked = storage.calls.count
            isMended.set()
            try await Self.runner(copied, storage).drain()
            #expect(storage.calls.count == asked, "\(storage.calls[asked...])")
            for id in [upload.id, paused.id] {
                let status = try copied.transfers[id].status()
                #expect(status.state == .failed)
                #expect(status.failure?.code == .restoredTransfer)
            }
            try other.close()
            let (again, original) = try open(place, tokens: here)
            try await Self.runner(original, storage).drain()
            #expect(storage.object(up)?.bytes == bytes)
            // The parts that had arrived are of use still.
            #expect(storage.calls.count { $0 == .putPart(1) } == 1)
            try again.close()
            // A person who has looked has the copy send it.
            let (last, retried) = try open(copy, tokens: there)
            try await retried.transfers[upload.id].retry()
            try await Self.runner(retried, storage).drain()
            #expect(try retried.transfers[upload.id].status().state == .done)
            try last.close()
            try expectSound(copy)
        }
    }

    @Test("A store that a backup of the system brought back to its device sends nothing twice")
    func broughtBack() async throws {
        try await withTemporaryFolder { folder in
            let (place, backup) = (folder.appending(path: "store"), folder.appending(path: "backup"))
            let tokens = FileDeviceTokens(folder: folder.appending(path: "tokens"))
            let server = ScriptedServer.rating(tellsRepeats: false)
            let receipt = try await queue(in: place, tokens: tokens)
            try FileManager.default.copyItem(at: place, to: backup)
            let (again, later) = try open(place, tokens: tokens, server)
            try await MutationRunner(later).drain()
            #expect(server.effects == ["1 5"])
            try again.close()
            try FileManager.default.removeItem(at: place)
            try FileManager.default.copyItem(at: backup, to: place)
            let (restored, last) = try open(place, tokens: tokens, server)
            #expect(try state(last, receipt)?.state == .deadLetter)
            let new = try await last.enqueue(giveStars("2", 4))
            try await MutationRunner(last).drain()
            #expect(try state(last, new)?.state == .applied)
            #expect(server.effects == ["1 5", "2 4"])
            try restored.close()
            try expectSound(place)
        }
    }

    @Test("Opening again, suspending and resuming set nothing aside")
    func sameDevice() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let tokens = FileDeviceTokens(folder: folder.appending(path: "tokens"))
            // Queued before the program had tokens kept.
            let receipt = try await queue(in: place, tokens: nil)
            for _ in 0..<3 {
                let (store, app) = try open(place, tokens: tokens)
                #expect(try state(app, receipt)?.state == .pending)
                try await store.suspend(within: .seconds(300))
                try store.resume()
                #expect(try state(app, receipt)?.state == .pending)
                try store.close()
            }
        }
    }

    @Test("A store recognizes a copy that was made during a suspension and is brought back to its device")
    func broughtBackAfterResume() async throws {
        try await withTemporaryFolder { folder in
            let (place, backup) = (folder.appending(path: "store"), folder.appending(path: "backup"))
            let tokens = FileDeviceTokens(folder: folder.appending(path: "tokens"))
            let (store, app) = try open(place, tokens: tokens)
            let receipt = try await app.enqueue(giveStars("1", 5))
            try await store.suspend(within: .seconds(300))
            try FileManager.default.copyItem(at: place, to: backup)
            try store.resume()
            try store.close()
            try FileManager.default.removeItem(at: place)
            try FileManager.default.copyItem(at: backup, to: place)
            let (restored, last) = try open(place, tokens: tokens)
            #expect(try state(last, receipt)?.failure?.kind == .restored)
            try restored.close()
        }
    }

    @Test("An opening without tokens sets nothing aside, and the device knows the store afterwards as before")
    func withoutTokens() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let tokens = FileDeviceTokens(folder: folder.appending(path: "tokens"))
            let receipt = try await queue(in: place, tokens: tokens)
            for home in [nil, folder] { try expectPending(receipt, in: place, home: home, tokens: nil) }
            try expectPending(receipt, in: place, tokens: tokens)
        }
    }

    /// Tokens of which the keeping fails, before or after it is done.
    private final class FailingTokens: DeviceTokens {
        struct Failure: Error {}

        let failure = Mutex<(isDone: Bool, isFailing: Bool)>((false, false))
        let tokens = Mutex<[String: String]>([:])

        func token(of store: String) throws -> String? { tokens.withLock { $0[store] } }

        func keep(_ token: String, of store: String) throws {
            let (isDone, isFailing) = failure.withLock { $0 }
            if !isFailing || isDone { tokens.withLock { $0[store] = token } }
            if isFailing { throw Failure() }
        }
    }

    @Test("A token that cannot be put into its place leaves nothing beside it")
    func unplaced() async throws {
        try await withTemporaryFolder { folder in
            let tokens = FileDeviceTokens(folder: folder)
            try FileManager.default.createDirectory(
                at: folder.appending(path: "a.token/full"), withIntermediateDirectories: true)
            #expect(throws: (any Error).self) { try tokens.keep("new", of: "a") }
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["a.token"])
            try tokens.keep("new", of: "b")
            #expect(try tokens.token(of: "b") == "new" && tokens.token(of: "c") == nil)
        }
    }

    @Test("A token that cannot be read is an error, and not one that is missing")
    func unreadable() async throws {
        try await withTemporaryFolder { folder in
            let tokens = FileDeviceTokens(folder: folder)
            try FileManager.default.createDirectory(
                at: folder.appending(path: "a.token"), withIntermediateDirectories: false)
            #expect(throws: (any Error).self) { try tokens.token(of: "a") }
        }
    }

    @Test("A store whose token cannot be read is not opened, and sets nothing aside")
    func unreadToken() async throws {
        try await withTemporaryFolder { folder in
            let (place, kept) = (folder.appending(path: "store"), folder.appending(path: "tokens"))
            let tokens = FileDeviceTokens(folder: kept)
            let receipt = try await queue(in: place, tokens: tokens)
            let name = try #require(try FileManager.default.contentsOfDirectory(atPath: kept.path).first)
            let (file, aside) = (kept.appending(path: name), folder.appending(path: "aside"))
            try FileManager.default.moveItem(at: file, to: aside)
            try FileManager.default.createDirectory(at: file, withIntermediateDirectories: false)
            await expectCode(.operationsStorage) { _ = try open(place, tokens: tokens) }
            try FileManager.default.removeItem(at: file)
            try FileManager.default.moveItem(at: aside, to: file)
            try expectPending(receipt, in: place, tokens: tokens)
        }
    }

    @Test("A process that ends while the token is replaced finds the store its own", arguments: [true, false])
    func interrupted(isDone: Bool) async throws {
        try await withTemporaryFolder { folder in
            let tokens = FailingTokens()
            let receipt = try await queue(in: folder, tokens: tokens)
            for _ in 0..<2 {
                tokens.failure.withLock { $0 = (isDone, true) }
                await expectCode(.operationsStorage) { _ = try open(folder, tokens: tokens) }
            }
            tokens.failure.withLock { $0.isFailing = false }
            try expectPending(receipt, in: folder, tokens: tokens)
        }
    }

    @Test(
        "A note of the place that cannot be written fails the opening, and the store stays this device's",
        arguments: ["ABORT", "ROLLBACK"])
    func unwrittenNote(how: String) async throws {
        try await withTemporaryFolder { folder in
            let tokens = FailingTokens()
            let receipt = try await queue(in: folder, tokens: tokens)
            let known = tokens.tokens.withLock { $0 }
            let other = try OtherProgram(folder)
            try other.run(
                """
                CREATE TRIGGER refusal BEFORE UPDATE OF device_token ON store
                BEGIN SELECT RAISE(\(how), 'not now'); END
                """)
            for _ in 0..<2 { #expect(throws: LarderError.self) { _ = try open(folder, tokens: tokens) } }
            // A token that only the device has would make a copy of the store.
            #expect(tokens.tokens.withLock { $0 } == known)
            try other.run("DROP TRIGGER refusal")
            try expectPending(receipt, in: folder, tokens: tokens)
        }
    }
}
