import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Backups that have no name yet")
struct BackupDraftTests {
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

    @Test("A backup of a store whose cache cannot be read now fails, and leaves none that lacks it")
    func unreadable() async throws {
        try await withTemporaryFolder { folder in
            let (place, backups) = (folder.appending(path: "store"), folder.appending(path: "backups"))
            let store = try Store.open(at: place, schema: try Schema(parsing: fixtureSchema))
            try await store.partition().write(recipeList, json: soupAndBread("Soup"))
            try store.close()
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
}
