import Foundation
import LarderFiles
import LarderMigrations
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderOperations

@Suite("The names of a database's files", .timeLimit(.minutes(10)))
struct SyncedLogTests {
    /// Opens a database, and gives the folders that were synced so far, each time anew.
    private func open(
        _ folder: URL, busyTimeout: Duration = .seconds(5)
    ) throws -> (OperationsDatabase, synced: @Sendable () -> [String]) {
        let calls = Calls()
        var options = OperationsDatabase.Options()
        options.busyTimeout = busyTimeout
        options.files = FileSystem { call in
            calls.add(call)
            return nil
        }
        return (try OperationsDatabase(folder: folder, options: options), calls.takeFolders)
    }

    private final class Calls: Sendable {
        private let folders = Mutex<[String]>([])

        func add(_ call: FileCall) {
            if call.kind == .synchronizeFolder { folders.withLock { $0.append(call.path) } }
        }

        func takeFolders() -> [String] {
            folders.withLock { folders in
                defer { folders = [] }
                return folders
            }
        }
    }

    @Test("A new database has its name on the disk when it is open")
    func new() async throws {
        try await withTemporaryFolder { folder in
            let (database, synced) = try open(folder)
            #expect(synced().contains(folder.path))
            try database.close()
            let (again, others) = try open(folder)
            #expect(!others().contains(folder.deletingLastPathComponent().path))
            try again.close()
        }
    }

    @Test("A file that another process has left empty has its name on the disk when it is open, and so has its folder")
    func leftEmpty() async throws {
        try await withTemporaryFolder { parent in
            let folder = parent.appending(path: "store")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
            try Data().write(to: folder.appending(path: OperationsDatabase.fileName))
            let (database, synced) = try open(folder)
            #expect(Set(synced()).isSuperset(of: [folder.path, parent.path]))
            try database.close()
        }
    }

    @Test("A log that is found has its name on the disk before migrations are applied behind it")
    func foundBeforeMigrations() async throws {
        try await withTemporaryFolder { folder in
            let older = MigrationSet(migrations: Array(Migration.all.dropLast()))
            let first = try OperationsDatabase(folder: folder, options: .init(), migrations: older)
            let (second, synced) = try open(folder)
            #expect(synced().contains(folder.path))
            try second.close()
            try first.close()
        }
    }

    @Test("A log that is found has its name on the disk before a history is put down behind it")
    func foundBeforeHistory() async throws {
        try await withTemporaryFolder { folder in
            let first = try OperationsDatabase(folder: folder)
            try await first.pool.write { try $0.execute(sql: "DELETE FROM migration WHERE number = 3") }
            let lock = try MigrationLock.take(in: folder, for: "a test", within: .seconds(60))
            defer { lock.release() }
            let calls = Calls()
            let files = FileSystem { call in
                calls.add(call)
                return nil
            }
            let recorded = try OperationsDatabase.baseline(folder: folder, holding: lock, files: files)
            #expect(recorded.map(\.number) == [3])
            #expect(calls.takeFolders().contains(folder.path))
            try first.close()
        }
    }

    @Test("A log that is found is durable when the database is open, and stays as it is until something is written")
    func unwritten() async throws {
        try await withTemporaryFolder { folder in
            let (source, copy) = (folder.appending(path: "source"), folder.appending(path: "copy"))
            let first = try OperationsDatabase(folder: source)
            _ = try await first.enqueue(draft())
            // What a process leaves that is killed.
            try FileManager.default.createDirectory(at: copy, withIntermediateDirectories: false)
            for name in [OperationsDatabase.fileName, OperationsDatabase.fileName + "-wal"] {
                try FileManager.default.copyItem(at: source.appending(path: name), to: copy.appending(path: name))
            }
            let log = copy.appending(path: OperationsDatabase.fileName + "-wal")
            let before = try Data(contentsOf: log)
            try #require(before.count > 4_096)
            let (second, synced) = try open(copy)
            #expect(synced().contains(copy.path))
            try second.close()
            #expect(try Data(contentsOf: log) == before)
            try first.close()
        }
    }

    @Test(
        "A log that was found while another process wrote is durable before the first write on the calling thread",
        arguments: [true, false])
    func foundWhileOthersWrote(inTransaction: Bool) async throws {
        try await withTemporaryFolder { folder in
            let (first, _) = try open(folder)
            _ = try await first.enqueue(draft())
            let (second, synced) = try await first.pool.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN IMMEDIATE TRANSACTION")
                defer { try? db.rollback() }
                return try open(folder, busyTimeout: .zero)
            }
            #expect(!synced().contains(folder.path))
            if inTransaction {
                try second.writeNow { _ = try $0.partition(making: "other") }
            } else {
                try second.writeWithoutTransaction { _ = try $0.partition(making: "other") }
            }
            #expect(synced().contains(folder.path))
            try second.close()
            try first.close()
        }
    }

    @Test("A log that is found has its name on the disk before anything is acknowledged behind it, and once is enough")
    func found() async throws {
        try await withTemporaryFolder { folder in
            let (first, _) = try open(folder)
            _ = try await first.enqueue(draft())
            let (second, synced) = try open(folder)
            #expect(synced().contains(folder.path))
            _ = try await second.enqueue(draft())
            #expect(synced() == [])
            _ = try await second.enqueue(draft())
            #expect(synced() == [])
            try second.close()
            try first.close()
        }
    }
}
