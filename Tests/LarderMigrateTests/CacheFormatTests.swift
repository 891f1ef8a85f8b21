import Foundation
import LarderTestSupport
import Testing

@testable import Larder
@testable import LarderRecords

@Suite(
    "Formats of the record cache", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct CacheFormatTests {
    @Test("A cache of an older format is not opened; the plan says that it will be rebuilt, and up does it")
    func rebuilt() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.markCache(format: 0)
            let error = await #expect(throws: LarderError.self) { try await fixture.number() }
            #expect(error?.code.rawValue == "records.olderFormat")
            let status = try await fixture.migrate("status", "--json")
            #expect(status.status == 3)
            #expect(try result(status)["isCurrent"] as? Bool == false)
            let plan = try await fixture.migrate("plan", "--json")
            #expect(plan.status == 3)
            #expect(plan.output.contains(#"{"step":"rebuildCache","partition":"main","from":0,"bytes":"#))
            let up = try await fixture.migrate("up", "--json")
            #expect(up.status == 0, "\(up.errors)")
            #expect(try await fixture.migrate("status").status == 0)
            #expect(try text(result(up)["steps"]) == text(result(plan)["steps"]))
            #expect(try await fixture.number() == nil)
            try await fixture.write(8)
            #expect(try await fixture.number() == 8)
            try await fixture.expectSound()
        }
    }

    @Test("Where there is a step from the older format, the cache keeps what it knows")
    func transformed() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.markCache(format: 0)
            let step = FormatStep(from: 0) { _, _ in }
            let folder = CacheFolder(
                path: fixture.store.appending(path: "records/main").path, stamp: "main", options: .init(),
                steps: [step])
            #expect(folder.isTransformed(from: 0))
            var status = try StoreStatus(of: fixture.store)
            let format = CacheFormat(generation: 1, state: .older(0), byteCount: 7)
            for isTransformed in [true, false] {
                status.caches = [.init(partition: "main", format: format, isTransformed: isTransformed)]
                let step: MigrationPlan.Step =
                    isTransformed
                    ? .transformCache(partition: "main", from: 0)
                    : .rebuildCache(partition: "main", from: 0, byteCount: 7)
                #expect(try MigrationPlan(for: status, backingUpInto: nil).steps == [step])
            }
            try folder.migrate(deadline: .now + .seconds(300))
            #expect(try folder.format().state == .current)
            #expect(try await fixture.number() == 7)
            try await fixture.expectSound()
        }
    }

    @Test("A damaged cache is a repair's work, and no step of a migration")
    func damaged() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            var status = try StoreStatus(of: fixture.store)
            let format = CacheFormat(generation: 1, state: .damaged("it is torn"), byteCount: 7)
            status.caches = [.init(partition: "main", format: format, isTransformed: false)]
            #expect(try MigrationPlan(for: status, backingUpInto: fixture.backups).steps == [])
        }
    }

    @Test("A backup's manifest has the format of a cache, also where that is an older one")
    func backedUp() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.markCache(format: 0)
            let backup = try StoreBackup.make(of: fixture.store, into: fixture.backups)
            #expect(backup.manifest.partitions.map(\.format) == [0])
        }
    }

    @Test("The status of a store has the caches in the order of their partitions' names")
    func order() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            for name in ["z", "a"] {
                let folder = fixture.store.appending(path: "records/\(name)/1")
                try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
                try fixture.damageCache(of: name)
            }
            #expect(try StoreStatus(of: fixture.store).caches.map(\.partition) == ["a", Store.unnamedPartition, "z"])
        }
    }

    @Test("The folder of a partition that has no cache yet is none of the store's caches")
    func noCache() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try FileManager.default.createDirectory(
                at: fixture.store.appending(path: "records/idle"), withIntermediateDirectories: false)
            #expect(try StoreStatus(of: fixture.store).caches.map(\.partition) == [Store.unnamedPartition])
            let status = try await fixture.migrate("status", "--json")
            #expect((try result(status)["caches"] as? [Any])?.count == 1, "\(status.output)")
        }
    }

    @Test("A cache that was brought back stays, where the removal of what was staged was cut off")
    func removedInPart() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            let folder = CacheFolder(store: fixture.store, partition: Store.unnamedPartition, Store.Options())
            let copy = fixture.store.deletingLastPathComponent().appending(path: "copy")
            try folder.copy(to: copy.path)
            try folder.stage("token") { try FileManager.default.moveItem(atPath: copy.path + "/data.mdb", toPath: $0) }
            try folder.adoptStaged("token", deadline: .now + .seconds(300))
            #expect(try folder.stagedTokens() == [])
            let left = folder.stagedPath("token")
            try FileManager.default.createDirectory(atPath: left, withIntermediateDirectories: false)
            try Data([1]).write(to: URL(filePath: left + "/clean.stamp"))
            try folder.adoptStaged("token", deadline: .now + .seconds(300))
            #expect(try folder.stagedTokens() == [])
            #expect(try await fixture.number() == 7)
            try await fixture.expectSound()
        }
    }

    @Test("Opening a cache of a newer format throws an error that says so")
    func newerOpened() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.markCache(format: 9)
            let error = await #expect(throws: LarderError.self) { try await fixture.number() }
            #expect(error?.code == .recordsFutureFormat)
        }
    }

    @Test("A cache of a newer format is refused", arguments: ["plan", "up"])
    func newer(verb: String) async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.markCache(format: 9)
            let outcome = try await fixture.migrate(verb, "--json")
            #expect(outcome.status == 4)
            #expect(outcome.errors.contains(#""code":"records.futureFormat""#))
        }
    }

    @Test("status says in JSON the format of each cache, and the reason why a cache is damaged")
    func states() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            func cache() async throws -> [String: Any] {
                let status = try result(await fixture.migrate("status", "--json"))
                return try #require((status["caches"] as? [[String: Any]])?.first)
            }
            let current = try await cache()
            #expect(current["state"] as? String == "current" && current["format"] as? Int == Int(CacheFormat.current))
            try fixture.markCache(format: 0)
            let older = try await cache()
            #expect(older["state"] as? String == "older" && older["format"] as? Int == 0)
            try fixture.damageCache()
            let damaged = try await cache()
            #expect(damaged["state"] as? String == "damaged")
            #expect((damaged["reason"] as? String)?.isEmpty == false)
        }
    }

    @Test("status and plan tell in JSON the size of a cache, and status its generation")
    func sizes() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try fixture.markCache(format: 0)
            let words = try await fixture.migrate("plan").output
            let bytes = try #require(words.firstMatch(of: /: ([1-9]\d*) bytes to fetch again/).flatMap { Int($0.1) })
            let status = try result(await fixture.migrate("status", "--json"))
            let cache = try #require((status["caches"] as? [[String: Any]])?.first)
            #expect(cache["generation"] as? Int == 1 && cache["bytes"] as? Int == bytes, "\(cache)")
            let plan = try result(await fixture.migrate("plan", "--json"))
            let steps = try #require(plan["steps"] as? [[String: Any]])
            #expect(steps.last?["step"] as? String == "rebuildCache" && steps.last?["bytes"] as? Int == bytes)
        }
    }

    @Test("A backup whose cache is of a newer format is refused, and nothing of it is left")
    func newerBackup() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try await fixture.queue(1)
            try fixture.markCache(format: 9)
            let backup = try await fixture.makeBackup()
            let other = MigrationFixture(folder: fixture.folder.appending(path: "other"))
            let outcome = try await other.restore(backup, "--json")
            #expect(outcome.status == 4, "\(outcome)")
            #expect(outcome.errors.contains(#""code":"records.futureFormat""#), "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: other.store.path + "/larder.sqlite"))
            #expect(try fixture.leftovers() == [])
        }
    }

    @Test("up takes its step for each cache of an older format")
    func eachOlder() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.writeInEach()
            let partitions = try await fixture.withDatabase { try $0.environments.partitions() }
            for partition in partitions { try fixture.markCache(format: 0, of: partition.name) }
            #expect(try await fixture.migrate("status").status == 3)
            let up = try await fixture.migrate("up", "--no-backup")
            #expect(up.status == 0, "\(up.errors)")
            let status = try await fixture.migrate("status")
            #expect(partitions.count == 2 && status.status == 0, "\(status)")
        }
    }
}
