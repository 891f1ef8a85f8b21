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
}
