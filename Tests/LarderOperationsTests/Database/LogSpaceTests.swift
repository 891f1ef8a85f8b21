import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Room in the log", .timeLimit(.minutes(10)))
struct LogSpaceTests {
    /// A thousand pages with their heads, and the log's own: where SQLite begins it anew. Somewhat more for the commit
    /// by which it does.
    private static let (enough, largest) = (1_000 * (4_096 + 24) + 32, 1_100 * (4_096 + 24) + 32)

    @Test("The log is made longer ahead of commits, seldom, and no longer than SQLite itself would")
    func ahead() async throws {
        try await withOperations { database in
            let log = database.file.path + "-wal"
            var sizes: [Int] = []
            for _ in 0..<400 {
                _ = try await database.enqueue(draft())
                sizes.append(try #require(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int))
            }
            #expect(sizes == sizes.sorted())
            let all = Set(sizes).sorted()
            #expect(sizes[2] >= 256 << 10 && (Self.enough...Self.largest).contains(sizes[399]), "\(all)")
            // Each time by the commit that needs it, and then to twice as much.
            #expect(all.count <= 10, "\(all)")
        }
    }

    @Test("Two processes that write in turns do not lengthen the log for each other")
    func turns() async throws {
        try await withOperations { database in
            let other = try OperationsDatabase(folder: database.file.deletingLastPathComponent())
            for _ in 0..<2 {
                _ = try await database.enqueue(draft())
                _ = try await other.enqueue(draft())
            }
            let log = database.file.path + "-wal"
            let size = try #require(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int)
            for _ in 0..<3 {
                _ = try await database.enqueue(draft())
                _ = try await other.enqueue(draft())
            }
            #expect(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int == size)
            try other.close()
        }
    }

    @Test("To open and write once more makes it no longer")
    func reopened() async throws {
        try await withTemporaryFolder { folder in
            var sizes: Set<Int> = []
            // Some frames each time: fewer in all than there is room for.
            for _ in 0..<4 {
                let database = try OperationsDatabase(folder: folder)
                _ = try await database.enqueue(draft())
                _ = try database.mutations.list(MutationFilter())
                let log = database.file.path + "-wal"
                let size = try #require(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int)
                sizes.insert(size)
                try database.close()
            }
            #expect(sizes.count == 1, "\(sizes)")
        }
    }

    @Test(
        "Where little is free the log is as long as its commits make it",
        .enabled(if: canMount, "may not mount a tmpfs"))
    func scarce() async throws {
        try await withSmallVolume(4 << 20) { folder in
            let database = try OperationsDatabase(folder: folder.appending(path: "store"))
            let log = database.file.path + "-wal"
            var sizes: Set<Int> = []
            for _ in 0..<5 {
                _ = try await database.enqueue(draft())
                sizes.insert(try #require(try FileManager.default.attributesOfItem(atPath: log)[.size] as? Int))
            }
            #expect(sizes.count == 5, "\(sizes)")
            try database.close()
        }
    }

    @Test("Bytes behind a log's last commit mean nothing to the next process that opens it")
    func copied() async throws {
        try await withOperations { database in
            for _ in 0..<10 { _ = try await database.enqueue(draft()) }
            // As a kill leaves them.
            try await withTemporaryFolder { folder in
                for suffix in ["", "-wal"] {
                    try FileManager.default.copyItem(
                        atPath: database.file.path + suffix,
                        toPath: folder.appending(path: OperationsDatabase.fileName).path + suffix)
                }
                let copy = try OperationsDatabase(folder: folder)
                #expect(try copy.mutations.list(MutationFilter()).count == 10)
                #expect(try copy.check().problems.isEmpty)
                _ = try await copy.enqueue(draft())
                try copy.close()
            }
        }
    }
}
