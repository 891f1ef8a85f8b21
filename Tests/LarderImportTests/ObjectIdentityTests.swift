import Larder
import LarderImport
import LarderTestSupport
import Testing

@Suite("What identifies an object that is taken over", .timeLimit(.minutes(10)))
struct ObjectIdentityTests {
    @Test(
        "An object to which nothing refers is taken with what identifies it, also where that is all that is known of it",
        arguments: [
            ("Cook:a", #""id":"a","name":"Ada""#, "Cook { id name }"), ("Cook:b", #""id":"b""#, "Cook { id }"),
            ("Book:7", #""isbn":7,"title":"Soups""#, "Book { isbn title }"),
        ])
    func unreferenced(key: String, members: String, fragment: String) async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .recordsOfApollo2)
            let type = key.prefix { $0 != ":" }
            try fixture.record("1", #"{"__typename":"\#(type)",\#(members)}"#)
            fixture.close()
            #expect(try await source(fixture.path).run(into: app).objects == .init(taken: 1))
            let found = try app.read(CacheKey(key), GraphQLFragment("fragment F on \(fragment)"))
            #expect(String(decoding: found.json, as: UTF8.self) == "{\(members)}")
        }
    }

    @Test("A record that does not say its type is of the one that its key names only where its fields make that key")
    func typeInKey() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("Cook:1", #"{"id":"1","name":"Ada"}"#)
            try fixture.record("Cook:2", #"{"id":"3","name":"Bea"}"#)
            try fixture.record("Cook:4", #"{"name":"Cleo"}"#)
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.objects == .init(taken: 1))
            #expect(report.omissions.map(\.reason) == [.noType])
            #expect(try app.read("Cook:1", GraphQLFragment("fragment F on Cook { name }"))["name"]?.string == "Ada")
        }
    }

    @Test("An object that several records are is taken with what each of them knows")
    func severalRecords() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("x", #"{"__typename":"Recipe","id":"1","title":"Soup"}"#)
            try fixture.record("y", #"{"__typename":"Recipe","id":"1","tags":["hot"]}"#)
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.objects == .init(taken: 1) && report.fields == .init(taken: 2))
            #expect(report.omissions == [])
            let fragment = GraphQLFragment("fragment F on Recipe { title tags }")
            let found = try app.read("Recipe:1", fragment, allowsPartial: true)
            #expect(String(decoding: found.json, as: UTF8.self) == #"{"title":"Soup","tags":["hot"]}"#)
        }
    }

    @Test("A field in which only the third of an object's records says something else is contradictory")
    func thirdRecord() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            for (key, rating) in [("x", 1), ("y", 1), ("z", 2)] {
                try fixture.record(key, #"{"__typename":"Recipe","id":"1","title":"Soup","rating":\#(rating)}"#)
            }
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.omitted(.field, .contradictory) == 1 && report.fields == .init(taken: 1))
            let fragment = GraphQLFragment("fragment F on Recipe { title rating }")
            let found = try app.read("Recipe:1", fragment, allowsPartial: true)
            #expect(found["title"]?.string == "Soup")
            #expect(found.missing.map(\.description) == ["rating"])
        }
    }

    @Test("A non-null field that refers to a deleted object is left out, with the deletion as the reason")
    func deletedWhereNotNull() async throws {
        try await withTemporaryFolder { folder in
            let schema = """
                type Query { note: Note }
                type Note { id: ID! text: String by: Cook! }
                type Cook { id: ID! name: String }
                """
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("Note:1", #"{"__typename":"Note","id":"1","text":"Hot","by":{"$reference":"Cook:a"}}"#)
            try fixture.record("Cook:a", #"{"__typename":"Cook","id":"a","name":"Ada"}"#)
            fixture.close()
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: schema))
            let app = try store.partition()
            try await app.write("Cook:a", GraphQLFragment("fragment F on Cook { name }"), ["name": "Ada"])
            try await app.remove("Cook:a", as: .deleted)
            let report = try await source(fixture.path, schema: schema).run(into: app)
            #expect(report.omitted(.field, .deletedHere) == 1 && report.omitted(.field, .refused) == 0)
            #expect(try app.read("Note:1", GraphQLFragment("fragment F on Note { text }"))["text"]?.string == "Hot")
            try store.close()
        }
    }

    @Test("An object whose type has several key fields is taken with the value of each, whatever their order")
    func severalKeyFields() async throws {
        try await withTemporaryFolder { folder in
            let schema = """
                type Query { seat: Seat }
                type Seat @typePolicy(keyFields: "row number") { row: String! number: String! price: Int }
                """
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("QUERY_ROOT", #"{"seat":{"$reference":"s"}}"#)
            try fixture.record("s", #"{"__typename":"Seat","row":"B","number":"1","price":7}"#)
            fixture.close()
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: schema))
            let app = try store.partition()
            let report = try await source(fixture.path, schema: schema).run(into: app)
            #expect(report.objects == .init(taken: 1))
            #expect(try app.json("{ seat { row number price } }") == #"{"seat":{"row":"B","number":"1","price":7}}"#)
            try store.close()
        }
    }

    @Test("Lists of lists are taken whole: of scalars, and of objects with an identity and without")
    func listsOfLists() async throws {
        try await withTemporaryFolder { folder in
            let schema = """
                type Query { numbers: [[Int]] cells: [[Cell]] cooks: [[Cook]] }
                type Cell { text: String }
                type Cook { id: ID! name: String }
                """
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record(
                "QUERY_ROOT",
                #"{"numbers":[[1,null],null,[]],"cells":[[{"$reference":"c"}]],"cooks":[[null,{"$reference":"a"}]]}"#)
            try fixture.record("c", #"{"__typename":"Cell","text":"x"}"#)
            try fixture.record("a", #"{"__typename":"Cook","id":"a","name":"Ada"}"#)
            fixture.close()
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: schema))
            let app = try store.partition()
            #expect(try await source(fixture.path, schema: schema).run(into: app).omissions == [])
            let read = try app.json("{ numbers cells { text } cooks { name } }", partial: true)
            #expect(read == #"{"numbers":[[1,null],null,[]],"cells":[[{"text":"x"}]],"cooks":[[null,{"name":"Ada"}]]}"#)
            try store.close()
        }
    }
}
