import Foundation
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Many mutations queued at once", .timeLimit(.minutes(10)))
struct BulkTests {
    private let card = GraphQLFragment("fragment F on Recipe { title rating }")

    private func shown(_ recipe: String, _ stars: Int) -> (operation: GraphQLOperation, options: MutationOptions) {
        let answer: Value = [
            "rate": ["__typename": "Recipe", "id": .string(recipe), "title": "Soup", "rating": .int(Int64(stars))]
        ]
        return (giveStars(recipe, stars), MutationOptions(optimisticResponse: answer))
    }

    @Test("Mutations queued together are seen at once, sent in order, and each has a receipt of its own")
    func sent() async throws {
        let server = ScriptedServer.rating { _ in
            nil
        } errors: { number in
            number == 2 ? #"{"data":null,"errors":[{"message":"no"}]}"# : nil
        }
        try await withStoreFixture(server) { (app) throws in
            let receipts = try await app.enqueue((1...4).map { shown("\($0)", $0) })
            #expect(receipts.count == 4)
            for stars in 1...4 {
                #expect(try app.read("Recipe:\(stars)", card)["rating"]?.double == Double(stars))
            }
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 1", "2 2", "4 4"])
            let states = try receipts.map { try $0.status()?.state }
            #expect(states == [.applied, .applied, .deadLetter, .applied])
            await expectCode(.miss) { _ = try app.read("Recipe:3", card) }
        }
    }

    @Test("Mutations that are queued together are published to watchers once")
    func shownInOneStep() async throws {
        try await withStoreFixture { app in
            try await app.write("Recipe:8", card, ["title": "Stew", "rating": 1])
            var states = try app.watch("Recipe:1", card).makeAsyncIterator()
            _ = try await next(&states)
            let before = app.core.watchers.published
            try await app.enqueue((1...4).map { shown("\($0)", $0) })
            while let state = try await next(&states), state.response?["rating"]?.double != 1 {}
            // By the end of a write the writer's thread has told all that there was to tell.
            try await app.write("Recipe:9", card, ["title": "Stew", "rating": 1])
            #expect(app.core.watchers.published == before + 2)
        }
    }

    @Test("The server sees a lane's mutations in their order, among others that are queued one by one")
    func order() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { (app) throws in
            try await app.enqueue(giveStars("1", 0), options: .init())
            try await app.enqueue((1...20).map { (giveStars("1", $0), MutationOptions()) })
            try await app.enqueue(giveStars("1", 21), options: .init())
            try await quickRunner(app).drain()
            #expect(server.effects == (0...21).map { "1 \($0)" })
        }
    }

    @Test("A refused mutation leaves nothing of the others: no row, no layer, no request")
    func refused() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { (app) throws in
            let id = MutationID(UUID())
            try await app.enqueue(giveStars("9", 9), options: .init(id: id))
            let wrongResponse: Value = ["rate": ["__typename": "Recipe", "id": 1]]
            let bad: [((operation: GraphQLOperation, options: MutationOptions), LarderError.Code)] = [
                ((giveStars("2", 2), MutationOptions(id: id)), .init(rawValue: "operations.duplicate")),
                ((giveStars("2", 2), MutationOptions(optimisticResponse: wrongResponse)), .data),
                ((giveStars("2", 2), MutationOptions(updater: "nobody")), .unknownUpdater),
                ((recipeList, MutationOptions()), .operation),
            ]
            for (one, code) in bad {
                await expectCode(code) { try await app.enqueue([shown("1", 1), one, shown("3", 3)]) }
            }
            #expect(try app.mutations().map(\.id) == [id])
            await expectCode(.miss) { _ = try app.read("Recipe:1", card) }
            try await quickRunner(app).drain()
            #expect(server.effects == ["9 9"])
        }
    }

    @Test("Mutations queued together survive the closing of the store, and an empty list queues none")
    func reopened() async throws {
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: fixtureSchema)
            let first = try Store.open(at: folder, schema: schema)
            let app = try first.partition()
            #expect(try await app.enqueue([]).count == 0)
            #expect(try app.mutations().count == 0)
            let receipts = try await app.enqueue((1...3).map { shown("\($0)", $0) })
            try first.close()
            let second = try Store.open(at: folder, schema: schema)
            let again = try second.partition()
            #expect(try again.mutations().map(\.id) == receipts.map(\.id))
            #expect(try again.read("Recipe:2", card)["rating"]?.double == 2)
            try second.close()
        }
    }
}
