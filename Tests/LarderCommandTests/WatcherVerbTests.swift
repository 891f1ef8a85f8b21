import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Watchers from the command line", .timeLimit(.minutes(10)))
struct WatcherVerbTests {
    @Test("watchers prints a line for each watcher with its environment, its user and how far it has come")
    func line() async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            let name = try await Store.makeStaging(at: place, schema: "type Query { number: Int }", user: .user("ada"))
            try await OperationsDatabase.using(place) { database in
                _ = try await database.watchers.put("w", in: name, document: "{ number }", now: Date())
                try await database.watchers.note(
                    StoredWatcher.Position(epoch: 0xAB, number: 2), of: "w", in: name, now: Date())
            }
            let told = try await LarderProcess.run(["watchers", "--store", place.path])
            #expect(told.output == "w staging/ada ab 2 { number }\n", "\(told)")
        }
    }

    @Test("The JSON of a watcher names the operation of its document, and has the variables")
    func operation() async throws {
        try await CommandFixture.withStore { fixture in
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.watchers.put(
                    "w", in: "main", document: CommandFixture.operations, operationName: "One",
                    variables: Array(#"{"id":"1"}"#.utf8), now: Date())
            }
            let json = try await fixture.larder("watchers", "--json").output
            #expect(json.contains(#","operation":"One","variables":{"id":"1"},"position":null,"#), "\(json)")
        }
    }

    @Test("The JSON of a watcher names no operation where its document names none")
    func unnamedOperation() async throws {
        try await TransferFixture.run { fixture in
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.watchers.put("w", in: "main", document: "{ photo(id: 1) { id } }", now: Date())
            }
            let json = try await fixture.larder("watchers", "--json").output
            #expect(json.contains(#","operation":null,"variables":"#), "\(json)")
        }
    }

    @Test("watchers lists only those of the environment that LARDER_ENV names")
    func ofVariable() async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schemaText: ["type Query { number: Int }"])
            var partitions: [String] = []
            for name in ["staging", "production"] {
                _ = try await store.switch(to: .example(name))
                partitions.append(try #require(try store.current()).name)
            }
            try store.close()
            try await OperationsDatabase.using(place) { [partitions] database in
                for name in partitions {
                    _ = try await database.watchers.put("w", in: name, document: "{ number }", now: Date())
                }
            }
            let told = try await LarderProcess.run(
                ["watchers", "--store", place.path], environment: ["LARDER_ENV": "staging"])
            #expect(told.output == "w staging - - { number }\n", "\(told)")
        }
    }
}
