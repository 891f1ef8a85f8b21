import Larder
import LarderTestSupport
import Testing

@Suite("Writing and updating", .timeLimit(.minutes(10)))
struct UpdateTests {
    struct Refusal: Error {}

    @Test("An update reads, edits and writes in one transaction")
    func update() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try await app.update(recipeList) { data in
                guard case .object(var root) = data, case .list(var recipes)? = root["recipes"] else { throw Refusal() }
                recipes.swapAt(0, 1)
                root["recipes"] = .list(recipes)
                data = .object(root)
            }
            #expect(
                try app.read(recipeList)["recipes"]?.elements.compactMap { $0["title"]?.string } == ["Bread", "Soup"])
        }
    }

    @Test("An update that throws changes nothing, and its error comes back as it was")
    func rollback() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let before = try app.read(recipeList)
            await #expect(throws: Refusal.self) { try await app.update(recipeList) { _ in throw Refusal() } }
            #expect(try app.read(recipeList) == before)
        }
    }

    private struct Titled: TypedOperation {
        struct Data: Codable, Sendable { var recipe: Recipe }
        struct Recipe: Codable, Sendable {
            var id: String
            var title: String
        }
        let operation = GraphQLOperation("{ recipe(id: 1) { id title } }")
    }

    @Test("What an update of an object, or one in the program's own type, throws comes back as it was")
    func thrownAsItWas() async throws {
        try await withStoreFixture { app in
            let card = GraphQLFragment("fragment Card on Recipe { title }")
            try await app.write(Titled(), data: .init(recipe: .init(id: "1", title: "Soup")))
            await #expect(throws: Refusal.self) { try await app.update("Recipe:1", card) { _ in throw Refusal() } }
            await #expect(throws: Refusal.self) { try await app.update(Titled()) { _ in throw Refusal() } }
            #expect(try app.read("Recipe:1", card)["title"]?.string == "Soup")
        }
    }

    @Test("An update of what the cache does not know is a miss")
    func missing() async throws {
        try await withStoreFixture { app in
            let error = await #expect(throws: LarderError.self) { try await app.update(recipeList) { _ in } }
            #expect(error?.code == .miss)
        }
    }

    @Test("Updates made at the same time all count")
    func concurrent() async throws {
        try await withStoreFixture { app in
            let card = GraphQLFragment("fragment Card on Cook { specialty }")
            try await app.write("Cook:a", card, json: Array(#"{"id":"a","specialty":"0"}"#.utf8))
            try await withThrowingTaskGroup { group in
                for _ in 0..<40 {
                    group.addTask {
                        try await app.update("Cook:a", card) { data in
                            guard case .object(var cook) = data, case .string(let text)? = cook["specialty"],
                                let number = Int(text)
                            else { throw Refusal() }
                            cook["specialty"] = .string(String(number + 1))
                            data = .object(cook)
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try app.read("Cook:a", card)["specialty"]?.string == "40")
        }
    }

    @Test("Data without the key fields of its objects is refused, and nothing is stored")
    func withoutKeys() async throws {
        try await withStoreFixture { app in
            let error = await #expect(throws: LarderError.self) {
                try await app.write(recipeList, json: Array(#"{"recipes":[{"title":"Soup","author":null}]}"#.utf8))
            }
            #expect(error?.code.rawValue == "records.responseMismatch")
            #expect(error?.message.contains("recipes[0]") == true)
            #expect(throws: LarderError.self) { try app.read(recipeList) }
        }
    }

    /// An operation whose data cannot be encoded.
    private struct Unsayable: TypedOperation {
        struct Data: Codable, Sendable {
            var title = "Soup"
            func encode(to encoder: any Encoder) throws { throw Refusal() }
        }
        let operation: GraphQLOperation
    }

    @Test("Data of the program's own type that cannot be encoded is refused, and nothing is stored")
    func unencodable() async throws {
        try await withStoreFixture { app in
            let query = GraphQLOperation("{ recipe(id: 1) { title } }")
            await expectCode(.data) { try await app.write(Unsayable(operation: query), data: .init()) }
            await expectCode(.miss) { _ = try app.read(query) }
        }
    }

    @Test("A mutation whose expected answer cannot be encoded is refused, and not queued")
    func unencodableExpectation() async throws {
        try await withStoreFixture { (app) async throws in
            await expectCode(.data) {
                try await app.enqueue(Unsayable(operation: giveStars("1", 5)), optimistic: .init())
            }
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("An update of an object may leave out what its key tells, and cannot make it another object")
    func updateOfObject() async throws {
        try await withStoreFixture { app in
            let card = GraphQLFragment("fragment Card on Recipe { id title rating }")
            try await app.write("Recipe:5", card, ["title": "Pie", "rating": 1])
            try await app.update("Recipe:5", card) { $0 = ["title": "Cake", "rating": 2] }
            let updated = try app.read("Recipe:5", card)
            #expect(updated["title"]?.string == "Cake" && updated["id"]?.string == "5")
            await #expect(throws: LarderError.self) {
                try await app.update("Recipe:5", card) { $0 = ["id": "6", "title": "Flan", "rating": 3] }
            }
            #expect(try app.read("Recipe:5", card)["title"]?.string == "Cake")
            await expectCode(.miss) { _ = try app.read("Recipe:6", card) }
            // Under one of two names alone, as under both.
            let twice = GraphQLFragment("fragment Twice on Recipe { id other: id title }")
            for ids: [String: Value] in [["id": "5", "other": "6"], ["id": "6", "other": "5"], ["other": "6"]] {
                await #expect(throws: LarderError.self) {
                    try await app.write("Recipe:5", twice, .object(ids.merging(["title": "Flan"]) { $1 }))
                }
            }
            #expect(try app.read("Recipe:5", card)["title"]?.string == "Cake")
        }
    }

    @Test("Fields that an object's key tells need not be in its data")
    func keyed() async throws {
        try await withStoreFixture { app in
            let card = GraphQLFragment("fragment Card on Recipe { title }")
            try await app.write("Recipe:8", card, ["title": "Pie"])
            #expect(try app.read("Recipe:8", card)["title"]?.string == "Pie")
            let contribution = GraphQLFragment("fragment Any on Contribution { author { name } }")
            try await app.write("Recipe:8", contribution, ["author": ["id": "b", "name": "Bo"]])
            #expect(try app.read(recipe(8))["recipe"]?["author"]?["name"]?.string == "Bo")
            let error = await #expect(throws: LarderError.self) {
                try await app.write("Recipe:8", card, ["id": "9", "title": "Pie"])
            }
            #expect(error?.code.rawValue == "records.responseMismatch")
            let other = await #expect(throws: LarderError.self) { try await app.write("Recipe:8", card, json: [0x7B]) }
            #expect(other?.code == .data)
        }
    }

    @Test("What an object's key tells has the kind of its field: a number, a truth or a text")
    func keyedKinds() async throws {
        let schema = """
            type Shelf @typePolicy(keyFields: "row") { row: Int! name: String }
            type Scale @typePolicy(keyFields: "step") { step: Float! name: String }
            type Switch @typePolicy(keyFields: "isOn place") { isOn: Boolean! place: ID! name: String }
            type Query { shelf: Shelf }
            """
        try await withStoreFixture(schema: schema) { app in
            let shelf = GraphQLFragment("fragment F on Shelf { row name }")
            try await app.write("Shelf:3", shelf, ["name": "top"])
            #expect(try app.read("Shelf:3", shelf)["row"]?.int == 3)
            await #expect(throws: LarderError.self) { try await app.write("Shelf:x", shelf, ["name": "top"]) }
            let scale = GraphQLFragment("fragment F on Scale { step name }")
            try await app.write("Scale:2.5", scale, ["name": "fine"])
            #expect(try app.read("Scale:2.5", scale)["step"]?.double == 2.5)
            await #expect(throws: LarderError.self) { try await app.write("Scale:x", scale, ["name": "fine"]) }
            let light = GraphQLFragment("fragment F on Switch { isOn place name }")
            for isOn in [true, false] {
                let key = CacheKey(#"Switch:{"isOn":"\#(isOn)","place":"hall"}"#)
                try await app.write(key, light, ["name": "light"])
                #expect(try app.read(key, light)["isOn"]?.boolean == isOn)
            }
            await #expect(throws: LarderError.self) {
                try await app.write(#"Switch:{"isOn":"x","place":"hall"}"#, light, ["name": "light"])
            }
        }
    }

    @Test("A field is removed with whatever arguments it was fetched")
    func removeField() async throws {
        try await withStoreFixture { app in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            try await app.remove(field: "recipes")
            let error = #expect(throws: LarderError.self) { try app.read(recipeList) }
            #expect(error?.missing.map(\.description) == ["recipes"])
            #expect(try app.read(recipe(1))["recipe"]?["title"]?.string == "Soup", "the objects stay")
            try await app.remove(type: "Recipe", as: .evicted)
            #expect(throws: LarderError.self) { try app.read(recipe(1)) }
        }
    }

    @Test("A custom scalar keeps its JSON")
    func customScalar() async throws {
        try await withStoreFixture { app in
            let noted = GraphQLOperation("{ recipe(id: 1) { note } }")
            for note in [#"{"a":[1,{"b":null}]}"#, "[1,2.5]", "\"text\"", "7", "true", "null"] {
                try await app.write(noted, json: Array(#"{"recipe":{"id":1,"note":\#(note)}}"#.utf8))
                let stored = try app.read(noted)["recipe"]?["note"]
                #expect(stored.map { String(decoding: $0.json, as: UTF8.self) } == note)
            }
        }
    }
}
