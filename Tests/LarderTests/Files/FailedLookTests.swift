import Foundation
import LarderFiles
import LarderOperations
import LarderRecords
import LarderTestSupport
import Testing

@testable import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What fails when the system is asked what is at a path.
private struct FailedLook: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let status: Int32
    /// Whether later looks fail too. A single failed look must not be taken for an answer by code that looks again.
    let isLasting: Bool

    static let all = [
        FailedLook(testDescription: "an input/output error", status: EIO, isLasting: true),
        FailedLook(testDescription: "one input/output error", status: EIO, isLasting: false),
        FailedLook(testDescription: "missing rights", status: EACCES, isLasting: true),
        FailedLook(testDescription: "rights that were missing once", status: EACCES, isLasting: false),
    ]

    /// A file system on which looks at a path with this end fail, and listings of it: all, or the first.
    func files(at end: String, failing kinds: Set<FileCall.Kind> = [.status, .open]) -> FileSystem {
        let failures = Flag()
        return FileSystem(injecting: { [status, isLasting] call in
            guard call.path.hasSuffix(end), kinds.contains(call.kind), isLasting || !failures.isSet else { return nil }
            failures.set()
            return .failure(status)
        })
    }
}

@Suite("Files that the system cannot look at", .timeLimit(.minutes(5)))
struct FailedLookTests {
    @Test("A restoration does not replace a database that it cannot look at", arguments: FailedLook.all)
    private func restoration(_ look: FailedLook) async throws {
        try await withStore { folder, id in
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(5))
            defer { lock.release() }
            let source = try OperationsDatabase(folder: folder)
            try OperationsDatabase.stage("token", in: folder, holding: lock) { try source.copy(to: URL(filePath: $0)) }
            try source.close()
            let before = try FileSystem().status(of: database(folder))
            var options = OperationsDatabase.Options()
            options.files = look.files(at: database(folder))
            #expect(throws: OperationsError.self) {
                _ = try OperationsDatabase.restoreStaged(
                    "token", in: folder, holding: lock, options: options, now: Date())
            }
            let after = try #require(try FileSystem().status(of: database(folder)))
            #expect(before?.isSameFile(as: after) == true)
            #expect(try mutations(folder) == [id])
        }
    }

    @Test("A store's status says so when the database cannot be looked at", arguments: FailedLook.all)
    private func status(_ look: FailedLook) async throws {
        try await withStore { folder, _ in
            var options = Store.Options()
            options.files = look.files(at: database(folder))
            #expect(throws: LarderError.self) { _ = try StoreStatus(of: folder, options: options) }
        }
    }

    @Test("A repair does not call a database missing that it cannot look at", arguments: FailedLook.all)
    private func repair(_ look: FailedLook) async throws {
        try await withStore { folder, id in
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(5))
            defer { lock.release() }
            let error = #expect(throws: OperationsError.self) {
                _ = try OperationsDatabase.repair(
                    folder: folder, holding: lock, files: look.files(at: database(folder)))
            }
            #expect([.storage, .notWritable].contains(error?.code))
            #expect(try mutations(folder) == [id])
        }
    }

    @Test("A backup fails rather than leave out caches that it cannot list", arguments: FailedLook.all)
    private func backup(_ look: FailedLook) async throws {
        try await withStore { folder, _ in
            // Without the database, the folder alone tells which caches there are.
            for suffix in ["", "-wal", "-shm"] { try FileSystem().remove(database(folder) + suffix) }
            var options = Store.Options()
            options.files = look.files(at: folder.appending(path: "records").path)
            let backups = folder.deletingLastPathComponent().appending(path: "backups")
            #expect(throws: LarderError.self) {
                _ = try StoreBackup.make(of: folder, into: backups, options: options)
            }
            options.files = FileSystem()
            let backup = try StoreBackup.make(of: folder, into: backups, options: options)
            #expect(backup.manifest.partitions.map(\.name) == [Store.unnamedPartition])
        }
    }

    @Test(
        "A backup that the disk does not give is told as that, and not as damaged",
        arguments: FailedLook.all, [BackupManifest.fileName, OperationsDatabase.fileName, "/data.mdb"])
    private func verification(_ look: FailedLook, _ name: String) async throws {
        try await withStore { folder, _ in
            let backups = folder.deletingLastPathComponent().appending(path: "backups")
            let made = try StoreBackup.make(of: folder, into: backups).folder
            let error = #expect(throws: LarderError.self) {
                let files = look.files(at: name)
                try StoreBackup(at: made, files: files).verify(files: files)
            }
            #expect(error?.code == (look.status == EIO ? .backup : .operationsNotWritable))
        }
    }

    @Test("Opening a cache whose folder cannot be listed makes no new generation", arguments: FailedLook.all)
    private func listing(_ look: FailedLook) async throws {
        try await withStore { folder, _ in
            let cache = folder.appending(path: "records/\(Store.unnamedPartition)").path
            let before = try FileSystem().names(in: cache)
            var options = RecordCache.Options()
            options.files = look.files(at: cache, failing: [.open])
            #expect(throws: RecordError.self) {
                let cache = try RecordCache(folder: cache, stamp: Store.unnamedPartition, options: options)
                try cache.close()
            }
            #expect(try FileSystem().names(in: cache) == before)
            // The first generation's number is free since the compaction.
            #expect(!before.contains("1"))
        }
    }

    @Test("A cache whose folder cannot be listed is not taken for one without a staged copy", arguments: FailedLook.all)
    private func staged(_ look: FailedLook) async throws {
        try await withStore { folder, _ in
            var options = Store.Options()
            options.files = look.files(
                at: folder.appending(path: "records/\(Store.unnamedPartition)").path, failing: [.open])
            let cache = CacheFolder(store: folder, partition: Store.unnamedPartition, options)
            #expect(throws: RecordError.self) { _ = try cache.stagedTokens() }
        }
    }

    @Test("A folder that cannot be listed is not taken for a store's", arguments: FailedLook.all)
    private func contents(_ look: FailedLook) async throws {
        try await withTemporaryFolder { folder in
            let files = look.files(at: folder.path)
            _ = #expect(throws: LarderError.self) { try StoreContents.areAll(of: folder, files) }
        }
    }

    @Test("Partial files that cannot be listed are not taken for none", arguments: FailedLook.all)
    private func remains(_ look: FailedLook) async throws {
        try await withStore { folder, _ in
            let files = look.files(at: folder.appending(path: "transfers").path)
            #expect(throws: OperationsError.self) { _ = try TransferRemains(in: folder, nil, files) }
        }
    }

    @Test("A backup without a manifest is called damaged")
    func manifest() async throws {
        try await withStore { folder, _ in
            let backups = folder.deletingLastPathComponent().appending(path: "backups")
            let backup = try StoreBackup.make(of: folder, into: backups, options: Store.Options()).folder
            try FileSystem().remove(backup.appending(path: BackupManifest.fileName).path)
            let error = #expect(throws: LarderError.self) { try StoreBackup(at: backup) }
            #expect(error?.code.rawValue == "operations.damagedBackup")
        }
    }

    @Test("A repair that cannot remove the damaged file's log changes nothing, and the next one succeeds")
    func log() async throws {
        try await withStore { folder, id in
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(5))
            defer { lock.release() }
            let log = database(folder) + "-wal"
            let files = FileSystem(injecting: { $0.kind == .remove && $0.path == log ? .failure(EIO) : nil })
            #expect(throws: OperationsError.self) {
                _ = try OperationsDatabase.repair(folder: folder, holding: lock, files: files)
            }
            #expect(try mutations(folder) == [id])
            _ = try OperationsDatabase.repair(folder: folder, holding: lock)
            #expect(try mutations(folder) == [id])
        }
    }

    // MARK: Support

    private var schema: Schema { get throws { try Schema(parsing: fixtureSchema) } }

    private var transport: ScriptedServer {
        ScriptedServer { _ in
            #"{"data":{"recipe":{"__typename":"Recipe","id":"1","title":"Soup","author":null}}}"#
        }
    }

    private func database(_ folder: URL) -> String { folder.appending(path: OperationsDatabase.fileName).path }

    private func mutations(_ folder: URL) throws -> [MutationID] {
        var options = Store.Options()
        options.silence()
        let store = try Store.open(at: folder, schema: schema, options: options)
        defer { try? store.close() }
        return try store.partition().mutations().map(\.id)
    }

    /// A store with a compacted cache and one queued mutation.
    private func withStore(_ body: (URL, MutationID) async throws -> Void) async throws {
        try await withTemporaryFolder { parent in
            let folder = parent.appending(path: "store")
            var options = Store.Options()
            options.silence()
            let store = try Store.open(at: folder, schema: schema, options: options)
            let app = try store.partition(server: transport)
            _ = try await app.fetch(recipe(1), policy: .networkOnly)
            let receipt = try await app.enqueue(giveStars("1", 5), options: MutationOptions())
            _ = try await app.records.compact()
            try store.close()
            try await body(folder, receipt.id)
        }
    }
}
