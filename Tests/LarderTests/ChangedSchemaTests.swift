import Foundation
import Larder
import LarderTestSupport
import Testing

@Suite("A schema that changed", .timeLimit(.minutes(10)))
struct ChangedSchemaTests {
    /// What the type `Thing` was when it was stored, what it is now, and what the server says now.
    struct Change: Sendable, CustomTestStringConvertible {
        var old: String
        var stored: String
        var new: String
        var selection = "value"
        var answer: String
        var testDescription: String { "\(old) becomes \(new)" }
    }

    static let changes = [
        Change(old: "String", stored: #""a""#, new: "Int", answer: "5"),
        Change(old: "Int", stored: "5", new: "String", answer: #""a""#),
        Change(old: "Int", stored: "5", new: "Boolean", answer: "true"),
        Change(old: "Boolean", stored: "true", new: "Float", answer: "1.5"),
        Change(old: "Float", stored: "1.5", new: "Int", answer: "1"),
        Change(old: "Any", stored: #"{"a":[1]}"#, new: "String", answer: #""a""#),
        Change(old: "String", stored: "null", new: "String!", answer: #""a""#),
        Change(old: "[String]", stored: #"["a",null]"#, new: "[String!]", answer: #"["a"]"#),
        Change(old: "String", stored: #""a""#, new: "[String]", answer: #"["b"]"#),
        Change(old: "[String]", stored: #"["a"]"#, new: "String", answer: #""b""#),
        Change(old: "String", stored: #""a""#, new: "Part", selection: "value { name }", answer: #"{"name":"b"}"#),
        Change(old: "[[Int]]", stored: "[[1]]", new: "[Int]", answer: "[2]"),
    ]

    @Test("A schema's text is kept compiled, for the next opening; a store that is only read keeps none")
    func keptCompiled() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            func kept() -> [String] {
                (try? FileManager.default.contentsOfDirectory(atPath: place.appending(path: "schemas").path)) ?? []
            }
            var options = Store.Options()
            options.isReadOnly = true
            try Store.open(at: place, schemaText: [fixtureSchema], options: options).close()
            #expect(kept().isEmpty && !FileManager.default.fileExists(atPath: place.path))
            try Store.open(at: place, schemaText: [fixtureSchema]).close()
            #expect(kept().count == 1 && kept().first?.hasSuffix(".schema") == true)
        }
    }

    @Test("Of the schemas that a store keeps, the newest that can be read is the one for programs that give none")
    func newestKept() async throws {
        try await withTemporaryFolder { folder in
            #expect(Store.keptSchema(in: folder) == nil)
            let (a, b) = (try Schema(parsing: "type Query { a: Int }"), try Schema(parsing: "type Query { b: Int }"))
            var kept: [URL] = []
            for name in ["a", "b"] { try keep("type Query { \(name): Int }", in: folder, beside: &kept) }
            #expect(Store.keptSchema(in: folder) == b)
            try Data("damaged".utf8).write(to: kept[1])
            try setTime(3, of: kept[1])
            #expect(Store.keptSchema(in: folder) == a)
            try Data().write(to: kept[0])
            #expect(Store.keptSchema(in: folder) == nil)
        }
    }

    @Test("A kept schema that is damaged, or gone, is compiled again from its text")
    func compiledAgain() async throws {
        try await withTemporaryFolder { folder in
            let (text, schema) = ("type Query { a: Int }", try Schema(parsing: "type Query { a: Int }"))
            var kept: [URL] = []
            try keep(text, in: folder, beside: &kept)
            try Data("damaged".utf8).write(to: kept[0])
            try Store.open(at: folder, schemaText: [text]).close()
            #expect(Store.keptSchema(in: folder) == schema)
            try FileManager.default.removeItem(at: kept[0])
            try Store.open(at: folder, schemaText: [text]).close()
            #expect(Store.keptSchema(in: folder) == schema)
        }
    }

    @Test("A change of the second schema text makes the store compile the schema again")
    func changedSecondText() async throws {
        try await withTemporaryFolder { folder in
            for field in ["b", "c"] {
                let texts = ["type Query { a: Thing }", "type Thing { \(field): Int }"]
                let store = try Store.open(at: folder, schemaText: texts)
                let operation = GraphQLOperation("{ a { \(field) } }")
                try await store.partition().write(operation, json: Array(#"{"a":{"\#(field)":1}}"#.utf8))
                try store.close()
            }
        }
    }

    @Test("Of the schemas that a store keeps, the one that was compiled first goes when there are too many")
    func oldestGoes() async throws {
        try await withTemporaryFolder { folder in
            var kept: [URL] = []
            for number in 0..<5 { try keep("type Query { a\(number): Int }", in: folder, beside: &kept) }
            #expect(kept.map { FileManager.default.fileExists(atPath: $0.path) } == [false, true, true, true, true])
        }
    }

    /// Opens a store with a schema, whose compiled form is the newest of all then.
    private func keep(_ schema: String, in folder: URL, beside kept: inout [URL]) throws {
        try Store.open(at: folder, schemaText: [schema]).close()
        let names = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "schemas").path)
        let known = Set(kept.map(\.lastPathComponent))
        let name = try #require(names.first { !known.contains($0) })
        kept.append(folder.appending(path: "schemas/\(name)"))
        try setTime(kept.count, of: kept[kept.count - 1])
    }

    private func setTime(_ seconds: Int, of file: URL) throws {
        let time = Date(timeIntervalSince1970: Double(seconds))
        try FileManager.default.setAttributes([.modificationDate: time], ofItemAtPath: file.path)
    }

    @Test("An object whose type the changed schema does not allow in its place is fetched again, and never shown")
    func misfitType() async throws {
        let objects = "type A { id: ID! name: String } type B { id: ID! name: String }"
        try await withTemporaryFolder { folder in
            let before = try Store.open(at: folder, schemaText: ["\(objects) union U = A | B type Query { u: U }"])
            try await before.partition().write(
                GraphQLOperation("{ u { ... on B { name } } }"),
                json: Array(#"{"u":{"__typename":"B","id":"1","name":"b"}}"#.utf8))
            try before.close()
            let after = try Store.open(at: folder, schemaText: ["\(objects) type Query { u: A }"])
            let answer = #"{"data":{"u":{"__typename":"A","id":"2","name":"a"}}}"#
            let app = try after.partition(server: ScriptedServer { _ in answer })
            let question = GraphQLOperation("{ u { name } }")
            let error = #expect(throws: LarderError.self) { try app.read(question) }
            #expect(error?.code.rawValue == "records.schemaMismatch")
            #expect(try await app.fetch(question)["u"]?["name"]?.string == "a")
            try after.close()
        }
    }

    @Test("Cached data that does not fit the changed schema is fetched again, and never shown", arguments: changes)
    func misfit(_ change: Change) async throws {
        func schema(_ type: String) throws -> Schema {
            try Schema(
                parsing: """
                    scalar Any
                    type Part { name: String }
                    type Thing { id: ID! value: \(type) }
                    type Query { thing: Thing }
                    """)
        }
        @Sendable func body(_ value: String) -> String { #"{"data":{"thing":{"id":"1","value":\#(value)}}}"# }
        try await withTemporaryFolder { folder in
            let before = try Store.open(at: folder, schema: try schema(change.old))
            _ = try await before.partition(server: ScriptedServer { _ in body(change.stored) })
                .fetch(GraphQLOperation("{ thing { value } }"))
            try before.close()

            let after = try Store.open(at: folder, schema: try schema(change.new))
            let app = try after.partition(server: ScriptedServer { _ in body(change.answer) })
            let question = GraphQLOperation("{ thing { \(change.selection) } }")
            let error = #expect(throws: LarderError.self) { try app.read(question) }
            #expect(error?.code.rawValue == "records.schemaMismatch")
            let fetched = try await app.fetch(question, policy: .cacheFirst)
            #expect(String(decoding: fetched.json, as: UTF8.self) == #"{"thing":{"value":\#(change.answer)}}"#)
            #expect(try app.read(question) == fetched)
            try after.close()
        }
    }
}
