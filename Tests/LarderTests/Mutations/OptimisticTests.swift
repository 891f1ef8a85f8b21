import Foundation
import Larder
import LarderTestSupport
import Synchronization
import Testing

private let schema = """
    type Recipe { id: ID! title: String! stars: Int }
    type Query @fieldPolicy(forField: "recipe", keyArgs: ["id"]) { recipe(id: ID!): Recipe recipes: [Recipe!] }
    type Mutation { add(title: String!): Recipe! rate(recipe: ID!, stars: Int!): Recipe! }
    """
private let card = GraphQLFragment("fragment F on Recipe { title stars }")

private func add(_ title: String) -> GraphQLOperation {
    GraphQLOperation(
        "mutation Add($title: String!) { add(title: $title) { id title stars } }", variables: ["title": .string(title)])
}

private func rate(_ recipe: Value, _ stars: Int64) -> GraphQLOperation {
    GraphQLOperation(
        "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id stars } }",
        variables: ["recipe": recipe, "stars": .int(stars)])
}

private func rated(_ recipe: Value, _ stars: Int64) -> Value {
    ["rate": ["__typename": "Recipe", "id": recipe, "stars": .int(stars)]]
}

/// Adds recipes under ids of its own and rates those it knows.
///
/// - Parameter isOpen: Whether it can be reached; nil for always.
private func cookbook(isOpen: Flag? = nil) -> ScriptedServer {
    let recipes = Mutex(["r0": "Soup"])
    return ScriptedServer(ScriptedServer.key, search: nil) { server, _, request in
        guard isOpen?.isSet ?? true else { throw TransportError.away }
        if let title = request.values["title"] as? String {
            let id = recipes.withLock { recipes in
                recipes["r\(recipes.count)"] = title
                return "r\(recipes.count - 1)"
            }
            return GraphQLAnswer(
                #"{"data":{"add":{"__typename":"Recipe","id":"\#(id)","title":"\#(title)","stars":0}}}"#)
        }
        guard let recipe = request.values["recipe"] as? String, let stars = request.values["stars"] as? Int else {
            throw TransportError.away
        }
        server.note("\(recipe) \(stars)")
        return GraphQLAnswer(
            recipes.withLock { $0[recipe] } == nil
                ? #"{"data":null,"errors":[{"message":"no such recipe"}]}"#
                : #"{"data":{"rate":{"__typename":"Recipe","id":"\#(recipe)","stars":\#(stars)}}}"#)
    }
}

@Suite("Queued mutations before they are answered", .timeLimit(.minutes(10)))
struct OptimisticTests {
    @Test("An optimistic change is never written into the base data, and does not stay when the server says no")
    func rejected() async throws {
        let server = cookbook()
        try await withStoreFixture(server, schema: schema) { (app) throws in
            try await app.write("Recipe:r9", card, ["title": "Cake", "stars": 1])
            let receipt = try await app.enqueue(
                rate("r9", 5), options: MutationOptions(optimisticResponse: rated("r9", 5)))
            #expect(try app.read("Recipe:r9", card)["stars"]?.int == 5)
            #expect(try app.read("Recipe:r9", card)["title"]?.string == "Cake")
            try await MutationRunner(app).drain()
            #expect(try receipt.status()?.state == .deadLetter)
            #expect(try app.read("Recipe:r9", card)["stars"]?.int == 1)
        }
    }

    @Test("An update changes the base data alone: no expected change that reads show meanwhile is stored with it")
    func updatedMeanwhile() async throws {
        try await withStoreFixture(cookbook(), schema: schema) { (app) throws in
            try await app.write("Recipe:r9", card, ["title": "Cake", "stars": 1])
            try await app.enqueue(rate("r9", 5), options: MutationOptions(optimisticResponse: rated("r9", 5)))
            try await app.update("Recipe:r9", card) { recipe in
                guard case .object(var members) = recipe else { return }
                members["title"] = "Pie"
                recipe = .object(members)
            }
            #expect(try app.read("Recipe:r9", card)["stars"]?.int == 5)
            try await MutationRunner(app).drain()
            let left = try app.read("Recipe:r9", card)
            #expect(left["title"]?.string == "Pie" && left["stars"]?.int == 1)
        }
    }

    @Test("An optimistic change does not fail on an empty cache, and what the server answers takes its place")
    func applied() async throws {
        let server = cookbook()
        let stars = GraphQLFragment("fragment F on Recipe { stars }")
        try await withStoreFixture(server, schema: schema) { (app) throws in
            try await app.enqueue(rate("r0", 5), options: MutationOptions(optimisticResponse: rated("r0", 4)))
            #expect(try app.read("Recipe:r0", stars)["stars"]?.int == 4)
            try await MutationRunner(app).drain()
            #expect(try app.read("Recipe:r0", stars)["stars"]?.int == 5)
        }
    }

    @Test("A watcher sees the expected change, marked as such, and then the server's")
    func watched() async throws {
        let isOpen = Flag()
        let server = cookbook(isOpen: isOpen)
        try await withStoreFixture(server, schema: schema) { (app) throws in
            try await app.write("Recipe:r0", card, ["title": "Soup", "stars": 1])
            var states = try app.watch("Recipe:r0", card).makeAsyncIterator()
            let first = try #require(try await next(&states))
            #expect(first.complete?["stars"]?.int == 1)
            #expect(!first.isOptimistic)
            try await app.enqueue(rate("r0", 5), options: MutationOptions(optimisticResponse: rated("r0", 4)))
            let expected = try #require(try await next(&states))
            #expect(expected.complete?["stars"]?.int == 4)
            #expect(expected.isOptimistic)
            isOpen.set()
            try await MutationRunner(app).drain()
            let answered = try #require(try await next(&states))
            #expect(answered.complete?["stars"]?.int == 5)
            #expect(!answered.isOptimistic)
        }
    }

    @Test("A state is optimistic by the fields that it shows: a queued change of another field leaves it confirmed")
    func otherField() async throws {
        try await withStoreFixture(cookbook(), schema: schema) { (app) throws in
            try await app.write("Recipe:r0", card, ["title": "Soup", "stars": 1])
            let title = GraphQLFragment("fragment F on Recipe { title }")
            let stars = GraphQLFragment("fragment F on Recipe { stars }")
            var states = try app.watch("Recipe:r0", title).makeAsyncIterator()
            #expect(try await next(&states)?.isOptimistic == false)
            try await app.enqueue(rate("r0", 5), options: MutationOptions(optimisticResponse: rated("r0", 4)))
            try await app.enqueue(rate("r1", 5), options: MutationOptions(optimisticResponse: rated("r1", 4)))
            try await app.write("Recipe:r0", title, ["title": "Broth"])
            let changed = try #require(try await next(&states))
            #expect(changed.complete?["title"]?.string == "Broth")
            #expect(!changed.isOptimistic)
            // The changed field of one object, and an object that the queued mutation alone knows.
            for key in ["Recipe:r0", "Recipe:r1"] as [CacheKey] {
                var states = try app.watch(key, stars).makeAsyncIterator()
                #expect(try await next(&states)?.isOptimistic == true)
            }
        }
    }

    @Test("An optimistic response is seen after a restart, and by another handle of the store")
    func restart() async throws {
        try await withTemporaryFolder { (folder) throws in
            let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
            try await store.partition().enqueue(
                rate("r0", 5), options: MutationOptions(optimisticResponse: rated("r0", 4)))
            try store.close()
            let again = try Store.open(at: folder, schema: try Schema(parsing: schema))
            let app = try again.partition(server: cookbook())
            let stars = GraphQLFragment("fragment F on Recipe { stars }")
            #expect(try app.read("Recipe:r0", stars)["stars"]?.int == 4)
            try await MutationRunner(app).drain()
            #expect(try app.read("Recipe:r0", stars)["stars"]?.int == 5)
            try again.close()
        }
    }

    @Test("A temporary id in a later mutation is replaced by the server's, also after a restart")
    func temporaryIDs() async throws {
        try await withTemporaryFolder { (folder) throws in
            let server = cookbook()
            let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
            let app = try store.partition()
            let id = TemporaryObjectID()
            let expected: Value = [
                "add": ["__typename": "Recipe", "id": id.value, "title": "Pie", "stars": 0]
            ]
            try await app.enqueue(
                add("Pie"), options: MutationOptions(optimisticResponse: expected, temporaryIDs: [id]))
            try await app.enqueue(rate(id.value, 3), options: MutationOptions(optimisticResponse: rated(id.value, 3)))
            #expect(try app.read("Recipe:\(id.text)", card)["title"]?.string == "Pie")
            #expect(try app.read("Recipe:\(id.text)", card)["stars"]?.int == 3)
            try store.close()
            let again = try Store.open(at: folder, schema: try Schema(parsing: schema))
            let later = try again.partition(server: server)
            #expect(try later.read("Recipe:\(id.text)", card)["stars"]?.int == 3)
            try await MutationRunner(later).drain()
            #expect(server.effects == ["r1 3"])
            #expect(try later.read("Recipe:r1", card)["title"]?.string == "Pie")
            #expect(try later.read("Recipe:r1", card)["stars"]?.int == 3)
            #expect(throws: LarderError.self) { try later.read("Recipe:\(id.text)", card) }
            try again.close()
        }
    }

    @Test("A change to a list of an object is shown in that list, and stays there once the mutation is applied")
    func listOfObject() async throws {
        let comments = GraphQLOperation(#"{ recipe(id: "1") { id comments { id text } } }"#)
        try await withStoreFixture(ScriptedServer.rating()) { (app) throws in
            func texts() throws -> [String] {
                try app.read(comments)["recipe"]?["comments"]?.elements.compactMap { $0["text"]?.string } ?? []
            }
            for (recipe, text) in [("2", "fine"), ("1", "good")] {
                let comment: Value = ["id": .string("c\(recipe)"), "text": .string(text)]
                try await app.write(
                    GraphQLOperation(#"{ recipe(id: "\#(recipe)") { id comments { id text } } }"#),
                    ["recipe": ["id": .string(recipe), "comments": [comment]]])
            }
            #expect(try texts() == ["good"])
            try await app.enqueue(
                giveStars("1", 5),
                options: MutationOptions(listChanges: [
                    .insert("Comment:c2", into: "comments", of: "Recipe:1"),
                    .remove("Comment:c1", from: "comments", of: "Recipe:1"),
                ]))
            #expect(try texts() == ["fine"])
            try await MutationRunner(app).drain()
            #expect(try texts() == ["fine"])
        }
    }

    @Test("An object that is to be made is in its list at once, and stays there under the server's id")
    func listChanges() async throws {
        let isOpen = Flag()
        let server = cookbook(isOpen: isOpen)
        let list = GraphQLOperation("{ recipes { id title } }")
        try await withStoreFixture(server, schema: schema) { (app) throws in
            func titles() throws -> [String] {
                try app.read(list)["recipes"]?.elements.compactMap { $0["title"]?.string } ?? []
            }
            try await app.write(list, ["recipes": [["id": "r0", "title": "Soup"]]])
            let id = TemporaryObjectID()
            try await app.enqueue(
                add("Pie"),
                options: MutationOptions(
                    optimisticResponse: ["add": ["__typename": "Recipe", "id": id.value, "title": "Pie", "stars": 0]],
                    listChanges: [.insert("Recipe:\(id.text)", into: "recipes", at: .start)], temporaryIDs: [id]))
            try await app.enqueue(
                rate("r0", 2),
                options: MutationOptions(
                    listChanges: [.remove("Recipe:r0", from: "recipes")]))
            #expect(try titles() == ["Pie"])
            isOpen.set()
            try await MutationRunner(app).drain()
            #expect(try titles() == ["Pie"])
            #expect(try app.read(list)["recipes"]?[0]?["id"]?.string == "r1")
            #expect(try app.records.check().isSound)
        }
    }

    @Test(
        "An object goes into a list where its field says, in either order",
        arguments: [
            (ListChange.Place.ascending(field: "stars"), ["Rye", "Pie", "Soup"]),
            (ListChange.Place.descending(field: "stars"), ["Soup", "Pie", "Rye"]),
        ])
    func places(place: ListChange.Place, titles: [String]) async throws {
        let list = GraphQLOperation("{ recipes { id title stars } }")
        try await withStoreFixture(cookbook(), schema: schema) { (app) throws in
            func isIn(_ ends: [Value]) async throws -> Bool {
                try await app.write(list, ["recipes": .list(ends)])
                let found = try app.read(list)["recipes"]?.elements.compactMap { $0["title"]?.string }
                return found == titles
            }
            let soup: Value = ["id": "r0", "title": "Soup", "stars": 9]
            let rye: Value = ["id": "r9", "title": "Rye", "stars": 1]
            try await app.enqueue(
                add("Pie"),
                options: MutationOptions(
                    optimisticResponse: ["add": ["__typename": "Recipe", "id": "r1", "title": "Pie", "stars": 5]],
                    listChanges: [.insert("Recipe:r1", into: "recipes", at: place)]))
            #expect(try await isIn(titles.first == "Rye" ? [rye, soup] : [soup, rye]))
        }
    }
}
