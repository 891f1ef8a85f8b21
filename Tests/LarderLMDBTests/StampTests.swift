import Foundation
import LarderFiles
import LarderTestSupport
import Synchronization
import Testing

@testable import LarderLMDB

@Suite("Stamps of a clean close", .timeLimit(.minutes(10)))
struct StampTests {
    @Test(
        "A stamp is removed, and its folder synced, before the first commit: also one that another process removed",
        arguments: [true, false])
    func revoked(isThere: Bool) async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options()
            options.durability = .withoutMetaSync
            let first = try Environment(folder: folder.path, tables: sampleTables, options: options)
            try first.write { try $0.put(1, bytes("one").rawSpan, in: try first.records) }
            try first.close()
            let stamp = folder.path + "/clean.stamp"
            try #require(FileManager.default.fileExists(atPath: stamp))
            if !isThere { try FileManager.default.removeItem(atPath: stamp) }
            let calls = NotedCalls()
            options.files = calls.files
            let second = try Environment(folder: folder.path, tables: sampleTables, options: options)
            calls.forget()
            try second.write { try $0.put(2, bytes("two").rawSpan, in: try second.records) }
            let made = calls.all
            let removal = made.firstIndex(of: FileCall(.remove, stamp))
            let sync = made.firstIndex(of: FileCall(.synchronizeFolder, folder.path))
            #expect(try #require(removal) < #require(sync))
            // Once is enough.
            calls.forget()
            try second.write { try $0.put(3, bytes("three").rawSpan, in: try second.records) }
            #expect(calls.all.allSatisfy { $0.kind != .synchronizeFolder })
            try second.close()
        }
    }

    @Test("An environment whose folder was removed closes without an error, and leaves nothing")
    func removed() async throws {
        try await withTemporaryFolder { base in
            let folder = base.appending(path: "removed")
            let environment = try Environment(folder: folder.path, tables: sampleTables)
            try environment.write { try $0.put(1, bytes("x").rawSpan, in: try environment.records) }
            try FileManager.default.removeItem(at: folder)
            try environment.close()
            #expect(!FileManager.default.fileExists(atPath: folder.path))
        }
    }

    @Test("A clean close leaves a stamp that fits, and a later change makes it not fit")
    func stamp() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables)
            try environment.write { try $0.put(1, bytes("x").rawSpan, in: try environment.records) }
            #expect(CleanCloseStamp(folder: folder.path, in: FileSystem()) == nil)
            try environment.close()
            let stamp = try #require(CleanCloseStamp(folder: folder.path, in: FileSystem()))
            let data = try DataFile(folder: folder.path, options: .init())
            #expect(stamp == CleanCloseStamp(try data.status(), transaction: try requireSound(folder).transaction))
            let path = CleanCloseStamp.path(in: folder.path)
            var content = Array(try Data(contentsOf: URL(filePath: path)))
            content[20] ^= 1
            try Data(content).write(to: URL(filePath: path))
            #expect(CleanCloseStamp(folder: folder.path, in: FileSystem()) == nil)
        }
    }

    @Test("A stamp with bytes behind it, or of another version, is none")
    func foreignStamps() async throws {
        try await withTemporaryFolder { folder in
            try Environment(folder: folder.path, tables: sampleTables).close()
            let file = URL(filePath: CleanCloseStamp.path(in: folder.path))
            let content = Array(try Data(contentsOf: file))
            func isTrusted(_ content: [UInt8]) throws -> Bool {
                try Data(content).write(to: file)
                return CleanCloseStamp(folder: folder.path, in: FileSystem()) != nil
            }
            var later = content
            later[8] += 1
            let sum = later[..<48].reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
            withUnsafeBytes(of: sum.littleEndian) { later.replaceSubrange(48..<56, with: $0) }
            #expect(try !isTrusted(later))
            #expect(try !isTrusted(content + [0]))
            #expect(try isTrusted(content))
        }
    }

    @Test("An environment that is stamped while it is open has a stamp that fits, until its next commit")
    func stampedWhileOpen() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options()
            options.durability = .withoutMetaSync
            let calls = NotedCalls()
            options.files = calls.files
            func fits() throws -> Bool {
                let data = try DataFile(folder: folder.path, options: .init())
                let meta = try MetaPage.newest(in: data.pages)
                return CleanCloseStamp(folder: folder.path, in: FileSystem())
                    == CleanCloseStamp(try data.status(), transaction: meta.transaction)
            }
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: options)
            for number in 0..<3 as Range<UInt64> {
                calls.forget()
                try environment.write { try $0.put(number, bytes("x").rawSpan, in: try environment.records) }
                #expect(CleanCloseStamp(folder: folder.path, in: FileSystem()) == nil)
                // The stamp went for good before the commit.
                #expect(calls.all.contains(FileCall(.synchronizeFolder, folder.path)))
                try environment.stamp()
                #expect(try fits())
                calls.forget()
                try environment.stamp()
                #expect(calls.all.allSatisfy { $0.kind != .write && $0.kind != .synchronize })
            }
            environment.distrust()
            try environment.write { try $0.put(9, bytes("x").rawSpan, in: try environment.records) }
            try environment.stamp()
            #expect(CleanCloseStamp(folder: folder.path, in: FileSystem()) == nil)
            try environment.close()
            expectFailure(.closed) { try environment.stamp() }
        }
    }

    @Test("Before a file is stamped, the pages on which its commits build are written once more")
    func writtenBefore() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options()
            options.durability = .withoutMetaSync
            let calls = NotedCalls()
            options.files = calls.files
            let environment = try Environment(folder: folder.path, tables: sampleTables, options: options)
            for isClosing in [false, true] {
                try environment.write { try $0.put(isClosing ? 1 : 0, bytes("x").rawSpan, in: try environment.records) }
                calls.forget()
                if isClosing { try environment.close() } else { try environment.stamp() }
                let writes = calls.all.filter { $0.kind == .write }.map(\.path)
                let pages = writes.firstIndex { $0.hasSuffix("/data.mdb") }
                let stamp = writes.firstIndex { $0.contains("/clean.stamp") }
                #expect(try #require(pages) < #require(stamp))
            }
        }
    }

    @Test("A copy in the file's place is walked, though it has the size and the time that the stamp says")
    func copiedFile() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables)
            try environment.write { try $0.put(1, bytes("one").rawSpan, in: try environment.records) }
            try environment.close()
            let path = folder.path + "/data.mdb"
            try #require(succeeds("cp", "-p", path, path + ".copy") && succeeds("mv", path + ".copy", path))
            let again = try Environment(folder: folder.path, tables: sampleTables)
            #expect(again.wasVerified)
            try again.close()
        }
    }

    @Test(
        "A file that is longer than its stamp says, or holds an older commit, is walked, though its time fits",
        arguments: [true, false])
    func sameTime(isLonger: Bool) async throws {
        try await withTemporaryFolder { folder in
            func write(_ text: String) throws {
                let environment = try Environment(folder: folder.path, tables: sampleTables)
                try environment.write { try $0.put(1, bytes(text).rawSpan, in: try environment.records) }
                try environment.close()
            }
            let file = folder.appending(path: "data.mdb")
            try write("one")
            let older = try Data(contentsOf: file)
            try write("two")
            try #require(succeeds("cp", "-p", file.path, file.path + ".stamped"))
            // In place, so that the inode stays.
            let handle = try FileHandle(forUpdating: file)
            if isLonger { try handle.seekToEnd() }
            try handle.write(contentsOf: isLonger ? Data(count: pageSize) : older)
            try handle.close()
            try #require(succeeds("touch", "-r", file.path + ".stamped", file.path))
            let again = try Environment(folder: folder.path, tables: sampleTables)
            #expect(again.wasVerified)
            try again.close()
        }
    }

    @Test("A file that the stamp fits is not walked; without the stamp it is")
    func stampSkipsWalk() async throws {
        try await withTemporaryFolder { folder in
            let environment = try Environment(folder: folder.path, tables: sampleTables)
            try environment.write { transaction in
                for id in 0..<5_000 as Range<UInt64> {
                    try transaction.put(id, bytes("\(id)").rawSpan, in: try environment.records)
                }
            }
            try environment.close()
            // Damage in a leaf, and a stamp that vouches for it.
            let file = folder.appending(path: "data.mdb")
            var content = Array(try Data(contentsOf: file))
            content[5 * pageSize + 12] ^= 0xFF
            let handle = try FileHandle(forUpdating: file)
            try handle.write(contentsOf: Data(content))
            try handle.close()
            func vouch() throws {
                var options = Environment.Options()
                options.isReadOnly = true
                let data = try DataFile(folder: folder.path, options: options)
                let meta = try MetaPage.newest(in: data.pages)
                try CleanCloseStamp(try data.status(), transaction: meta.transaction)
                    .write(in: folder.path, FileSystem())
            }
            try vouch()
            try Environment(folder: folder.path, tables: sampleTables).close()
            try FileManager.default.removeItem(atPath: CleanCloseStamp.path(in: folder.path))
            expectFailure(.damaged) { _ = try Environment(folder: folder.path, tables: sampleTables) }
            try vouch()
            var always = Environment.Options()
            always.verification = .always
            expectFailure(.damaged) { _ = try Environment(folder: folder.path, tables: sampleTables, options: always) }
        }
    }

    @Test("An environment says whether its file lacked a clean close; one that is distrusted leaves no stamp")
    func wasVerified() async throws {
        try await withTemporaryFolder { folder in
            func open() throws -> Environment { try Environment(folder: folder.path, tables: sampleTables) }
            let fresh = try open()
            #expect(!fresh.wasVerified)
            try fresh.write { try $0.put(1, bytes("x").rawSpan, in: try fresh.records) }
            try fresh.close()
            let clean = try open()
            #expect(!clean.wasVerified)
            try clean.close()
            try FileManager.default.removeItem(atPath: CleanCloseStamp.path(in: folder.path))
            for _ in 0..<2 {
                let unclean = try open()
                #expect(unclean.wasVerified)
                unclean.distrust()
                try unclean.close()
            }
            let trusted = try open()
            #expect(trusted.wasVerified)
            try trusted.close()
            let again = try open()
            #expect(!again.wasVerified)
            try again.close()
            // It is walked all the same, and lacked no clean close.
            var always = Environment.Options()
            always.verification = .always
            let walked = try Environment(folder: folder.path, tables: sampleTables, options: always)
            #expect(!walked.wasVerified && !walked.mayHaveLostCommits)
            try walked.close()
            try requireSound(folder)
        }
    }

    @Test("A file looks cleanly closed no more before a commit that power loss may take back")
    func stampIsRevoked() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options()
            options.durability = .withoutMetaSync
            func isStamped() -> Bool { CleanCloseStamp(folder: folder.path, in: FileSystem()) != nil }
            for number in 0..<2 as Range<UInt64> {
                let environment = try Environment(folder: folder.path, tables: sampleTables, options: options)
                #expect(isStamped() == (number > 0))
                try environment.write { try $0.put(number, bytes("x").rawSpan, in: try environment.records) }
                #expect(!isStamped())
                try environment.close()
                #expect(isStamped())
            }
            try requireSound(folder)
        }
    }

    @Test("A process that opens a file beside the one that found it not cleanly closed hears of that")
    func recoveredBeside() async throws {
        try await withTemporaryFolder { folder in
            let deadline = SuspendingClock.now + .seconds(20)
            for isRecovered in [true, false] {
                let first = try #require(try PresenceLock(folder: folder.path, options: .init()))
                #expect(try first.enter(deadline: deadline) == .first)
                try first.settle(isRecovered: isRecovered, deadline: deadline)
                let second = try #require(try PresenceLock(folder: folder.path, options: .init()))
                #expect(try second.enter(deadline: deadline) == (isRecovered ? .recovered : .verified))
            }
        }
    }

    @Test("A file whose verifier died is not taken for verified, and the next process verifies it")
    func verifierDied() async throws {
        try await withTemporaryFolder { folder in
            let far = SuspendingClock.now + .seconds(20)
            func lock() throws -> PresenceLock {
                let lock = try PresenceLock(folder: folder.path, options: .init())
                return try #require(lock)
            }
            let earlier = try lock()
            #expect(try earlier.enter(deadline: far) == .first)
            try earlier.settle(isRecovered: false, deadline: far)
            earlier.leave()
            // It says that it verifies, and dies: the kernel gives its lock to another, here to a reader.
            let dying = try lock()
            #expect(try dying.enter(deadline: far) == .first)
            dying.leave()
            let reader = try LockFile(existing: folder.path + "/open.lock")
            #expect(try reader.tryLock(.shared))
            let deadline = SuspendingClock.now + .milliseconds(50)
            expectFailure(.lockTimedOut) { _ = try lock().enter(deadline: deadline) }
            try requireNear(deadline)
            // One that may not write the lock cannot say that it verifies, and looks for itself.
            let isRefused = Atomic(true)
            var readOnly = Environment.Options()
            readOnly.isReadOnly = true
            readOnly.files = FileSystem { call in
                guard call.kind == .open, isRefused.exchange(false, ordering: .relaxed) else { return nil }
                return .failure(EACCES)
            }
            let onlooker = try #require(try PresenceLock(folder: folder.path, options: readOnly))
            #expect(try onlooker.enter(deadline: far) == .first)
            onlooker.leave()
            reader.unlock()
            #expect(try lock().enter(deadline: far) == .first)
        }
    }
}
