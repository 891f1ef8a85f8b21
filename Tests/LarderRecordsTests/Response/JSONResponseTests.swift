import Foundation
import LarderRecords
import LarderTestSupport
import Testing

@Suite("A response from JSON text")
struct JSONResponseTests {
    @Test(
        "A text that is not JSON is refused with the place of its fault",
        arguments: [
            ("", JSONError.Reason.unexpectedEnd, 0), ("{", .unexpectedEnd, 1), ("[1,]", .unexpectedByte, 3),
            ("{\"a\":1,}", .unexpectedByte, 7), ("01", .invalidNumber, 0), ("\"\u{1}\"", .controlCharacter, 1),
            ("{} x", .trailingBytes, 3), ("{\"a\":1,\"b\":2,\"a\":3}", .duplicateKey, 13),
            ("{\"a\":1,\"\\u0061\":3}", .duplicateKey, 7),
        ])
    func malformed(_ text: String, _ reason: JSONError.Reason, _ offset: Int) {
        let error = #expect(throws: JSONError.self) { try Response(json: Array(text.utf8)) }
        #expect(error?.reason == reason)
        #expect(error?.offset == offset)
    }

    @Test("A place before a list's first element, or behind its last, has no value")
    func places() throws {
        let data = try #require(try Response(json: Array("[[7],[8,9]]".utf8)).data)
        for list in data.elements {
            #expect(list[-1] == nil && list[list.count] == nil && list[0] != nil)
        }
    }

    @Test("A number of any kind has its text, and what is no number has none")
    func numbers() throws {
        let data = try #require(try Response(json: Array("[-7,2.5,1e400,\"1\",null]".utf8)).data)
        #expect(data.elements.map(\.number) == ["-7", "2.5", "1e400", nil, nil])
    }

    @Test("A fault's text for a user is its description")
    func faultText() {
        let error = #expect(throws: JSONError.self) { try Response(json: Array("[1,]".utf8)) }
        #expect(error?.localizedDescription == error?.description)
    }

    @Test("Every truncation of a text is refused")
    func truncated() throws {
        let text = Array(#"{"a": [1, -2.5, "x\u00e9", {"b": null, "c": [true, false]}], "d": {}}"#.utf8)
        _ = try Response(json: text)
        for count in 0..<text.count {
            #expect(throws: JSONError.self, "\(count) bytes") { try Response(json: Array(text[..<count])) }
        }
    }

    @Test("Text that is not UTF-8 is refused")
    func invalidUTF8() {
        let error = #expect(throws: JSONError.self) { try Response(json: Array("\"".utf8) + [0xFF] + Array("\"".utf8)) }
        #expect(error?.reason == .invalidUTF8)
    }

    @Test("Nesting up to the limit is read, and deeper nesting refused")
    func nesting() throws {
        func nested(_ depth: Int) -> [UInt8] {
            Array((String(repeating: "[", count: depth) + String(repeating: "]", count: depth)).utf8)
        }
        let deepest = try Response(json: nested(128))
        #expect(deepest.json == nested(128))
        #expect(deepest == (try Response(json: nested(128))))
        for depth in [129, 10_000, 100_000] {
            let error = #expect(throws: JSONError.self) { try Response(json: nested(depth)) }
            #expect(error?.reason == .nestedTooDeep)
        }
    }

    @Test("A long list is read whole")
    func longList() throws {
        let text = "[" + (0..<100_000).map(String.init).joined(separator: ",") + "]"
        let response = try Response(json: Array(text.utf8))
        #expect(response.data?.count == 100_000)
        #expect(response.data?[99_999]?.int == 99_999)
        #expect(response.json == Array(text.utf8))
    }

    @Test("Random text is written as it was read", arguments: 0..<200 as Range<UInt64>)
    func roundTrip(seed: UInt64) throws {
        var random = RandomJSON(seed: seed)
        let text = random.text()
        let response = try Response(json: Array(text.utf8))
        let again = try Response(json: response.json)
        #expect(again == response, "seed \(seed): \(text)")
        #expect(again.hashValue == response.hashValue, "seed \(seed)")
        #expect(again.json == response.json, "seed \(seed)")
    }

    @Test(
        "A real response is the tree that JSONSerialization reads",
        .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"))
    func realResponse() throws {
        let bytes = try SharedData.bytes("github/IssuesAndCommentsForRepository.json")
        let ours = try JSONSerialization.jsonObject(with: Data(try Response(json: bytes).json)) as? NSDictionary
        let theirs = try JSONSerialization.jsonObject(with: Data(bytes)) as? NSDictionary
        #expect(ours != nil)
        #expect(ours == theirs)
    }
}
