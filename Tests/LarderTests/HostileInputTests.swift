import Foundation
import LarderRecords
import LarderTestSupport
import Testing

@testable import Larder

private let note = GraphQLOperation(#"{ recipe(id: "1") { title note } }"#)

private func noteAnswer(_ note: String) -> String {
    #"{"data":{"recipe":{"__typename":"Recipe","id":"1","title":"Soup","note":\#(note)}}}"#
}

@Suite("Hostile input", .timeLimit(.minutes(10)))
struct HostileInputTests {
    static let answers = [
        "", " ", "<html><body>502</body></html>", "null", "[]", "{}", #"{"data":1}"#, #"{"data":{}}"#,
        #"{"data":{"recipe":[]}}"#, #"{"data":null,"data":{"recipe":null}}"#,
        #"{"data":{"recipe":null,"recipe":null}}"#, noteAnswer("1") + "x",
        noteAnswer(String(repeating: "[", count: 10_000) + String(repeating: "]", count: 10_000)),
        noteAnswer(String(repeating: #"{"a":"#, count: 10_000) + "1" + String(repeating: "}", count: 10_000)),
        #"{"data":{"recipe":null},"extensions":"# + String(repeating: "[", count: 10_000)
            + String(repeating: "]", count: 10_000) + "}",
        noteAnswer(#""\ud800""#), noteAnswer("01"), noteAnswer("1e"), noteAnswer("NaN"),
    ]

    @Test("A body that is no answer is a typed error, and the cache stays as it was", arguments: 0..<19)
    func bodies(_ index: Int) async throws {
        let transport = ScriptedServer { _ in Self.answers[index] }
        try await withStoreFixture(transport) { app in
            try await app.write(note, json: Array(#"{"recipe":{"id":"1","title":"Bread","note":{"a":[]}}}"#.utf8))
            let before = try app.read(note)
            let error = await #expect(throws: LarderError.self) { try await app.fetch(note, policy: .networkOnly) }
            #expect(error?.code.rawValue.hasPrefix("records.") == true)
            #expect(try app.read(note) == before)
            #expect(try app.records.check().isSound)
        }
    }

    @Test("Long keys and arguments, large numbers and a list of 100,000 come back as they went in")
    func large() async throws {
        let id = String(repeating: "k(.%é😀", count: 1_000)
        try await withStoreFixture { app in
            let byID = GraphQLOperation(
                "query($id: ID!) { recipe(id: $id) { id title note } }", variables: ["id": .string(id)])
            let number = "123456789012345678901234567890.5e400"
            let data = #"{"recipe":{"id":"\#(id)","title":"Soup","note":\#(number)}}"#
            try await app.write(byID, json: Array(data.utf8))
            #expect(String(decoding: try app.read(byID).json, as: UTF8.self) == data)
            try await app.update(byID) { _ in }
            #expect(String(decoding: try app.read(byID).json, as: UTF8.self) == data)

            let elements = (0..<100_000).map { #"{"id":"\#($0)","title":"t\#($0)"}"# }.joined(separator: ",")
            let list = GraphQLOperation("{ recipes(first: 100000) { id title } }")
            let all = #"{"recipes":[\#(elements)]}"#
            try await app.write(list, json: Array(all.utf8))
            #expect(String(decoding: try app.read(list).json, as: UTF8.self) == all)
        }
    }

    @Test("Data that ends early and goes on with members of its own is refused")
    func enveloped() async throws {
        try await withStoreFixture { app in
            let data = #"{"recipe":{"id":"1","title":"Soup","note":1}},"errors":[{"message":"m"}]"#
            await #expect(throws: LarderError.self) { try await app.write(note, json: Array(data.utf8)) }
        }
    }

    @Test("A full map is a typed error, nothing is half there, and the store can be used again")
    func fullMap() async throws {
        var options = Store.Options()
        options.maximumSize = 1 << 20
        try await withOpenStore(options: options) { (_, _, app) throws in
            try await app.write(recipeList, json: soupAndBread("Soup"))
            let text = String(repeating: "x", count: 100_000)
            let elements = (0..<30).map { #"{"id":"\#($0)","title":"\#(text)"}"# }.joined(separator: ",")
            let list = GraphQLOperation("{ recipes(first: 30) { id title } }")
            let large = Array(#"{"recipes":[\#(elements)]}"#.utf8)
            for _ in 0..<3 {
                let error = await #expect(throws: LarderError.self) { try await app.write(list, json: large) }
                #expect(error?.code.rawValue == "records.full")
                #expect(throws: LarderError.self) { try app.read(list) }
                #expect(try app.read(recipe(1))["recipe"]?["title"]?.string == "Soup")
            }
            for round in 0..<200 { try await app.write(recipeList, json: soupAndBread("Soup \(round)")) }
            _ = try await app.records.compact()
            #expect(try app.read(recipe(1))["recipe"]?["title"]?.string == "Soup 199")
            #expect(try app.records.check().isSound)
        }
    }

    /// A store with little room in its map, filled with soups until no more fit.
    private func withFullMap(_ body: (Partition) async throws -> Void) async throws {
        var options = Store.Options()
        options.maximumSize = 1 << 20
        try await withOpenStore(options: options) { (_, _, app) throws in
            let text = String(repeating: "x", count: 900)
            var code: String?
            for round in 0..<10_000 where code == nil {
                do throws(LarderError) { try await app.write("Cook:\(round)", cook, ["name": .string(text)]) } catch {
                    code = error.code.rawValue
                }
            }
            try #require(code == "records.full")
            try await body(app)
            #expect(try app.records.check().isSound)
        }
    }

    private var cook: GraphQLFragment { GraphQLFragment("fragment Card on Cook { name }") }

    @Test("On a full map an update that needs room is refused and rolled back, and one that needs none is made")
    func fullMapUpdate() async throws {
        try await withFullMap { app in
            let long = String(repeating: "y", count: 200_000)
            await #expect {
                try await app.update("Cook:1", cook) { $0 = ["id": "1", "name": .string(long)] }
            } throws: { ($0 as? LarderError)?.code.rawValue == "records.full" }
            #expect(try app.read("Cook:1", cook)["name"]?.string?.utf8.count == 900)
            try await app.remove(keys: (100..<200).map { "Cook:\($0)" }, as: .evicted)
            try await app.update("Cook:1", cook) { $0 = ["id": "1", "name": "Ada"] }
            #expect(try app.read("Cook:1", cook)["name"]?.string == "Ada")
        }
    }

    @Test("On a full map objects can be removed, and what they leave is used again")
    func fullMapRemove() async throws {
        try await withFullMap { app in
            for number in 0..<40 { try await app.remove("Cook:\(number)", as: .evicted) }
            #expect(throws: LarderError.self) { try app.read("Cook:39", cook) }
            for number in 0..<20 { try await app.write("Cook:new\(number)", cook, ["name": "Ada"]) }
            #expect(try app.read("Cook:new19", cook)["name"]?.string == "Ada")
        }
    }

    @Test("Removing all of a type on a full map is done, or refused whole")
    func fullMapRemoveAll() async throws {
        try await withFullMap { app in
            var code: String?
            do throws(LarderError) { try await app.remove(type: "Cook", as: .deleted) } catch {
                code = error.code.rawValue
            }
            if code == nil {
                #expect(throws: LarderError.self) { try app.read("Cook:1", cook) }
            } else {
                #expect(code == "records.full")
                let name = try app.read("Cook:1", cook)["name"]?.string
                #expect(name?.utf8.count == 900)
            }
        }
    }

    @Test("A full map is compacted, or says that it cannot be; clearing it makes room", arguments: [true, false])
    func fullMapSuperseded(_ compacts: Bool) async throws {
        try await withFullMap { app in
            if compacts {
                do throws(RecordError) { _ = try await app.records.compact() } catch { #expect(error.code == .full) }
                #expect(try app.read("Cook:1", cook)["name"]?.string?.utf8.count == 900)
                #expect(try app.records.check().isSound)
            }
            _ = try await app.records.clear()
            try await app.write("Cook:1", cook, ["name": "Ada"])
            #expect(try app.read("Cook:1", cook)["name"]?.string == "Ada")
        }
    }

    /// Bytes that are not UTF-8, as they may stand in a string.
    private static let notText: [[UInt8]] = [
        [0xFF], [0x80], [0xC0, 0xAF], [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xF4, 0x90, 0x80, 0x80],
        [0xF0, 0x80, 0x80, 0x80],
    ]

    @Test(
        "Bytes that are not UTF-8 are refused in keys and values, written or fetched, and change nothing",
        arguments: 0..<7, ["title", "note", "key", "id", "unselected", "extensions", "error"])
    func notUTF8(_ index: Int, _ place: String) async throws {
        let bytes = Self.notText[index]
        func text(_ name: String) -> [UInt8] {
            place == name ? Array("\"a".utf8) + bytes + Array("b\"".utf8) : Array("\"1\"".utf8)
        }
        var data = Array(#"{"recipe":{"__typename":"Recipe","id":"#.utf8) + text("id") + Array(#","title":"#.utf8)
        data += text("title") + Array(#","note":{"n":["#.utf8) + text("note") + Array("],".utf8)
        data += text("key") + Array(#":1},"unselected":"#.utf8) + text("unselected") + Array("}}".utf8)
        var body = Array(#"{"data":"#.utf8) + data + Array(#","extensions":{"x":"#.utf8) + text("extensions")
        body += Array("}".utf8)
        if place == "error" { body += Array(#","errors":[{"message":"#.utf8) + text("error") + Array("}]".utf8) }
        body += Array("}".utf8)
        let answer = GraphQLAnswer(body: body, status: 200)
        try await withStoreFixture(ScriptedServer(search: nil) { _, _, _ in answer }) { app in
            try await app.write(note, json: Array(#"{"recipe":{"id":"1","title":"Bread","note":{"a":[]}}}"#.utf8))
            let before = try app.read(note)
            let fetched = await #expect(throws: LarderError.self) { try await app.fetch(note, policy: .networkOnly) }
            #expect(fetched?.code.rawValue == "records.responseMalformed")
            if place != "extensions", place != "error" {
                let written = await #expect(throws: LarderError.self) { try await app.write(note, json: data) }
                #expect(written?.code.rawValue == "records.responseMalformed")
            }
            #expect(try app.read(note) == before)
            #expect(try app.records.check().isSound)
        }
    }

    /// As functions: the deepest would exhaust the stack of whoever prints a test's arguments.
    private static let unspeakable: [@Sendable () -> Value] = [
        { .float(.nan) }, { .float(.infinity) }, { .number("1,2") }, { .number("01") }, { .number("") },
        { .number("-") }, { .number("1e") }, { .number("NaN") }, { .list([.object(["a": .float(-.infinity)])]) },
        { nested(600) }, { nested(10_000) },
    ]

    @Test("A value that JSON cannot say is refused as a variable and as data", arguments: 0..<11)
    func unspeakable(_ index: Int) async throws {
        let value = Self.unspeakable[index]()
        try await withStoreFixture { app in
            let old: Value = ["recipe": ["id": "1", "title": "Soup", "note": 1]]
            let asked = GraphQLOperation("query($n: Note) { recipe(id: $n) { title } }", variables: ["n": value])
            let error = #expect(throws: LarderError.self) { try app.read(asked) }
            #expect(error?.code == .variables || error?.code == .operation)
            let listed = GraphQLOperation("query($n: Int) { recipes(first: $n) { title } }", variables: ["n": value])
            #expect(throws: LarderError.self) { try app.read(listed) }
            try await app.write(note, old)
            let data: Value = ["recipe": ["id": "1", "title": "Stew", "note": value]]
            let written = await #expect(throws: LarderError.self) { try await app.write(note, data) }
            #expect(written?.code == .data)
            await #expect { try await app.update(note) { $0 = data } } throws: { ($0 as? LarderError)?.code == .data }
            #expect(try app.read(note)["recipe"]?["title"]?.string == "Soup")
        }
    }

    private static func nested(_ depth: Int) -> Value {
        (0..<depth).reduce(Value.int(1)) { value, _ in .list([value]) }
    }

    @Test("Numbers that only their text keeps are taken as they are")
    func longNumbers() async throws {
        try await withStoreFixture { app in
            for number in ["123456789012345678901234567890", "-0.1e-400", "1E5000", "0", "-0"] {
                try await app.write(note, ["recipe": ["id": "1", "title": "Soup", "note": .number(number)]])
                #expect(try app.read(note)["recipe"]?["note"] != nil, "\(number)")
            }
        }
    }

    @Test("Objects that all refer to each other are not followed beyond what an answer may hold")
    func entangled() async throws {
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.maximumAnswerSize = 4 << 20
            let schema = try Schema(parsing: "type Book { id: ID! like: [Book!]! name: String } type Query { a: Book }")
            let store = try Store.open(at: folder, schema: schema, options: options)
            let app = try store.partition()
            let like = GraphQLFragment("fragment L on Book { like { id } }")
            let all = Value.list((0..<60).map { ["id": .int($0)] })
            for number in 0..<60 { try await app.write("Book:\(number)", like, ["like": all]) }
            func far(_ field: String) -> GraphQLFragment {
                GraphQLFragment("fragment F on Book { like { like { like { like { \(field) } } } } }")
            }
            for field in ["id", "name"] {
                let error = #expect(throws: LarderError.self) {
                    try app.read("Book:0", far(field), allowsPartial: true)
                }
                #expect(error?.code.rawValue == "records.tooLarge")
                #expect(error?.message.contains("4194304") == true)
            }
            let near = GraphQLFragment("fragment N on Book { like { like { id } } }")
            #expect(try app.read("Book:0", near)["like"]?[59]?["like"]?.count == 60)
            var states = try app.watch("Book:0", far("id")).makeAsyncIterator()
            #expect(try await next(&states)?.error?.code.rawValue == "records.tooLarge")
            try store.close()
        }
    }

    @Test("A file in the place of the store, and a store that is not there, are typed errors")
    func places() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "file")
            try Data("x".utf8).write(to: file)
            let schema = try Schema(parsing: fixtureSchema)
            #expect(throws: LarderError.self) { _ = try Store.open(at: file, schema: schema).partition() }
            var options = Store.Options()
            options.isReadOnly = true
            let absent = folder.appending(path: "absent")
            let error = #expect(throws: LarderError.self) {
                _ = try Store.open(at: absent, schema: schema, options: options).partition()
            }
            #expect(error?.code.rawValue == "records.missing")
            #expect(!FileManager.default.fileExists(atPath: absent.path))
        }
    }

    @Test("A number that JSON cannot say is refused where an object is written or updated, or a mutation expects it")
    func unspeakableFields() async throws {
        try await withStoreFixture { app in
            let rating = GraphQLFragment("fragment F on Recipe { rating }")
            try await app.write("Recipe:1", rating, ["rating": 3])
            let data: Value = ["rating": .float(.nan)]
            await expectCode(.data) { try await app.write("Recipe:1", rating, data) }
            await expectCode(.data) { try await app.update("Recipe:1", rating) { $0 = data } }
            let answer: Value = ["rate": ["__typename": "Recipe", "id": "1", "title": "Soup", "rating": .float(.nan)]]
            await expectCode(.data) {
                _ = try await app.enqueue(giveStars("1", 5), options: .init(optimisticResponse: answer))
            }
            #expect(try app.mutations().isEmpty)
            #expect(try app.read("Recipe:1", rating)["rating"]?.double == 3)
        }
    }
}
