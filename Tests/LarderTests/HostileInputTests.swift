import Foundation
import LarderRecords
import LarderTestSupport
import Testing

@testable import Larder

private let note = GraphQLOperation(#"{ recipe(id: "1") { title note } }"#)

private func noteAnswer(_ note: String) -> String {
    #"{"data":{"recipe":{"__typename":"Recipe","id":"1","title":"Soup","note":\#(note)}}}"#
}

@Suite("Hostile input")
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
        let transport = ScriptedTransport { _ in Self.answers[index] }
        try await withKitchen(transport) { app in
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
        try await withKitchen { app in
            let byID = GraphQLOperation("query($id: ID!) { recipe(id: $id) { id title note } }", variables: ["id": .string(id)])
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
        try await withKitchen { app in
            let data = #"{"recipe":{"id":"1","title":"Soup","note":1}},"errors":[{"message":"m"}]"#
            await #expect(throws: LarderError.self) { try await app.write(note, json: Array(data.utf8)) }
        }
    }

    @Test("A full map is a typed error, nothing is half there, and the store can be used again")
    func fullMap() async throws {
        try await withTemporaryFolder { folder in
            var options = Store.Options()
            options.maximumSize = 1 << 20
            let store = try Store.open(at: folder, schema: try Schema(parsing: kitchenSchema), options: options)
            let app = try store.partition()
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
            try store.close()
        }
    }

    @Test("A file in the place of the store, and a store that is not there, are typed errors")
    func places() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "file")
            try Data("x".utf8).write(to: file)
            let schema = try Schema(parsing: kitchenSchema)
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
}
