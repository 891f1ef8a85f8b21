import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Stored pins", .timeLimit(.minutes(10)))
struct PinTests {
    @Test("A pin is there after a restart, and the same name pins something else")
    func kept() async throws {
        try await withOperations { database in
            try await database.pins.put("a", in: app, document: "{ old }", now: noon)
            try await database.pins.put(
                "a", in: app, document: "query A { a }", operationName: "A", variables: json(#"{"n":1}"#), now: after(1)
            )
            let again = try OperationsDatabase(folder: database.file.deletingLastPathComponent())
            let expected = StoredPin(
                partition: app, name: "a", document: "query A { a }", operationName: "A",
                variables: json(#"{"n":1}"#), created: after(1))
            #expect(try again.pins.all(in: app) == [expected])
            try again.close()
        }
    }

    @Test("Pins are listed by name, of one partition or of all, and removed one by one")
    func listed() async throws {
        try await withOperations { database in
            for (name, partition) in [("b", app), ("a", app), ("a", "other")] {
                try await database.pins.put(name, in: partition, document: "{ a }", now: noon)
            }
            #expect(try database.pins.list(in: app).map(\.name) == ["a", "b"])
            #expect(try database.pins.list().map(\.partition) == [app, app, "other"])
            #expect(try database.pins.all(in: app).map(\.partition) == [app, app])
            #expect(try await database.pins.remove("a", in: app))
            #expect(try await !database.pins.remove("a", in: app))
            #expect(try database.pins.list().map(\.name) == ["b", "a"])
            try await database.pins.removeAll(in: app)
            #expect(try database.pins.list().map(\.partition) == ["other"])
        }
    }

    @Test("A damaged pin is left out where pins are listed, and an error where all must be known")
    func damaged() async throws {
        try await withTemporaryFolder { folder in
            let database = try OperationsDatabase(folder: folder)
            for name in ["a", "b"] { try await database.pins.put(name, in: app, document: "{ a }", now: noon) }
            try database.writeWithoutTransaction { try $0.run("UPDATE pin SET variables = x'7b' WHERE name = 'a'") }
            #expect(try database.pins.list(in: app).map(\.name) == ["b"])
            await expectFailure(.damagedRow) { _ = try database.pins.all(in: app) }
            try database.close()
        }
    }
}
