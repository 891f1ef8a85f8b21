import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import LarderOperations

/// A database in which every table has rows, and mutations are in each state that a repair has a rule for.
struct RepairScene {
    /// What each mutation is; the names are their lanes as well.
    enum Part: String, CaseIterable {
        /// Pending, and no attempt was made.
        case free
        /// Pending, and depends on `free`.
        case dependent
        case inFlight, acknowledged, deadLetter
        /// Pending, and an attempt before may have taken effect.
        case doubtful
        /// Pending, and an attempt before has failed in vain.
        case failed
        /// Reserves a temporary id, and pending.
        case maker
        /// Holds the temporary id of `maker`.
        case holder
        /// Waits for an upload.
        case uploader
    }

    let folder: URL
    /// As they were before anything was lost.
    let mutations: [Part: Mutation]
    let settled: UUID
    /// The greatest numbers that were given.
    let lastMutation: Int64
    let lastTransfer: Int64
    let bytes: Data

    var file: URL { folder.appending(path: OperationsDatabase.fileName) }

    /// Runs `body` with the scene in a new folder.
    static func with(_ body: (RepairScene) async throws -> Void) async throws {
        try await withTemporaryFolder { try await body(make(in: $0)) }
    }

    private static func make(in folder: URL) async throws -> RepairScene {
        let database = try OperationsDatabase(folder: folder)
        try await database.enter(environment("a"), as: app)
        try await addCredentials(to: database)
        _ = try await database.watchers.put("w", in: app, document: "{ a }", now: noon)
        try await database.pins.put("p", in: app, document: "{ a }", now: noon)
        let token = TemporaryID()
        let upload = TransferDraft(
            partition: app, kind: .upload, bucket: "media", key: "v/1", path: "/file",
            source: FileIdentity(device: 1, inode: 2, size: 100, modified: 3), created: noon)
        let done = TransferDraft(
            partition: app, kind: .download, bucket: "media", key: "v/2", path: "/copy", created: noon)
        try await database.transfers.enqueue([upload, done])
        let begun = try #require(try await database.transfers.begin(upload.id, owner: "me", now: noon))
        let part = StoredPart(number: 1, size: 100, etag: "e", crc32c: 1)
        try await database.transfers.note(begun.attempt, [.partSize(100), .parts([part])])
        let settled = try await settle(in: database)
        var ids: [Part: UUID] = [:]
        for part in Part.allCases {
            var draft = draft(part.rawValue)
            switch part {
            case .dependent: draft.dependencies = [ids[.free]].compactMap(\.self)
            case .maker: draft.temporaryIDs = [token]
            case .holder: draft.content.variables = json(#"{"id":"\#(token.text)"}"#)
            case .uploader: draft.transfers = [upload.id]
            default: break
            }
            let id = try await database.enqueue(draft)
            ids[part] = id
            switch part {
            case .inFlight: _ = try await database.begin(id)
            case .acknowledged: try await database.mutations.answer(database.begin(id).attempt, json("{}"), now: noon)
            case .deadLetter: try await database.setAside(id)
            case .doubtful:
                let failure = MutationFailure(.outcomeUnknown, message: "no answer", time: noon)
                try await database.mutations.retryLater(database.begin(id).attempt, at: nil, failure, now: noon)
            case .failed:
                try await database.mutations.retryLater(database.begin(id).attempt, at: nil, offline, now: noon)
            default: break
            }
        }
        let mutations = try ids.mapValues { try #require(try database.mutation($0)) }
        let transfers = try await database.pool.read { try $0.integer("SELECT max(sequence) FROM transfer") ?? 0 }
        try database.close()
        return RepairScene(
            folder: folder, mutations: mutations, settled: settled,
            lastMutation: mutations.values.map(\.sequence).max() ?? 0, lastTransfer: transfers,
            bytes: try Data(contentsOf: folder.appending(path: OperationsDatabase.fileName)))
    }

    /// A mutation that took effect, with a real id, and one whose outcome is forgotten.
    private static func settle(in database: OperationsDatabase) async throws -> UUID {
        let forgotten = try await database.enqueue(draft("forgotten"))
        try await database.complete(forgotten)
        try await database.mutations.prune(before: after(1))
        let token = TemporaryID()
        let settled = try await database.enqueue(draft("settled", temporaryIDs: [token]))
        try await database.complete(settled, temporaryIDs: [token: "7"])
        return settled
    }

    private static func addCredentials(to database: OperationsDatabase) async throws {
        let key = StoredPartitionKey(partition: app, sealedWith: "k1", sealed: json("key"), created: noon)
        let rows = ["userPool", "cloud"].map {
            SealedCredential(kind: $0, identity: "i", sealed: json($0), created: noon, updated: noon)
        }
        let signedIn: SessionChange = { _ in StoredSession(state: "signedIn", changed: noon) }
        let outcome = try await database.credentials.replace(
            by: .init(partition: app, credentials: rows, key: key, making: .init(now: noon), session: signedIn))
        #expect(outcome == .stored)
        _ = try await database.credentials.quarantine(
            [.init(rows[1], reason: "damaged")], in: app, of: "i", now: noon, session: { _ in nil })
    }

    /// The scene's database anew, changed as damage would change it: no rule between tables holds that back.
    func change(_ body: (Database) throws -> Void) throws {
        for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
        try bytes.write(to: file)
        var configuration = Configuration()
        configuration.foreignKeysEnabled = false
        let queue = try DatabaseQueue(path: file.path, configuration: configuration)
        try queue.writeWithoutTransaction { db in
            try body(db)
            try db.execute(sql: "PRAGMA wal_checkpoint(TRUNCATE)")
        }
        try queue.close()
    }

    /// Damages the database by SQL statements.
    func execute(_ sql: String) throws { try change { try $0.execute(sql: sql) } }

    /// Repairs it, and gives the report with the bytes that the damaged file had.
    func repair() throws -> (report: RepairReport, damaged: Data) {
        let damaged = try Data(contentsOf: file)
        let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
        defer { lock.release() }
        return (try OperationsDatabase.repair(folder: folder, holding: lock, now: noon), damaged)
    }
}
