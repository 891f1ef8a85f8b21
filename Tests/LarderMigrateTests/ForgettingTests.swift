import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderOperations
@testable import LarderRecords

@Suite(
    "Forgetting environments", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct ForgettingTests {
    @Test("Forgetting wants the name repeated, refuses what is current or unsent, and leaves nothing")
    func forgotten() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.queueInCurrent(2)
            try await fixture.writeInCurrent()
            let unconfirmed = try await fixture.migrate("env", "forget", "staging", "--json")
            #expect(unconfirmed.status == 4)
            #expect(unconfirmed.errors.contains(#""code":"command.notConfirmed""#))
            let current = try await fixture.migrate("env", "forget", "staging", "--confirm", "staging", "--json")
            #expect(current.status == 4)
            #expect(current.errors.contains(#""code":"operations.environmentInUse""#))
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            let unsent = try await fixture.migrate("env", "forget", "staging", "--confirm", "staging", "--json")
            #expect(unsent.status == 4)
            #expect(unsent.errors.contains(#""code":"operations.unsentWork""#))
            let done = try await fixture.migrate(
                "env", "forget", "staging", "--confirm", "staging", "--discard", "--json")
            #expect(done.status == 0, "\(done.errors)")
            #expect(try result(done)["mutations"] as? Int == 2)
            #expect(
                try FileManager.default.contentsOfDirectory(
                    atPath: fixture.store.appending(path: "records").path) == [])
            #expect(try await fixture.migrate("env", "list").output == "* other - 1 partition\n")
            try await fixture.expectSound()
        }
    }

    @Test("Forgetting names the partitions that are gone")
    func forgottenPartitions() async throws {
        try await MigrationFixture.with { fixture in
            let name = try await fixture.makeParted()
            let done = try await fixture.migrate(
                "env", "forget", "staging", "--confirm", "staging", "--discard", "--json")
            #expect(try result(done)["partitions"] as? [String] == [name], "\(done.errors)")
        }
    }

    @Test("Forgetting tells which uploads the storage has parts of, and is refused unasked")
    func forgottenUploads() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.beginUpload("v/1", region: "eu-west-1", .upload("u-1"))
            try await fixture.beginUpload("v/2", region: "eu-west-1", .uploadAsked(before: []))
            #expect(try await fixture.migrate("env", "use", "other", "--discard").status == 0)
            let refused = try await fixture.migrate("env", "forget", "staging", "--confirm", "staging", "--json")
            #expect(refused.status == 4)
            #expect(refused.errors.contains(#""code":"operations.uploadsLeft""#))
            let done = try await fixture.migrate(
                "env", "forget", "staging", "--confirm", "staging", "--discard", "--json")
            #expect(done.status == 0, "\(done.errors)")
            #expect(
                try text(result(done)["uploads"])
                    == #"[{"bucket":"media","key":"v\/1","region":"eu-west-1","storage":null,"upload":"u-1"},"#
                    + #"{"bucket":"media","key":"v\/2","region":"eu-west-1","storage":null,"upload":null}]"#)
            try await fixture.expectSound()
        }
    }

    @Test("Forgetting names in JSON the storage that has parts of an upload, where it has a name")
    func namedStorage() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.beginUpload("k", at: "archive", .upload("u-1"))
            #expect(try await fixture.migrate("env", "use", "other", "--discard").status == 0)
            let done = try await fixture.migrate(
                "env", "forget", "staging", "--confirm", "staging", "--discard", "--json")
            let uploads = try #require(try result(done)["uploads"] as? [[String: Any]])
            #expect(uploads.map { $0["storage"] as? String } == ["archive"], "\(done)")
        }
    }

    @Test(
        "A killed forgetting has destroyed nothing, or leaves a cache of no partition, which the next one removes",
        arguments: EnvironmentForgetting.KillPoint.allCases)
    func killed(step: EnvironmentForgetting.KillPoint) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.startInStaging()
            try await fixture.queueInCurrent(2)
            try await fixture.writeInCurrent()
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            let killed = try await MigrateProcess.crash(fixture.store.path, "forget", "staging", "\(step)")
            try #require(killed.status == -9, "\(killed.output) \(killed.errors)")
            try await fixture.expectSound("\(step)")
            let isBefore = step == .marked
            let list = "* other - 1 partition\n" + (isBefore ? "- staging - 1 partition\n" : "")
            #expect(try await fixture.migrate("env", "list").output == list)
            #expect(try await fixture.mutations().count == (isBefore ? 2 : 0))
            // What belongs to nobody any more is in no backup.
            let backup = try await fixture.migrate("backup", "--json")
            #expect(try (result(backup)["partitions"] as? [Any])?.count == (isBefore ? 2 : 1), "\(backup.errors)")
            let again = try await fixture.migrate("env", "forget", "staging", "--confirm", "staging", "--discard")
            #expect(again.status == (isBefore ? 0 : 3))
            #expect(try await fixture.migrate("env", "list").output == "* other - 1 partition\n")
            #expect(try StoreStatus.partitionFolders(of: fixture.store, FileSystem()) == [])
        }
    }

    @Test("Forgetting an environment clears the mark that a killed forgetting left on another partition's cache")
    func markedBefore() async throws {
        try await MigrationFixture.with { fixture in
            let partition = try await fixture.makeParted()
            _ = try await fixture.add("third")
            let cache = CacheFolder(store: fixture.store, partition: partition, Store.Options())
            try cache.markForgotten()
            #expect(try await fixture.migrate("env", "forget", "third", "--confirm", "third").status == 0)
            #expect(try StoreStatus.partitionFolders(of: fixture.store, FileSystem()).contains(partition))
            #expect(try !cache.isForgotten())
        }
    }

    @Test("A switch that comes while an environment is forgotten finds all of it, or nothing; what it has then stays")
    func switchedMeanwhile() async throws {
        try await MigrationFixture.with { fixture in
            let forgotten = try await fixture.makeParted()
            try await fixture.withDatabase { database in
                do {
                    // The first look for the key and the cache has been made.
                    try await fixture.forgetStaging(database, closing: { _ in try? database.enterStaging() })
                } catch let error as OperationsError { #expect(error.code == .environmentInUse) }
                let isThere = try database.environments.current()?.partition?.name == forgotten
                #expect(try database.credentials.keys().count == (isThere ? 1 : 0))
                #expect(
                    try StoreStatus.partitionFolders(of: fixture.store, FileSystem()).contains(forgotten) == isThere)
                #expect(try (database.environments.partition(forgotten) != nil) == isThere)
            }
            try await fixture.expectSound()
        }
    }

    @Test("A cache that cannot be closed is reported as not removed, and the next forgetting removes it")
    func unclosed() async throws {
        try await MigrationFixture.with { fixture in
            let forgotten = try await fixture.makeParted()
            try await fixture.withDatabase { (database) async throws in
                let error = await #expect(throws: LarderError.self) {
                    try await fixture.forgetStaging(
                        database, closing: { _ in throw RecordError(.storage, "The disk is gone") })
                }
                #expect(error?.code == .notRemoved)
                #expect((error?.cause as? RecordError)?.code == .storage)
                #expect(try StoreStatus.partitionFolders(of: fixture.store, FileSystem()) == [forgotten])
                // The database no longer has the environment, but a second attempt still removes the cache.
                await #expect(throws: OperationsError.self) { try await fixture.forgetStaging(database) }
                #expect(try StoreStatus.partitionFolders(of: fixture.store, FileSystem()) == [])
            }
        }
    }

    @Test("A forgetting that is refused leaves the key and the cache, and no mark on it")
    func refusedForgetting() async throws {
        try await MigrationFixture.with { fixture in
            let partition = try await fixture.makeParted()
            try await fixture.withDatabase { database in
                do {
                    try await fixture.forgetStaging(
                        database, reached: { if $0 == .marked { try database.enterStaging() } })
                    Issue.record("the current partition was forgotten")
                } catch let error as OperationsError { #expect(error.code == .environmentInUse) }
                let keys = try database.credentials.keys()
                #expect(keys.count == 1)
            }
            #expect(try !CacheFolder(store: fixture.store, partition: partition, Store.Options()).isForgotten())
            #expect(try await fixture.number() == 1)
            try await fixture.expectSound()
        }
    }

    @Test("The bytes of a forgotten key are in neither the file nor its log before the caches are removed")
    func keyBytes() async throws {
        try await MigrationFixture.with { fixture in
            let partition = try await fixture.makeParted()
            try await fixture.withDatabase { database in
                let key = Data(MigrationFixture.key.utf8)
                // Once more, so that the log has it.
                try fixture.execute("UPDATE partition_key SET created = 1")
                let files = ["", "-wal"].map { fixture.store.appending(path: "larder.sqlite" + $0) }
                func holders() -> Int {
                    files.filter { ((try? Data(contentsOf: $0)) ?? Data()).range(of: key) != nil }.count
                }
                #expect(holders() > 0)
                try await fixture.forgetStaging(
                    database,
                    reached: { step in
                        guard step == .logEmptied else { return }
                        #expect(holders() == 0)
                        #expect(
                            (try? StoreStatus.partitionFolders(of: fixture.store, FileSystem()))?.contains(partition)
                                == true)
                    })
            }
        }
    }

    @Test("Where the unsent work of one user keeps an environment from being forgotten, nothing of any is destroyed")
    func allOrNothing() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "other"] { _ = try await fixture.add(name) }
            for user in ["ada", "bob"] {
                #expect(try await fixture.migrate("env", "use", "staging", "--user", user).status == 0)
                try await fixture.writeInCurrent()
            }
            try await fixture.queueInCurrent(1)
            #expect(try await fixture.migrate("env", "use", "other").status == 0)
            let records = fixture.store.appending(path: "records").path
            func caches() throws -> [String] { try FileManager.default.contentsOfDirectory(atPath: records) }
            try await fixture.withPartition { store, _ in
                let code: LarderError.Code?
                do throws(LarderError) {
                    try await store.forget(environment: "staging")
                    code = nil
                } catch { code = error.code }
                #expect(code?.rawValue == "operations.unsentWork")
                #expect(try store.partitionIdentities().count == 3)
                #expect(try caches().count == 3)
                // Left of a cache by a killed program, or by somebody's hand: no partition's.
                for left in [".removed-1/1", "x.removed/1"] {
                    try FileManager.default.createDirectory(
                        atPath: "\(records)/\(left)", withIntermediateDirectories: true)
                }
                #expect(try StoreStatus.partitionFolders(of: fixture.store, FileSystem()).count == 3)
                try await store.forget(environment: "staging", losingUnsent: true)
                let left = try store.partitionIdentities().map(\.name)
                #expect(left.count == 1)
                #expect(try caches().sorted() == (left + ["x.removed"]).sorted())
            }
            try await fixture.expectSound()
        }
    }

    @Test("Forgetting waits for a backup under way, and destroys nothing past its deadline")
    func forgettingWaits() async throws {
        try await MigrationFixture.with { fixture in
            for name in ["staging", "other"] { _ = try await fixture.add(name) }
            for name in ["staging", "other"] {
                #expect(try await fixture.migrate("env", "use", name).status == 0)
                try await fixture.writeInCurrent()
            }
            try await fixture.withPartition { store, _ in
                let lock = try MigrationLock.take(in: fixture.store, for: "backup", within: .zero)
                defer { lock.release() }
                let code: LarderError.Code?
                do throws(LarderError) {
                    try await store.forget(environment: "staging", within: .milliseconds(50))
                    code = nil
                } catch { code = error.code }
                #expect(code?.rawValue == "operations.migrationLocked")
                let waiting = Task { try await store.forget(environment: "staging", within: .seconds(3_600)) }
                waiting.cancel()
                await #expect(throws: LarderError.self) { _ = try await waiting.value }
                #expect(try StoreStatus.partitionFolders(of: fixture.store, FileSystem()).count == 2)
            }
        }
    }
}

extension MigrationFixture {
    /// Forgets the environment `staging`, and what is unsent in it.
    fileprivate func forgetStaging(
        _ database: OperationsDatabase, closing: (String) throws -> Void = { _ in },
        reached: (EnvironmentForgetting.KillPoint) throws -> Void = { _ in }
    ) async throws {
        let lock = try MigrationLock.take(in: store, for: "a test", within: .zero)
        defer { lock.release() }
        _ = try await EnvironmentForgetting.forget(
            "staging", in: store, database, discarding: true, holding: lock, closing: closing, reached: reached)
    }
}

extension OperationsDatabase {
    /// Makes the guest of `staging` the current user, as another process would.
    fileprivate func enterStaging() throws {
        let destination = Destination(environment: .stored("staging"), user: .guest)
        _ = try environments.enterNow(destination, leaving: .park, now: Date())
    }
}
