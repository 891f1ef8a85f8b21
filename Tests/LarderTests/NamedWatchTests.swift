import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Watchers that outlive the process", .timeLimit(.minutes(10)))
struct NamedWatchTests {
    private let card = GraphQLFragment("fragment F on Recipe { title }")

    private func open(_ folder: URL) throws -> (Store, Partition) {
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
        return (store, try store.partition())
    }

    private func titles(_ state: NamedWatchState?) -> [String] {
        state?.response["recipes"]?.elements.compactMap { $0["title"]?.string } ?? []
    }

    private let data: Value = [
        "recipes": [
            ["id": "1", "title": "Soup", "author": ["id": "a", "name": "Ada"]],
            ["id": "2", "title": "Bread", "author": ["id": "a", "name": "Ada"]],
        ]
    ]

    @Test("A watcher that is opened again says which objects have changed meanwhile")
    func reopened() async throws {
        try await withTemporaryFolder { (folder) throws in
            var (store, app) = try open(folder)
            try await app.write(recipeList, data)
            var first = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            let given = try await first.next()
            #expect(given?.changes == .anything)
            #expect(titles(given) == ["Soup", "Bread"])
            try await app.write("Recipe:1", card, ["title": "Broth"])
            let changed = try await first.next()
            #expect(changed?.changes == .objects(["Recipe:1"]))
            #expect(titles(changed) == ["Broth", "Bread"])
            try store.close()

            (store, app) = try open(folder)
            try await app.write("Recipe:2", card, ["title": "Rolls"])
            try await app.write("Recipe:77", card, ["title": "Not in the list"])
            #expect(try app.watcherNames() == ["inbox"])
            var again = try await app.watch(named: "inbox").makeAsyncIterator()
            let meanwhile = try await again.next()
            // What was given last was not noted before the store was closed, and comes again.
            #expect(meanwhile?.changes == .objects(["Recipe:1", "Recipe:2"]))
            #expect(titles(meanwhile) == ["Broth", "Rolls"])
            try await app.write("Recipe:2", card, ["title": "Buns"])
            #expect(try await again.next()?.changes == .objects(["Recipe:2"]))
            try store.close()
        }
    }

    @Test("After a clear everything may have changed, and another operation begins anew")
    func anything() async throws {
        try await withStoreFixture { (app) throws in
            try await app.write(recipeList, data)
            var first = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            _ = try await first.next()
            try await app.write("Recipe:1", card, ["title": "Broth"])
            _ = try await first.next()
            _ = try await app.records.clear()
            let cleared = try await first.next()
            #expect(cleared?.changes == .anything)
            #expect(cleared?.response.isComplete == false)
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Soup", "author": nil]])
            var other = try await app.watch(named: "inbox", recipe(1)).makeAsyncIterator()
            #expect(try await other.next()?.changes == .anything)
        }
    }

    @Test("What is to be confirmed and looks as the answer that was given is no new one")
    func confirmed() async throws {
        try await withStoreFixture { app in
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Soup", "author": nil]])
            var states = try await app.watch(named: "one", recipe(1)).makeAsyncIterator()
            #expect(try await next(&states)?.changes == .anything)
            let same: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Soup", "rating": 5]]
            try await app.enqueue(giveStars("1", 5), options: .init(optimisticResponse: same))
            await #expect(throws: Silence.self) { _ = try await next(&states, within: .milliseconds(50)) }
        }
    }

    @Test("No answer is given twice in a row, however many commits come while it is read")
    func differs() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, data)
            var states = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            let writing = Task { [card] in
                for number in 0...300 { try await app.write("Recipe:1", card, ["title": .string("\(number)")]) }
            }
            var (last, repeated) = ([String](), 0)
            while last.first != "300" {
                guard let state = try await next(&states, within: .seconds(60)) else { break }
                let shown = titles(state)
                if shown == last { repeated += 1 }
                last = shown
            }
            #expect(repeated == 0)
            try await writing.value
        }
    }

    @Test("A reader that asks while the store is suspended waits, and is given what has changed after resume")
    func suspended() async throws {
        try await withOpenStore { (_, store, app) throws in
            try await app.write(recipeList, data)
            var states = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            #expect(try await next(&states)?.changes == .anything)
            try await store.suspend(within: .seconds(300))
            let resuming = Task { [card] in
                // The reader asks meanwhile.
                try await Task.sleep(for: .milliseconds(50))
                try store.resume()
                try await app.write("Recipe:1", card, ["title": "Broth"])
            }
            let state = try await next(&states)
            #expect(state?.changes == .objects(["Recipe:1"]))
            #expect(titles(state) == ["Broth", "Bread"])
            try await resuming.value
        }
    }

    @Test("A name that was never stored, and one that was removed, are errors, also while it is iterated")
    func unknown() async throws {
        try await withStoreFixture { (app) throws in
            let unknown = LarderError.Code(rawValue: "operations.unknownWatcher")
            await expectCode(unknown) { _ = try await app.watch(named: "inbox") }
            var states = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            #expect(try await next(&states) != nil)
            try await app.removeWatcher(named: "inbox")
            #expect(try app.watcherNames() == [])
            await expectCode(unknown) { _ = try await app.watch(named: "inbox") }
            await expectCode(unknown) { try await app.removeWatcher(named: "inbox") }
            // What was given last would be noted now.
            await expectCode(unknown) { _ = try await next(&states) }
        }
    }

    @Test("Where anything may have changed, that is told, although the answer looks as it did")
    func anythingAlike() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, data)
            var states = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            #expect(try await next(&states)?.changes == .anything)
            // A reader of the same reading, by whose states it is known what the named one has to take.
            var seen = try app.watch(recipeList).makeAsyncIterator()
            #expect(try await next(&seen)?.complete != nil)
            _ = try await app.records.clear()
            while try await next(&seen)?.complete != nil {}
            try await app.write(recipeList, data)
            while try await next(&seen)?.complete == nil {}
            let state = try await next(&states)
            #expect(state?.changes == .anything)
            #expect(titles(state) == ["Soup", "Bread"])
        }
    }

    @Test("A named watcher ends when the store is closed, also where an answer was given before")
    func closed() async throws {
        try await withOpenStore { (_, store, app) throws in
            try await app.write(recipeList, data)
            var states = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            #expect(titles(try await states.next()) == ["Soup", "Bread"])
            try store.close()
            #expect(try await states.next() == nil)
        }
    }

    @Test("An operation that cannot be watched is refused, and its name is not stored")
    func refused() async throws {
        try await withStoreFixture { (app) throws in
            await expectCode(.operation) { _ = try await app.watch(named: "inbox", giveStars("1", 5)) }
            #expect(try app.watcherNames() == [])
        }
    }

    @Test("The names of stored watchers are listed in ascending order")
    func names() async throws {
        try await withStoreFixture { (app) throws in
            for name in ["b", "c", "a"] { _ = try await app.watch(named: name, recipeList) }
            #expect(try app.watcherNames() == ["a", "b", "c"])
        }
    }

    @Test("A watcher that is opened again watches that operation of its document which was named")
    func operationOfDocument() async throws {
        try await withTemporaryFolder { (folder) throws in
            var (store, app) = try open(folder)
            try await app.write(recipeList, data)
            let document = "query One { recipe(id: 1) { title } } query All { recipes(first: 2) { title } }"
            _ = try await app.watch(named: "inbox", GraphQLOperation(document, name: "All"))
            try store.close()
            (store, app) = try open(folder)
            var again = try await app.watch(named: "inbox").makeAsyncIterator()
            let state = try await again.next()
            #expect(titles(state) == ["Soup", "Bread"])
            try store.close()
        }
    }

    @Test("A name goes on where it was with an equal operation, and begins anew with other variables")
    func sameName() async throws {
        try await withStoreFixture { (app) throws in
            try await app.write(recipe(1), ["recipe": ["id": "1", "title": "Soup", "author": nil]])
            var first = try await app.watch(named: "one", recipe(1)).makeAsyncIterator()
            #expect(try await first.next()?.changes == .anything)
            try await app.write("Recipe:1", card, ["title": "Broth"])
            // The first answer is noted now.
            #expect(try await first.next()?.changes == .objects(["Recipe:1"]))
            var same = try await app.watch(named: "one", recipe(1)).makeAsyncIterator()
            #expect(try await same.next()?.changes == .objects(["Recipe:1"]))
            try await app.write(recipe(2), ["recipe": ["id": "2", "title": "Bread", "author": nil]])
            var other = try await app.watch(named: "one", recipe(2)).makeAsyncIterator()
            #expect(try await other.next()?.changes == .anything)
        }
    }

    @Test("A named watcher whose answer cannot be read throws why")
    func unreadable() async throws {
        var options = Store.Options()
        options.maximumAnswerSize = 100_000
        try await withOpenStore(options: options) { (_, _, app) throws in
            try await app.write(recipeList, data)
            var states = try await app.watch(named: "inbox", recipeList).makeAsyncIterator()
            #expect(try await next(&states) != nil)
            try await app.write("Recipe:1", card, ["title": .string(String(repeating: "x", count: 200_000))])
            await expectCode(.recordsTooLarge) { _ = try await next(&states) }
        }
    }
}
