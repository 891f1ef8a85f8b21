import Foundation
import LarderFiles
import LarderTestSupport
import Testing

@testable import LarderLMDB

/// Readers whom LMDB's table does not have, and who keep writers away by a lock.
@Suite("Readers that cannot be registered", .timeLimit(.minutes(5)))
struct UnregisteredReadingTests {
    private func lock(in folder: URL) throws -> LockFile {
        try LockFile(path: folder.appending(path: "write.lock").path, mustWrite: true)
    }

    @Test("Writers are kept away from the first reader's coming until the last has gone, each time anew")
    func excludes() async throws {
        try await withTemporaryFolder { folder in
            let writer = try lock(in: folder)
            let reading = UnregisteredReading(folder: folder.path, options: .fast)
            for _ in 0..<2 {
                try reading.enter()
                try reading.enter()
                #expect(try !writer.tryLock(.exclusive))
                reading.leave()
                #expect(try !writer.tryLock(.exclusive))
                reading.leave()
                #expect(try writer.tryLock(.exclusive))
                writer.unlock()
            }
            reading.close()
        }
    }

    @Test("A reader waits for the one that writes, no longer than it may, and another time reads")
    func waits() async throws {
        try await withTemporaryFolder { folder in
            var options = Environment.Options.fast
            options.lockTimeout = .milliseconds(20)
            let writer = try lock(in: folder)
            writer.setNote("a writer")
            #expect(try writer.tryLock(.exclusive))
            let reading = UnregisteredReading(folder: folder.path, options: options)
            let error = try failure { try reading.enter() }
            #expect(error?.code == .lockTimedOut && error?.message.contains("a writer is writing") == true)
            writer.unlock()
            try reading.enter()
            #expect(try !writer.tryLock(.exclusive))
            reading.leave()
            reading.close()
        }
    }

    @Test("A folder without the lock was never open for writing, and is read")
    func noLock() async throws {
        try await withTemporaryFolder { folder in
            let reading = UnregisteredReading(folder: folder.appending(path: "absent").path, options: .fast)
            try reading.enter()
            try reading.enter()
            reading.leave()
            reading.leave()
        }
    }

    @Test("Opening, reading, copying and a read that is refused each leave the lock to writers again")
    func leaves() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "environment")
            let made = try Environment(folder: place.path, tables: sampleTables, options: .fast)
            let records = try made.records
            try made.write { try $0.put(1, bytes("one").rawSpan, in: records) }
            try made.close()
            var options = Environment.Options.fast
            options.isReadOnly = true
            // As on a volume that is read-only.
            options.files = FileSystem(injecting: { $0.path.hasSuffix("/lock.mdb") ? .failure(EROFS) : nil })
            let environment = try Environment(folder: place.path, tables: sampleTables, options: options)
            let writer = try lock(in: place)
            func expectFree(_ after: Comment) throws {
                #expect(try writer.tryLock(.exclusive), after)
                writer.unlock()
            }
            try expectFree("opening")
            do {
                let transaction = try environment.beginRead()
                #expect(try transaction.get(1, in: environment.records).copied == bytes("one"))
                #expect(try !writer.tryLock(.exclusive))
            }
            try expectFree("reading")
            try environment.copy(to: folder.appending(path: "copy").path, compacting: true)
            try expectFree("copying")
            try environment.close()
            expectFailure(.closed) { _ = try environment.beginRead() }
            try expectFree("a read that is refused")
        }
    }

    @Test("LMDB's table is done without where there is no right to it or no room for it, and for no other reason")
    func reasons() {
        func isNeeded(_ status: Int32) -> Bool {
            UnregisteredReading.isNeeded(after: FileError(status, doing: "opening a file", path: "lock.mdb"))
        }
        for status in [EACCES, EPERM, EROFS, ENOSPC, EDQUOT] { #expect(isNeeded(status), "\(status)") }
        for status in [EIO, ENOENT, EMFILE, ENOMEM] { #expect(!isNeeded(status), "\(status)") }
    }
}
