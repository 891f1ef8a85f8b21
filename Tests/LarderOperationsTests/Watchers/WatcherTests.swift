import Foundation
import Testing

@testable import LarderOperations

@Suite("Stored watchers", .timeLimit(.minutes(10)))
struct WatcherTests {
    private let query = "{ dishes { id } }"

    @Test("A watcher and its position are there after a restart")
    func kept() async throws {
        try await withOperations { database in
            let watcher = try await database.watchers.put(
                "list", in: app, document: query, operationName: "All", variables: json(#"{"n":1}"#), now: noon)
            #expect(watcher.position == nil)
            let position = StoredWatcher.Position(epoch: .max, number: .max - 1)
            try await database.watchers.note(position, of: "list", in: app, now: after(1))
            let again = try OperationsDatabase(folder: database.file.deletingLastPathComponent())
            var expected = watcher
            (expected.position, expected.updated) = (position, after(1))
            #expect(try again.watchers.get("list", in: app) == expected)
            try again.close()
        }
    }

    @Test("A position goes forward within its epoch, and anywhere with another")
    func monotonic() async throws {
        try await withOperations { database in
            _ = try await database.watchers.put("list", in: app, document: query, now: noon)
            func note(_ epoch: UInt64, _ number: UInt64) async throws -> StoredWatcher.Position {
                try await database.watchers.note(.init(epoch: epoch, number: number), of: "list", in: app, now: noon)
            }
            #expect(try await note(1, 5).number == 5)
            #expect(try await note(1, 3).number == 5)
            #expect(try await note(1, 1 << 63).number == 1 << 63)
            #expect(try await note(1, 6).number == 1 << 63)
            #expect(try await note(0, 2) == .init(epoch: 0, number: 2))
        }
    }

    @Test("A position that was noted already, or is before that, leaves the watcher as it is")
    func notedAgain() async throws {
        try await withOperations { database in
            _ = try await database.watchers.put("list", in: app, document: query, now: noon)
            for (number, time) in [(5, after(1)), (5, after(2)), (4, after(3))] as [(UInt64, Date)] {
                try await database.watchers.note(.init(epoch: 1, number: number), of: "list", in: app, now: time)
            }
            #expect(try database.watchers.get("list", in: app)?.updated == after(1))
        }
    }

    @Test("The same document with other variables forgets the position: what was delivered says nothing about them")
    func otherVariables() async throws {
        try await withOperations { database in
            _ = try await database.watchers.put(
                "list", in: app, document: query, variables: json(#"{"n":1}"#), now: noon)
            try await database.watchers.note(.init(epoch: 1, number: 5), of: "list", in: app, now: noon)
            let other = try await database.watchers.put(
                "list", in: app, document: query, variables: json(#"{"n":2}"#), now: after(1))
            #expect(other.position == nil)
            #expect(try database.watchers.get("list", in: app)?.position == nil)
        }
    }

    @Test("Another operation of the same document forgets the position")
    func otherOperation() async throws {
        try await withOperations { database in
            let document = "query Ids { dishes { id } } query Names { dishes { name } }"
            _ = try await database.watchers.put("list", in: app, document: document, operationName: "Ids", now: noon)
            try await database.watchers.note(.init(epoch: 1, number: 5), of: "list", in: app, now: noon)
            let other = try await database.watchers.put(
                "list", in: app, document: document, operationName: "Names", now: after(1))
            #expect(other.position == nil && other.operationName == "Names")
            #expect(try database.watchers.get("list", in: app) == other)
        }
    }

    @Test("The same again keeps the position; watching something else forgets it")
    func putAgain() async throws {
        try await withOperations { database in
            _ = try await database.watchers.put("list", in: app, document: query, now: noon)
            try await database.watchers.note(.init(epoch: 1, number: 5), of: "list", in: app, now: noon)
            let same = try await database.watchers.put("list", in: app, document: query, now: after(1))
            #expect(same.position?.number == 5 && same.created == noon)
            let other = try await database.watchers.put("list", in: app, document: "{ dishes { name } }", now: after(2))
            #expect(other.position == nil && other.created == noon && other.updated == after(2))
            #expect(try database.watchers.get("list", in: app) == other)
        }
    }

    @Test("Watchers are listed by partition and name, and removed one by one")
    func listed() async throws {
        try await withOperations { database in
            // By age they would stand the other way around.
            for (name, partition, time) in [("b", app, noon), ("a", app, after(1)), ("a", "other", noon)] {
                _ = try await database.watchers.put(name, in: partition, document: query, now: time)
            }
            #expect(try database.watchers.list(in: app).map(\.name) == ["a", "b"])
            #expect(try database.watchers.list().map(\.partition) == [app, app, "other"])
            try await database.watchers.remove("a", in: app)
            #expect(try database.watchers.list().map(\.name) == ["b", "a"])
            await expectFailure(.unknownWatcher) { try await database.watchers.remove("a", in: app) }
            await expectFailure(.unknownWatcher) {
                try await database.watchers.note(.init(epoch: 1, number: 1), of: "a", in: app, now: noon)
            }
            #expect(try database.watchers.get("a", in: app) == nil)
        }
    }

    @Test("Removing all watchers of a partition leaves those of another partition")
    func removedAll() async throws {
        try await withOperations { database in
            for partition in [app, "other"] {
                _ = try await database.watchers.put("a", in: partition, document: query, now: noon)
            }
            try await database.watchers.removeAll(in: app)
            #expect(try database.watchers.list().map(\.partition) == ["other"])
        }
    }

    @Test("Noting the position of one watcher leaves that of all others, in this partition and in another")
    func notedAlone() async throws {
        try await withOperations { database in
            let table = database.watchers
            for (name, partition) in [("a", app), ("b", app), ("a", "other")] {
                _ = try await table.put(name, in: partition, document: query, now: noon)
            }
            try await table.note(.init(epoch: 1, number: 2), of: "b", in: app, now: noon)
            try await table.note(.init(epoch: 7, number: 3), of: "a", in: "other", now: noon)
            try await table.note(.init(epoch: 1, number: 5), of: "a", in: app, now: noon)
            #expect(try table.get("a", in: app)?.position == StoredWatcher.Position(epoch: 1, number: 5))
            #expect(try table.get("b", in: app)?.position == StoredWatcher.Position(epoch: 1, number: 2))
            #expect(try table.get("a", in: "other")?.position == StoredWatcher.Position(epoch: 7, number: 3))
            #expect(try table.all(in: app).map(\.partition) == [app, app])
        }
    }

    @Test("Another watcher, new or of something else now, leaves a watcher's position as it is")
    func putBeside() async throws {
        try await withOperations { database in
            let table = database.watchers
            _ = try await table.put("a", in: app, document: query, now: noon)
            try await table.note(.init(epoch: 1, number: 5), of: "a", in: app, now: noon)
            for document in [query, "{ dishes { name } }"] {
                _ = try await table.put("b", in: app, document: document, now: noon)
                #expect(try table.get("a", in: app)?.position == StoredWatcher.Position(epoch: 1, number: 5))
            }
        }
    }
}
