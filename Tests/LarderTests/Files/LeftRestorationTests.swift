import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

/// What becomes of a copy of a cache that a restoration has staged, and that is no partition's yet.
@Suite("What a restoration has left in a store", .timeLimit(.minutes(10)))
struct LeftRestorationTests {
    /// Writes a list of recipes whose first one has this title, and closes the store.
    private func write(_ title: String, in place: URL) async throws {
        let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
        try await store.partition().write(recipeList, json: soupAndBread(title))
        try store.close()
    }

    /// Brings a backup back.
    @discardableResult
    private func restore(
        _ backup: StoreBackup, to place: URL, backingUpInto backups: URL? = nil
    ) throws -> StoreRestoration.Report {
        let lock = try MigrationLock.take(in: place, for: "a test", within: .seconds(60))
        defer { lock.release() }
        return try StoreRestoration.bringBack(backup, to: place, backingUpInto: backups, holding: lock)
    }

    /// Runs `body` with a closed store in which lies a staged cache of a restoration that no transaction knows.
    private func withStagedCache(_ body: (_ place: URL, _ cache: CacheFolder) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            try await write("Soup", in: place)
            let cache = CacheFolder(store: place, partition: Store.unnamedPartition, Store.Options())
            let copy = folder.appending(path: "copy").path
            try cache.copy(to: copy)
            try cache.stage("token") { try FileManager.default.moveItem(atPath: copy + "/data.mdb", toPath: $0) }
            try await body(place, cache)
        }
    }

    /// What a program reads that opens the store.
    private func title(in place: URL, _ change: (inout Store.Options) -> Void = { _ in }) throws -> String? {
        var options = Store.Options()
        change(&options)
        let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema), options: options)
        defer { try? store.close() }
        return try store.partition().read(recipeList)["recipes"]?[0]?["title"]?.string
    }

    @Test("A program that opens the store for reading only leaves it, and one that may write removes it")
    func readOnly() async throws {
        try await withStagedCache { place, cache throws in
            let read = try title(in: place) { $0.isReadOnly = true }
            #expect(try read == "Soup" && cache.stagedTokens() == ["token"])
            let written = try title(in: place) { $0.isReadOnly = false }
            #expect(try written == "Soup" && cache.stagedTokens() == [])
        }
    }

    @Test("A program that opens the store beside the restoration leaves it to that, and waits for nothing")
    func beside() async throws {
        try await withStagedCache { place, cache throws in
            let lock = try MigrationLock.take(in: place, for: "restoring", within: .zero)
            let beside = try title(in: place) { $0.lockTimeout = .milliseconds(100) }
            #expect(try beside == "Soup" && cache.stagedTokens() == ["token"])
            lock.release()
            let alone = try title(in: place) { $0.lockTimeout = .seconds(5) }
            #expect(try alone == "Soup" && cache.stagedTokens() == [])
        }
    }

    /// Makes a store with a queued mutation and a cache that is newer than its backup.
    ///
    /// - Returns: The backup.
    private func makeLater(_ place: URL, _ folder: URL) async throws -> StoreBackup {
        let first = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
        try await first.partition().write(recipeList, json: soupAndBread("Soup"))
        try await first.partition().enqueue(giveStars("1", 5))
        try first.close()
        let backup = try StoreBackup.make(of: place, into: folder.appending(path: "first"))
        try await write("Stew", in: place)
        return backup
    }

    /// Restores a backup into a store whose `larder.sqlite` is gone and which holds a newer cache, and fails.
    ///
    /// - Parameters:
    ///   - log: What is left of the lost database's log.
    ///   - fault: The call that fails, and whether `larder.sqlite` has been given its name before.
    private func failRestoring(
        log: String? = nil, at fault: @escaping @Sendable (FileCall, _ isNamed: Bool) -> Bool,
        _ body: (_ place: URL, _ backups: URL) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let (place, backups) = (folder.appending(path: "store"), folder.appending(path: "backups"))
            let backup = try await makeLater(place, folder)
            let file = place.appending(path: OperationsDatabase.fileName).path
            for suffix in ["", "-wal", "-shm"] { try FileSystem().remove(file + suffix) }
            if let log { try Data(log.utf8).write(to: URL(filePath: file + "-wal")) }
            let isNamed = Flag()
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                let isFaulty = fault(call, isNamed.isSet)
                if call.kind == .link { isNamed.set() }
                return isFaulty ? .failure(EIO) : nil
            })
            let lock = try MigrationLock.take(in: place, for: "a test", within: .seconds(60))
            #expect(throws: LarderError.self) {
                try StoreRestoration.bringBack(
                    backup, to: place, backingUpInto: backups, holding: lock, options: options)
            }
            lock.release()
            try await body(place, backups)
        }
    }

    /// As `failRestoring`, where the store's folder cannot be synced, once, when the database has its name.
    private func failOnceCommitted(_ body: (_ place: URL, _ backups: URL) async throws -> Void) async throws {
        let hasFailed = Flag()
        try await failRestoring(
            at: { call, isNamed in
                guard isNamed, call.kind == .synchronizeFolder, !hasFailed.isSet else { return false }
                hasFailed.set()
                return true
            }, body)
    }

    @Test("A restoration that fails after it has taken place keeps the backup of what was there before")
    func keptBackup() async throws {
        try await failOnceCommitted { place, backups in
            #expect(try FileSystem().exists(place.appending(path: OperationsDatabase.fileName).path))
            let made = try FileSystem().names(in: backups.path)
            #expect(made.count == 1)
        }
    }

    @Test("A restoration into a store that has its database keeps the backup, where it fails once it has taken place")
    func keptBackupOfDatabase() async throws {
        try await withTemporaryFolder { folder in
            let (place, backups) = (folder.appending(path: "store"), folder.appending(path: "backups"))
            let backup = try await makeLater(place, folder)
            let cache = CacheFolder(store: place, partition: Store.unnamedPartition, Store.Options())
            let lock = try MigrationLock.take(in: place, for: "a test", within: .seconds(60))
            #expect(throws: LarderError.self) {
                try StoreRestoration.bringBack(backup, to: place, backingUpInto: backups, holding: lock) { moment in
                    guard moment == .staged else { return }
                    // As a commit that takes place although the file system reports that it failed.
                    let token = try #require(try cache.stagedTokens().first)
                    _ = try OperationsDatabase.restoreStaged(token, in: place, holding: lock, now: Date())
                    throw CocoaError(.fileWriteUnknown)
                }
            }
            lock.release()
            let made = try FileSystem().names(in: backups.path)
            #expect(made.count == 1)
            let read = try title(in: place)
            #expect(read == "Soup")
        }
    }

    @Test("A restoration that fails after it has taken place gives its caches to programs that have the store open")
    func keptCaches() async throws {
        try await failOnceCommitted { place, _ in
            let cache = CacheFolder(store: place, partition: Store.unnamedPartition, Store.Options())
            #expect(try cache.stagedTokens() == [])
            let read = try title(in: place)
            #expect(read == "Soup")
        }
    }

    @Test("A restoration first ends what one has committed that was killed: the backup of the store has its caches")
    func endedFirst() async throws {
        try await withTemporaryFolder { folder in
            let (place, backups) = (folder.appending(path: "store"), folder.appending(path: "backups"))
            let backup = try await makeLater(place, folder)
            let cache = CacheFolder(store: place, partition: Store.unnamedPartition, Store.Options())
            let lock = try MigrationLock.take(in: place, for: "a test", within: .seconds(60))
            #expect(throws: LarderError.self) {
                try StoreRestoration.bringBack(backup, to: place, backingUpInto: nil, holding: lock) { moment in
                    // As a kill: nothing is cleared away from here on.
                    if moment == .committed { throw CocoaError(.fileWriteUnknown) }
                }
            }
            #expect(try cache.stagedTokens().count == 1)
            let report = try StoreRestoration.bringBack(backup, to: place, backingUpInto: backups, holding: lock)
            lock.release()
            #expect(try cache.stagedTokens() == [])
            let before = try StoreBackup(at: try #require(report.backup))
            let new = folder.appending(path: "new")
            try restore(before, to: new)
            let read = try title(in: new)
            #expect(read == "Soup")
        }
    }

    @Test(
        "The backup that a failed restoration has made stays only where remains of a lost database were put aside",
        arguments: ["a log", nil])
    func remains(log: String?) async throws {
        try await failRestoring(log: log, at: { call, isNamed in !isNamed && call.kind == .link }) { place, backups in
            let file = place.appending(path: OperationsDatabase.fileName).path
            #expect(try !FileSystem().exists(file) && !FileSystem().exists(file + "-wal"))
            let made = try FileSystem().names(in: backups.path).count
            #expect(made == (log == nil ? 0 : 1))
            let read = try title(in: place)
            #expect(read == "Stew")
        }
    }

    @Test("A restoration refuses a backup that was changed since it was verified, and leaves the store as it is")
    func changedMeanwhile() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            try await write("Soup", in: place)
            let backup = try StoreBackup.make(of: place, into: folder.appending(path: "first"))
            try await write("Stew", in: place)
            let file = backup.folder.appending(path: "records/\(Store.unnamedPartition)/data.mdb")
            let lock = try MigrationLock.take(in: place, for: "a test", within: .seconds(60))
            await expectCode(.init(rawValue: "operations.damagedBackup")) {
                _ = try StoreRestoration.bringBack(backup, to: place, backingUpInto: nil, holding: lock) { moment in
                    guard moment == .backedUp else { return }
                    var bytes = try Data(contentsOf: file)
                    bytes.append(0)
                    try bytes.write(to: file)
                }
            }
            lock.release()
            let read = try title(in: place)
            #expect(read == "Stew")
        }
    }

    @Test("A restoration backs up a store that has a cache alone, and nothing where there is no store yet")
    func firstBackup() async throws {
        try await withTemporaryFolder { folder in
            let (place, backups) = (folder.appending(path: "store"), folder.appending(path: "backups"))
            try await write("Soup", in: place)
            #expect(try !FileSystem().exists(place.appending(path: OperationsDatabase.fileName).path))
            let backup = try StoreBackup.make(of: place, into: folder.appending(path: "first"))
            for (target, isBackedUp) in [(place, true), (folder.appending(path: "new"), false)] {
                let report = try restore(backup, to: target, backingUpInto: backups)
                #expect((report.backup != nil) == isBackedUp)
            }
        }
    }

    /// Runs `body` with a closed store, to which a backup has brought back an environment that was forgotten.
    ///
    /// - Parameters:
    ///   - prepare: Is done before the backup.
    ///   - body: Is given the partition of the user who was signed in there.
    private func withForgotten(
        preparing prepare: (_ place: URL, _ partition: String) async throws -> Void = { _, _ in },
        _ body: (_ place: URL, _ partition: String) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(of: backend("a"), user: .user("ada"))
            try await app.session.signIn(InMemoryIdentityProvider().signIn("ada"), within: soon)
            let name = try #require(try store.current()).name
            _ = try await store.switch(to: backend("b"))
            try store.close()
            try await prepare(place, name)
            let backup = try StoreBackup.make(of: place, into: folder.appending(path: "first"))
            let later = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            try await later.forget(environment: "a")
            try later.close()
            try restore(backup, to: place)
            try await body(place, name)
        }
    }

    @Test("The user of a forgotten environment is not signed in when a backup brings the environment back")
    func signedOut() async throws {
        try await withForgotten { place, partition in
            let kept = try await OperationsDatabase.using(place) { try $0.credentials.snapshot(of: partition) }
            #expect(kept.isKnown)
            #expect(kept.session == nil && kept.credentials.isEmpty && kept.key == nil)
        }
    }

    @Test("An environment that a backup has brought back is entered as the user who worked there last")
    func lastUser() async throws {
        try await withForgotten { place, partition in
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            let entered = try await store.switch(to: backend("a")).entered.partition
            #expect(entered.name == partition && entered.user == .user("ada"))
            try store.close()
        }
    }

    /// Makes a backup of a store, removes the store's mutations, and returns those that the backup brings back.
    private func restoredMutations(_ place: URL, _ folder: URL) async throws -> [LarderOperations.Mutation] {
        let backup = try StoreBackup.make(of: place, into: folder.appending(path: "first"))
        try OtherProgram(place).run("PRAGMA foreign_keys = ON; DELETE FROM mutation")
        try restore(backup, to: place)
        return try await OperationsDatabase.using(place) { try $0.mutations.list() }
    }

    @Test("A mutation that comes back has the lane and the expiry that it had")
    func laneAndExpiry() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            let expires = Date(timeIntervalSince1970: 4_000_000_000)
            try await store.partition().enqueue(giveStars("1", 5), options: .init(lane: "photos", expires: expires))
            try store.close()
            let restored = try await restoredMutations(place, folder)
            #expect(restored.map(\.state) == [.pending])
            #expect(restored.map(\.lane) == ["photos"] && restored.map(\.expires) == [expires])
        }
    }

    @Test("The watchers and pins of a forgotten environment come back in its partition")
    func watchersAndPins() async throws {
        let document = "{ recipes(first: 2) { title } }"
        try await withForgotten(preparing: { place, partition in
            try await OperationsDatabase.using(place) { database in
                _ = try await database.watchers.put("w", in: partition, document: document, now: Date())
                try await database.pins.put("p", in: partition, document: document, now: Date())
            }
        }) { place, partition in
            let (watchers, pins) = try await OperationsDatabase.using(place) { database in
                (try database.watchers.list(in: partition), try database.pins.list(in: partition))
            }
            #expect(watchers.map(\.name) == ["w"] && pins.map(\.name) == ["p"])
        }
    }

    @Test("A mutation that comes back waits for the one it depends on, which was set aside before the backup")
    func behindDeadLetter() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            let first = try await store.partition().enqueue(giveStars("1", 5), options: .init(lane: "a"))
            let second = try await store.partition().enqueue(
                giveStars("2", 5), options: .init(lane: "b", dependencies: [first.id]))
            try store.close()
            try await OperationsDatabase.using(place) { database in
                let failure = MutationFailure(.rejected, message: "no", time: Date())
                try await database.mutations.setAside(first.id.uuid, expecting: .pending, failure, now: Date())
            }
            let restored = try await restoredMutations(place, folder)
            #expect(restored.map(\.id) == [first.id.uuid, second.id.uuid])
            #expect(restored.map(\.state) == [.deadLetter, .pending])
            #expect(restored.map(\.isStalled) == [false, true])
        }
    }

    @Test("A restoration removes the shared memory of a lost larder.sqlite, which is none of the new file's")
    func sharedMemory() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let backup = try await makeLater(place, folder)
            let file = place.appending(path: OperationsDatabase.fileName).path
            try FileSystem().remove(file)
            for suffix in ["-wal", "-shm"] { try Data("lost".utf8).write(to: URL(filePath: file + suffix)) }
            try restore(backup, to: place)
            #expect(try FileSystem().exists(file) && !FileSystem().exists(file + "-shm"))
            let read = try title(in: place)
            #expect(read == "Soup")
        }
    }
}
