import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

private let schema = Result { try Schema(parsing: fixtureSchema) }

private func open(
    _ folder: URL, _ transport: (any GraphQLTransport)? = nil, deadline: Duration = .seconds(5)
) throws -> (Store, Partition) {
    var options = Store.Options()
    options.lockTimeout = deadline
    let store = try Store.open(at: folder, schema: try schema.get(), options: options)
    return (store, try store.partition(server: transport))
}

/// The code of what `body` throws; nil if it throws nothing.
private func code(_ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch { return (error as? LarderError)?.code.rawValue ?? "\(error)" }
}

/// A store that was closed with three mutations in it, one of them set aside.
private func withWork(_ body: (URL, URL) async throws -> Void) async throws {
    try await withTemporaryFolder { folder in
        let server = ScriptedServer.rating(errors: { _ in #"{"data":null,"errors":[{"message":"no"}]}"# })
        let (store, app) = try open(folder, server)
        try await app.enqueue(giveStars("9", 1))
        try await quickRunner(app).drain()
        for stars in 2...3 { try await app.enqueue(giveStars("\(stars)", stars)) }
        try store.close()
        // All of it in the one file.
        try OtherProgram(folder).run("PRAGMA wal_checkpoint(TRUNCATE)")
        try await body(folder, folder.appending(path: "larder.sqlite"))
    }
}

@Suite("A database of mutations that is not as it should be", .timeLimit(.minutes(10)))
struct BadDatabaseTests {
    @Test("A database that another program keeps locked is an error at the deadline, and shown changes stay")
    func lockedForLong() async throws {
        try await withWork { folder, _ in
            let (store, app) = try open(folder, ScriptedServer.rating(), deadline: .milliseconds(100))
            let other = try OtherProgram(folder)
            try other.run("BEGIN EXCLUSIVE")
            #expect(await code { try await app.enqueue(giveStars("4", 4)) } == "operations.busy")
            #expect(await code { try await quickRunner(app).drain() } == "operations.busy")
            #expect(try app.mutations().count == 3)
            try other.run("COMMIT")
            try await app.enqueue(giveStars("4", 4))
            try await quickRunner(app).drain()
            #expect(try app.mutations().map(\.state) == [.deadLetter])
            try store.close()
        }
    }

    @Test(
        "A lock that passes before the deadline is waited for, at whatever step it comes",
        arguments: [nil, .begun, .received, .acknowledged, .stored] as [MutationRunner.KillPoint?])
    func passingLock(_ step: MutationRunner.KillPoint?) async throws {
        try await withWork { folder, _ in
            let server = ScriptedServer.rating()
            let (store, app) = try open(folder, server)
            let lock = PassingLock(folder)
            try await quickRunner(app) { options in
                options.reached = { if $0 == step { lock.take() } }
                if step == nil { lock.take() }
            }.drain()
            #expect(lock.wasTaken)
            #expect(server.effects == ["2 2", "3 3"])
            #expect(try app.mutations().map(\.state) == [.deadLetter])
            try store.close()
        }
    }

    @Test(
        "A runner that a long lock has ended goes on when it is run again, and nothing takes effect twice",
        arguments: [.begun, .received, .acknowledged, .stored] as [MutationRunner.KillPoint])
    func longLock(_ step: MutationRunner.KillPoint) async throws {
        try await withWork { folder, _ in
            let server = ScriptedServer.rating()
            let (store, app) = try open(folder, server, deadline: .milliseconds(50))
            let other = Mutex<OtherProgram?>(nil)
            let ended = await code {
                try await quickRunner(app) { options in
                    options.reached = { done in
                        guard done == step else { return }
                        other.withLock { other in
                            guard other == nil, let new = try? OtherProgram(folder) else { return }
                            try? new.run("BEGIN EXCLUSIVE")
                            other = new
                        }
                    }
                }.drain()
            }
            // What is stored is settled next, whose lock it is then; the records have another.
            #expect(ended == "operations.busy")
            try other.withLock { $0 }?.run("COMMIT")
            try await quickRunner(app).drain()
            #expect(server.effects == ["2 2", "3 3"])
            #expect(try app.mutations().map(\.state) == [.deadLetter])
            try store.close()
        }
    }

    @Test("A database of a newer version is refused, and stays as it was")
    func newer() async throws {
        try await withWork { folder, file in
            try OtherProgram(folder).run("PRAGMA user_version = 99")
            let before = try Data(contentsOf: file)
            #expect(await code { _ = try open(folder) } == "operations.newerFormat")
            #expect(try Data(contentsOf: file) == before)
            try OtherProgram(folder).run("PRAGMA user_version = 1")
            let (store, app) = try open(folder)
            #expect(try app.mutations().count == 3)
            try store.close()
        }
    }

    @Test("A database with a migration of a newer version is refused")
    func newerMigration() async throws {
        try await withWork { folder, _ in
            try OtherProgram(folder).run(
                "INSERT INTO migration SELECT 999, 'later', checksum, applied FROM migration WHERE number = 1")
            #expect(await code { _ = try open(folder) } == "operations.newerFormat")
        }
    }

    @Test(
        "A database that has lost its beginning or its end is a typed error, and stays as it was",
        arguments: [1, 99, 4_096, 5_000, 20_000])
    func truncated(_ length: Int) async throws {
        try await withWork { folder, file in
            let whole = try Data(contentsOf: file)
            try #require(whole.count > length)
            try whole.prefix(length).write(to: file)
            let thrown = await code {
                let (_, app) = try open(folder, ScriptedServer.rating())
                try await quickRunner(app).drain()
            }
            #expect(["operations.damaged", "operations.foreign"].contains(thrown))
            try whole.suffix(length).write(to: file)
            let thrownByRest = await code { _ = try open(folder) }
            #expect(["operations.damaged", "operations.foreign"].contains(thrownByRest))
            #expect(try Data(contentsOf: file) == whole.suffix(length))
        }
    }

    @Test("A database that is empty though it was in use is damaged, and not taken for a new one")
    func emptied() async throws {
        try await withWork { folder, file in
            try Data().write(to: file)
            #expect(await code { _ = try open(folder) } == "operations.damaged")
            // Whoever removes it says that nothing is missed.
            try FileManager.default.removeItem(at: file)
            let (store, app) = try open(folder, ScriptedServer.rating())
            try await app.enqueue(giveStars("1", 1))
            try await quickRunner(app).drain()
            try store.close()
        }
    }

    @Test("A database that is empty beside a log is damaged, and the log is kept")
    func emptyBesideLog() async throws {
        try await withTemporaryFolder { folder in
            let (log, file) = (folder.appending(path: "larder.sqlite-wal"), folder.appending(path: "larder.sqlite"))
            let content = Data(repeating: 7, count: 4_152)
            for isThere in [true, false] {
                if isThere { try Data().write(to: file) } else { try FileManager.default.removeItem(at: file) }
                try content.write(to: log)
                #expect(
                    await code {
                        let (_, app) = try open(folder)
                        try await app.enqueue(giveStars("1", 1))
                    } == "operations.damaged")
                // Reading alone would take the unnamed partition for the one that the database named.
                let reads = await code { _ = try open(folder) }
                #expect(reads == "operations.damaged", "\(isThere)")
                #expect(try Data(contentsOf: log) == content)
            }
        }
    }

    @Test(
        "A log that is lost or damaged after closing has nothing in it that the file has not",
        arguments: [true, false])
    func lostLog(isLost: Bool) async throws {
        try await withTemporaryFolder { folder in
            let (store, app) = try open(folder)
            for stars in 1...5 { try await app.enqueue(giveStars("1", stars)) }
            try store.close()
            let log = folder.appending(path: "larder.sqlite-wal")
            if isLost {
                try? FileManager.default.removeItem(at: log)
            } else if var bytes = try? Data(contentsOf: log) {
                for place in stride(from: 40, to: bytes.count, by: 1_000) { bytes[place] ^= 0x55 }
                try bytes.write(to: log)
            }
            let (again, after) = try open(folder)
            #expect(try after.mutations().count == 5)
            try again.close()
        }
    }

    @Test("A database that a program left empty before it wrote anything is a new one")
    func neverWritten() async throws {
        try await withTemporaryFolder { folder in
            try Data().write(to: folder.appending(path: "larder.sqlite"))
            let (store, app) = try open(folder)
            try await app.enqueue(giveStars("1", 1))
            #expect(try app.mutations().count == 1)
            try store.close()
        }
    }

    @Test("Bytes that were changed anywhere end in typed errors or an answer, and never the process")
    func flipped() async throws {
        let seed = TestSeed.of("flipped")
        var random = SeededNumbers(seed: seed)
        try await withWork { folder, file in
            let whole = try Data(contentsOf: file)
            for round in 0..<60 {
                var bytes = whole
                // A third of them in the header and the schema.
                let limit = round % 3 == 0 ? 4_096 : bytes.count
                for _ in 0...Int(random.next() % 8) {
                    bytes[Int(random.next() % UInt64(limit))] ^= UInt8(truncatingIfNeeded: 1 << (random.next() % 8))
                }
                try bytes.write(to: file)
                for name in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + name) }
                let thrown = await code {
                    let (store, app) = try open(folder, ScriptedServer.rating())
                    defer { try? store.close() }
                    _ = try app.mutations()
                    try await app.enqueue(giveStars("5", 5))
                    _ = try app.mutations(in: [.deadLetter])
                }
                #expect(
                    thrown.map { $0.hasPrefix("operations.") || $0.hasPrefix("larder.") } ?? true,
                    "\(thrown ?? ""), seed \(seed), round \(round)")
            }
        }
    }
}

/// Holds the database for a while, and lets go.
private final class PassingLock: Sendable {
    private let folder: URL
    private let taken = Mutex(false)

    init(_ folder: URL) { self.folder = folder }

    var wasTaken: Bool { taken.withLock { $0 } }

    func take() {
        let isFirst = taken.withLock { taken in
            defer { taken = true }
            return !taken
        }
        guard isFirst, let other = try? OtherProgram(folder), (try? other.run("BEGIN EXCLUSIVE")) != nil else { return }
        // The connection is this thread's alone from here on.
        nonisolated(unsafe) let held = other
        Thread.detachNewThread {
            Thread.sleep(forTimeInterval: 0.2)
            try? held.run("COMMIT")
        }
    }
}

@Suite(
    "A database of mutations that belongs to another user",
    .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct ForeignDatabaseTests {
    @Test(
        "A database that may not be written is refused as such, and so is a folder that takes no log",
        arguments: [true, false])
    func readOnly(isFile: Bool) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try schema.get())
            try await store.partition().enqueue(giveStars("1", 1))
            try store.close()
            for name in [folder.path, place.path]
                + (try FileManager.default.subpathsOfDirectory(atPath: place.path))
                .map({ place.appending(path: $0).path })
            {
                let file = name.hasSuffix("larder.sqlite")
                let mode = file ? (isFile ? 0o444 : 0o666) : name == place.path && !isFile ? 0o555 : 0o777
                try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: name)
            }
            let before = try Data(contentsOf: place.appending(path: "larder.sqlite"))
            let said = try await ChildProgram.run(place, "stranger", "queue")
            #expect(said.count == 1)
            #expect(said.first?.hasPrefix("refused operations.notWritable") == true, "\(said)")
            #expect(try Data(contentsOf: place.appending(path: "larder.sqlite")) == before)
        }
    }
}
