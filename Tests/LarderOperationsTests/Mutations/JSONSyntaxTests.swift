import Foundation
import LarderTestSupport
import Testing

@testable import LarderOperations

@Suite("Whether bytes are a JSON object")
struct JSONSyntaxTests {
    private static let objects = [
        "{}", " {\t\n\r} ", #"{"a":1}"#, #"{"":{"b":[1,-2.5,0,-0,1e5,1E-7,2.0e+9,true,false,null,"x",[],{}]}}"#,
        #"{"a":"\"\\\/\b\f\n\r\t\u00e9\uD83D\uDE00","ä":"ü€😀"}"#, #"{"a":1,"a":2}"#, #"{"a":99999999999999999999}"#,
    ]

    private static let others = [
        "", " ", "[]", "1", "null", #""a""#, "{", "}", "{}}", "{} {}", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#,
        #"{a:1}"#, #"{"a":01}"#, #"{"a":1.}"#, #"{"a":.5}"#, #"{"a":+1}"#, #"{"a":1e}"#, #"{"a":-}"#, #"{"a":tru}"#,
        #"{"a":nulls}"#, #"{"a":"b}"#, #"{"a":"\x"}"#, #"{"a":"\u12"}"#, #"{"a":"\u12g4"}"#, #"{"a":"\uD83D"}"#,
        #"{"a":"\uDE00"}"#, #"{"a":"\uD83Dx"}"#, "{\"a\":\"\n\"}", #"{"a":[1,]}"#, #"{"a":[1}"#, #"{"a" 1}"#,
        #"{"a":1 "b":2}"#, #"{"a":'b'}"#, "{\"a\":\"\\",
    ]

    @Test("A text that is JSON is taken", arguments: objects)
    func taken(text: String) { #expect(JSONSyntax.isObject(json(text))) }

    @Test("A text that is not JSON is refused", arguments: others)
    func refused(text: String) { #expect(!JSONSyntax.isObject(json(text))) }

    @Test("Bytes that are no UTF-8 are refused")
    func encoding() {
        #expect(!JSONSyntax.isObject(json(#"{"a":""#) + [0xC3] + json(#""}"#)))
        #expect(!JSONSyntax.isObject(json(#"{"a":""#) + [0xED, 0xA0, 0x80] + json(#""}"#)))
    }

    @Test("Values within values are looked at as deep as is safe, and refused below")
    func depth() {
        func nested(_ count: Int) -> [UInt8] {
            json(#"{"a":"# + String(repeating: "[", count: count) + String(repeating: "]", count: count) + "}")
        }
        #expect(JSONSyntax.isObject(nested(JSONSyntax.maximumDepth - 1)))
        #expect(!JSONSyntax.isObject(nested(JSONSyntax.maximumDepth)))
        #expect(!JSONSyntax.isObject(json(#"{"a":"#) + Array(repeating: UInt8(ascii: "["), count: 1_000_000)))
    }

    @Test("Texts that were changed at random are taken where another reader takes them", arguments: [1, 2, 3, 4])
    func changed(seed: UInt64) {
        var random = SeededNumbers(seed: seed)
        let alphabet = Array(#"{}[]:,"\u0019.eE+-tfn a"#.utf8)
        for _ in 0..<2_000 {
            var text = json(Self.objects.randomElement(using: &random) ?? "{}")
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                guard let index = text.indices.randomElement(using: &random) else { break }
                switch Int.random(in: 0..<3, using: &random) {
                case 0: text.remove(at: index)
                case 1: text.insert(alphabet.randomElement(using: &random) ?? 0, at: index)
                default: text[index] = alphabet.randomElement(using: &random) ?? 0
                }
            }
            let string = String(decoding: text, as: UTF8.self)
            // The other reader wants numbers that it can hold, and takes a comma after the last value.
            guard string.firstMatch(of: /[eE][+]?[0-9]{3}|,\s*[}\]]/) == nil else { continue }
            let isObject = (try? JSONSerialization.jsonObject(with: Data(text))) is [String: Any]
            #expect(JSONSyntax.isObject(text) == isObject, "seed \(seed): \(string)")
        }
    }
}
