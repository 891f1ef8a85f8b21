import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Backups that have no name yet")
struct BackupDraftTests {
    /// Runs `body` with a store that has a cache and is closed, and a folder for backups that is not there yet.
    private func withClosedStore(_ body: (_ place: URL, _ backups: URL) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            try await store.partition().write(recipeList, json: soupAndBread("Soup"))
            try store.close()
            try await body(place, folder.appending(path: "backups"))
        }
    }

    @Test("A new one removes what a killed backup has left, and nothing of another name")
    func leftovers() async throws {
        try await withTemporaryFolder { folder in
            let (left, own) = (".draft-\(UUID().uuidString)", ".draft-of-my-letter")
            for name in [left, own] {
                try FileManager.default.createDirectory(
                    at: folder.appending(path: name), withIntermediateDirectories: false)
                try Data("x".utf8).write(to: folder.appending(path: name).appending(path: "text"))
            }
            let draft = try BackupDraft(in: folder, FileSystem())
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(Set(names) == [own, draft.folder.lastPathComponent])
            withExtendedLifetime(draft) {}
        }
    }

    @Test("A new backup's draft leaves the draft of another backup that is being made in its place")
    func besideAnother() async throws {
        try await withTemporaryFolder { folder in
            let first = try BackupDraft(in: folder, FileSystem())
            let second = try BackupDraft(in: folder, FileSystem())
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(Set(names) == [first.folder.lastPathComponent, second.folder.lastPathComponent])
            withExtendedLifetime((first, second)) {}
        }
    }

    @Test("A backup of a store whose cache cannot be read now fails, and leaves none that lacks it")
    func unreadable() async throws {
        try await withClosedStore { place, backups throws in
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                call.path.contains("/store/records/") ? .failure(EIO) : nil
            })
            #expect(throws: LarderError.self) { try StoreBackup.make(of: place, into: backups, options: options) }
            let left = (try? FileManager.default.contentsOfDirectory(atPath: backups.path)) ?? []
            #expect(left == [])
            let whole = try StoreBackup.make(of: place, into: backups).manifest.partitions
            #expect(whole.count == 1 && whole.first?.omitted == nil && whole.first?.cache != nil)
        }
    }

    @Test("A backup takes the place of no other folder, be that an empty one, and its name gets a number")
    func takenName() async throws {
        try await withClosedStore { place, backups throws in
            let now = Date(timeIntervalSince1970: 1_800_000_000)
            let first = try StoreBackup.make(of: place, into: backups, now: now).folder
            try FileManager.default.removeItem(at: first)
            try FileManager.default.createDirectory(at: first, withIntermediateDirectories: false)
            let second = try StoreBackup.make(of: place, into: backups, now: now).folder
            #expect(second.lastPathComponent == first.lastPathComponent + "-2")
            #expect(try FileManager.default.contentsOfDirectory(atPath: first.path) == [])
        }
    }

    @Test(
        "A backup that cannot be given its name fails with the reason, and leaves nothing",
        arguments: [
            (ENOSPC, LarderError.Code.operationsFull), (EACCES, .operationsNotWritable),
            (EROFS, .operationsNotWritable),
        ])
    func refusedName(status: Int32, code: LarderError.Code) async throws {
        try await withClosedStore { place, backups throws in
            var options = Store.Options()
            options.files = FileSystem(injecting: { call in
                let isNamed = call.kind == .rename && URL(filePath: call.path).lastPathComponent.hasPrefix(".draft-")
                return isNamed ? .failure(status) : nil
            })
            await expectCode(code) { _ = try StoreBackup.make(of: place, into: backups, options: options) }
            #expect(try FileManager.default.contentsOfDirectory(atPath: backups.path) == [])
        }
    }

    @Test("A cache that is left out of a backup has neither a file nor a format there, and a reason")
    func leftOut() async throws {
        try await withClosedStore { place, backups throws in
            let records = place.appending(path: "records")
            try FileManager.default.copyItem(
                at: records.appending(path: Store.unnamedPartition), to: records.appending(path: "other"))
            let partitions = try StoreBackup.make(of: place, into: backups).manifest.partitions
            let other = try #require(partitions.first { $0.name == "other" })
            #expect(other.omitted != nil && other.cache == nil && other.format == nil)
            let own = try #require(partitions.first { $0.name == Store.unnamedPartition })
            #expect(own.omitted == nil && own.cache != nil && own.format != nil)
        }
    }

    @Test("A backup has no file of a cache that belongs to another partition, and is left out")
    func leftOutFiles() async throws {
        try await withClosedStore { place, backups throws in
            let records = place.appending(path: "records")
            try FileManager.default.copyItem(
                at: records.appending(path: Store.unnamedPartition), to: records.appending(path: "other"))
            let made = try StoreBackup.make(of: place, into: backups).folder
            let caches = try FileSystem().names(in: made.appending(path: "records").path)
            #expect(caches == [Store.unnamedPartition])
        }
    }

    @Test("A partition that has no cache is in a backup, and nothing of it is said to be left out")
    func noCache() async throws {
        try await withTemporaryFolder { folder in
            let (place, backups) = (folder.appending(path: "store"), folder.appending(path: "backups"))
            try await OperationsDatabase.using(place) { database in
                _ = try await database.watchers.put("w", in: "idle", document: "{ a }", now: Date())
            }
            let partitions = try StoreBackup.make(of: place, into: backups).manifest.partitions
            let idle = try #require(partitions.first)
            #expect(partitions.count == 1 && idle.name == "idle")
            #expect(idle.omitted == nil && idle.cache == nil && idle.format == nil)
        }
    }

    @Test("A backup copies larder.sqlite before any cache, so that no cache is older than the queue")
    func order() async throws {
        try await withClosedStore { place, backups throws in
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            try await store.partition().enqueue(giveStars("1", 5))
            try store.close()
            var isLooked = false
            _ = try StoreBackup.make(of: place, into: backups) { moment in
                guard moment == .database else { return }
                isLooked = true
                let draft = try #require(try FileSystem().names(in: backups.path).first)
                #expect(try FileSystem().names(in: "\(backups.path)/\(draft)").contains("larder.sqlite"))
                #expect(try !FileSystem().exists("\(backups.path)/\(draft)/records"))
            }
            #expect(isLooked)
        }
    }

    @Test("A backup's folder is named by the time at which it is made, and its manifest has that time")
    func time() async throws {
        try await withClosedStore { place, backups throws in
            let now = Date(timeIntervalSince1970: 1_795_298_823)
            let folder = try StoreBackup.make(of: place, into: backups, now: now).folder
            #expect(folder.lastPathComponent == "2026-11-21T220703Z")
            #expect(try StoreBackup(at: folder).manifest.created == now)
        }
    }

    @Test("A backup's copy of a cache has no pages that the cache does not use any more")
    func compacted() async throws {
        try await withClosedStore { place, backups throws in
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            for title in [String(repeating: "x", count: 4 << 20), "Soup"] {
                try await store.partition().write(recipeList, json: soupAndBread(title))
            }
            try store.close()
            let backup = try StoreBackup.make(of: place, into: backups)
            let cache = try #require(backup.manifest.files.first { $0.path.hasSuffix("/data.mdb") })
            #expect(cache.size < 1 << 20)
        }
    }

    @Test("A backup's manifest says whose environment each partition is")
    func environments() async throws {
        try await withTemporaryFolder { folder in
            let (place, backups) = (folder.appending(path: "store"), folder.appending(path: "backups"))
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            for name in ["a", "b"] { _ = try await store.switch(to: backend(name)) }
            try store.close()
            let made = try StoreBackup.make(of: place, into: backups).folder
            let names = try StoreBackup(at: made).manifest.partitions.compactMap(\.environment)
            #expect(names.sorted() == ["a", "b"])
        }
    }

    @Test("A backup's folder has the manifest, larder.sqlite and the data files of the caches, and nothing else")
    func content() async throws {
        try await withClosedStore { place, backups throws in
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            try await store.partition().enqueue(giveStars("1", 5))
            try store.close()
            let made = try StoreBackup.make(of: place, into: backups).folder
            let cache = "records/\(Store.unnamedPartition)"
            #expect(
                try FileManager.default.subpathsOfDirectory(atPath: made.path).sorted()
                    == ["larder.sqlite", "manifest.json", "records", cache, "\(cache)/data.mdb"])
        }
    }
}
