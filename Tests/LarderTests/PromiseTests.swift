import Foundation
import LarderTestSupport
import Testing

@testable import Larder

private let schema = """
    scalar JSON
    interface Node { id: ID! }
    type Author implements Node { id: ID! name: String }
    type Recipe implements Node { id: ID! title: String author: Author meta: JSON tags: [String] }
    input Filter { ids: [ID!] inner: Filter }
    type Query @fieldPolicy(forField: "recipe", keyArgs: "id") @fieldPolicy(forField: "needed", keyArgs: "id")
      @fieldPolicy(forField: "byIDs", keyArgs: "ids") @fieldPolicy(forField: "node", keyArgs: "id")
      @fieldPolicy(forField: "filtered", keyArgs: "filter.inner.ids") {
      recipe(id: ID!): Recipe needed(id: ID!): Recipe! byIDs(ids: [ID!]!): [Recipe] node(id: ID!): Node
      filtered(filter: Filter): [Recipe] version: String
    }
    type Mutation { rename(id: ID!): Recipe }
    """

private let renamed = #"{"data":{"rename":{"__typename":"Recipe","id":"1","title":"Soup"}}}"#
private let rename = GraphQLOperation("mutation { rename(id: 1) { title } }")
private let title = GraphQLFragment("fragment Title on Recipe { title }")
private let name = GraphQLFragment("fragment Name on Author { name }")
private let tags = GraphQLFragment("fragment Tags on Recipe { tags }")

private func withStore(
    _ transport: (any GraphQLTransport)? = nil, answersUpTo bytes: Int = 1 << 30,
    _ body: (Store, Partition) async throws -> Void
) async throws {
    var options = Store.Options()
    options.maximumAnswerSize = bytes
    try await withOpenStore(transport, schema: schema, options: options) { _, store, app in try await body(store, app) }
}

@Suite("Promises at their edges", .timeLimit(.minutes(10)))
struct PromiseTests {
    // MARK: Asking servers

    @Test("A fetch may take thirty seconds, and throws the server's errors, unless the program says otherwise")
    func fetchOptions() {
        let said = FetchOptions(
            errorPolicy: .fail, timeout: .seconds(30), headers: [], maxAge: nil, staleAllowed: false)
        #expect(FetchOptions() == said)
    }

    @Test("An answer from the cache may take 1 GiB of memory, unless the program says otherwise")
    func answerSize() {
        #expect(Store.Options().maximumAnswerSize == 1 << 30)
    }

    @Test("By default a cache may grow to 64 GiB, a lock is waited for five seconds, and a suspension not at all")
    func storeOptions() {
        let options = Store.Options()
        #expect(options.maximumSize == 64 << 30)
        #expect(options.lockTimeout == .seconds(5))
        #expect(options.suspensionWait == .zero)
    }

    @Test("A program's name stands in the lock of the cache, for the errors of others that wait for it")
    func label() async throws {
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.label = "the kitchen's timer"
            let store = try Store.open(at: folder, schema: try Schema(parsing: schema), options: options)
            try await store.partition().write(GraphQLOperation("{ version }"), ["version": "1"])
            let lock = Store.cacheFolder(of: folder).appending(path: "1/write.lock")
            #expect(try String(contentsOf: lock, encoding: .utf8).contains(", the kitchen's timer"))
            try store.close()
        }
    }

    @Test("A partition that is parked asks no server, and changes nothing there")
    func parked() async throws {
        let server = ScriptedServer { _ in renamed }
        try await withStore(server) { store, app in
            try store.close()
            let mutated = await #expect(throws: LarderError.self) {
                try await app.send(rename, within: .seconds(300))
            }
            #expect(mutated?.code == .parked)
            for policy in FetchPolicy.allCases {
                let fetched = await #expect(throws: LarderError.self) {
                    try await app.fetch(GraphQLOperation("{ version }"), policy: policy)
                }
                #expect(fetched?.code == .parked)
            }
            #expect(server.requests.isEmpty)
        }
    }

    @Test("A cache that cannot be read is passed over where a server can be asked, and the log says so")
    func unreadableCache() async throws {
        let log = RecordedLog(from: .warning)
        let server = ScriptedServer { _ in
            #"{"data":{"recipe":{"__typename":"Recipe","id":"1","tags":["a"]}}}"#
        }
        var options = Store.Options()
        (options.maximumAnswerSize, options.logger) = (100_000, log.logger)
        try await withOpenStore(server, schema: schema, options: options) { (_, _, app) throws in
            try await app.write("Recipe:1", tags, ["tags": .list((0..<20_000).map { .string("tag \($0)") })])
            let answer = try await app.fetch(GraphQLOperation("{ recipe(id: 1) { tags } }"))
            #expect(answer["recipe"]?["tags"]?.count == 1)
            #expect(log.texts.withLock { $0 } == ["the cache could not be read"])
        }
    }

    @Test("A store that is open to be read only asks no server, as it could not keep the answer")
    func readOnly() async throws {
        let server = ScriptedServer { _ in renamed }
        try await withTemporaryFolder { folder in
            let schema = try Schema(parsing: schema)
            let writable = try Store.open(at: folder, schema: schema)
            _ = try writable.partition()
            try writable.close()
            var options = Store.Options()
            options.isReadOnly = true
            let store = try Store.open(at: folder, schema: schema, options: options)
            let app = try store.partition(server: server)
            let error = await #expect(throws: LarderError.self) {
                try await app.send(rename, within: .seconds(300))
            }
            #expect(error?.code.rawValue == "records.notWritable")
            #expect(server.requests.isEmpty)
            try store.close()
        }
    }

    // MARK: Watching

    @Test("A watcher whose first reading failed hears of what can be read later")
    func unreadableAtFirst() async throws {
        try await withStore(answersUpTo: 100_000) { _, app in
            try await app.write("Recipe:1", tags, ["tags": .list((0..<20_000).map { .string("tag \($0)") })])
            var states = try app.watch("Recipe:1", tags).makeAsyncIterator()
            #expect(try await next(&states)?.error?.code.rawValue == "records.tooLarge")
            try await app.write("Recipe:1", tags, ["tags": ["a"]])
            let state = try await next(&states)
            #expect(state?.complete?["tags"]?.count == 1)
            #expect(state?.error == nil)
        }
    }

    @Test("A watcher that cannot read any more hears of objects that it had not read before")
    func unreadableLater() async throws {
        try await withStore(answersUpTo: 100_000) { _, app in
            let query = GraphQLOperation("{ recipe(id: 1) { author { name } } }")
            try await app.write(query, ["recipe": ["id": "1", "author": ["id": "1", "name": "Ada"]]])
            var states = try app.watch(query).makeAsyncIterator()
            #expect(try await next(&states)?.complete != nil)
            try await app.write("Author:2", name, ["name": .string(String(repeating: "x", count: 200_000))])
            let author = GraphQLFragment("fragment Author on Recipe { author { id } }")
            try await app.write("Recipe:1", author, ["author": ["id": "2"]])
            #expect(try await next(&states)?.error?.code.rawValue == "records.tooLarge")
            try await app.write("Author:2", name, ["name": "Bo"])
            let state = try await next(&states)
            #expect(state?.complete?["recipe"]?["author"]?["name"]?.string == "Bo")
            #expect(state?.error == nil)
        }
    }

    @Test("The error of a reading ends with the next that succeeds, also where the answer is the one before it")
    func readableAgain() async throws {
        try await withStore(answersUpTo: 100_000) { _, app in
            try await app.write("Author:1", name, ["name": "Ada"])
            var states = try app.watch("Author:1", name).makeAsyncIterator()
            #expect(try await next(&states)?.complete?["name"]?.string == "Ada")
            try await app.write("Author:1", name, ["name": .string(String(repeating: "x", count: 200_000))])
            #expect(try await next(&states)?.error?.code.rawValue == "records.tooLarge")
            try await app.write("Author:1", name, ["name": "Ada"])
            let state = try await next(&states)
            #expect(state?.complete?["name"]?.string == "Ada")
            #expect(state?.error == nil)
        }
    }

    @Test("A watcher of a key that two types have hears when one of the objects goes")
    func ambiguous() async throws {
        try await withStore { _, app in
            try await app.write("Recipe:1", title, ["title": "Soup"])
            try await app.write("Author:1", name, ["name": "Ada"])
            var states = try app.watch(GraphQLOperation("{ node(id: 1) { id } }")).makeAsyncIterator()
            let state = try await next(&states)
            #expect(state?.complete == nil)
            try await app.remove("Author:1", as: .evicted)
            #expect(try await next(&states)?.complete?["node"]?["id"]?.string == "1")
        }
    }

    // MARK: Reading

    @Test("A null that is above all else leaves nothing missing, whether anything was ever fetched or not")
    func nullRoot() async throws {
        try await withStore { _, app in
            try await app.write("Recipe:1", title, ["title": "Soup"])
            try await app.remove("Recipe:1", as: .deleted)
            let query = GraphQLOperation("{ version needed(id: 1) { title } }")
            let before = try app.read(query, allowsPartial: true)
            try await app.write(GraphQLOperation("{ node(id: 9) { id } }"), ["node": .null])
            let after = try app.read(query, allowsPartial: true)
            #expect(before.missing.isEmpty)
            #expect(before == after)
        }
    }

    @Test(
        "A single value where a key argument is a list is a list of one",
        arguments: [
            GraphQLOperation("{ found: byIDs(ids: 1) { title } }"),
            GraphQLOperation("query($ids: [ID!]!) { found: byIDs(ids: $ids) { title } }", variables: ["ids": "1"]),
            GraphQLOperation(#"{ found: filtered(filter: {inner: {ids: "1"}}) { title } }"#),
            GraphQLOperation(
                "query($f: Filter) { found: filtered(filter: {inner: $f}) { title } }",
                variables: ["f": ["ids": 1]]),
        ])
    func listOfOne(operation: GraphQLOperation) async throws {
        try await withStore { _, app in
            try await app.write("Recipe:1", title, ["title": "Soup"])
            let found = try app.read(operation)["found"]
            #expect(found?.elements.compactMap { $0["title"]?.string } == ["Soup"])
        }
    }

    // MARK: Writing

    @Test(
        "Fields that the key tells need not be in the data, whatever they are asked for as",
        arguments: [
            ("fragment F on Recipe { id: title }", "id"),
            ("fragment F on Recipe { t: title x: id }", "t"),
            ("fragment F on Recipe { t: title id }", "t"),
            ("fragment F on Node { type: __typename x: id ... on Recipe { id: title } }", "id"),
        ])
    func keyUnderAlias(document: String, member: String) async throws {
        try await withStore { _, app in
            let fragment = GraphQLFragment(document)
            try await app.write("Recipe:7", fragment, [member: "Soup"])
            let identity = GraphQLFragment("fragment I on Recipe { id title __typename }")
            let stored = #"{"id":"7","title":"Soup","__typename":"Recipe"}"#
            #expect(String(decoding: try app.read("Recipe:7", identity).json, as: UTF8.self) == stored)
            try await app.update("Recipe:7", fragment) { $0 = [member: "Bread"] }
            #expect(try app.read("Recipe:7", title)["title"]?.string == "Bread")
        }
    }

    @Test("Data are of the type that their key names, whatever type they say")
    func typeOfKey() async throws {
        try await withStore { _, app in
            let fragment = GraphQLFragment("fragment F on Node { type: __typename ... on Recipe { title } }")
            try await app.write(
                "Recipe:7", fragment, ["type": "Author", "__typename": "Author", "title": "Soup"])
            let stored = try app.read("Recipe:7", fragment)
            #expect(stored["type"]?.string == "Recipe" && stored["title"]?.string == "Soup")
        }
    }

    @Test("Data with another key than the one it is stored under is refused, whatever the key is asked for as")
    func otherKey() async throws {
        try await withStore { _, app in
            for document in ["fragment F on Recipe { title id }", "fragment F on Recipe { title x: id }"] {
                let fragment = GraphQLFragment(document)
                let name = document.contains("x:") ? "x" : "id"
                for value in ["8", .null] as [Value] {
                    await #expect(throws: LarderError.self) {
                        try await app.write("Recipe:7", fragment, ["title": "Soup", name: value])
                    }
                    #expect(throws: LarderError.self) { try app.read("Recipe:7", title) }
                }
                try await app.write("Recipe:7", fragment, ["title": "Soup", name: "7"])
                await #expect(throws: LarderError.self) {
                    try await app.update("Recipe:7", fragment) { $0 = ["title": "Bread", name: "8"] }
                }
                #expect(try app.read("Recipe:7", title)["title"]?.string == "Soup")
                try await app.remove("Recipe:7", as: .evicted)
            }
        }
    }

    @Test("Data that says another key under one of the names that it is asked for as is refused")
    func otherKeyUnderOneName() async throws {
        try await withStore { _, app in
            let fragment = GraphQLFragment("fragment F on Recipe { title x: id y: id }")
            for name in ["x", "y"] {
                await #expect(throws: LarderError.self) {
                    try await app.write("Recipe:7", fragment, ["title": "Soup", name: "8"])
                }
            }
            for key in ["Recipe:7", "Recipe:8"] as [CacheKey] {
                #expect(throws: LarderError.self) { try app.read(key, title) }
            }
        }
    }

    @Test("The data of an object are one, and JSON")
    func dataOfObject() async throws {
        try await withStore { _, app in
            for data in [.list(["Soup"]), .string("Soup"), .null] as [Value] {
                await expectCode(.data) { try await app.write("Recipe:7", title, data) }
            }
            await expectCode(.data) { try await app.write("Recipe:7", title, json: Array("{".utf8)) }
        }
    }

    @Test("An update that changes nothing publishes nothing, in whatever order a custom scalar's members stand")
    func customScalarOrder() async throws {
        try await withStore { _, app in
            let query = GraphQLOperation("{ recipe(id: 1) { id title meta } }")
            func data(_ meta: String) -> [UInt8] { Array(#"{"recipe":{"id":"1","title":"x","meta":\#(meta)}}"#.utf8) }
            // Long enough to be moved out of its record.
            let long = String(repeating: "é", count: 300)
            for meta in [#"{"z":1,"a":[1.0,{"y":null,"b":true}]}"#, #"{"z":"\#(long)","a":1}"#] {
                try await app.write(query, json: data(meta))
                for compacts in [false, true] {
                    if compacts { _ = try await app.records.compact() }
                    let published = app.core.watchers.published
                    try await app.update(query) { _ in }
                    try await app.write(query, json: data(meta.replacing(",", with: " , ")))
                    #expect(app.core.watchers.published == published)
                }
            }
            let published = app.core.watchers.published
            try await app.write(query, json: data(#"{"z":1,"a":[1,{"y":null,"b":true}]}"#))
            #expect(app.core.watchers.published == published + 1)
        }
    }

    @Test("Values of a program's own type are stored as they were read: nil as null, dates as text")
    func ownTypes() async throws {
        try await withStore { _, app in
            let json = #"""
                {"recipe":{"id":"1","title":null,"tags":null,"author":null,"meta":"2026-11-21T09:51:46.123Z"}}
                """#
            try await app.write(DatedRecipe().operation, json: Array(json.utf8))
            let published = app.core.watchers.published
            let before = try app.read(DatedRecipe())
            try await app.update(DatedRecipe()) { _ in }
            #expect(app.core.watchers.published == published, "nothing was changed")
            #expect(try app.read(DatedRecipe()) == before)
            let date = Date(timeIntervalSince1970: 1_800_000_000)
            try await app.update(DatedRecipe()) { data in
                data.recipe?.title = "Soup"
                data.recipe?.tags = ["a", nil]
                data.recipe?.author = .init(id: "7", name: nil)
                data.recipe?.meta = date
            }
            #expect(try app.read(DatedRecipe()).recipe?.meta == date)
            #expect(
                String(decoding: try app.read(DatedRecipe().operation).json, as: UTF8.self) == #"""
                    {"recipe":{"id":"1","title":"Soup","tags":["a",null],"author":{"id":"7","name":null},\#
                    "meta":"2027-01-15T08:00:00Z"}}
                    """#)
            try await app.write(DatedRecipe(), data: .init(recipe: nil))
            #expect(try app.read(DatedRecipe()).recipe == nil)
        }
    }

    @Test("A field that a program's own type does not have is not taken for null")
    func typeWithoutField() async throws {
        try await withStore { _, app in
            try await app.write("Recipe:1", title, ["title": "Soup"])
            await #expect(throws: LarderError.self) { try await app.update(TitleOnly()) { $0.recipe.id = "1" } }
            #expect(try app.read("Recipe:1", title)["title"]?.string == "Soup")
        }
    }
}

private struct DatedRecipe: TypedOperation {
    struct Data: Codable, Sendable, Equatable { var recipe: Recipe? }
    struct Recipe: Codable, Sendable, Equatable {
        var id: String
        var title: String?
        var tags: [String?]?
        var author: Author?
        var meta: Date?
    }
    struct Author: Codable, Sendable, Equatable {
        var id: String
        var name: String?
    }

    var operation: GraphQLOperation {
        GraphQLOperation("{ recipe(id: 1) { id title tags author { id name } meta } }")
    }
}

private struct TitleOnly: TypedOperation {
    struct Data: Codable, Sendable { var recipe: Recipe }
    struct Recipe: Codable, Sendable { var id: String }

    var operation: GraphQLOperation { GraphQLOperation("{ recipe(id: 1) { id title } }") }
}
