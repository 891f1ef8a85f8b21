import LarderRecords
import LarderTestSupport
import Testing

@testable import Larder

@Suite("Hostile cache keys", .timeLimit(.minutes(10)))
struct HostileKeyTests {
    private static let keys = [
        "", ":", "::", "Cook:", "Cook", ":1", "Nothing:1", "Query:1", "QUERY_ROOT", "Recipe:1", "Contribution:1",
        "Cook:\u{0}", "\u{0}", "Cook:{", #"Cook:{"id":"x"}"#, #"Cook:{"id":{"id":1}}"#, "Recipe:1.steps[0]", "Step:1",
        "Cook:🧑‍🍳\u{E9}", "Cook:e\u{301}", "cook:1", " Cook:1", "Cook:" + String(repeating: "k", count: 506),
        "Cook:" + String(repeating: "k", count: 100_000),
    ]

    private static let fragments = [
        GraphQLFragment("fragment C on Cook { name }"), GraphQLFragment("fragment S on Step { name: text }"),
        GraphQLFragment("fragment T on Timing { name: prepare }"),
    ]

    @Test(
        "A key of any form is stored and found again, or is a typed error that changes nothing",
        arguments: 0..<24, 0..<3)
    func anyForm(_ index: Int, _ type: Int) async throws {
        let key = Self.keys[index]
        let fragment = Self.fragments[type]
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let (before, keys) = (try app.read(recipeList), try app.records.inspect.keys())
            let names = ["Cook", "Step", "Timing"]
            let typename = Value.string(names[type])
            for data: [String: Value] in [["name": 1], ["name": "Ada"], ["name": 1, "__typename": typename]] {
                var code: String?
                do throws(LarderError) { try await app.write(CacheKey(key), fragment, .object(data)) } catch {
                    code = error.code.rawValue
                }
                if code == nil {
                    #expect(try app.read(CacheKey(key), fragment)["name"] != nil)
                } else {
                    #expect(["records.responseMismatch", "records.schemaMismatch", "records.storage"].contains(code))
                    #expect(try app.records.inspect.keys().filter { $0 != key } == keys.filter { $0 != key })
                }
                #expect(try app.read(recipeList) == before)
            }
            do { try await app.update(CacheKey(key), fragment) { $0 = ["name": 2] } } catch {
                #expect(error is LarderError)
            }
            #expect(try app.read(recipeList) == before)
            for await state in app.watch(CacheKey(key)).prefix(1) { #expect(state.key.text == key) }
            try await app.remove(CacheKey(key), as: .evicted)
            #expect(throws: LarderError.self) { try app.read(CacheKey(key), fragment) }
            #expect(try app.records.check().isSound)
        }
    }

    @Test(
        "The root of all queries is written by fragments on its own type, and by no others", arguments: [true, false])
    func root(_ isEmpty: Bool) async throws {
        let own = GraphQLFragment("fragment Q on Query { recipes(first: 2) { title author { name } } }")
        try await withStoreFixture { app in
            if !isEmpty { try await app.write(recipeList, json: soupAndBread("Bread")) }
            let other = GraphQLFragment("fragment S on Step { __typename }")
            let step: Value = ["__typename": "Step"]
            let error = await #expect(throws: LarderError.self) { try await app.write("QUERY_ROOT", other, step) }
            #expect(error?.code.rawValue == "records.schemaMismatch")
            await #expect(throws: LarderError.self) { try await app.update("QUERY_ROOT", other) { $0 = step } }
            try await app.write("QUERY_ROOT", own, json: soupAndBread("Soup"))
            #expect(try app.read(recipeList)["recipes"]?[0]?["title"]?.string == "Soup")
            try await app.update("QUERY_ROOT", own) { _ in }
            #expect(try app.read("QUERY_ROOT", own)["recipes"]?.count == 2)
            #expect(try app.records.check().isSound)
        }
    }

    @Test("An update keeps the type and key fields that an object's key says, whatever its closure leaves of them")
    func update() async throws {
        let cook = GraphQLFragment("fragment C on Cook { name }")
        try await withStoreFixture { app in
            try await app.write("Cook:7", cook, ["name": "Ada"])
            try await app.update("Cook:7", cook) { $0 = ["name": "Grace"] }
            #expect(try app.read("Cook:7", cook)["name"]?.string == "Grace")
            await #expect(throws: LarderError.self) {
                try await app.update("Cook:7", cook) { $0 = ["id": "8", "name": "Joan"] }
            }
            #expect(try app.read("Cook:7", cook)["name"]?.string == "Grace")
            #expect(try app.records.inspect.keys(type: "Cook") == ["Cook:7"])
        }
    }
}
