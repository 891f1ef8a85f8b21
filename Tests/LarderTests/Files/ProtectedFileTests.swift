import Foundation
import LarderFiles
import LarderOperations
import LarderTestSupport
import Testing

@testable import Larder

#if canImport(Darwin)
import Darwin
#elseif canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

@Suite("Files of a device that was not unlocked yet", .timeLimit(.minutes(5)))
struct ProtectedFileTests {
    /// A file system that opens no file, and says `EPERM`, as data protection does.
    private func files(_ isLocked: Flag, protecting: Bool = true) -> FileSystem {
        FileSystem(
            injecting: { $0.kind == .open && isLocked.isSet ? .failure(EPERM) : nil }, protectingFiles: protecting)
    }

    private func withStore(_ body: (URL) async throws -> Void) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition()
            try await app.enqueue(giveStars("1", 5))
            try store.close()
            try await body(folder)
        }
    }

    @Test("Opening fails with a code of its own, tells the user to unlock the device, and goes well afterwards")
    func opening() async throws {
        try await withStore { folder in
            let isLocked = Flag()
            isLocked.set()
            var options = Store.Options()
            options.files = files(isLocked)
            let error = #expect(throws: LarderError.self) {
                let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
                defer { try? store.close() }
                _ = try store.partition()
            }
            #expect(error?.code == .protected)
            #expect(error?.remedy == .tryAgain(after: nil))
            for texts in [ErrorTexts.english, .japanese] {
                #expect(error.map(texts.text(for:)) != texts.text(for: .recordsNotWritable))
            }
            isLocked.set(false)
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            #expect(try store.partition().mutations(in: [.pending]).count == 1)
            try store.close()
        }
    }

    @Test("Where the system has no data protection the same is a missing permission")
    func elsewhere() async throws {
        try await withStore { folder in
            let isLocked = Flag()
            isLocked.set()
            var options = Store.Options()
            options.files = files(isLocked, protecting: false)
            let error = #expect(throws: LarderError.self) {
                let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
                defer { try? store.close() }
                _ = try store.partition()
            }
            #expect(error?.code != .protected)
        }
    }

    @Test("A database that SQLite cannot open, and the system keeps locked, is told for what it is")
    func database() async throws {
        try await withStore { folder in
            // SQLite opens its files by itself, and follows no link here.
            let shared = folder.appending(path: "larder.sqlite-shm")
            try? FileManager.default.removeItem(at: shared)
            try FileManager.default.createSymbolicLink(at: shared, withDestinationURL: folder)
            let isLocked = Flag()
            isLocked.set()
            var options = OperationsDatabase.Options()
            options.files = files(isLocked)
            let error = #expect(throws: OperationsError.self) {
                _ = try OperationsDatabase(folder: folder, options: options)
            }
            #expect(error?.code == .filesProtected)
            #expect(error.map { LarderError($0).code } == .protected)
        }
    }
}
