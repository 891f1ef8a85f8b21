import Larder
import LarderTestSupport
import Testing

@Suite("Cache keys")
struct CacheKeyTests {
    @Test("A key of a type and an id is that of its text, and one of several fields keeps their order")
    func text() {
        #expect(CacheKey(type: "Recipe", id: "7") == "Recipe:7")
        #expect(CacheKey("Recipe:7").description == "Recipe:7")
        let key = CacheKey(type: "Seat", fields: ["row": "A", "number": "1\""])
        #expect(key.text == #"Seat:{"row":"A","number":"1\""}"#)
        #expect(CacheKey(type: "Seat", fields: ["row": "A"]) == "Seat:A")
        #expect(CacheKey(type: "Seat", fields: [:]) == "Seat:{}")
    }

    @Test("An object is written, read and removed by the key of its type and id")
    func object() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let (key, title) = (CacheKey(type: "Recipe", id: "1"), GraphQLFragment("fragment F on Recipe { title }"))
            #expect(try app.read(key, title)["title"]?.string == "Soup")
            try await app.remove(key, as: .evicted)
            #expect(throws: LarderError.self) { try app.read(key, title) }
        }
    }
}
