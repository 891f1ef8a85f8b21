import Foundation
import GRDB
import LarderFiles
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Opening the store of intent", .timeLimit(.minutes(10)))
struct OpeningTests {
    private func open(_ folder: URL, readOnly: Bool = false, waiting: Duration = .milliseconds(100)) throws
        -> OperationsDatabase
    {
        var options = OperationsDatabase.Options()
        options.isReadOnly = readOnly
        options.busyTimeout = waiting
        return try OperationsDatabase(folder: folder, options: options)
    }

    private func file(in folder: URL) -> URL { folder.appending(path: "larder.sqlite") }

    private func makeSample(_ folder: URL, count: Int = 1) async throws -> [UUID] {
        let database = try open(folder)
        var ids: [UUID] = []
        for _ in 0..<count { ids.append(try await database.enqueue(draft())) }
        try database.close()
        return ids
    }

    @Test("A queued mutation is there when the database is opened again")
    func reopened() async throws {
        try await withTemporaryFolder { folder in
            let ids = try await makeSample(folder, count: 3)
            let database = try open(folder)
            #expect(try database.mutations.list().map(\.id) == ids)
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A commit is synchronous, foreign keys are on, and readers and writers do not wait for each other")
    func settings() async throws {
        try await withOperations { database in
            let settings = try await database.pool.writeWithoutTransaction { db in
                try ["synchronous", "foreign_keys", "journal_mode", "busy_timeout"].map {
                    try String.fetchOne(db, sql: "PRAGMA \($0)")
                }
            }
            #expect(settings == ["2", "1", "wal", "5000"])
            let reading = try await database.pool.read { try Int.fetchAll($0, sql: "PRAGMA busy_timeout") }
            #expect(reading == [5000])
        }
    }

    @Test("A database that a call still uses is not suspended, and can be used as before")
    func suspendedInUse() async throws {
        try await withOperations { database in
            _ = try database.beginUse()
            await expectFailure(.busy) { try database.suspend(until: .now) }
            var asked = 0
            await expectFailure(.busy) {
                try database.suspend(until: .now + .seconds(60)) {
                    asked += 1
                    return false
                }
            }
            #expect(asked == 1, "it waited for a call that it need not wait for any more")
            database.endUse()
            let id = try await database.enqueue(draft())
            try database.suspend(until: .now + .seconds(60))
            try database.resume()
            #expect(try database.mutation(id) != nil)
        }
    }

    @Test("A database whose file is gone when it is resumed stays suspended, and goes on once the file is back")
    func resumedWithoutFile() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try database.suspend(until: .now + .seconds(60))
            let aside = database.file.appendingPathExtension("aside")
            try FileManager.default.moveItem(at: database.file, to: aside)
            await expectFailure(.missing) { try database.resume() }
            await expectFailure(.suspended) { _ = try database.mutation(id) }
            try FileManager.default.moveItem(at: aside, to: database.file)
            try database.resume()
            #expect(try database.mutation(id) != nil)
        }
    }

    @Test("A database that is closed while it is suspended is closed, and not opened by a resume")
    func closedWhileSuspended() async throws {
        try await withTemporaryFolder { folder in
            let database = try open(folder)
            try database.suspend(until: .now + .seconds(60))
            try database.close()
            await expectFailure(.closed) { _ = try database.mutations.list() }
            try database.resume()
            await expectFailure(.closed) { _ = try database.mutations.list() }
        }
    }

    @Test("What SQLite says has the code by which a program knows what to do")
    func toldCodes() {
        let codes: KeyValuePairs<ResultCode, OperationsError.Code> = [
            .SQLITE_BUSY: .busy, .SQLITE_LOCKED: .busy, .SQLITE_PROTOCOL: .busy, .SQLITE_READONLY: .notWritable,
            .SQLITE_PERM: .notWritable, .SQLITE_AUTH: .notWritable, .SQLITE_CANTOPEN: .notWritable,
            .SQLITE_READONLY_ROLLBACK: .unfinished, .SQLITE_READONLY_RECOVERY: .unfinished, .SQLITE_FULL: .full,
            .SQLITE_IOERR: .storage, .SQLITE_CORRUPT: .damaged, .SQLITE_NOTADB: .foreign, .SQLITE_TOOBIG: .invalid,
        ]
        for (result, code) in codes {
            #expect(OperationsError.translated(DatabaseError(resultCode: result)).code == code, "\(result)")
        }
    }

    @Test("The errors of a damaged file and of a full disk have SQLite's error as their cause")
    func toldCauses() throws {
        for result in [ResultCode.SQLITE_CORRUPT, .SQLITE_FULL] {
            let error = OperationsError.translated(
                DatabaseError(resultCode: result, message: "as it says", sql: "SELECT 1"))
            let cause = try #require(error.cause as? SQLiteFailure, "\(result)")
            #expect(cause.resultCode == result.rawValue && cause.message == "as it says" && cause.sql == "SELECT 1")
        }
    }

    @Test("The errors of missing rights, of a full disk and of a disk that fails have the file error as their cause")
    func fileCauses() {
        for (status, code) in [(EACCES, OperationsError.Code.notWritable), (ENOSPC, .full), (EIO, .storage)] {
            let reason = FileError(status, doing: "writing", path: "x")
            let error = OperationsError.translated(reason)
            #expect(error.code == code && (error.cause as? FileError) == reason)
        }
    }

    @Test("A value that is not of its column's type is damage of a row, and no other rule that is broken is")
    func wrongTypeTold() {
        func code(_ result: ResultCode) -> OperationsError.Code {
            OperationsError.translated(DatabaseError(resultCode: result)).code
        }
        #expect(code(.SQLITE_CONSTRAINT_DATATYPE) == .damagedRow)
        #expect(code(.SQLITE_CONSTRAINT_CHECK) != .damagedRow)
    }

    @Test("The folder is made")
    func folder() async throws {
        try await withTemporaryFolder { folder in
            let database = try open(folder.appending(path: "a/b c/ä"))
            _ = try await database.enqueue(draft())
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A folder in the place of the file is refused, and stays")
    func folderInItsPlace() async throws {
        try await withTemporaryFolder { folder in
            let path = file(in: folder)
            try FileManager.default.createDirectory(at: path, withIntermediateDirectories: true)
            for isReadOnly in [false, true] {
                await expectFailure(.foreign) { _ = try open(folder, readOnly: isReadOnly) }
            }
            #expect(try FileManager.default.contentsOfDirectory(atPath: path.path).isEmpty)
        }
    }

    @Test("Another program's database is refused and left as it was")
    func foreign() async throws {
        try await withTemporaryFolder { folder in
            let path = file(in: folder).path
            let other = try DatabaseQueue(path: path)
            try await other.write { try $0.execute(sql: "CREATE TABLE note (text TEXT)") }
            try other.close()
            let before = try Data(contentsOf: file(in: folder))
            await expectFailure(.foreign) { _ = try open(folder) }
            #expect(try Data(contentsOf: file(in: folder)) == before)
        }
    }

    @Test("A file that is no database is refused", arguments: ["hello\n", String(repeating: "x", count: 5000)])
    func noDatabase(_ text: String) async throws {
        try await withTemporaryFolder { folder in
            try Data(text.utf8).write(to: file(in: folder))
            await expectFailure(.foreign) { _ = try open(folder) }
            #expect(try Data(contentsOf: file(in: folder)) == Data(text.utf8))
        }
    }

    @Test("A folder where the file should be is refused")
    func folderInPlace() async throws {
        try await withTemporaryFolder { folder in
            try FileManager.default.createDirectory(at: file(in: folder), withIntermediateDirectories: true)
            await expectFailure(.foreign) { _ = try open(folder) }
        }
    }

    @Test("A truncated file is refused as damaged", arguments: [1, 3, 7])
    func truncated(_ pages: Int) async throws {
        try await withTemporaryFolder { folder in
            _ = try await makeSample(folder, count: 50)
            let handle = try FileHandle(forWritingTo: file(in: folder))
            try handle.truncate(atOffset: UInt64(pages * 4096))
            try handle.close()
            await expectFailure(.damaged) { _ = try open(folder) }
        }
    }

    @Test("Damaged pages end in an error of every call that meets them, and in a report")
    func damaged() async throws {
        try await withTemporaryFolder { folder in
            let ids = try await makeSample(folder, count: 200)
            var bytes = try Data(contentsOf: file(in: folder))
            for page in 2..<bytes.count / 4096 {
                bytes.replaceSubrange(page * 4096..<page * 4096 + 100, with: Data(count: 100))
            }
            try bytes.write(to: file(in: folder))
            await expectFailure(.damaged) {
                let database = try open(folder)
                defer { try? database.close() }
                #expect(try !database.check().isSound)
                _ = try database.mutations.find(ids[0])
            }
        }
    }

    @Test("quick_check at opening finds what a look at the schema does not")
    func verified() async throws {
        try await withTemporaryFolder { folder in
            _ = try await makeSample(folder, count: 200)
            let size = try Data(contentsOf: file(in: folder)).count
            let handle = try FileHandle(forWritingTo: file(in: folder))
            try handle.seek(toOffset: UInt64(size / 4096 - 1) * 4096)
            try handle.write(contentsOf: Data(count: 4096))
            try handle.close()
            var options = OperationsDatabase.Options()
            options.verifiesAlways = true
            await expectFailure(.damaged) { _ = try OperationsDatabase(folder: folder, options: options) }
        }
    }

    @Test("A random flip of bytes never ends the process")
    func flips() async throws {
        let seed = TestSeed.of("flips")
        var random = SeededNumbers(seed: seed)
        try await withTemporaryFolder { folder in
            _ = try await makeSample(folder, count: 30)
            let sound = try Data(contentsOf: file(in: folder))
            for round in 0..<60 {
                var bytes = sound
                for _ in 0..<Int.random(in: 1...40, using: &random) {
                    bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
                }
                try bytes.write(to: file(in: folder))
                var outcome = false
                do {
                    let database = try open(folder)
                    defer { try? database.close() }
                    let report = try database.check()
                    outcome = report.isSound || !report.problems.isEmpty
                    for mutation in try database.mutations.list() {
                        _ = try? await database.mutations.begin(mutation.id, owner: "me", now: noon)
                    }
                } catch { outcome = error is OperationsError }
                #expect(outcome, "seed \(seed), round \(round)")
                for suffix in ["-wal", "-shm"] {
                    try? FileManager.default.removeItem(atPath: file(in: folder).path + suffix)
                }
            }
        }
    }

    @Test("A format of a newer version is refused by its number")
    func newerFormat() async throws {
        try await withTemporaryFolder { folder in
            _ = try await makeSample(folder)
            let other = try DatabaseQueue(path: file(in: folder).path)
            try await other.write { try $0.execute(sql: "PRAGMA user_version = 2") }
            try other.close()
            let error = await failure { _ = try open(folder) }
            #expect(error?.code == .newerFormat)
            #expect(error?.message.contains("format 2") == true)
        }
    }

    @Test("Reading only makes nothing, and needs a database that is there")
    func readOnlyMissing() async throws {
        try await withTemporaryFolder { folder in
            await expectFailure(.missing) { _ = try open(folder.appending(path: "none"), readOnly: true) }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names == [])
        }
    }

    @Test("Opened for reading only, everything is read and nothing written")
    func readOnly() async throws {
        try await withTemporaryFolder { folder in
            let ids = try await makeSample(folder, count: 2)
            let database = try open(folder, readOnly: true)
            #expect(try database.mutations.list().map(\.id) == ids)
            #expect(try database.heads() == [ids[0]])
            #expect(try !database.hasChanged())
            await expectFailure(.notWritable) { _ = try await database.enqueue(draft()) }
            await expectFailure(.notWritable) { _ = try await database.begin(ids[0]) }
            try expectSound(database)
            try database.close()
        }
    }

    @Test("A closed database says so in every call, and closing twice does nothing")
    func closed() async throws {
        try await withTemporaryFolder { folder in
            let database = try open(folder)
            try database.close()
            try database.close()
            await expectFailure(.closed) { _ = try await database.enqueue(draft()) }
            await expectFailure(.closed) { _ = try database.mutations.list() }
            await expectFailure(.closed) { _ = try database.hasChanged() }
            await expectFailure(.closed) { _ = try database.check() }
            await expectFailure(.closed) { _ = try database.watchers.list() }
        }
    }

    @Test("A call that the closing overtakes ends with the error of a closed database")
    func overtaken() async throws {
        try await withTemporaryFolder { folder in
            let database = try open(folder)
            let connection = try database.using { $0 }
            try database.close()
            let calls: [(Database) throws -> Void] = [
                { _ = try OperationsDatabase.dataVersion($0) }, { try $0.run("BEGIN") },
                { try connection.log.begin($0) }, { try connection.log.checkpoint($0, .passive) },
                { _ = try $0.findings("quick_check") }, { _ = try SyncedLog.sharedMemory(of: $0) },
            ]
            for (number, call) in calls.enumerated() {
                let error = #expect(throws: OperationsError.self) {
                    try translated { try connection.pool.writeWithoutTransaction(call) }
                }
                #expect(error?.code == .closed, "\(number): \(String(describing: error))")
            }
            let read = #expect(throws: OperationsError.self) { try translated { try connection.pool.read(calls[0]) } }
            #expect(read?.code == .closed)
            #expect(!connection.pool.writeWithoutTransaction { LogSpace.reserve($0, FileSystem()) })
        }
    }

    @Test("A mutation that was being queued when the database closed is there or was refused")
    func closedMeanwhile() async throws {
        try await withTemporaryFolder { folder in
            let database = try open(folder)
            let accepted = await withTaskGroup(of: UUID?.self) { group in
                for index in 0..<50 {
                    group.addTask {
                        if index == 25 { try? database.close() }
                        return try? await database.enqueue(draft())
                    }
                }
                return await group.reduce(into: Set<UUID>()) { if let id = $1 { $0.insert(id) } }
            }
            let again = try open(folder)
            #expect(try Set(again.mutations.list().map(\.id)) == accepted)
            try expectSound(again)
            try again.close()
        }
    }

    /// Requires an error at the time that SQLite is told to wait, or a little before: it counts its own pauses.
    private func expectBusy(_ body: () async throws -> Void) async throws {
        let error = try await requireEnd(after: .milliseconds(50)) { _ in try await body() }
        #expect((error as? OperationsError)?.code == .busy)
    }

    @Test("A database that another program keeps locked is an error at the deadline, when opened and when written")
    func locked() async throws {
        try await withTemporaryFolder { folder in
            let ids = try await makeSample(folder)
            let database = try open(folder)
            var configuration = Configuration()
            configuration.allowsUnsafeTransactions = true
            let other = try DatabaseQueue(path: file(in: folder).path, configuration: configuration)
            try await other.writeWithoutTransaction { db in
                try db.execute(sql: "BEGIN IMMEDIATE")
            }
            try await expectBusy { _ = try await database.enqueue(draft()) }
            #expect(try database.mutations.list().map(\.id) == ids)
            try await other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
            _ = try await database.enqueue(draft())
            try database.close()
            try await other.writeWithoutTransaction { db in
                try db.execute(sql: "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE")
            }
            try await expectBusy { _ = try open(folder) }
            try await expectBusy { _ = try open(folder, readOnly: true) }
            try await other.writeWithoutTransaction { try $0.execute(sql: "COMMIT") }
            try other.close()
        }
    }

    @Test("A file of a single byte is no database yet, as an empty one is not", arguments: [0, 1])
    func singleByte(count: Int) async throws {
        try await withTemporaryFolder { folder in
            try Data(count: count).write(to: folder.appending(path: OperationsDatabase.fileName))
            #expect(try !OperationsDatabase.exists(in: folder, FileSystem()))
            await expectFailure(.missing) { _ = try open(folder, readOnly: true) }
            _ = try await makeSample(folder)
            #expect(try OperationsDatabase.exists(in: folder, FileSystem()))
        }
    }
}
