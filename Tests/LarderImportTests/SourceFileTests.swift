import Foundation
import Larder
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderImport

@Suite("Files of other libraries", .timeLimit(.minutes(10)))
struct SourceFileTests {
    private func refusal(_ source: ImportSource) async -> ImportError? {
        do throws(ImportError) {
            _ = try await source.inspect()
            Issue.record("nothing was refused")
            return nil
        } catch { return error }
    }

    private func makeCache(
        _ folder: URL, _ name: String = "apollo.sqlite", wal: Bool = false
    ) throws -> ForeignFixture {
        let fixture = try ForeignFixture(folder.appending(path: name).path, .records, wal: wal)
        try fixture.record("QUERY_ROOT", #"{"count":3,"latest":[{"$reference":"Cook:1"}]}"#)
        return fixture
    }

    /// A cache that no program has open, and its log beside it.
    private func makeCacheWithLog(_ folder: URL) throws -> String {
        let live = try makeCache(folder, wal: true)
        let path = folder.appending(path: "a.db").path
        try copy(live, with: ["-wal"], to: path)
        live.close()
        return path
    }

    /// Copies a cache that is open, as a killed program leaves it.
    private func copy(_ live: ForeignFixture, with suffixes: [String], to path: String) throws {
        for suffix in [""] + suffixes {
            try FileManager.default.copyItem(atPath: live.path + suffix, toPath: path + suffix)
        }
    }

    @Test(
        "Looking at a file changes nothing: not a byte of it, and no file comes beside it",
        arguments: [false, true], [false, true])
    func noTrace(_ isReadOnly: Bool, _ wal: Bool) async throws {
        try await withTemporaryFolder { folder in
            // The name is one that a URI must escape.
            let fixture = try makeCache(folder, "my cache?#%41.sqlite", wal: wal)
            fixture.close()
            if isReadOnly {
                try FileManager.default.setAttributes([.posixPermissions: 0o400], ofItemAtPath: fixture.path)
                try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: folder.path)
            }
            defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: folder.path) }
            let before = try contents(of: folder)
            #expect(try await source(fixture.path).inspect().rootFields.taken == 1)
            #expect(try contents(of: folder) == before)
        }
    }

    @Test("Rows in a write-ahead log are read, and the log stays")
    func log() async throws {
        try await withTemporaryFolder { folder in
            let live = try makeCache(folder, wal: true)
            let left = folder.appending(path: "left")
            try FileManager.default.createDirectory(at: left, withIntermediateDirectories: true)
            try copy(live, with: ["-wal", "-shm"], to: left.appending(path: "a.db").path)
            live.close()
            let before = try contents(of: left)
            #expect(before["a.db-wal"]?.isEmpty == false)
            #expect(try await source(left.appending(path: "a.db").path).inspect().rootFields.taken == 1)
            #expect(try contents(of: left) == before)
        }
    }

    @Test("A transaction that was not finished is not read, and its journal stays")
    func journal() async throws {
        try await withTemporaryFolder { folder in
            let live = try makeCache(folder)
            try live.run("PRAGMA cache_size = 2; PRAGMA cache_spill = 1; BEGIN; UPDATE records SET record = '{}'")
            for number in 0..<200 { try live.record("Cook:\(number)", #"{"__typename":"Cook","id":"\#(number)"}"#) }
            let left = folder.appending(path: "left")
            try FileManager.default.createDirectory(at: left, withIntermediateDirectories: true)
            try copy(live, with: ["-journal"], to: left.appending(path: "a.db").path)
            let before = try contents(of: left)
            #expect(before["a.db-journal"]?.isEmpty == false)
            let report = try await source(left.appending(path: "a.db").path).inspect()
            #expect(report.rootFields.taken == 1 && report.objects.taken == 0)
            #expect(try contents(of: left) == before)
        }
    }

    @Test("A file that is missing, a folder, empty, no database, of other tables or damaged is refused by name")
    func unusable() async throws {
        try await withTemporaryFolder { folder in
            func path(_ name: String) -> String { folder.appending(path: name).path }
            try Data().write(to: folder.appending(path: "empty"))
            try Data("{}".utf8).write(to: folder.appending(path: "text"))
            try ForeignFixture(path("other"), .mutations).close()
            let columns = try ForeignFixture(path("columns"))
            try columns.run("CREATE TABLE records (a)")
            columns.close()
            let view = try ForeignFixture(path("view"))
            try view.run("CREATE TABLE t (a); CREATE VIEW records AS SELECT 1 AS _id, 'a' AS key, '{}' AS record")
            view.close()
            let whole = try makeCache(folder, "damaged")
            for number in 0..<500 { try whole.record("k\(number)", "{\"a\":\"\(String(repeating: "x", count: 50))\"}") }
            whole.close()
            var bytes = try Data(contentsOf: folder.appending(path: "damaged"))
            bytes.replaceSubrange(8_192..<(bytes.count - 8_192), with: Data(count: bytes.count - 16_384))
            try bytes.write(to: folder.appending(path: "damaged"))
            try bytes.prefix(5_000).write(to: folder.appending(path: "short"))
            for (name, code) in [
                ("none", ImportError.Code.missing), ("", .foreign), ("empty", .foreign), ("text", .foreign),
                ("other", .foreign), ("columns", .foreign), ("view", .foreign), ("damaged", .damaged),
                ("short", .damaged),
            ] {
                let error = await refusal(try source(path(name)))
                #expect(error?.code == code, "\(name): \(String(describing: error))")
                #expect(error?.message.contains(path(name)) == true)
            }
            let tables = await refusal(try source(path("view"), .appSync))
            #expect(tables?.code == .foreign)
            let pipe = path("pipe")
            #expect(mkfifo(pipe, 0o600) == 0)
            #expect(await refusal(try source(pipe))?.code == .foreign)
        }
    }

    @Test("A file, or a record, that is larger than what may be read is not read")
    func large() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder)
            let name = String(repeating: "x", count: 9_000)
            try fixture.record("Cook:1", #"{"__typename":"Cook","id":"1","name":"\#(name)"}"#)
            fixture.close()
            let small = try source(fixture.path) { $0.maximumFileSize = 4_096 }
            #expect(await refusal(small)?.code == .tooLarge)
            let narrow = try source(fixture.path) { $0.maximumRecordSize = 1_000 }
            let report = try await narrow.inspect()
            #expect(report.omitted(.record, .tooLarge) == 1)
            #expect(report.omissions.first { $0.reason == .tooLarge }?.examples == ["Cook:1"])
        }
    }

    @Test("A file and a record of just as many bytes as may be read are read, and no larger ones", arguments: [0, 1])
    func limits(more: Int) async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder)
            let record = #"{"__typename":"Cook","id":"1","name":"Zoë, the cook of this house"}"#
            try fixture.record("Cook:1", record)
            fixture.close()
            let bytes = try Data(contentsOf: URL(filePath: fixture.path)).count
            let small = try source(fixture.path) { $0.maximumFileSize = Int64(bytes - more) }
            if more == 0 { _ = try await small.inspect() } else { #expect(await refusal(small)?.code == .tooLarge) }
            let narrow = try source(fixture.path) { $0.maximumRecordSize = Int64(record.utf8.count - more) }
            #expect(try await narrow.inspect().omitted(.record, .tooLarge) == more)
        }
    }

    @Test("A log beside the file counts for its size")
    func largeLog() async throws {
        try await withTemporaryFolder { folder in
            let live = try makeCache(folder, wal: true)
            let attributes = try FileManager.default.attributesOfItem(atPath: live.path)
            let size = try #require(attributes[.size] as? NSNumber)
            let narrow = try source(live.path) { $0.maximumFileSize = size.int64Value }
            #expect(await refusal(narrow)?.code == .tooLarge)
            live.close()
        }
    }

    @Test("An empty log counts for nothing: the database is read where it is, and not copied")
    func emptyLog() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder)
            fixture.close()
            try Data().write(to: URL(filePath: fixture.path + "-wal"))
            let isCopied = Mutex(false)
            var options = ForeignDatabase.Options()
            options.files = FileSystem { call in
                if call.path.contains("/larder-import-") { isCopied.withLock { $0 = true } }
                return nil
            }
            #expect(try ForeignDatabase(fixture.path, options).count(of: "records") == 1)
            #expect(!isCopied.withLock { $0 })
        }
    }

    @Test("A journal that was struck out counts neither as a transaction nor for the size")
    func struckJournal() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder)
            fixture.close()
            try Data(count: 100_000).write(to: URL(filePath: fixture.path + "-journal"))
            let attributes = try FileManager.default.attributesOfItem(atPath: fixture.path)
            let size = try #require(attributes[.size] as? NSNumber)
            let narrow = try source(fixture.path) { $0.maximumFileSize = size.int64Value }
            #expect(try await narrow.inspect().records == 1)
        }
    }

    @Test("An import from a cache that is changed meanwhile ends in an error")
    func changedWhileImporting() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder)
            for number in 0..<500 {
                try fixture.record("Cook:\(number)", #"{"__typename":"Cook","id":"\#(number)","name":"Cook"}"#)
            }
            fixture.close()
            let path = fixture.path
            let toucher = Task.detached {
                for second in 1... {
                    let time = Date(timeIntervalSince1970: TimeInterval(second))
                    try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
                    try await Task.sleep(for: .milliseconds(1))
                }
            }
            let error = await refusal(try source(path))
            toucher.cancel()
            #expect(error?.code == .busy)
        }
    }

    @Test("What was taken of a cache that changes meanwhile stays after the error, and a second import takes the rest")
    func takenUntilChanged() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try makeCache(folder)
            let path = fixture.path
            // When it is opened, which is after it was looked at.
            let files = FileSystem { call in
                guard call.kind == .open, call.path == path else { return nil }
                let time = Date(timeIntervalSince1970: 1)
                try? FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path)
                return nil
            }
            let changing = try ImportSource(.apollo, path: path, schema: try Schema(parsing: recipeSchema), files)
            let error = await #expect(throws: ImportError.self) { try await changing.run(into: app) }
            #expect(error?.code == .busy)
            #expect(try app.json("{ count }") == #"{"count":3}"#)
            try fixture.record("Cook:2", #"{"__typename":"Cook","id":"2","name":"Ada"}"#)
            fixture.close()
            let report = try await source(path).run(into: app)
            #expect(report.rootFields == .init(present: 1) && report.objects == .init(taken: 1))
        }
    }

    /// Expects that reading copies a database, and that nothing of the copy is left.
    ///
    /// - Parameters:
    ///   - fewest: How many files and folders are made at least.
    ///   - answer: Decides what becomes of a call on the copy.
    private func expectCopyRemoved(
        fewest: Int = 1, sourceLocation: SourceLocation = #_sourceLocation,
        _ answer: @escaping FileSystem.Injection = { _ in nil }, _ read: (ForeignDatabase.Options) throws -> Void
    ) throws {
        let copies = Mutex<Set<String>>([])
        var options = ForeignDatabase.Options()
        options.files = FileSystem { call in
            guard call.path.contains("/larder-import-") else { return nil }
            copies.withLock { _ = $0.insert(call.path) }
            return answer(call)
        }
        try read(options)
        let made = copies.withLock { $0 }
        #expect(
            made.count >= fewest && made.allSatisfy { !FileManager.default.fileExists(atPath: $0) },
            sourceLocation: sourceLocation)
    }

    @Test("The copy of a database that has a log beside it is gone when it has been read")
    func copyIsRemoved() async throws {
        try await withTemporaryFolder { folder in
            let path = try makeCacheWithLog(folder)
            try expectCopyRemoved { options in
                let database = try ForeignDatabase(path, options)
                #expect(try database.count(of: "records") > 0)
            }
        }
    }

    @Test("The copy of a database that has a log beside it is in a folder of its own, which only its user may enter")
    func copyIsPrivate() async throws {
        try await withTemporaryFolder { folder in
            let path = try makeCacheWithLog(folder)
            let folders = Mutex<Set<String>>([])
            var options = ForeignDatabase.Options()
            options.files = FileSystem { call in
                if call.path.contains("/larder-import-"), call.path.hasSuffix("/copy.db") {
                    folders.withLock { _ = $0.insert(FileSystem.parent(of: call.path)) }
                }
                return nil
            }
            let database = try ForeignDatabase(path, options)
            let made = folders.withLock { $0 }
            #expect(made.count == 1)
            for folder in made {
                let status = try #require(try FileSystem().status(of: folder))
                #expect(status.mode == 0o700)
            }
            #expect(try database.count(of: "records") > 0)
        }
    }

    @Test("A log that changes while it is copied is told, and the copy is removed")
    func changedLog() async throws {
        try await withTemporaryFolder { folder in
            let path = try makeCacheWithLog(folder)
            try expectCopyRemoved { _ in
                let time = Date(timeIntervalSince1970: 1)
                try? FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: path + "-wal")
                return nil
            } _: { options in
                let error = #expect(throws: ImportError.self) { try ForeignDatabase(path, options) }
                #expect(error?.code == .busy)
            }
        }
    }

    @Test("A database that cannot be copied with its log is told, and nothing of the copy is left")
    func failedCopy() async throws {
        try await withTemporaryFolder { folder in
            let path = try makeCacheWithLog(folder)
            try expectCopyRemoved(fewest: 2) { call in
                call.path.hasSuffix("/copy.db-wal") ? .failure(ENOSPC) : nil
            } _: { options in
                let error = #expect(throws: ImportError.self) { try ForeignDatabase(path, options) }
                #expect(error?.code == .unreadable && error?.message.contains("cannot be copied") == true)
            }
        }
    }

    @Test(
        "A file that cannot be read is told with its remedy: who may read it, or the volume",
        arguments: [(EACCES, "see who may read it"), (EIO, "check the volume")])
    func unreadable(status: Int32, remedy: String) async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder)
            fixture.close()
            var options = ForeignDatabase.Options()
            options.files = FileSystem { $0.kind == .open ? .failure(status) : nil }
            let error = #expect(throws: ImportError.self) { try ForeignDatabase(fixture.path, options) }
            #expect(error?.code == .unreadable && error?.message.hasSuffix(remedy) == true, "\(error?.message ?? "")")
        }
    }

    @Test("A folder that may not be listed is refused as unreadable")
    func unlistedFolder() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.path
            let files = FileSystem { $0.kind == .open && $0.path == path ? .failure(EACCES) : nil }
            let source = try ImportSource(.appSync, path: path, schema: try Schema(parsing: recipeSchema), files)
            #expect(await refusal(source)?.code == .unreadable)
        }
    }

    @Test("An import from a file of subscriptions that is changed meanwhile ends in an error")
    func changedSubscriptions() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "subscriptionMetadataCache.db").path
            try ForeignFixture(path, .subscriptions).close()
            let schema = try Schema(parsing: recipeSchema)
            let source = try ImportSource(.appSync, path: path, schema: schema, .changing { $0 == path })
            #expect(await refusal(source)?.code == .busy)
        }
    }

    @Test("A file that was changed while it was read is told")
    func changed() async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder)
            let database = try ForeignDatabase(fixture.path, ForeignDatabase.Options())
            try database.requireUnchanged()
            try fixture.record("Cook:1", "{}")
            fixture.close()
            let error = #expect(throws: ImportError.self) { try database.requireUnchanged() }
            #expect(error?.code == .busy)
        }
    }

    @Test(
        "A file that another process is writing to is refused, with that process's number",
        .enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/sqlite3"), "needs sqlite3"),
        arguments: [false, true])
    func locked(_ wal: Bool) async throws {
        try await withTemporaryFolder { folder in
            let fixture = try makeCache(folder, wal: wal)
            fixture.close()
            let process = Process()
            process.executableURL = URL(filePath: "/usr/bin/sqlite3")
            process.arguments = [fixture.path]
            let input = Pipe.uninherited()
            let output = Pipe.uninherited()
            process.standardInput = input
            process.standardOutput = output
            try process.start()
            defer {
                try? input.fileHandleForWriting.close()
                process.waitUntilExit()
            }
            try input.fileHandleForWriting.write(
                contentsOf: Data("BEGIN IMMEDIATE; DELETE FROM records; SELECT 'begun';\n".utf8))
            #expect(try output.fileHandleForReading.read(upToCount: 5) == Data("begun".utf8))
            let error = await refusal(try source(fixture.path))
            #expect(error?.code == .busy)
            #expect(error?.message.contains("Process \(process.processIdentifier)") == true)
        }
    }

    @Test("An import reads records, mutations and subscriptions from the one database of older versions")
    func oneDatabase() async throws {
        try await withTemporaryFolder { folder in
            let path = folder.appending(path: "any name").path
            let one = try ForeignFixture(path, .records, .mutations, .subscriptions)
            try one.record("QUERY_ROOT", #"{"count":1}"#)
            try one.mutation("A", #"{"query":"mutation { rate(id: 1, stars: 1) { id } }"}"#)
            try one.insert("INSERT INTO subscription_metadata VALUES (?, ?)", ["hash", "2019-02-04T22:05:12.784"])
            one.close()
            let report = try await source(path, .appSync) { $0.takesMutations = true }.inspect()
            #expect(report.rootFields == .init(taken: 1) && report.mutations == .init(taken: 1))
            #expect(report.subscriptions == 1 && report.omissions.isEmpty)
        }
    }

    @Test("AppSync's three databases are found in their folder, or all tables in the one of older versions")
    func appSyncFiles() async throws {
        try await withTemporaryFolder { folder in
            func path(_ name: String) -> String { folder.appending(path: name).path }
            try makeCache(folder, "queries.db").close()
            try ForeignFixture(path("offlineMutations.db"), .mutations).close()
            let subscriptions = try ForeignFixture(path("subscriptionMetadataCache.db"), .subscriptions)
            try subscriptions.insert(
                "INSERT INTO subscription_metadata VALUES (?, ?)", ["hash", "2019-02-04T22:05:12.784"])
            subscriptions.close()
            try Data("notes".utf8).write(to: folder.appending(path: "notes.txt"))
            let report = try await source(folder.path, .appSync).inspect()
            #expect(
                report.files.map { URL(filePath: $0).lastPathComponent } == [
                    "offlineMutations.db", "queries.db", "subscriptionMetadataCache.db",
                ])
            #expect(report.rootFields.taken == 1 && report.subscriptions == 1)

            try makeCache(folder, "movies_queries.db").close()
            // Of a client whose prefix begins as the other's does.
            try makeCache(folder, "movies_old_queries.db").close()
            #expect(await refusal(try source(folder.path, .appSync))?.code == .ambiguous)
            let chosen = try await source(folder.path, .appSync) { $0.prefix = "movies" }.inspect()
            #expect(chosen.files == [path("movies_queries.db")])
            let old = try await source(folder.path, .appSync) { $0.prefix = "movies_old" }.inspect()
            #expect(old.files == [path("movies_old_queries.db")])
            #expect(await refusal(try source(folder.path, .appSync) { $0.prefix = "music" })?.code == .foreign)

            let one = try ForeignFixture(path("appsync-local-db"), .records, .mutations, .subscriptions)
            try one.record("QUERY_ROOT", #"{"count":1}"#)
            one.close()
            let older = try await source(one.path, .appSync).inspect()
            #expect(older.files == [one.path] && older.rootFields.taken == 1)
            #expect(await refusal(try source(path("nowhere"), .appSync))?.code == .missing)
        }
    }
}
