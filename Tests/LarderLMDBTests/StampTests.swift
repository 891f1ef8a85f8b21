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
            let calls = Mutex<[FileCall]>([])
            options.files = FileSystem { call in
                calls.withLock { $0.append(call) }
                return nil
            }
            let second = try Environment(folder: folder.path, tables: sampleTables, options: options)
            calls.withLock { $0 = [] }
            try second.write { try $0.put(2, bytes("two").rawSpan, in: try second.records) }
            let made = calls.withLock { $0 }
            let removal = made.firstIndex(of: FileCall(.remove, stamp))
            let sync = made.firstIndex(of: FileCall(.synchronizeFolder, folder.path))
            #expect(try #require(removal) < #require(sync))
            // Once is enough.
            calls.withLock { $0 = [] }
            try second.write { try $0.put(3, bytes("three").rawSpan, in: try second.records) }
            #expect(calls.withLock { $0 }.allSatisfy { $0.kind != .synchronizeFolder })
            try second.close()
        }
    }
}
