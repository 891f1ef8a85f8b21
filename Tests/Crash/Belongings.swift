import Foundation
import Larder
import LarderOperations
import LarderRecords

/// Makes a store, and everything that belongs to one, while it is recorded.
struct Belongings {
    enum Work: String {
        /// A store that only reads and fetches.
        case records
        /// A queue, keys, a backup, and what is made when that is brought back, as well.
        case everything
    }

    let folder: URL
    let work: Work

    func run() async throws {
        let store = try Store.open(at: folder, schemaText: [crashSchema])
        let app = try store.partition()
        try await app.write(shelf, json: shelfData(1))
        _ = try await app.records.compact()
        if work == .everything {
            _ = try await app.enqueue(GraphQLOperation("mutation { shelve(id: 1) { id } }"))
        }
        try store.close()
        guard work == .everything else { return }
        let keys = FileKeyProvider(besides: folder)
        _ = try await keys.makeKey(within: .seconds(60))
        _ = try await keys.addKey(within: .seconds(60))
        let backups = folder.deletingLastPathComponent().appending(path: "backups")
        let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
        defer { lock.release() }
        let backup = try StoreBackup.make(of: folder, into: backups)
        _ = try StoreRestoration.bringBack(backup, to: folder, backingUpInto: backups, holding: lock)
    }
}
