import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("The folder to which the paths of transfers are relative")
struct HomeFolderTests {
    private let old = UUID().uuidString
    private let new = UUID().uuidString

    private func stored(_ folder: String, home: String, isThere: Bool = false) -> String {
        HomeFolder("/apps/\(home)").storedFormerly("/apps/\(folder)/file") { _ in isThere }
    }

    /// Runs `body` with a database whose home is `/apps/program`, in which downloads to `paths` are queued.
    private func withDownloads(to paths: [String], _ body: (OperationsDatabase) async throws -> Void) async throws {
        var options = OperationsDatabase.Options()
        options.home = HomeFolder("/apps/program")
        try await withOperations(options) { database in
            let drafts = paths.enumerated().map {
                TransferDraft(
                    partition: app, kind: .download, bucket: "media", key: "\($0.offset)", path: $0.element,
                    created: noon)
            }
            try await database.transfers.enqueue(drafts)
            try await body(database)
        }
    }

    @Test("The path of a file in the home is stored without the home, and given whole")
    func relative() async throws {
        let paths = ["/apps/program/a/file", "/elsewhere/file"]
        try await withDownloads(to: paths) { (database) async throws in
            let stored = try await database.pool.read { try $0.texts("SELECT path FROM transfer ORDER BY sequence") }
            #expect(stored == ["a/file", "/elsewhere/file"])
            #expect(try database.transfers.list().map(\.path) == paths)
        }
    }

    @Test("A follower of transfers is given the whole path of a file in the home")
    func followed() async throws {
        let path = "/apps/program/a/file"
        try await withDownloads(to: [path]) { (database) throws in
            #expect(try database.transfers.changes(in: app, since: .start).transfers.map(\.path) == [path])
        }
    }

    @Test("Forgetting gives the whole paths of downloads in the home, beside which a copy may lie")
    func forgotten() async throws {
        let path = "/apps/program/a/file"
        try await withDownloads(to: [path]) { (database) throws in
            let forgotten = try await database.environments.forget(partitions: [app], losingUnsent: true)
            #expect(forgotten.downloads.map(\.path) == [path])
        }
    }

    @Test("A file in a folder whose name begins with that of the home keeps its whole path")
    func besideHome() {
        let path = "/apps/programs/file"
        #expect(HomeFolder("/apps/program").stored(path) == path)
    }

    @Test("A whole path follows a moved container only where both have a UUID for a name, and the old one is gone")
    func formerContainer() {
        #expect(stored(old, home: new) == "file")
        #expect(stored(new, home: new, isThere: true) == "file")
        #expect(stored(old, home: new, isThere: true) == "/apps/\(old)/file")
        #expect(stored("other", home: new) == "/apps/other/file")
        #expect(stored(old, home: "program") == "/apps/\(old)/file")
    }

    @Test("A whole path stays whole where its folder is named by a UUID, but is not beside the home")
    func elsewhere() {
        let path = "/data/\(old)/file"
        #expect(HomeFolder("/apps/\(new)").storedFormerly(path) { _ in false } == path)
    }

    @Test("A path in another container stays whole where the home has not moved, though that container is gone")
    func otherContainer() async throws {
        try await withTemporaryFolder { folder in
            let kept = Locked<String?>(nil)
            var options = OperationsDatabase.Options()
            options.home = HomeFolder("/apps/\(new)")
            options.device = DeviceMark(
                read: { _ in kept.withLock { $0 } }, keep: { token, _ in kept.withLock { $0 = token } })
            let path = "/apps/\(old)/file"
            let first = try OperationsDatabase(folder: folder, options: options)
            try await first.transfers.enqueue(
                [TransferDraft(partition: app, kind: .download, bucket: "media", key: "k", path: path, created: noon)])
            try first.close()
            let second = try OperationsDatabase(folder: folder, options: options)
            #expect(try second.transfers.list().map(\.path) == [path])
            try second.close()
        }
    }
}
