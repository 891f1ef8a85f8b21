import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("Named watchers and what queued mutations show", .timeLimit(.minutes(10)))
struct NamedLayerWatchTests {
    private static let list = GraphQLOperation("{ recipes { id title rating } }")
    private static let refusing = ScriptedServer { _ in #"{"errors":[{"message":"no"}]}"# }
    private let card = GraphQLFragment("fragment F on Recipe { title }")

    private func rate(_ recipe: String, _ rating: Double, _ app: Partition) async throws {
        let operation = GraphQLOperation(
            "mutation R($input: Rating!) { rate(input: $input) { id rating } }",
            variables: ["input": ["recipe": .string(recipe), "stars": 5]])
        let shown: Value = ["rate": ["__typename": "Recipe", "id": .string(recipe), "rating": .float(rating)]]
        _ = try await app.enqueue(operation, options: MutationOptions(optimisticResponse: shown))
    }

    private func fill(_ app: Partition) async throws {
        try await app.write(
            Self.list,
            [
                "recipes": [
                    ["id": "1", "title": "Soup", "rating": 1.5], ["id": "2", "title": "Bread", "rating": 2.5],
                ]
            ])
    }

    private func open(_ folder: URL) throws -> (Store, Partition) {
        let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
        return (store, try store.partition(server: Self.refusing))
    }

    private func ratings(_ state: NamedWatchState?) -> [Double?] {
        state?.response["recipes"]?.elements.map { $0["rating"]?.double } ?? []
    }

    @Test("Objects that a queued mutation shows otherwise are named, and named again when the server refuses")
    func comeAndGo() async throws {
        try await withStoreFixture(Self.refusing) { app in
            try await fill(app)
            var states = try await app.watch(named: "list", Self.list).makeAsyncIterator()
            #expect(try await states.next()?.changes == .anything)
            try await rate("1", 5.5, app)
            let shown = try await states.next()
            #expect(shown?.changes == .objects(["Recipe:1"]))
            #expect(ratings(shown) == [5.5, 2.5])
            // What the layer shows all along is no news.
            try await app.write("Recipe:2", card, ["title": "Rolls"])
            #expect(try await states.next()?.changes == .objects(["Recipe:2"]))
            try await MutationRunner(app).drain()
            let rolledBack = try await states.next()
            #expect(rolledBack?.changes == .objects(["Recipe:1"]))
            #expect(ratings(rolledBack) == [1.5, 2.5])
            try await app.write("Recipe:2", card, ["title": "Buns"])
            #expect(try await states.next()?.changes == .objects(["Recipe:2"]))
        }
    }

    @Test("After a start, what was shown and may have been rolled back since is told of as anything")
    func restarted() async throws {
        try await withTemporaryFolder { folder in
            var (store, app) = try open(folder)
            try await fill(app)
            var states = try await app.watch(named: "list", Self.list).makeAsyncIterator()
            _ = try await states.next()
            try await rate("1", 5.5, app)
            #expect(try await ratings(states.next()) == [5.5, 2.5])
            // Asking for the next notes what was given.
            try await app.write("Recipe:2", card, ["title": "Rolls"])
            _ = try await states.next()
            try store.close()

            (store, app) = try open(folder)
            try await MutationRunner(app).drain()
            var again = try await app.watch(named: "list").makeAsyncIterator()
            let state = try await again.next()
            #expect(state?.changes == .anything)
            #expect(ratings(state) == [1.5, 2.5])
            try store.close()
        }
    }

    @Test("After a start, what is shown now and was not when it was given last is named")
    func shownSince() async throws {
        try await withTemporaryFolder { folder in
            var (store, app) = try open(folder)
            try await fill(app)
            var states = try await app.watch(named: "list", Self.list).makeAsyncIterator()
            _ = try await states.next()
            try await app.write("Recipe:2", card, ["title": "Rolls"])
            _ = try await states.next()
            try await rate("1", 5.5, app)
            try store.close()

            (store, app) = try open(folder)
            var again = try await app.watch(named: "list").makeAsyncIterator()
            let state = try await again.next()
            // The first of the two was noted, the second not: it comes again.
            #expect(state?.changes == .objects(["Recipe:1", "Recipe:2"]))
            #expect(ratings(state) == [5.5, 2.5])
            try store.close()
        }
    }

    @Test("An answer that is the same as the one given last is not given, although it is shown by other means")
    func sameAnswer() async throws {
        try await withStoreFixture(Self.refusing) { app in
            try await fill(app)
            var states = try await app.watch(named: "list", Self.list).makeAsyncIterator()
            _ = try await states.next()
            // Shows what is there.
            try await rate("1", 1.5, app)
            try await Task.sleep(for: .milliseconds(300))
            let title = Task {
                try await Task.sleep(for: .milliseconds(300))
                try await app.write("Recipe:2", card, ["title": "Rolls"])
            }
            let state = try await states.next()
            #expect(state?.response["recipes"]?[1]?["title"]?.string == "Rolls")
            #expect(state?.changes == .objects(["Recipe:2"]))
            try await title.value
        }
    }
}
