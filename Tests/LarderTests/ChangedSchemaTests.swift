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
