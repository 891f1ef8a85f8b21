import Foundation
import GRDB
import GRDBSQLite
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("A disk that fails in SQLite's own calls", .timeLimit(.minutes(10)))
struct FailingDiskTests {
    @Test(
        "An acknowledged write is kept, and one that throws says whether it is there, wherever a call fails",
        arguments: FailingDisk.faults)
    func everywhere(fault: FailingDisk.Fault) async throws {
        try await withTemporaryFolder { folder in
            let ready = try OperationsDatabase(folder: folder)
            let first = draft("first")
            _ = try await ready.mutations.enqueue([first] + (0..<30).map { draft("\($0)") })
            try ready.close()
            var count = 0
            // Each place until the work ends before it; later ones are wider apart.
            while try await work(fault, after: count, on: ready.file, first.id) { count += 1 + count / 4 }
            #expect(count > 0 || fault.call == .truncate, "nothing has failed")
        }
    }

    /// What a program was told.
    private struct Told {
        var accepted: [UUID] = []
        var refused: [UUID] = []
        var unknown: [UUID] = []
        var settled: [UUID] = []

        mutating func note(_ ids: [UUID], _ error: OperationsError? = nil) {
            switch error?.code {
            case nil: accepted += ids
            case .commitUnknown:
                #expect(error?.mutation == ids[0])
                unknown += ids
            default: refused += ids
            }
        }
    }

    /// - Returns: Whether the fault has happened.
    private func work(
        _ fault: FailingDisk.Fault, after count: Int, on ready: URL, _ first: UUID
    ) async throws -> Bool {
        let disk = FailingDisk()
        try await withTemporaryFolder { folder in
            var told = Told()
            try FileManager.default.copyItem(at: ready, to: folder.appending(path: OperationsDatabase.fileName))
            let database = try OperationsDatabase(folder: folder)
            try await database.pool.writeWithoutTransaction { disk.attach($0) }
            try await database.pool.read { disk.attach($0) }
            disk.arm(fault, after: count)
            try await use(database, first, &told)
            disk.heal()
            try database.settleCommits()
            try expect(told, in: database)
            // The next ones are behind all that was lost or kept.
            let last = draft("last")
            _ = try await database.mutations.enqueue(last)
            told.accepted.append(last.id)
            try database.close()

            let after = try OperationsDatabase(folder: folder)
            try expect(told, in: after)
            try expectSound(after, "\(fault) after \(count)")
            try after.close()
        }
        return disk.hasFailed
    }

    /// What throws here is an `OperationsError`, as the compiler sees to.
    private func use(_ database: OperationsDatabase, _ first: UUID, _ told: inout Told) async throws {
        for number in 0..<3 {
            let new = draft("new \(number)")
            do throws(OperationsError) {
                _ = try await database.mutations.enqueue(new)
                told.note([new.id])
            } catch { told.note([new.id], error) }
        }
        let many = (0..<30).map { draft("many \($0)") }
        do throws(OperationsError) {
            _ = try await database.mutations.enqueue(many)
            told.note(many.map(\.id))
        } catch { told.note(many.map(\.id), error) }
        do throws(OperationsError) {
            let attempt = try await database.mutations.begin(first, owner: "me", now: noon).attempt
            try await database.mutations.retryLater(attempt, at: after(1), offline, now: noon)
            let second = try await database.mutations.begin(first, owner: "me", now: after(2)).attempt
            try await database.mutations.answer(second, json("{}"), now: after(2))
            try await database.mutations.settle(first, now: after(2))
            told.settled.append(first)
        } catch {}
        _ = try? database.mutations.list()
        _ = try? database.check()
        _ = try? await database.emptyLog(until: .now)
        let late = draft("late")
        do throws(OperationsError) {
            _ = try await database.mutations.enqueue(late)
            told.note([late.id])
        } catch { told.note([late.id], error) }
    }

    private func expect(_ told: Told, in database: OperationsDatabase) throws {
        for id in told.accepted { #expect(try database.mutation(id) != nil, "what was accepted is lost") }
        for id in told.refused { #expect(try database.mutation(id) == nil, "what was refused is there") }
        for id in told.settled { #expect(try database.outcome(id) != nil, "what was settled is not") }
    }

    private static let failingSync = FailingDisk.Fault(
        call: .sync, code: ResultCode.SQLITE_IOERR_FSYNC.rawValue, isLasting: false)

    /// Runs `body` with a database in which mutations are queued, and whose next commit is not synced.
    private func withFailingCommit(
        queued count: Int = 1, _ body: (OperationsDatabase, FailingDisk) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            for number in 0..<count { _ = try await database.enqueue(draft("\(number)")) }
            let disk = FailingDisk()
            try await database.pool.writeWithoutTransaction { disk.attach($0) }
            disk.arm(Self.failingSync, after: 0)
            try await body(database, disk)
            try database.close()
        }
    }

    @Test("The error of a commit that may be lost has SQLite's error as its cause")
    func causeOfUnknownCommit() async throws {
        try await withFailingCommit { database, disk in
            let error = await failure { _ = try await database.enqueue(draft("failed")) }
            #expect(error?.code == .commitUnknown && error?.cause is SQLiteFailure, "\(error as Any)")
            disk.heal()
        }
    }

    @Test("Whether a mutation is queued whose commit failed is told for good: a later program finds no other answer")
    func toldForGood() async throws {
        try await withFailingCommit { database, disk in
            let failed = draft("failed")
            await expectFailure(.commitUnknown) { _ = try await database.enqueue(failed) }
            disk.heal()
            let told = try database.mutation(failed.id) != nil
            // The files of a program that is killed now.
            let killed = database.file.deletingLastPathComponent().appending(path: "killed")
            try FileManager.default.createDirectory(at: killed, withIntermediateDirectories: false)
            for suffix in ["", "-wal"] {
                let copy = killed.appending(path: OperationsDatabase.fileName + suffix)
                try FileManager.default.copyItem(atPath: database.file.path + suffix, toPath: copy.path)
            }
            let later = try OperationsDatabase(folder: killed)
            let found = try later.mutation(failed.id) != nil
            #expect(found == told)
            try expectSound(later)
            try later.close()
        }
    }

    @Test("After a commit whose sync failed all of the log is written again before the next is acknowledged")
    func failedCommit() async throws {
        try await withFailingCommit(queued: 5) { database, disk in
            let failed = draft("failed")
            let error = await failure { _ = try await database.enqueue(failed) }
            #expect(error?.code == .commitUnknown && error?.mutation == failed.id)
            disk.heal()
            _ = try await database.enqueue(draft("acknowledged"))
            let written = disk.writtenToLog
            var end: Int64 = 0
            for range in written.sorted(by: { $0.lowerBound < $1.lowerBound }) where range.lowerBound <= end {
                end = max(end, range.upperBound)
            }
            #expect(end > 0 && end == written.map(\.upperBound).max(), "\(written)")
        }
    }

    @Test("Where a log that is found cannot be synced the opening is refused, and the next finds the disk as it is")
    func foundLog() async throws {
        try await withTemporaryFolder { folder in
            let first = try OperationsDatabase(folder: folder)
            let found = try await first.enqueue(draft("found"))
            let disk = FailingDisk()
            disk.arm(Self.failingSync, after: 0)
            await disk.failing(below: folder) {
                await expectFailure(.storage) { _ = try OperationsDatabase(folder: folder) }
                #expect(disk.hasFailed)
                disk.heal()
            }
            let second = try OperationsDatabase(folder: folder)
            #expect(try second.mutations.list().map(\.id) == [found])
            let acknowledged = try await second.enqueue(draft("acknowledged"))
            #expect(try first.mutations.list().map(\.id) == [found, acknowledged])
            try second.close()
            try first.close()
        }
    }

    @Test("After another process's checkpoint whose sync failed all of the file is written again before the next")
    func othersCheckpoint() async throws {
        try await withTemporaryFolder { folder in
            let stays = try OperationsDatabase(folder: folder)
            _ = try await stays.mutations.enqueue((0..<200).map { draft("\($0)") })
            let goes = try OperationsDatabase(folder: folder)
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let reader = try DatabaseQueue(path: stays.file.path, configuration: configuration)
            try await reader.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN")
                _ = try Int.fetchOne(db, sql: "SELECT count(*) FROM mutation")
            }
            _ = try await goes.enqueue(draft("behind the reader"))
            // As far as the reader lets it, and not synced for that.
            try await goes.pool.writeWithoutTransaction { try goes.log.checkpoint($0, .passive) }
            try await reader.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
            let dying = FailingDisk()
            try await goes.pool.writeWithoutTransaction { dying.attach($0) }
            // The log's own sync goes well, and that of the file fails.
            dying.arm(.init(call: .sync, code: ResultCode.SQLITE_IOERR_FSYNC.rawValue, isLasting: true), after: 1)
            await #expect(throws: (any Error).self) {
                try await goes.pool.writeWithoutTransaction { try goes.log.checkpoint($0, .passive) }
            }
            // It dies here: nothing more of it gets to the disk.

            let disk = FailingDisk()
            try await stays.pool.writeWithoutTransaction { disk.attach($0) }
            let id = try await stays.enqueue(draft("acknowledged"))
            disk.heal()
            try await stays.pool.writeWithoutTransaction { try stays.log.checkpoint($0, .passive) }
            let size = try await stays.pool.read { db in
                let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
                return try #require(try Int64.fetchOne(db, sql: sql))
            }
            var end: Int64 = 0
            let written = disk.writtenToFile.sorted { $0.lowerBound < $1.lowerBound }
            for range in written where range.lowerBound <= end { end = max(end, range.upperBound) }
            #expect(end >= size, "\(end) bytes of \(size) were written again")
            #expect(try stays.mutation(id) != nil)
            try reader.close()
            try? goes.close()
            try stays.close()
        }
    }
}
