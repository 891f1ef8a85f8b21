import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite(
    "A database whose first opening was cut off", .enabled(if: MigrateProcess.isBuilt, "\(MigrateProcess.requirement)"),
    .timeLimit(.minutes(10)))
struct CutOpeningTests {
    /// Puts a database into the store as a power cut leaves it in the midst of its first transaction: some of its
    /// pages, and the journal that takes them back.
    private func cutOff(_ fixture: MigrationFixture) throws {
        let place = fixture.folder.appending(path: "first.sqlite")
        let queue = try DatabaseQueue(path: place.path)
        try queue.writeWithoutTransaction { db in
            // So that pages are written before the transaction ends.
            try db.execute(sql: "PRAGMA cache_size = 1; PRAGMA cache_spill = 1; BEGIN IMMEDIATE; CREATE TABLE a (b)")
            for _ in 0..<200 { try db.execute(sql: "INSERT INTO a VALUES (randomblob(3000))") }
            for suffix in ["", "-journal"] {
                try FileManager.default.copyItem(
                    atPath: place.path + suffix, toPath: fixture.store.path + "/larder.sqlite" + suffix)
            }
            try db.execute(sql: "ROLLBACK")
        }
        try queue.close()
    }

    @Test("Verbs that only read say that it is to be opened for writing once, change nothing, and up does that")
    func told() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try cutOff(fixture)
            let file = fixture.store.appending(path: "larder.sqlite")
            let before = try Data(contentsOf: file)
            for verb in ["validate", "status"] {
                let outcome = try await fixture.migrate(verb, "--json")
                #expect(outcome.status == 4, "\(outcome.errors)")
                #expect(outcome.errors.contains(#""code":"operations.unfinished""#), "\(outcome.errors)")
                #expect(outcome.errors.contains("store for writing once, as larder-migrate up does"))
            }
            #expect(try Data(contentsOf: file) == before)
            let up = try await fixture.migrate("up", "--no-backup")
            #expect(up.status == 0, "\(up.errors)")
            try await fixture.expectSound()
            #expect(try await fixture.number() == 7)
        }
    }

    @Test("Opening it for writing takes back what was cut off")
    func opened() async throws {
        try await MigrationFixture.with { fixture in
            try await fixture.write(7)
            try cutOff(fixture)
            #expect(try await fixture.queue(1).count == 1)
            try await fixture.expectSound()
        }
    }

    @Test("A file that the disk does not let be looked at is told as that, and not as one that was emptied")
    func unseen() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "larder.sqlite")
            // A link to itself: asking about it fails, and not because there is nothing.
            try FileManager.default.createSymbolicLink(atPath: file.path, withDestinationPath: file.path)
            try Data(repeating: 1, count: 100).write(to: URL(filePath: file.path + "-wal"))
            let error = #expect(throws: OperationsError.self) { try OperationsDatabase(folder: folder).close() }
            #expect(error?.code == .storage, "\(error as Any)")
        }
    }

    @Test("SQLite's extended codes are looked at before the primary ones")
    func codes() {
        func code(_ result: ResultCode) -> OperationsError.Code {
            OperationsError.translated(DatabaseError(resultCode: result)).code
        }
        #expect(code(.SQLITE_READONLY_ROLLBACK) == .unfinished)
        #expect(code(.SQLITE_READONLY_RECOVERY) == .unfinished)
        #expect(code(.SQLITE_READONLY) == .notWritable)
        #expect(code(.SQLITE_IOERR_SHMSIZE) == .full)
        #expect(code(.SQLITE_IOERR_FSYNC) == .storage)
    }
}
