package import Foundation
import Larder
import LarderRecords

/// What the tools and key providers do beside a store: keys are made and changed, a cache is brought back, replaced
/// when it is damaged, and backed up.
///
/// What it was promised it marks at once:
///
/// ```
/// key BASE64       the key file holds that
/// stars N          the answer has that many stars, durably
/// restoring        from here on the answer may be another
/// restored         it has one star
/// damaging         from here on the cache may be damaged
/// replaced         the cache is empty
/// backup NAME      a backup has that name
/// ```
package struct ToolLoad: Sendable {
    /// Beside the store.
    package static let backups = "backups"

    package let folder: URL
    package let marks: Marks

    package init(folder: URL, marks: Marks) { (self.folder, self.marks) = (folder, marks) }

    package func run() async throws {
        try await makeKeys()
        try await write(1)
        try await restore()
        try replaceDamaged()
        try await write(4)
        let backup = try StoreBackup.make(
            of: folder, into: folder.deletingLastPathComponent().appending(path: Self.backups))
        marks("backup", backup.folder.lastPathComponent)
    }

    private func makeKeys() async throws {
        let provider = FileKeyProvider(besides: folder)
        _ = try await provider.makeKey(within: .seconds(30))
        try markKey(provider)
        _ = try await provider.addKey(within: .seconds(30))
        try markKey(provider)
    }

    private func markKey(_ provider: FileKeyProvider) throws {
        marks("key", try Data(contentsOf: provider.file).base64EncodedString())
    }

    /// A clean close makes it durable.
    private func write(_ stars: Int64) async throws {
        let store = try Store.open(at: folder, schemaText: [PowerLossLoad.schema])
        let app = try store.partition()
        try await app.write("Recipe:plain", PowerLossLoad.card, ["title": "Porridge", "stars": .int(stars)])
        try store.close()
        marks("stars", "\(stars)")
    }

    private var cache: CacheFolder { CacheFolder(store: folder, partition: "main", Store.Options()) }

    private func restore() async throws {
        let cache = cache
        let copy = folder.deletingLastPathComponent().appending(path: "copy")
        try cache.copy(to: copy.path)
        try cache.stage("token") { target in
            try FileManager.default.moveItem(atPath: copy.path + "/data.mdb", toPath: target)
        }
        try await write(2)
        marks("restoring")
        try cache.adoptStaged("token", deadline: .now + .seconds(30))
        marks("restored")
    }

    private func replaceDamaged() throws {
        marks("damaging")
        let records = folder.appending(path: "records/main").path
        let numbers = try FileManager.default.contentsOfDirectory(atPath: records).compactMap(Int.init)
        let file = try FileHandle(forUpdating: URL(filePath: "\(records)/\(numbers.max() ?? 1)/data.mdb"))
        try file.write(contentsOf: Data(repeating: 0xA5, count: 512))
        try file.close()
        try cache.migrate(deadline: .now + .seconds(30))
        marks("replaced")
    }
}
