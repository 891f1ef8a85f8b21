import Foundation
import Synchronization
import Testing

@testable import Larder
@testable import LarderRecords

@Suite("watch", .timeLimit(.minutes(10)))
struct WatchTests {
    @Test("A query is told again when another process changes it")
    func watchesQuery() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try LarderProcess.start(
                ["watch", "--json", "--count", "2", "--store", fixture.store]
                    + fixture.operation("One", variables: #"{"id":"1"}"#))
            try await watch.waitForLines(1)
            try await fixture.rename("1", to: "Stew")
            let outcome = try await watch.finish()
            #expect(outcome.status == 0, "\(outcome.errors)")
            let lines = outcome.output.split(separator: "\n")
            #expect(lines.count == 2)
            #expect(lines.first?.contains(#""title":"Soup""#) == true)
            #expect(
                lines.last == #"""
                    {"larder":1,"command":"watch","result":{"data":{"recipe":{"__typename":"Recipe","id":"1",\#
                    "title":"Stew","author":{"__typename":"Author","id":"7","name":"Ada"}}},"isComplete":true,\#
                    "missing":[],"isDeleted":false}}
                    """#)
        }
    }

    @Test("An object is told of with the fields that another process changed, and when it goes")
    func watchesObject() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try LarderProcess.start(["watch", "Recipe:2", "--count", "3", "--store", fixture.store])
            try await watch.waitForLines(1)
            try await fixture.rename("2", to: "Cake")
            try await watch.waitForLines(2)
            #expect(try await fixture.larder("rm", "Recipe:2", "--as", "deleted").status == 0)
            let outcome = try await watch.finish()
            #expect(outcome.output == "Recipe:2 present\nRecipe:2 present title\nRecipe:2 deleted\n")
        }
    }

    @Test("watch names in JSON the fields of an object that another process changed")
    func watchesObjectInJSON() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try LarderProcess.start(
                ["watch", "Recipe:2", "--count", "2", "--json", "--store", fixture.store])
            try await watch.waitForLines(1)
            try await fixture.rename("2", to: "Cake")
            let lines = try await watch.finish().output.split(separator: "\n")
            let changed = #""result":{"key":"Recipe:2","presence":"present","changedFields":["title"]}}"#
            #expect(lines.count == 2 && lines[1].hasSuffix(changed), "\(lines)")
        }
    }

    @Test("An object that is not there yet is told of when another process brings it")
    func watchesAbsentObject() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try LarderProcess.start(
                ["watch", "Recipe:5", "--count", "2", "--json", "--store", fixture.store])
            try await watch.waitForLines(1)
            try await fixture.rename("5", to: "Pie")
            let lines = try await watch.finish().output.split(separator: "\n")
            #expect(
                lines.first == #"""
                    {"larder":1,"command":"watch","result":{"key":"Recipe:5","presence":"absent",\#
                    "changedFields":[]}}
                    """#)
            #expect(lines.last?.contains(#""presence":"present""#) == true)
        }
    }

    /// Watches the title of a recipe until it was told twice, and waits until it was told once.
    private func watchTitle(_ fixture: CommandFixture, _ more: String...) async throws -> LarderProcess.Running {
        let fragment = try fixture.write("fragment Title on Recipe { title }", to: "title.graphql")
        let arguments = [
            "watch", "Recipe:1", "--fragment", fragment, "--schema", fixture.path("schema.graphqls"), "--count", "2",
            "--store", fixture.store,
        ]
        let watch = try LarderProcess.start(arguments + more)
        try await watch.waitForLines(1)
        return watch
    }

    @Test("A fragment on an object is told again when another process changes it")
    func watchesFragment() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try await watchTitle(fixture)
            try await fixture.rename("1", to: "Stew")
            let outcome = try await watch.finish()
            #expect(outcome.output == "{\"data\":{\"title\":\"Soup\"}}\n{\"data\":{\"title\":\"Stew\"}}\n")
        }
    }

    @Test("A fragment's object that is known to be no more is told as that")
    func watchesDeleted() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try await watchTitle(fixture)
            #expect(try await fixture.larder("rm", "Recipe:1", "--as", "deleted").status == 0)
            let outcome = try await watch.finish()
            #expect(outcome.output == "{\"data\":{\"title\":\"Soup\"}}\n{\"data\":null}\n")
            #expect(outcome.errors.contains("the object is known to be no more"), "\(outcome.errors)")
        }
    }

    @Test("watch says in JSON that the object of a fragment is deleted")
    func watchesDeletedInJSON() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try await watchTitle(fixture, "--json")
            #expect(try await fixture.larder("rm", "Recipe:1", "--as", "deleted").status == 0)
            let lines = try await watch.finish().output.split(separator: "\n")
            #expect(lines.count == 2 && lines[0].hasSuffix(#""isDeleted":false}}"#), "\(lines)")
            #expect(lines.last?.hasSuffix(#""isDeleted":true}}"#) == true, "\(lines)")
        }
    }

    @Test(
        "What a verb removes or clears is told to a watcher that has long been at rest",
        arguments: [["rm", "Recipe:1"], ["clear", "--write"]])
    func atRest(verb: [String]) async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try LarderProcess.start(["watch", "Recipe:1", "--store", fixture.store])
            try await watch.waitForLines(1)
            try await Task.sleep(for: .milliseconds(500))
            #expect(try await fixture.larder(verb).status == 0)
            // Without being told, it would look a minute later.
            let deadline = SuspendingClock.now + .seconds(30)
            while watch.output.count(where: { $0 == "\n" }) < 2, .now < deadline {
                try await Task.sleep(for: .milliseconds(10))
            }
            #expect(watch.output == "Recipe:1 present\nRecipe:1 absent\n")
            watch.interrupt()
            _ = try await watch.finish()
        }
    }

    @Test("Clearing the store is a change that watchers of other processes see")
    func seesClearing() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try LarderProcess.start(["watch", "Recipe:1", "--count", "2", "--store", fixture.store])
            try await watch.waitForLines(1)
            #expect(try await fixture.larder("clear", "--write").status == 0)
            #expect(try await watch.finish().output == "Recipe:1 present\nRecipe:1 absent\n")
        }
    }

    @Test("Another process's clearing is told once, and what that process stores then by itself")
    func clearedOnce() async throws {
        try await CommandFixture.withStore { fixture in
            let cache = try Store.openCache(at: URL(filePath: fixture.store), partition: "main")
            let told = Mutex<[Bool]>([])
            cache.observe { commit in told.withLock { $0.append(commit.changes.isEverything) } }
            #expect(try await fixture.larder("clear", "--write").status == 0)
            // The second look comes after everything that the first has had told.
            for _ in 1...2 { try await cache.noticeOtherProcesses() }
            #expect(told.withLock { $0 } == [true])
            try await fixture.rename("1", to: "Stew")
            for _ in 1...2 { try await cache.noticeOtherProcesses() }
            #expect(told.withLock { $0 } == [true, false])
            try cache.close()
        }
    }

    @Test("changes --follow goes on with what is committed much later, and an interrupt ends it in order")
    func followsChanges() async throws {
        try await CommandFixture.withStore { fixture in
            let changes = try LarderProcess.start(["changes", "--follow", "--since", "0", "--store", fixture.store])
            try await changes.waitForLines(1)
            for (title, lines) in [("Stew", 2), ("Broth", 3)] {
                try await Task.sleep(for: .milliseconds(400))
                try await fixture.rename("1", to: title)
                try await changes.waitForLines(lines)
            }
            changes.interrupt()
            let outcome = try await changes.finish()
            #expect(outcome.status == 0)
            #expect(outcome.errors == "")
            // The first of them asks for a field of the query's root that was not there.
            #expect(outcome.output.split(separator: "\n").dropFirst() == ["2 QUERY_ROOT Recipe:1", "3 Recipe:1"])
        }
    }

    @Test("changes --follow --since a number that is yet to come waits for the commits after it, and tells of no other")
    func followsFromLater() async throws {
        try await CommandFixture.withStore { fixture in
            let changes = try LarderProcess.start([
                "changes", "--follow", "--since", "2", "--count", "1", "--store", fixture.store,
            ])
            for title in ["Stew", "Broth"] {
                // It looks ten times a second, and may see both at once: then it would pass all the same.
                try await Task.sleep(for: .milliseconds(400))
                try await fixture.rename("1", to: title)
            }
            let outcome = try await changes.finish()
            #expect(outcome.output == "3 Recipe:1\n")
            #expect(outcome.status == 0, "\(outcome.errors)")
        }
    }

    @Test("changes --follow says that anything may have changed when another process has cleared the cache")
    func followsChangesOverClear() async throws {
        try await CommandFixture.withStore { fixture in
            let changes = try LarderProcess.start(["changes", "--follow", "--count", "4", "--store", fixture.store])
            try await changes.waitForLines(1)
            try await fixture.rename("1", to: "Stew")
            try await changes.waitForLines(2)
            #expect(try await fixture.larder("clear", "--write").status == 0)
            try await changes.waitForLines(3)
            // Its number is one that was printed already.
            try await fixture.rename("1", to: "Broth")
            let outcome = try await changes.finish()
            #expect(outcome.status == 0, "\(outcome.errors)")
            let lines = outcome.output.split(separator: "\n").map(String.init)
            #expect(lines.count == 4)
            #expect(lines.dropFirst(2).first == "0 everything")
            #expect(lines.last?.hasPrefix("1 ") == true)
        }
    }

    @Test("changes --json says of each line whether anything may have changed")
    func everythingInJSON() async throws {
        try await CommandFixture.withStore { fixture in
            let changes = try LarderProcess.start([
                "changes", "--follow", "--count", "2", "--json", "--store", fixture.store,
            ])
            try await changes.waitForLines(1)
            #expect(try await fixture.larder("clear", "--write").status == 0)
            let lines = try await changes.finish().output.split(separator: "\n")
            #expect(lines.count == 2 && lines[0].hasSuffix(#","isEverything":false}}"#), "\(lines)")
            #expect(lines.last?.hasSuffix(#""result":{"number":0,"keys":[],"isEverything":true}}"#) == true, "\(lines)")
        }
    }

    @Test("A query that the cache cannot answer ends it, with the reason")
    func unreadable() async throws {
        try await CommandFixture.withStore { fixture in
            let schema = try fixture.write(
                CommandFixture.schema.replacing("title: String!", with: "title: Size!"), to: "other.graphqls")
            let query = try fixture.write(
                "query One($id: ID!) { recipe(id: $id) { __typename id title { grams } } }", to: "other.graphql")
            let outcome = try await fixture.larder(
                ["watch", "--json", "--count", "1", "--schema", schema, "--operation", query]
                    + ["--variables", fixture.write(#"{"id":"1"}"#, to: "one.json")])
            #expect(outcome.status != 0)
            #expect(outcome.errors.contains(#""code":"records.schemaMismatch""#), "\(outcome.errors)")
            #expect(outcome.output == "")
        }
    }

    @Test("An interrupt ends it in order")
    func isInterrupted() async throws {
        try await CommandFixture.withStore { fixture in
            let watch = try LarderProcess.start(["watch", "Recipe:1", "--store", fixture.store])
            try await watch.waitForLines(1)
            watch.interrupt()
            let outcome = try await watch.finish()
            #expect(outcome.status == 0)
            #expect(outcome.errors == "")
        }
    }

    @Test("watch names in JSON the fields of a query that the store lacks")
    func watchesIncomplete() async throws {
        try await CommandFixture.withStore { fixture in
            #expect(try await fixture.larder("rm", "--field", "title", "--of", "Recipe:1").status == 0)
            let one = try fixture.operation("One", variables: #"{"id":"1"}"#)
            let watched = try await fixture.larder(["watch", "--json", "--count", "1"] + one)
            let missing = #""isComplete":false,"missing":[["recipe","title"]],"isDeleted":false}}"#
            #expect(watched.output.hasSuffix(missing + "\n"), "\(watched)")
        }
    }

    @Test("--name chooses the fragment to watch in a file with several, and --variables is for that fragment")
    func watchesNamedFragment() async throws {
        try await CommandFixture.withStore { fixture in
            let fragments = """
                fragment Title on Recipe { title } fragment Time on Recipe { minutes title @include(if: $all) }
                """
            let watched = try await fixture.larder(
                "watch", "Recipe:1", "--fragment", fixture.write(fragments, to: "both.graphql"), "--name", "Time",
                "--variables", fixture.write(#"{"all":true}"#, to: "all.json"), "--schema",
                fixture.path("schema.graphqls"), "--count", "1")
            #expect(watched.status == 0, "\(watched.errors)")
            #expect(watched.output == #"{"data":{"minutes":20,"title":"Soup"}}"# + "\n")
        }
    }

    @Test("changes says that there are more where --count leaves some out, and not where there are just as many")
    func moreChanges() async throws {
        try await CommandFixture.withStore { fixture in
            try await fixture.rename("1", to: "Broth")
            let all = try await fixture.larder("changes", "--json").output
            let count = all.components(separatedBy: #""number":"#).count - 1
            try #require(count > 1)
            #expect(all.contains(#""hasMore":false"#))
            for (asked, hasMore) in [(count - 1, true), (count, false), (count + 1, false)] {
                let told = try await fixture.larder("changes", "--json", "--count", "\(asked)").output
                #expect(told.contains(#""hasMore":\#(hasMore)"#), "\(asked): \(told)")
            }
        }
    }
}
