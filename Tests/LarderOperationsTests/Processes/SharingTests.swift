import Foundation
import GRDB
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Others at the same file", .timeLimit(.minutes(10)))
struct SharingTests {
    @Test("A process sees, and is told of, what another has written")
    func two() async throws {
        try await withOperations { one in
            let two = try OperationsDatabase(folder: one.file.deletingLastPathComponent())
            #expect(try !two.hasChanged())
            let id = try await one.enqueue(draft())
            #expect(try two.hasChanged())
            #expect(try !two.hasChanged())
            #expect(try !one.hasChanged())
            #expect(try two.heads() == [id])
            _ = try await two.begin(id)
            #expect(try one.hasChanged())
            await expectFailure(.wrongState) { _ = try await one.begin(id) }
            try two.close()
        }
    }

    @Test("A process that was suspended is told once that something may have changed meanwhile")
    func suspended() async throws {
        try await withOperations { database in
            for _ in 0..<3 {
                try database.suspend(until: .now + .seconds(60))
                try database.resume()
                #expect(try database.hasChanged())
                #expect(try !database.hasChanged())
            }
        }
    }

    @Test("Of two that begin the same mutation one is refused")
    func race() async throws {
        try await withOperations { one in
            let two = try OperationsDatabase(folder: one.file.deletingLastPathComponent())
            for _ in 0..<30 {
                let id = try await one.enqueue(draft())
                async let first: Mutation? = try? one.mutations.begin(id, owner: "1", now: noon)
                async let second: Mutation? = try? two.mutations.begin(id, owner: "2", now: noon)
                let begun = await [first, second].compactMap { $0 }
                #expect(begun.count == 1)
                #expect(try one.mutation(id)?.owner == begun.first?.owner)
                try await two.mutations.answer(try #require(begun.first).attempt, json("{}"), now: noon)
                try await one.mutations.settle(id, now: noon)
            }
            try two.close()
        }
    }

    @Test("A full database is an error of what does not fit, and what was accepted stays")
    func fullDatabase() async throws {
        try await withOperations { database in
            let id = try await database.enqueue(draft())
            try await database.pool.writeWithoutTransaction { db in
                let pages = try Int.fetchOne(db, sql: "PRAGMA page_count") ?? 0
                try db.execute(sql: "PRAGMA max_page_count = \(pages + 20)")
            }
            let large = #"{"text":"\#(String(repeating: "x", count: 1 << 20))"}"#
            let accepted = await withTaskGroup(of: UUID?.self) { group in
                for index in 0..<20 {
                    group.addTask { try? await database.enqueue(draft(variables: index % 2 == 0 ? large : nil)) }
                }
                return await group.reduce(into: Set<UUID>()) { if let id = $1 { $0.insert(id) } }
            }
            #expect(accepted.count == 10)
            #expect(try Set(database.mutations.list().map(\.id)) == accepted.union([id]))
            await expectFailure(.full) { _ = try await database.enqueue(draft(variables: large)) }
            try await database.complete(id)
        }
    }

    @Test(
        "A full disk is an error, what was accepted stays, and room makes it well again",
        .enabled(if: canMount, "may not mount a tmpfs"))
    func fullDisk() async throws {
        try await withTemporaryFolder { folder in
            try #require(succeeds("mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", folder.path))
            defer { _ = succeeds("umount", "-l", folder.path) }
            let filler = folder.appending(path: "filler")
            try Data(count: 1 << 20).write(to: filler)
            let database = try OperationsDatabase(folder: folder)
            let large = #"{"text":"\#(String(repeating: "x", count: 50_000))"}"#
            var accepted: [UUID] = []
            var error: OperationsError?
            for _ in 0..<100 where error == nil {
                do throws(OperationsError) {
                    accepted.append(try await database.mutations.enqueue(draft(variables: large)).id)
                } catch let caught { error = caught }
            }
            #expect(error?.code == .full)
            #expect(try database.mutations.list().map(\.id) == accepted)
            try FileManager.default.removeItem(at: filler)
            _ = try await database.enqueue(draft())
            try expectSound(database)
            try database.close()
        }
    }

    @Test(
        "A disk that is full at opening is an error", .enabled(if: canMount, "may not mount a tmpfs"),
        arguments: [0, 4, 12, 40])
    func fullAtOpening(_ kibibytes: Int) async throws {
        try await withTemporaryFolder { folder in
            try #require(succeeds("mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder.path))
            defer { _ = succeeds("umount", "-l", folder.path) }
            try Data(count: (1 << 20) - kibibytes << 10).write(to: folder.appending(path: "filler"))
            await expectFailure(.full) { _ = try OperationsDatabase(folder: folder) }
        }
    }

    @Test(
        "A read-only volume is read without making a file, and refused for writing",
        .enabled(if: canMount, "may not mount"))
    func readOnlyVolume() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            let id = try await database.enqueue(draft())
            try database.close()
            try #require(succeeds("mount", "--bind", folder.path, folder.path))
            defer { _ = succeeds("umount", "-l", folder.path) }
            try #require(succeeds("mount", "-o", "remount,ro,bind", folder.path))
            await expectFailure(.notWritable) { _ = try OperationsDatabase(folder: folder) }
            await expectFailure(.notWritable) { _ = try OperationsDatabase(folder: folder.appending(path: "new")) }
            var options = OperationsDatabase.Options()
            options.isReadOnly = true
            let reader = try OperationsDatabase(folder: folder, options: options)
            #expect(try reader.mutations.list().map(\.id) == [id])
            try expectSound(reader)
            try reader.close()
            let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
            #expect(names.sorted() == ["larder.sqlite", "locks"])
        }
    }
}
