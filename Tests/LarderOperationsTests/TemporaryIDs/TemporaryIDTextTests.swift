import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Temporary ids in JSON and keys")
struct TemporaryIDTextTests {
    private let id = TemporaryID()

    private func replaced(_ text: String, with real: String = "42") -> String {
        let text = text.replacing("TOKEN", with: id.text)
        let bytes = TemporaryIDText.replace(inJSON: json(text)) { $0 == id ? real : nil }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test(
        "A string that is the token, and keys that have it for an id, are replaced",
        arguments: [
            (#"{"id":"TOKEN"}"#, #"{"id":"42"}"#),
            (#"{ "a" : [ "TOKEN" , 1.50 ] }"#, #"{ "a" : [ "42" , 1.50 ] }"#),
            (#"{"key":"Dish:TOKEN"}"#, #"{"key":"Dish:42"}"#),
            (#"{"Dish:TOKEN":{"id":"TOKEN"}}"#, #"{"Dish:42":{"id":"42"}}"#),
            (#"{"key":"Vote:{\"by\":\"TOKEN\",\"on\":\"7\"}"}"#, #"{"key":"Vote:{\"by\":\"42\",\"on\":\"7\"}"}"#),
            (#"{"field":"dishes({\"list\":\"TOKEN\"})"}"#, #"{"field":"dishes({\"list\":\"42\"})"}"#),
            (#"{"a":"\"","id":"TOKEN"}"#, #"{"a":"\"","id":"42"}"#),
            (#"{"a":"\\","id":"TOKEN"}"#, #"{"a":"\\","id":"42"}"#),
        ])
    func found(_ text: String, _ expected: String) throws {
        #expect(replaced(text) == expected)
    }

    @Test(
        "A token within other text is text",
        arguments: [
            #"{"note":"see TOKEN"}"#, #"{"note":"TOKEN."}"#, #"{"note":"Dish:TOKEN:x"}"#, #"{"note":"a b:TOKEN"}"#,
            #"{"note":":TOKEN"}"#, #"{"note":"\"TOKEN\""}"#, #"{"id":"TOKEn"}"#, "{}", "", "\"", #"{"a":"TOKEN"#,
        ])
    func left(_ text: String) throws {
        #expect(replaced(text) == text.replacing("TOKEN", with: id.text))
    }

    @Test("A text of a token's length that ends in no UUID is none")
    func noUUID() {
        #expect(TemporaryID(TemporaryID.prefix + String(repeating: "x", count: 36)) == nil)
        #expect(TemporaryID(id.text) == id)
    }

    @Test("Keys within keys are looked into as deep as is said, and no deeper")
    func deep() throws {
        var text = id.text
        for depth in 0...5 {
            let found = TemporaryIDText.replace(inText: text) { _ in "42" }
            #expect((found != text) == (depth <= 4), "\(depth)")
            text = "Key:" + String(decoding: try JSONEncoder().encode(["id": text]), as: UTF8.self)
        }
    }

    @Test("A token that is written with escapes is the same token")
    func escaped() throws {
        let escaped = #"{"id":"\u006c\#(id.text.dropFirst())"}"#
        #expect(replaced(escaped) == #"{"id":"42"}"#)
    }

    @Test("A real id of any text is written as JSON, in keys within keys too")
    func strange() throws {
        let real = "a\"b\\c\u{1}🍲/"
        for text in [#"["TOKEN"]"#, #"["Dish:TOKEN"]"#, #"["Vote:{\"by\":\"TOKEN\"}"]"#] {
            let result = try JSONDecoder().decode([String].self, from: Data(replaced(text, with: real).utf8))[0]
            let inner =
                result.hasPrefix("Vote:")
                ? try JSONDecoder().decode([String: String].self, from: Data(result.dropFirst(5).utf8))["by"]
                : result.replacing("Dish:", with: "")
            #expect(inner == real)
        }
    }

    @Test("JSON around a replaced id stays as it is, byte for byte")
    func untouched() throws {
        let seed = TestSeed.of("untouched")
        var random = SeededNumbers(seed: seed)
        for _ in 0..<500 {
            let alphabet = Array(#"{}[]":,\u0061 truefalsenull-1.5e+7é🍲"#.utf8) + Array(TemporaryID.prefix.utf8)
            let count = Int.random(in: 0...200, using: &random)
            let bytes = (0..<count).map { _ in alphabet.randomElement(using: &random) ?? 0 }
            #expect(TemporaryIDText.replace(inJSON: bytes) { _ in nil } == bytes, "seed \(seed)")
        }
    }

    @Test("A token is read again, and nothing else is one")
    func token() {
        #expect(TemporaryID(id.text) == id)
        for text in ["", "larder-temporary-", "42", id.text + " ", id.text.uppercased(), String(id.text.dropLast())] {
            #expect(TemporaryID(text) == nil)
        }
    }
}
