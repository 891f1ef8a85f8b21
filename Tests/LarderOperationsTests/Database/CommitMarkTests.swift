import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Marks of the newest commit", .timeLimit(.minutes(10)))
struct CommitMarkTests {
    private func mark(_ database: OperationsDatabase) throws -> CommitMark { try #require(try database.commitMark()) }

    @Test("A mark stays until something is committed, here or by another at the same file")
    func changes() async throws {
        try await withOperations { one in
            let two = try OperationsDatabase(folder: one.file.deletingLastPathComponent())
            let first = try mark(one)
            _ = try one.heads()
            #expect(try mark(one) == first)
            _ = try await one.enqueue(draft())
            let second = try mark(one)
            #expect(second != first)
            try one.writeNow { try $0.run("CREATE TABLE mark (a)") }
            let third = try mark(one)
            #expect(third != second)
            try one.writeNow { try $0.run("DROP TABLE mark") }
            let fourth = try mark(one)
            #expect(fourth != third)
            _ = try await two.enqueue(draft())
            #expect(try mark(one) != fourth)
            try two.close()
        }
    }

    @Test("A mark says nothing after a suspension, whatever was committed meanwhile")
    func suspended() async throws {
        try await withOperations { database in
            let marks = try (0..<3).map { _ in
                let mark = try mark(database)
                try database.suspend(until: .now + .seconds(60))
                try database.resume()
                return mark
            }
            for old in marks { #expect(try mark(database) != old) }
            #expect(marks[0] != marks[1] && marks[1] != marks[2])
        }
    }

    @Test("A mark waits for no writer of the process")
    func writing() async throws {
        try await withOperations { database in
            let old = try mark(database)
            try database.writeNow { db in
                try db.run("CREATE TABLE mark (a)")
                #expect(try mark(database) == old)
            }
            #expect(try mark(database) != old)
            try database.writeNow { try $0.run("DROP TABLE mark") }
        }
    }

    @Test("Of a database that is read only there are marks as well")
    func readOnly() async throws {
        try await withOperations { database in
            var options = OperationsDatabase.Options()
            options.isReadOnly = true
            let reader = try OperationsDatabase(folder: database.file.deletingLastPathComponent(), options: options)
            let old = try mark(reader)
            #expect(try mark(reader) == old)
            _ = try await database.enqueue(draft())
            #expect(try mark(reader) != old)
            try reader.close()
            await expectFailure(.closed) { _ = try reader.commitMark() }
        }
    }

    @Test("After a suspension there may be other commits, as after a commit of another at the same file")
    func contentVersion() async throws {
        try await withOperations { one in
            let two = try OperationsDatabase(folder: one.file.deletingLastPathComponent())
            let first = try one.contentVersion()
            #expect(try one.contentVersion() == first)
            _ = try await two.enqueue(draft())
            let second = try one.contentVersion()
            #expect(second != first)
            try two.close()
            let count = one.commitCount
            try one.suspend(until: .now + .seconds(60))
            try one.resume()
            #expect(one.commitCount > count)
            #expect(try one.contentVersion() != second)
        }
    }
}
