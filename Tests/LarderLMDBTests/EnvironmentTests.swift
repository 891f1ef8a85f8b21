import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import LarderLMDB

@Suite("Environments", .timeLimit(.minutes(10)))
struct EnvironmentTests {
    @Test("Opening the same file twice in a process names the first opener")
    func alreadyOpen() async throws {
        try await withTemporaryFolder { folder in
            let first = try Environment(
                folder: folder.path, tables: sampleTables, options: .fast, openedBy: "the first")
            let error = try failure {
                _ = try Environment(folder: folder.path + "/.", tables: sampleTables, options: .fast)
            }
            #expect(error?.code == .alreadyOpen)
            #expect(error?.message.contains("the first") == true)
            #expect(error?.message.hasSuffix("Share that environment, or close it first.") == true)
            try first.close()
            try Environment(folder: folder.path, tables: sampleTables, options: .fast).close()
            try requireSound(folder)
        }
    }

    @Test("Letting go of an environment frees its file")
    func released() async throws {
        try await withTemporaryFolder { folder in
            for _ in 0..<3 {
                let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
                try environment.write { try $0.put(1, bytes("x").rawSpan, in: try environment.records) }
            }
            try requireSound(folder)
        }
    }

    @Test("An environment that is let go of long after it was closed gives up no other's claim to the file")
    func releasedLate() async throws {
        try await withTemporaryFolder { folder in
            func open() throws -> Environment {
                try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            }
            var first: Environment? = try open()
            try first?.close()
            let second = try open()
            first = nil
            expectFailure(.alreadyOpen) { _ = try open() }
            try second.close()
        }
    }

    @Test("A failed opening frees the file")
    func failedOpening() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "data.mdb")
            try Data("foreign".utf8).write(to: file)
            for _ in 0..<2 {
                expectFailure(.foreign) { _ = try Environment(folder: folder.path, tables: sampleTables) }
            }
            try FileManager.default.removeItem(at: file)
            try Environment(folder: folder.path, tables: sampleTables, options: .fast).close()
        }
    }

    @Test("Closing waits for no reader: open snapshots go on, new ones are refused, the last closes the file")
    func closeWithReaders() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: records) }
            func readOn() throws {
                let transaction = try environment.beginRead()
                try environment.close()
                try environment.close()
                #expect(try transaction.get(1, in: records).copied == bytes("one"))
                expectFailure(.closed) { _ = try environment.beginRead() }
                expectFailure(.closed) { try environment.write { _ in } }
                expectFailure(.closed) { _ = try environment.statistics() }
                var impatient = Environment.Options.fast
                impatient.lockTimeout = .milliseconds(1)
                expectFailure(.alreadyOpen) {
                    _ = try Environment(folder: folder.path, tables: sampleTables, options: impatient)
                }
            }
            try readOn()
            try Environment(folder: folder.path, tables: sampleTables, options: .fast).close()
            try requireSound(folder)
        }
    }

    @Test("Opening a file that was closed waits for its last snapshot")
    func openWhileClosing() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: records) }
            let (hasClosed, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            let reader = Thread {
                guard let transaction = try? environment.beginRead() else { return }
                try? environment.close()
                hasClosed.signal()
                Self.wait(for: mayEnd)
                _ = try? transaction.get(1, in: records)
            }
            reader.start()
            await Task.detached { Self.wait(for: hasClosed) }.value
            var options = Environment.Options.fast
            options.lockTimeout = .milliseconds(200)
            let begun = SuspendingClock.now
            let error = #expect(throws: LMDBError.self) {
                _ = try Environment(folder: folder.path, tables: sampleTables, options: options)
            }
            #expect(error?.code == .alreadyOpen)
            #expect(error?.message.contains("It was closed, and a reader still has a snapshot.") == true)
            #expect(begun.duration(to: .now) >= options.lockTimeout)
            mayEnd.signal()
            try Environment(folder: folder.path, tables: sampleTables, options: .fast).close()
            try requireSound(folder)
        }
    }

    private static func wait(for semaphore: DispatchSemaphore) { _ = semaphore.wait(timeout: .now() + 60) }

    @Test("An environment that must exist is not made")
    func mustExist() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options.fast
            options.mustExist = true
            let path = folder.appending(path: "gone").path
            expectFailure(.missing) { _ = try Environment(folder: path, tables: sampleTables, options: options) }
            #expect(!FileManager.default.fileExists(atPath: path))
            expectFailure(.missing) { _ = try Environment(folder: folder.path, tables: sampleTables, options: options) }
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names == [])
            try Data().write(to: folder.appending(path: "data.mdb"))
            expectFailure(.truncated) {
                _ = try Environment(folder: folder.path, tables: sampleTables, options: options)
            }
            // A table that it was made with must be there as well.
            try Environment(folder: path, tables: [sampleTables[0]], options: .fast).close()
            expectFailure(.damaged) { _ = try Environment(folder: path, tables: sampleTables, options: options) }
            try Environment(folder: path, tables: [sampleTables[0]], options: options).close()
        }
    }

    @Test("A file of no bytes is nothing to be read, and the error says to open it for writing once")
    func emptyReadOnly() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options.fast
            options.isReadOnly = true
            let file = folder.appending(path: "data.mdb")
            try Data().write(to: file)
            let error = try failure {
                _ = try Environment(folder: folder.path, tables: sampleTables, options: options)
            }
            #expect(error?.code == .missing)
            #expect(error?.message.contains("Open it for writing once") == true)
            #expect(try Data(contentsOf: file).isEmpty)
        }
    }

    @Test("The reader pool gives out what it has, then says so at once, and takes readers back")
    func readersFull() async throws {
        var options = Environment.Options.fast
        options.maxReaders = 3
        try await withEnvironment(options) { environment in
            func exhaust() throws {
                let one = try environment.beginRead()
                let two = try environment.beginRead()
                let three = try environment.beginRead()
                expectFailure(.readersFull) { _ = try environment.beginRead() }
                #expect(one.id == two.id && two.id == three.id)
            }
            // Readers that were lost each time would be more than LMDB has places for.
            for _ in 0..<200 { try exhaust() }
        }
    }

    @Test("Many threads read while one writes")
    func threads() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("0").rawSpan, in: records) }
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<8 {
                    group.addTask {
                        for _ in 0..<2_000 {
                            let transaction = try environment.beginRead()
                            let one = try transaction.get(1, in: records).copied
                            var cursor = try transaction.cursor(in: records)
                            #expect(try cursor.value(at: 1).copied == one)
                        }
                    }
                }
                for _ in 0..<2 {
                    group.addTask {
                        for round in 0..<200 {
                            try environment.write { try $0.put(1, bytes("\(round)").rawSpan, in: records) }
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try environment.statistics().transaction >= 401)
            try environment.close()
            try requireSound(folder)
        }
    }

    @Test("A second writer in the process waits until its deadline and learns which one writes")
    func secondWriter() async throws {
        var options = Environment.Options.fast
        options.lockLabel = "sync service"
        try await withEnvironment(options) { environment in
            try environment.write { transaction in
                let deadline = SuspendingClock.now + .milliseconds(30)
                let error = try failure { try environment.write(deadline: deadline) { _ in } }
                try requireNear(deadline)
                #expect(error?.code == .lockTimedOut)
                let holder = "pid \(ProcessInfo.processInfo.processIdentifier), sync service"
                #expect(error?.message.contains(holder) == true)
                try transaction.put(1, bytes("x").rawSpan, in: try environment.records)
            }
        }
    }

    @Test("A writer's name of several lines is one line in the lock's file, and in the error of another writer")
    func labelOfLines() async throws {
        var options = Environment.Options.fast
        options.lockLabel = "sync\nservice\r\nof\u{2028}a program"
        try await withEnvironment(options) { environment in
            try environment.write { _ in
                let error = try failure { try environment.write(deadline: .now + .milliseconds(1)) { _ in } }
                let holder = "pid \(ProcessInfo.processInfo.processIdentifier), syncserviceofa program"
                #expect(error?.message.hasPrefix("The writer lock is held by \(holder). ") == true)
                let note = try LockFile(existing: environment.folder + "/write.lock").note()
                #expect(note == holder)
            }
        }
    }

    @Test("An environment that could not be closed in time goes on, and another opener hears that it is open")
    func notClosedInTime() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options.fast
            options.lockTimeout = .milliseconds(1)
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: options)
            let records = try environment.records
            func closeInVain() throws {
                let transaction = try environment.beginRead()
                expectFailure(.lockTimedOut) { try environment.close(until: .now + .milliseconds(1)) }
                #expect(try transaction.get(1, in: records).copied == nil)
            }
            try closeInVain()
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: records) }
            let error = try failure {
                _ = try Environment(folder: folder.path, tables: sampleTables, options: options)
            }
            #expect(error?.code == .alreadyOpen)
            #expect(error?.message.hasSuffix("Share that environment, or close it first.") == true)
            try environment.close(until: .now + .seconds(20))
            try requireSound(folder)
        }
    }

    @Test("A compacted copy holds the same, in fewer pages, and opens")
    func compactingCopy() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(
                folder: folder.appending(path: "a").path, tables: sampleTables, options: .fast)
            let records = try environment.records
            try environment.write { transaction in
                for id in 0..<5_000 as Range<UInt64> {
                    try transaction.put(id, bytes("value \(id)").rawSpan, in: records)
                }
            }
            try environment.write { transaction in
                for id in 100..<5_000 as Range<UInt64> { try transaction.delete(id, in: records) }
            }
            for (name, compacting) in [("b", true), ("c", false)] {
                let target = folder.appending(path: name)
                try environment.copy(to: target.path, compacting: compacting)
                expectFailure(.invalidArgument) { try environment.copy(to: target.path, compacting: compacting) }
                let summary = try requireSound(target)
                #expect(compacting == (summary.freePages == 0))
                let copy = try Environment(folder: target.path, tables: sampleTables, options: .fast)
                let transaction = try copy.beginRead()
                #expect(try transaction.entryCount(of: try copy.records) == 100)
                #expect(try transaction.get(99, in: try copy.records).copied == bytes("value 99"))
            }
            let full = try requireSound(folder.appending(path: "a"))
            #expect(try requireSound(folder.appending(path: "b")).lastPage < full.lastPage)
        }
    }

    @Test("A plain copy waits for a writer no longer than it may, and a compacted one waits for none")
    func copyBesideWriter() async throws {
        var options = Environment.Options.fast
        options.lockTimeout = .milliseconds(50)
        try await withEnvironment(options) { environment in
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: try environment.records) }
            try await withTemporaryFolder { folder in
                func copy() throws {
                    let writing = try environment.beginWrite(deadline: .now + .seconds(20))
                    let plain = folder.appending(path: "plain").path
                    expectFailure(.lockTimedOut) { try environment.copy(to: plain, compacting: false) }
                    try environment.copy(to: folder.appending(path: "compacted").path, compacting: true)
                    _ = consume writing
                }
                try copy()
                #expect(try requireSound(folder.appending(path: "compacted")).entries["records"] == 1)
            }
        }
    }

    @Test("A file with pages that are neither in use nor free is damaged to a compacted copy, which leaves no file")
    func copyOfLostPages() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "a")
            let environment = try Environment(folder: path.path, tables: sampleTables, options: .fast)
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: try environment.records) }
            let handle = try FileHandle(forUpdating: path.appending(path: "data.mdb"))
            defer { try? handle.close() }
            // Each meta page says how many pages there are.
            func shift(by count: Int) throws {
                for page in 0...1 {
                    let place = UInt64(page * pageSize + 136)
                    try handle.seek(toOffset: place)
                    let last = Int(try handle.read(upToCount: 1)?.first ?? 0)
                    try handle.seek(toOffset: place)
                    try handle.write(contentsOf: [UInt8(last + count)])
                }
            }
            try shift(by: 3)
            let target = folder.appending(path: "b")
            expectFailure(.damaged) { try environment.copy(to: target.path, compacting: true) }
            let left = try FileManager.default.contentsOfDirectory(atPath: target.path)
            #expect(left == [])
            try shift(by: -3)
            try FileManager.default.removeItem(at: target)
            try environment.copy(to: target.path, compacting: true)
            try requireSound(target)
            try environment.close()
        }
    }

    @Test("Statistics say what is there")
    func statistics() async throws {
        try await withEnvironment { environment in
            try environment.write { transaction in
                for id in 0..<1_000 as Range<UInt64> {
                    try transaction.put(id, bytes("\(id)").rawSpan, in: try environment.records)
                }
            }
            let statistics = try environment.statistics()
            #expect(statistics.tables["records"]?.entries == 1_000)
            #expect(statistics.tables["keys"]?.entries == 0)
            #expect(statistics.mapSize == environment.options.mapSize)
            #expect(statistics.fileSize == Int64(statistics.lastPage + 1) * Int64(statistics.pageSize))
        }
    }

    @Test(
        "Before each commit both meta pages are written once more, in one write",
        arguments: [Environment.Durability.full, .withoutMetaSync])
    func metaPagesAgain(durability: Environment.Durability) async throws {
        let calls = NotedCalls()
        var options = Environment.Options()
        (options.durability, options.files) = (durability, calls.files)
        try await withEnvironment(options) { environment in
            for number in 0..<3 as Range<UInt64> {
                calls.forget()
                try environment.write { try $0.put(number, bytes("x").rawSpan, in: try environment.records) }
                // The commit's sync covers with them what other processes failed to write.
                #expect(calls.dataWrites == [2 * pageSize])
            }
        }
    }

    @Test("An opening that makes a table writes both meta pages once more before its commit, too")
    func metaPagesBeforeTables() async throws {
        try await withTemporaryFolder { folder in
            try Environment(folder: folder.path, tables: [sampleTables[0]], options: .fast).close()
            let calls = NotedCalls()
            var options = Environment.Options.fast
            options.files = calls.files
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: options)
            #expect(calls.dataWrites == [2 * pageSize])
            try environment.close()
        }
    }

    @Test("A table of other keys is a mismatch")
    func tableMismatch() async throws {
        try await withTemporaryFolder { folder in
            try Environment(folder: folder.path, tables: sampleTables, options: .fast).close()
            expectFailure(.tableMismatch) {
                _ = try Environment(folder: folder.path, tables: [.init(name: "records", keys: .bytes)], options: .fast)
            }
            expectFailure(.tableMismatch) {
                _ = try Environment(folder: folder.path, tables: [.init(name: "keys", keys: .integers)], options: .fast)
            }
        }
    }

    @Test("Read-only makes nothing and writes nothing")
    func readOnly() async throws {
        var readOnly = Environment.Options()
        readOnly.isReadOnly = true
        try await withTemporaryFolder { folder in
            let missing = folder.appending(path: "none")
            expectFailure(.missing) { _ = try Environment(folder: missing.path, tables: [], options: readOnly) }
            #expect(!FileManager.default.fileExists(atPath: missing.path))
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            try environment.write { try $0.put(1, bytes("x").rawSpan, in: try environment.records) }
            try environment.close()
            let before = try Data(contentsOf: folder.appending(path: "data.mdb"))
            let reader = try Environment(folder: folder.path, tables: sampleTables, options: readOnly)
            expectFailure(.readOnly) { try reader.write { _ in } }
            expectFailure(.readOnly) { try reader.synchronize() }
            let records = try reader.records
            func look() throws {
                let transaction = try reader.beginRead()
                #expect(try transaction.get(1, in: records).copied == bytes("x"))
            }
            try look()
            try reader.close()
            #expect(try Data(contentsOf: folder.appending(path: "data.mdb")) == before)
            let tables = sampleTables + [.init(name: "more", keys: .bytes)]
            expectFailure(.tableMissing) { _ = try Environment(folder: folder.path, tables: tables, options: readOnly) }
        }
    }

    @Test("A file larger than the map asks for a larger map")
    func mapTooSmall() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            try environment.write { transaction in
                try transaction.put(1, [UInt8](repeating: 1, count: 3_000_000).rawSpan, in: try environment.records)
            }
            try environment.close()
            var small = Environment.Options.fast
            small.mapSize = 1 << 20
            expectFailure(.mapFull) { _ = try Environment(folder: folder.path, tables: sampleTables, options: small) }
        }
    }

    @Test("An optional table that is missing is made by a writer, and a read-only environment goes without it")
    func optionalTable() async throws {
        try await withTemporaryFolder { folder in
            try Environment(folder: folder.path, tables: sampleTables, options: .fast).close()
            let more = sampleTables + [TableDefinition(name: "later", keys: .bytes, isOptional: true)]
            var readOnly = Environment.Options.fast
            readOnly.isReadOnly = true
            let reader = try Environment(folder: folder.path, tables: more, options: readOnly)
            #expect(reader.table("later") == nil)
            #expect(reader.table("keys") != nil)
            try reader.close()
            let required = sampleTables + [TableDefinition(name: "later", keys: .bytes)]
            expectFailure(.tableMissing) {
                _ = try Environment(folder: folder.path, tables: required, options: readOnly)
            }
            let writer = try Environment(folder: folder.path, tables: more, options: .fast)
            #expect(writer.table("later") != nil)
            try writer.synchronize()
            try writer.close()
            expectFailure(.closed) { try writer.synchronize() }
            try requireSound(folder)
        }
    }
}
