import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import LarderLMDB

/// Runs a program until `body` has ended, which gets it once it has printed a line.
private func withChild(_ program: String, _ arguments: [String], _ body: (Process) throws -> Void) throws {
    let child = Process()
    child.executableURL = URL(filePath: "/usr/bin/env")
    child.arguments = [program] + arguments
    let output = Pipe.uninherited()
    child.standardOutput = output
    try child.start()
    defer {
        kill(child.processIdentifier, SIGKILL)
        child.waitUntilExit()
    }
    let line = output.fileHandleForReading.availableData
    try #require(!line.isEmpty, "the child said nothing")
    try body(child)
}

private let hasFlock = succeeds("flock", "--version")
private let loadLibrary = """
    import ctypes, ctypes.util
    m = ctypes.CDLL(ctypes.util.find_library("lmdb") or "liblmdb.so.0")
    """
private let hasPython = succeeds("python3", "-c", loadLibrary)

/// A program that opens an environment and stays inside a snapshot, or only has it open.
private func readerScript(mapSize: Int, reads: Bool = true) -> String {
    """
    \(loadLibrary)
    import sys, time
    env, txn = ctypes.c_void_p(), ctypes.c_void_p()
    assert m.mdb_env_create(ctypes.byref(env)) == 0
    assert m.mdb_env_set_mapsize(env, ctypes.c_size_t(\(mapSize))) == 0
    assert m.mdb_env_open(env, sys.argv[1].encode(), 0x20000, 0o644) == 0
    assert not \(reads ? "True" : "False") or m.mdb_txn_begin(env, None, 0x20000, ctypes.byref(txn)) == 0
    print("ready", flush=True)
    time.sleep(100)
    """
}

@Suite("Other processes", .timeLimit(.minutes(10)))
struct ProcessTests {
    @Test(
        "A writer that was stopped with the lock leads to an error that names it, and reading goes on",
        .enabled(if: hasFlock, "needs flock(1)"))
    func stoppedHolder() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: records) }
            let lock = environment.folder + "/write.lock"
            let script = "echo 'pid '$$', other program' > '\(lock)'; echo ready; kill -STOP $$; sleep 100"
            try withChild("flock", [lock, "sh", "-c", script]) { _ in
                let deadline = SuspendingClock.now + .milliseconds(100)
                let error = try failure { try environment.write(deadline: deadline) { _ in } }
                try requireNear(deadline)
                #expect(error?.code == .lockTimedOut)
                #expect(error?.message.contains("other program") == true)
                let transaction = try environment.beginRead()
                #expect(try transaction.get(1, in: records).copied == bytes("one"))
                let holder = LockFileNote.processIdentifier(in: lock)
                try #require(holder > 0)
                kill(holder, SIGKILL)
            }
            try environment.write { try $0.put(2, bytes("two").rawSpan, in: records) }
        }
    }

    @Test("Beside a stalled writer, syncing and making a table end at the deadline, and closing leaves no stamp")
    func besideStoppedWriter() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options.fast
            options.lockTimeout = .milliseconds(20)
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: options)
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: try environment.records) }
            let lock = try LockFile(existing: folder.path + "/write.lock")
            try #require(try lock.tryLock(.exclusive))
            expectFailure(.lockTimedOut) { try environment.synchronize() }
            try environment.close()
            // The other writer may have begun to change the file, so that no stamp may call it clean.
            #expect(CleanCloseStamp(folder: folder.path, in: FileSystem()) == nil)
            let tables = sampleTables + [.init(name: "more", keys: .bytes)]
            expectFailure(.lockTimedOut) {
                _ = try Environment(folder: folder.path, tables: tables, options: options)
            }
            lock.unlock()
            try Environment(folder: folder.path, tables: tables, options: options).close()
        }
    }

    @Test("The place of a reader that was killed is cleared", .enabled(if: hasPython, "needs python3 and liblmdb"))
    func deadReader() async throws {
        try await withEnvironment { environment in
            let script = readerScript(mapSize: environment.options.mapSize)
            try withChild("python3", ["-c", script, environment.folder]) { (child) throws -> Void in
                #expect(try environment.clearDeadReaders() == 0)
                kill(child.processIdentifier, SIGKILL)
                child.waitUntilExit()
                #expect(try environment.clearDeadReaders() == 1)
            }
        }
    }

    @Test(
        "The place of a reader that was killed is free again after 1,024 writes",
        .enabled(if: hasPython, "needs python3 and liblmdb"))
    func deadReaderBesideWriter() async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            let script = readerScript(mapSize: environment.options.mapSize)
            try withChild("python3", ["-c", script, environment.folder]) { (child) throws -> Void in
                kill(child.processIdentifier, SIGKILL)
                child.waitUntilExit()
                for round in 0..<1_024 as Range<UInt64> {
                    try environment.write { try $0.put(round, bytes("x").rawSpan, in: records) }
                }
                #expect(try environment.clearDeadReaders() == 0)
            }
        }
    }

    @Test(
        "Where readers that were killed hold all places, reading frees them",
        .enabled(if: hasPython, "needs python3 and liblmdb"))
    func deadReadersHoldAllPlaces() async throws {
        try await withEnvironment { environment in
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: try environment.records) }
            let script =
                readerScript(mapSize: environment.options.mapSize, reads: false).replacing(
                    "print(\"ready\"",
                    with: """
                        # Without thread-local storage each transaction has a place, until there is none.
                        while m.mdb_txn_begin(env, None, 0x20000, ctypes.byref(ctypes.c_void_p())) == 0: pass
                        print("ready"
                        """
                ).replacing("0x20000, 0o644", with: "0x220000, 0o644")
            try withChild("python3", ["-c", script, environment.folder]) { (child) throws -> Void in
                expectFailure(.readersFull) { _ = try environment.beginRead() }
                kill(child.processIdentifier, SIGKILL)
                child.waitUntilExit()
                let reading = try environment.beginRead()
                #expect(try reading.get(1, in: environment.records).copied == bytes("one"))
            }
        }
    }

    @Test(
        "Programs that open, write once and close free the pages that a killed reader held",
        .enabled(if: hasPython, "needs python3 and liblmdb"))
    func deadReaderAndShortLivedWriters() async throws {
        try await withTemporaryFolder { folder in
            func open() throws -> Environment {
                try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            }
            let first = try open()
            let mapSize = first.options.mapSize
            // While a process has the file open, LMDB keeps its table of readers.
            let (idle, reader) = (readerScript(mapSize: mapSize, reads: false), readerScript(mapSize: mapSize))
            try withChild("python3", ["-c", idle, folder.path]) { _ in
                try withChild("python3", ["-c", reader, folder.path]) { (child) throws -> Void in
                    kill(child.processIdentifier, SIGKILL)
                    child.waitUntilExit()
                }
                try first.close()
                for round in 0..<60 {
                    let environment = try open()
                    let (records, value) = (try environment.records, [UInt8](repeating: UInt8(round), count: 100_000))
                    try environment.write { try $0.put(1, value.rawSpan, in: records) }
                    try environment.close()
                }
            }
            let size = try FileManager.default.attributesOfItem(atPath: folder.path + "/data.mdb")[.size] as? Int
            #expect(try #require(size) < 2_000_000)
        }
    }

    @Test(
        "An opener beside a process that found the file not cleanly closed hears that commits may be lost",
        .enabled(if: hasFlock, "needs flock(1)"))
    func recoveredBesideProcess() async throws {
        for isClean in [true, false] {
            try await withTemporaryFolder { folder in
                func open() throws -> Environment {
                    try Environment(folder: folder.path, tables: sampleTables, options: .fast)
                }
                let writer = try open()
                try writer.write { try $0.put(1, bytes("x").rawSpan, in: writer.records) }
                try writer.close()
                if !isClean { try FileManager.default.removeItem(at: folder.appending(path: "clean.stamp")) }
                let first = try open()
                #expect(first.mayHaveLostCommits == !isClean)
                // Goes on having it open, as the first would in a process of its own.
                let script = "echo ready; exec sleep 100"
                try withChild("flock", ["--no-fork", "-s", folder.path + "/open.lock", "sh", "-c", script]) { _ in
                    try first.close()
                    let second = try open()
                    #expect(!second.wasVerified)
                    #expect(second.mayHaveLostCommits == !isClean)
                    try second.close()
                }
            }
        }
    }

    @Test(
        "A full map is written again once the dead readers that filled it are cleared",
        .enabled(if: hasPython, "needs python3 and liblmdb"))
    func deadReaderFillsMap() async throws {
        var options = Environment.Options.fast
        options.mapSize = 1 << 20
        try await withEnvironment(options) { environment in
            let records = try environment.records
            let script = readerScript(mapSize: options.mapSize)
            try withChild("python3", ["-c", script, environment.folder]) { child in
                kill(child.processIdentifier, SIGKILL)
                child.waitUntilExit()
                for round in 0..<100 as Range<UInt64> {
                    let value = [UInt8](repeating: UInt8(round), count: 100_000)
                    try environment.write { try $0.put(1, value.rawSpan, in: records) }
                }
            }
        }
    }

    @Test(
        "Snapshots and writes find what another process has stored beyond this one's map",
        .enabled(if: hasPython, "needs python3 and liblmdb"),
        arguments: ["new reader", "earlier reader", "writer", "beside another"])
    func storedBeyondMap(first: String) async throws {
        var options = Environment.Options.fast
        options.startingMapSize = 1 << 20
        options.mapSize = 64 << 20
        options.lockTimeout = .seconds(10)
        try await withEnvironment(options) { environment in
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: records) }
            func value(_ id: UInt64) throws -> [UInt8]? {
                let transaction = try environment.beginRead()
                return try transaction.get(id, in: records).copied
            }
            if first == "earlier reader" { #expect(try value(1) == bytes("one")) }
            let (hasBegun, mayEnd) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
            /// Takes a snapshot on another thread, which keeps it until `mayEnd` is signalled.
            func begin() {
                Thread.detachNewThread {
                    guard let transaction = try? environment.beginRead() else { return }
                    hasBegun.signal()
                    _ = mayEnd.wait(timeout: .now() + 60)
                    _ = try? transaction.get(1, in: records)
                }
                _ = hasBegun.wait(timeout: .now() + 60)
            }
            if first == "beside another" { begin() }
            let script = """
                \(loadLibrary)
                import struct, sys
                class Value(ctypes.Structure): _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.c_char_p)]
                env, txn, table = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint()
                assert m.mdb_env_create(ctypes.byref(env)) == 0
                assert m.mdb_env_set_mapsize(env, ctypes.c_size_t(64 << 20)) == 0
                assert m.mdb_env_set_maxdbs(env, 2) == 0
                assert m.mdb_env_open(env, sys.argv[1].encode(), 0, 0o644) == 0
                assert m.mdb_txn_begin(env, None, 0, ctypes.byref(txn)) == 0
                assert m.mdb_dbi_open(txn, b"records", 0, ctypes.byref(table)) == 0
                for number in range(2, 60):
                    key, value = struct.pack("=Q", number), bytes([number]) * 50000
                    key, value = Value(len(key), key), Value(len(value), value)
                    assert m.mdb_put(txn, table, ctypes.byref(key), ctypes.byref(value), 0) == 0
                assert m.mdb_txn_commit(txn) == 0
                print("ready", flush=True)
                """
            try withChild("python3", ["-c", script, environment.folder]) { (_) throws -> Void in
                if first == "writer" { try environment.write { try $0.put(60, bytes("mine").rawSpan, in: records) } }
                // The map can grow once the other snapshot has ended.
                DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(100)) { mayEnd.signal() }
                for _ in 0..<3 { #expect(try value(59) == [UInt8](repeating: 59, count: 50_000)) }
                if first == "writer" { #expect(try value(60) == bytes("mine")) }
            }
        }
    }

    @Test("A full disk is a typed error, and what was committed stays", .enabled(if: canMount, "may not mount a tmpfs"))
    func diskFull() async throws {
        try await withTemporaryFolder { folder in
            try #require(succeeds("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder.path))
            defer { _ = succeeds("umount", "-l", folder.path) }
            let environment = try Environment(folder: folder.path, tables: sampleTables)
            let records = try environment.records
            try environment.write { try $0.put(1, bytes("kept").rawSpan, in: records) }
            expectFailure(.diskFull) {
                try environment.write { transaction in
                    for id in 2..<60 as Range<UInt64> {
                        try transaction.put(id, [UInt8](repeating: 1, count: 100_000).rawSpan, in: records)
                    }
                }
            }
            func look() throws {
                let transaction = try environment.beginRead()
                #expect(try transaction.get(1, in: records).copied == bytes("kept"))
                #expect(try transaction.entryCount(of: records) == 1)
            }
            try look()
            try requireSound(folder)
        }
    }

    @Test(
        "A copy that its disk has no room for is a typed error, and leaves no file",
        .enabled(if: canMount, "may not mount a tmpfs"), arguments: [true, false])
    func copyToFullDisk(isCompacting: Bool) async throws {
        try await withEnvironment { environment in
            let records = try environment.records
            try environment.write { transaction in
                for id in 0..<40 as Range<UInt64> {
                    try transaction.put(id, [UInt8](repeating: 1, count: 100_000).rawSpan, in: records)
                }
            }
            try await withSmallVolume(2 << 20) { volume in
                let target = volume.appending(path: "copy")
                expectFailure(.diskFull) { try environment.copy(to: target.path, compacting: isCompacting) }
                let left = try FileManager.default.contentsOfDirectory(atPath: target.path)
                #expect(left == [])
            }
        }
    }

    @Test(
        "A read-only volume is read without making a file, and refused for writing",
        .enabled(if: canMount, "may not mount"))
    func readOnlyVolume() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: .fast)
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: try environment.records) }
            try environment.close()
            for name in ["lock.mdb", "write.lock", "open.lock"] {
                try FileManager.default.removeItem(at: folder.appending(path: name))
            }
            try #require(succeeds("mount", "--bind", folder.path, folder.path))
            defer { _ = succeeds("umount", "-l", folder.path) }
            try #require(succeeds("mount", "-o", "remount,ro,bind", folder.path))
            var options = Environment.Options()
            expectFailure(.readOnly) {
                _ = try Environment(folder: folder.path, tables: sampleTables, options: options)
            }
            options.isReadOnly = true
            let reader = try Environment(folder: folder.path, tables: sampleTables, options: options)
            let transaction = try reader.beginRead()
            #expect(try transaction.get(1, in: try reader.records).copied == bytes("one"))
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.sorted() == ["clean.stamp", "data.mdb"])
            try requireSound(folder)
        }
    }
}

private enum LockFileNote {
    /// The process that a lock file's first line names; zero where it names none.
    static func processIdentifier(in path: String) -> Int32 {
        guard let text = try? String(contentsOfFile: path, encoding: .utf8) else { return 0 }
        return text.split(whereSeparator: { !$0.isNumber }).first.flatMap { Int32($0) } ?? 0
    }
}
