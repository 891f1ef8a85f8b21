import LarderGraphQL
import Testing

@Suite("Strings as JSON")
struct JSONStringTests {
    /// What JSON must escape, each in its shortest form. Cache keys are stored in it: another form is another key.
    private static let escaped = [
        #"\u0000"#, #"\u0001"#, #"\u0002"#, #"\u0003"#, #"\u0004"#, #"\u0005"#, #"\u0006"#, #"\u0007"#, #"\b"#, #"\t"#,
        #"\n"#, #"\u000b"#, #"\f"#, #"\r"#, #"\u000e"#, #"\u000f"#, #"\u0010"#, #"\u0011"#, #"\u0012"#, #"\u0013"#,
        #"\u0014"#, #"\u0015"#, #"\u0016"#, #"\u0017"#, #"\u0018"#, #"\u0019"#, #"\u001a"#, #"\u001b"#, #"\u001c"#,
        #"\u001d"#, #"\u001e"#, #"\u001f"#,
    ]

    private func json(_ text: String) -> String {
        var bytes: [UInt8] = []
        appendJSONString(text, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("Every control character has the escape that it always had", arguments: 0..<32)
    func controlCharacters(_ number: Int) throws {
        let character = try #require(Unicode.Scalar(UInt32(number)).map(Character.init))
        #expect(json("a\(character)b") == "\"a" + Self.escaped[number] + "b\"")
    }

    @Test("Nothing else is escaped but the quotation mark and the backslash")
    func others() {
        #expect(json("\" \\ / \u{7F} \u{80} \u{2028} é 😀") == "\"\\\" \\\\ / \u{7F} \u{80} \u{2028} é 😀\"")
    }
}
