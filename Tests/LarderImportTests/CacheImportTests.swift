import Foundation
import Larder
import LarderImport
import LarderTestSupport
import Testing

/// As many references to one part.
private func references(_ count: Int) -> String {
    repeatElement(#"{"$reference":"a"}"#, count: count).joined(separator: ",")
}

@Suite("Taking over a cache", .timeLimit(.minutes(10)))
struct CacheImportTests {
    /// A file of Apollo's with these records.
    private func apollo(_ folder: URL, _ records: KeyValuePairs<String, String>) throws -> String {
        let fixture = try ForeignFixture(folder.appending(path: "\(UUID().uuidString).sqlite").path, .recordsOfApollo2)
        for (key, json) in records { try fixture.record(key, json) }
        fixture.close()
        return fixture.path
    }

    @Test("Objects get our keys whatever keys they had, and references are followed")
    func objects() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"""
                    {"recipe(id:1)":{"$reference":"f5ce8e80-b02b"},
                     "book(isbn:7)":{"$reference":"QUERY_ROOT.book(isbn:7)"},
                     "latest":[{"$reference":"Comment:9"},null,{"$reference":"f5ce8e80-b02b"}],"count":12}
                    """#,
                    "f5ce8e80-b02b": #"""
                    {"__typename":"Recipe","id":"1","title":"Soup","rating":4.5,"author":{"$reference":"Cook:a"},
                     "tags":["hot","of \"the\" day"],"note":{"a":[1,null]}}
                    """#,
                    "Cook:a": #"{"__typename":"Cook","id":"a","name":"Ada","specialty":null}"#,
                    "Comment:9": #"{"__typename":"Comment","id":9,"text":"Good","author":{"$reference":"Cook:a"}}"#,
                    "QUERY_ROOT.book(isbn:7)": #"{"__typename":"Book","isbn":7,"title":"Soups"}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.omissions == [])
            #expect(report.objects == .init(taken: 4) && report.rootFields == .init(taken: 4))
            #expect(report.records == 5 && report.parts == 0 && !report.isDryRun)
            #expect(
                try app.json("{ recipe(id: 1) { title rating author { name specialty } tags note } count }") == #"""
                    {"recipe":{"title":"Soup","rating":4.5,"author":{"name":"Ada","specialty":null},\#
                    "tags":["hot","of \"the\" day"],"note":{"a":[1,null]}},"count":12}
                    """#)
            #expect(
                try app.json("{ latest { __typename id author { id } } book(isbn: 7) { title } }") == #"""
                    {"latest":[{"__typename":"Comment","id":"9","author":{"id":"a"}},null,\#
                    {"__typename":"Recipe","id":"1","author":{"id":"a"}}],"book":{"title":"Soups"}}
                    """#)
            let card = GraphQLFragment("fragment Card on Book { title }")
            #expect(try app.read("Book:7", card)["title"]?.string == "Soups")
        }
    }

    @Test("An object without identity becomes part of the object that holds it")
    func parts() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"{"recipe(id:1)":{"$reference":"Recipe:1"}}"#,
                    "Recipe:1": #"""
                    {"__typename":"Recipe","id":"1","title":"Soup","timing":{"$reference":"Recipe:1.timing"},
                     "steps":[{"$reference":"Recipe:1.steps.0"},{"$reference":"Recipe:1.steps.1"}],
                     "comments(first:2)":[{"$reference":"Recipe:1.comments(first:2).0"}]}
                    """#,
                    "Recipe:1.timing": #"{"__typename":"Timing","prepare":5}"#,
                    "Recipe:1.steps.0": #"{"text":"Cut","minutes":3}"#,
                    "Recipe:1.steps.1": #"{"__typename":"Step","text":"Boil","minutes":null}"#,
                    "Recipe:1.comments(first:2).0": #"{"__typename":"Comment","text":"Fine"}"#,
                    "Recipe:1.steps.2": #"{"__typename":"Step","text":"Left over"}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.parts == 4 && report.objects == .init(taken: 1))
            #expect(report.omitted(.record, .unreferenced) == 1)
            #expect(report.omissions.count == 1)
            #expect(report.omissions.first?.examples == ["Recipe:1.steps.2"])
            #expect(
                try app.json(
                    "{ recipe(id: 1) { title timing { prepare } steps { text minutes } comments(first: 2) { text } } }")
                        == #"""
                        {"recipe":{"title":"Soup","timing":{"prepare":5},"steps":[{"text":"Cut","minutes":3},\#
                        {"text":"Boil","minutes":null}],"comments":[{"text":"Fine"}]}}
                        """#)
            #expect(try app.missing("{ recipe(id: 1) { timing { cook } } }") == ["recipe.timing.cook"])
        }
    }

    @Test("Taking the same twice takes nothing the second time")
    func twice() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"{"recipe(id:1)":{"$reference":"Recipe:1"},"count":3}"#,
                    "Recipe:1": #"{"__typename":"Recipe","id":"1","title":"Soup","steps":[{"$reference":"s"}]}"#,
                    "s": #"{"__typename":"Step","text":"Cut"}"#,
                    "Cook:a": #"{"__typename":"Cook","id":"a"}"#,
                ])
            let source = try source(file)
            let plan = try await source.run(into: app, isDryRun: true)
            #expect(plan.isDryRun)
            #expect(try app.missing("{ count }") == ["count"], "a dry run writes nothing")
            let first = try await source.run(into: app)
            #expect(first.objects == .init(taken: 2) && first.fields == .init(taken: 2))
            #expect(plan.objects == first.objects && plan.rootFields == first.rootFields && plan.fields == first.fields)
            #expect(try await source.inspect().objects == first.objects)
            for isDryRun in [true, false] {
                let second = try await source.run(into: app, isDryRun: isDryRun)
                #expect(second.objects == .init(present: 2) && second.fields == .init(present: 2))
                #expect(second.rootFields == .init(present: 2))
                #expect(second.omissions == [])
            }
        }
    }

    @Test("The store's own data is newer and stays; an import adds only what it lacks")
    func older() async throws {
        try await withRecipeBox { app, folder in
            try await app.write(
                GraphQLOperation("{ recipe(id: 1) { title steps { text } } count }"),
                json: Array(
                    #"""
                    {"recipe":{"__typename":"Recipe","id":"1","title":"Bread","steps":[{"text":"Bake"}]},"count":9}
                    """#.utf8))
            try await app.write("Cook:gone", GraphQLFragment("fragment F on Cook { name }"), ["name": "Gus"])
            try await app.remove("Cook:gone", as: .deleted)
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"""
                    {"recipe(id:1)":null,"count":3,"latest":[{"$reference":"Recipe:1"},{"$reference":"Recipe:2"}]}
                    """#,
                    "Recipe:1": #"""
                    {"__typename":"Recipe","id":"1","title":"Soup","rating":2,"steps":[{"$reference":"s"}],
                     "author":{"$reference":"Cook:gone"}}
                    """#,
                    "s": #"{"__typename":"Step","text":"Cut","minutes":1}"#,
                    "Cook:gone": #"{"__typename":"Cook","id":"gone","name":"Gus"}"#,
                    "Recipe:2": #"{"__typename":"Recipe","id":"2","title":"Pie","author":{"$reference":"Cook:gone"}}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.rootFields == .init(taken: 1, present: 2))
            #expect(report.fields == .init(taken: 4, present: 2))
            #expect(report.omitted(.record, .deletedHere) == 1)
            #expect(
                try app.json("{ recipe(id: 1) { title rating steps { text } author { name } } count latest { id } }")
                    == #"""
                    {"recipe":{"title":"Bread","rating":2,"steps":[{"text":"Bake"}],"author":null},"count":9,\#
                    "latest":[{"id":"1"},{"id":"2"}]}
                    """#)
            let error = #expect(throws: LarderError.self) {
                try app.read("Cook:gone", GraphQLFragment("fragment F on Cook { name }"))
            }
            #expect(error?.code == .deleted, "an old file does not bring back what was deleted")
        }
    }

    private func delete(_ keys: CacheKey..., from app: Partition) async throws {
        for key in keys {
            try await app.write(key, GraphQLFragment("fragment F on Recipe { title }"), ["title": "Pie"])
            try await app.remove(key, as: .deleted)
        }
    }

    @Test("What the store knows to be deleted stands in no list, whether or not the file has it")
    func deletedInList() async throws {
        try await withRecipeBox { app, folder in
            try await delete("Recipe:2", "Recipe:3", from: app)
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"""
                    {"latest":[{"$reference":"Recipe:1"},{"$reference":"Recipe:2"},{"$reference":"Recipe:3"}]}
                    """#,
                    "Recipe:1": #"{"__typename":"Recipe","id":"1","title":"Soup"}"#,
                    "Recipe:2": #"{"__typename":"Recipe","id":"2","title":"Pie"}"#,
                ])
            _ = try await source(file).run(into: app)
            #expect(try app.json("{ latest { id } }") == #"{"latest":[{"id":"1"}]}"#)
        }
    }

    @Test(
        "A reference to what is deleted reads null and brings nothing back: to a record, one without a type, or none",
        arguments: [
            ("Recipe:2", #"{"__typename":"Recipe","id":"2","title":"Pie"}"#), ("x", #"{"id":"2","title":"Pie"}"#),
            ("Recipe:2", ""),
        ])
    func deletedReference(_ key: String, _ record: String) async throws {
        try await withRecipeBox { app, folder in
            try await delete("Recipe:2", from: app)
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .recordsOfApollo2)
            try fixture.record("QUERY_ROOT", #"{"recipe(id:2)":{"$reference":"\#(key)"}}"#)
            try fixture.record("Recipe:1", #"{"__typename":"Recipe","id":"1","title":"Soup"}"#)
            if !record.isEmpty { try fixture.record(key, record) }
            fixture.close()
            _ = try await source(fixture.path).run(into: app)
            #expect(try app.json("{ recipe(id: 2) { id } }") == #"{"recipe":null}"#)
            let error = #expect(throws: LarderError.self) {
                try app.read("Recipe:2", GraphQLFragment("fragment F on Recipe { title }"))
            }
            #expect(error?.code == .deleted)
        }
    }

    @Test("A reference where a scalar should be, a part of another type and an empty key are told, and not taken")
    func misfits() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"{"recipe(id:9)":{"$reference":"Recipe:"}}"#,
                    "Recipe:1": #"""
                    {"__typename":"Recipe","id":"1","note":{"$reference":"s"},"timing":{"$reference":"s"}}
                    """#,
                    "s": #"{"__typename":"Step","text":"Cut"}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.omitted(.field, .wrongValue) == 2 && report.omitted(.field, .danglingReference) == 1)
            #expect(report.rootFields == .init())
        }
    }

    @Test("A value that cannot be decided is left, counted and named with its reason; the rest is taken")
    func omissions() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"""
                    {"must(a:x,b:y)":null,"nothing":1,"recipes(first:many)":[],"count":"three",
                     "recipe(id:1)":{"$reference":"Recipe:404"},"latest":{"$reference":"Cook:a"},
                     "recipe(id:2)":{"$reference":"Cook:a"},"recipes(first:1)":[{"$reference":"untyped"}],
                     "recipe(id:3)":{"id":"3"},"recipes(first:2)":[null,{"$reference":"Recipe:5"}]}
                    """#,
                    "MUTATION_ROOT": #"{"rate(id:1,stars:5)":null}"#,
                    "SUBSCRIPTION_ROOT": "{}",
                    "Cook:a": #"{"__typename":"Cook","id":"a","name":null,"shoe":42}"#,
                    "untyped": #"{"title":"Who?"}"#,
                    "nobody": #"{"text":"?"}"#,
                    "Wizard:1": #"{"__typename":"Wizard","id":"1"}"#,
                    "Contribution:1": #"{"__typename":"Contribution","id":"1"}"#,
                    "Recipe:5": #"{"__typename":"Recipe","id":"5","title":"Pie","rating":1}"#,
                    "QUERY_ROOT.recipe(id:5)": #"{"__typename":"Recipe","id":"5","title":"Pie","rating":2}"#,
                    "list": "[]", "broken": "{", "number": "7",
                ])
            let report = try await source(file).run(into: app)
            let found = Dictionary(uniqueKeysWithValues: report.omissions.map { ("\($0.item) \($0.reason)", $0.count) })
            #expect(
                found == [
                    "field argumentsAmbiguous": 1, "field unknownField": 2, "field argumentsNotUnderstood": 1,
                    "field refused": 1, "field danglingReference": 1, "field wrongValue": 4, "field contradictory": 1,
                    "record operationRoot": 2, "record unknownType": 2, "record unreadable": 3, "record noType": 1,
                ])
            #expect(report.rootFields == .init(taken: 2))
            #expect(
                try app.json("{ some: recipes(first: 1) { title } more: recipes(first: 2) { title } }")
                    == #"{"some":[{"title":"Who?"}],"more":[null,{"title":"Pie"}]}"#)
            #expect(try app.missing("{ recipes(first: 2) { rating } }") == ["recipes[1].rating"])
        }
    }

    @Test("A reference to a record that is gone names its object where all keys of the type are made so")
    func absent() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"{"latest":[{"$reference":"Recipe:1"},{"$reference":"Recipe:2"}],"count":1}"#,
                    "Recipe:1": #"{"__typename":"Recipe","id":"1","title":"Soup","author":{"$reference":"Cook:b"}}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.omitted(.field, .danglingReference) == 1, "nothing shows how the keys of cooks are made")
            #expect(try app.json("{ latest { id } }") == #"{"latest":[{"id":"1"},{"id":"2"}]}"#)
            let author = GraphQLFragment("fragment F on Recipe { author { id } }")
            #expect(try app.read("Recipe:1", author, allowsPartial: true).missing.map(\.description) == ["author"])
        }
    }

    @Test("An object that does not say its type is of the type that the schema gives; what is known of it stays")
    func inferred() async throws {
        try await withRecipeBox { app, folder in
            let title = GraphQLFragment("fragment F on Recipe { title rating author { name } }")
            try await app.write("Recipe:1", GraphQLFragment("fragment F on Recipe { title }"), ["title": "Bread"])
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"{"recipe(id:1)":{"$reference":"x"},"latest":[{"$reference":"x"}]}"#,
                    "x": #"{"id":"1","title":"Soup","rating":3,"author":{"$reference":"x.author"}}"#,
                    "x.author": #"{"id":"a","name":"Ada"}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.objects == .init(taken: 2) && report.fields == .init(taken: 3, present: 1))
            #expect(report.omissions.map(\.reason) == [.noType], "of an interface any object might be meant")
            let recipe = try app.read("Recipe:1", title)
            #expect(
                String(decoding: recipe.json, as: UTF8.self)
                    == #"{"title":"Bread","rating":3,"author":{"name":"Ada"}}"#)
        }
    }

    @Test("An object that has more than a reference's one member is a value, and no reference")
    func noReference() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                ["Recipe:1": #"{"__typename":"Recipe","id":"1","note":{"$reference":"Recipe:2","more":1}}"#])
            #expect(try await source(file).run(into: app).omissions == [])
            let note = try app.read("Recipe:1", GraphQLFragment("fragment F on Recipe { note }"))
            #expect(String(decoding: note.json, as: UTF8.self) == #"{"note":{"$reference":"Recipe:2","more":1}}"#)
        }
    }

    @Test("Where a part has fields that cannot be taken, the report names each by its record, and the others are taken")
    func partlyTaken() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "Recipe:1": #"{"__typename":"Recipe","id":"1","timing":{"$reference":"t"}}"#,
                    "t": #"{"__typename":"Timing","prepare":{"$reference":"x"},"cook":5,"heat":3}"#,
                ])
            let report = try await source(file).run(into: app)
            let examples = Dictionary(uniqueKeysWithValues: report.omissions.map { ($0.reason, $0.examples) })
            #expect(examples == [.wrongValue: ["t.prepare: a reference"], .unknownField: ["t.heat"]])
            let timing = GraphQLFragment("fragment F on Recipe { timing { cook } }")
            #expect(try app.read("Recipe:1", timing)["timing"]?["cook"]?.int == 5)
        }
    }

    @Test("A reference to nothing is told where the file has other keys than ours, though ours of that text is deleted")
    func danglingNotDeleted() async throws {
        try await withRecipeBox { app, folder in
            try await delete("Recipe:2", from: app)
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"{"latest":[{"$reference":"x"},{"$reference":"Recipe:2"}]}"#,
                    "x": #"{"__typename":"Recipe","id":"1","title":"Soup"}"#,
                    "Cook:1": #"{"id":"1","name":"Ada"}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.omitted(.field, .danglingReference) == 1 && report.rootFields == .init())
            // A key tells the type of a record that does not say it.
            #expect(report.objects == .init(taken: 2))
            #expect(try app.read("Cook:1", GraphQLFragment("fragment F on Cook { name }"))["name"]?.string == "Ada")
        }
    }

    @Test("A key that is a number names an absent object by that number; what stands for two types is each of them")
    func keysOfObjects() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "QUERY_ROOT": #"{"book(isbn:2)":{"$reference":"Book:2"},"recipe(id:1)":{"$reference":"x"}}"#,
                    "Book:1": #"{"__typename":"Book","isbn":1,"title":"Soups"}"#,
                    "Recipe:9": #"{"__typename":"Recipe","id":"9","author":{"$reference":"x"}}"#,
                    "x": #"{"id":"1"}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.omissions == [])
            #expect(
                try app.json("{ book(isbn: 2) { isbn } recipe(id: 1) { id } }")
                    == #"{"book":{"isbn":2},"recipe":{"id":"1"}}"#)
            let author = GraphQLFragment("fragment F on Recipe { author { __typename id } }")
            #expect(try app.read("Recipe:9", author)["author"]?["__typename"]?.string == "Cook")
        }
    }

    @Test(
        "A field that only some elements of a list have is left out, and the report says so",
        arguments: [("a", "b"), ("b", "a")])
    func uneven(first: String, last: String) async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "Recipe:1": #"""
                    {"__typename":"Recipe","id":"1","steps":[{"$reference":"\#(first)"},{"$reference":"\#(last)"}]}
                    """#,
                    "a": #"{"__typename":"Step","text":"Cut","minutes":1}"#,
                    "b": #"{"__typename":"Step","text":"Boil"}"#,
                ])
            let report = try await source(file).run(into: app)
            #expect(report.omitted(.field, .unevenElements) == 1)
            let steps = GraphQLFragment("fragment F on Recipe { steps { text } }")
            #expect(try app.read("Recipe:1", steps)["steps"]?.count == 2)
        }
    }

    @Test("Parts that hold each other, or too many, end in a report and not in a trap", .timeLimit(.minutes(10)))
    func cycles() async throws {
        try await withTemporaryFolder { folder in
            let schema = "type Part { next: Part both: [Part] } type Query { part: Part parts: [Part] }"
            let store = try Store.open(at: folder.appending(path: "store"), schema: try Schema(parsing: schema))
            let app = try store.partition()
            var records = [("QUERY_ROOT", #"{"part":{"$reference":"a"},"parts":[{"$reference":"d0"}]}"#)]
            records.append(("a", #"{"__typename":"Part","next":{"$reference":"a"}}"#))
            for number in 0..<30 {
                let next = #"{"$reference":"d\#(number + 1)"}"#
                records.append(("d\(number)", #"{"__typename":"Part","both":[\#(next),\#(next)]}"#))
            }
            records.append(("d30", #"{"__typename":"Part","next":null}"#))
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            for (key, json) in records { try fixture.record(key, json) }
            fixture.close()
            let report = try await source(fixture.path, schema: schema).run(into: app)
            #expect(report.omitted(.field, .tooDeep) == 2)
            try store.close()
        }
    }

    private static let boxes = "type Query { box: Box boxes: [Box] } type Box { numbers: [Int] box: Box }"

    @Test("Parts within parts are taken 39 deep, and not forty", arguments: [39, 40])
    func deepParts(count: Int) async throws {
        try await withTemporaryFolder { folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.record("QUERY_ROOT", #"{"box":{"$reference":"1"}}"#)
            for number in 1..<count { try fixture.record("\(number)", #"{"box":{"$reference":"\#(number + 1)"}}"#) }
            try fixture.record("\(count)", #"{"numbers":[]}"#)
            fixture.close()
            let report = try await source(fixture.path, schema: Self.boxes).inspect()
            #expect(report.omitted(.field, .tooDeep) == (count == 39 ? 0 : 1))
            #expect(report.rootFields.taken == (count == 39 ? 1 : 0))
        }
    }

    @Test(
        "A field of less than a million values is taken, and one of more is not, in one list or in a part again and again",
        arguments: [
            (#"{"box":{"$reference":"a"}}"#, 999_997), (#"{"boxes":[\#(references(999))]}"#, 998),
        ])
    func manyValues(root: String, most: Int) async throws {
        for more in [0, 1] {
            try await withTemporaryFolder { folder in
                let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
                try fixture.record("QUERY_ROOT", root)
                let numbers = repeatElement("1", count: most + more).joined(separator: ",")
                try fixture.record("a", #"{"numbers":[\#(numbers)]}"#)
                fixture.close()
                let report = try await source(fixture.path, schema: Self.boxes).inspect()
                #expect(report.omitted(.field, .tooDeep) == (more == 0 ? 0 : 1), "\(more) more")
            }
        }
    }

    @Test("Keys that differ only in how they compose characters stay two")
    func composed() async throws {
        try await withRecipeBox { app, folder in
            let file = try apollo(
                folder,
                [
                    "Cook:\u{E9}": "{\"__typename\":\"Cook\",\"id\":\"\u{E9}\",\"name\":\"one\"}",
                    "Cook:e\u{301}": "{\"__typename\":\"Cook\",\"id\":\"e\u{301}\",\"name\":\"two\"}",
                ])
            #expect(try await source(file).run(into: app).objects == .init(taken: 2))
            let name = GraphQLFragment("fragment F on Cook { name }")
            #expect(try app.read("Cook:\u{E9}", name)["name"]?.string == "one")
            #expect(try app.read("Cook:e\u{301}", name)["name"]?.string == "two")
        }
    }

    @Test("Hundreds of objects and a root of hundreds of fields are taken")
    func many() async throws {
        try await withRecipeBox { app, folder in
            let fixture = try ForeignFixture(folder.appending(path: "a.sqlite").path, .records)
            try fixture.run("BEGIN")
            var root: [String] = []
            for number in 0..<700 {
                try fixture.record(
                    "Cook:\(number)", #"{"__typename":"Cook","id":"\#(number)","name":"Cook \#(number)"}"#)
                if number < 350 { root.append(#""recipe(id:\#(number))":null"#) }
            }
            try fixture.record("QUERY_ROOT", "{\(root.joined(separator: ","))}")
            try fixture.run("COMMIT")
            fixture.close()
            let report = try await source(fixture.path).run(into: app)
            #expect(report.objects == .init(taken: 700) && report.rootFields == .init(taken: 350))
            let name = GraphQLFragment("fragment F on Cook { name }")
            #expect(try app.read("Cook:699", name)["name"]?.string == "Cook 699")
            #expect(try app.json("{ recipe(id: 349) { id } }") == #"{"recipe":null}"#)
        }
    }
}
