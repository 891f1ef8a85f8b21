import Foundation
import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

/// What the scanner makes of a text whose last byte is the last readable one.
private func scanned(_ bytes: [UInt8]) -> Result<Value, JSONError>? {
    withGuardedBytes(bytes) { start in
        var scanner = JSONScanner(start, count: bytes.count)
        do throws(JSONError) {
            let value = try scanner.value(depth: 0)
            try scanner.expectEnd()
            return .success(value)
        } catch { return .failure(error) }
    }
}

private func skipped(_ bytes: [UInt8]) -> JSONError? {
    withGuardedBytes(bytes) { start -> JSONError? in
        var scanner = JSONScanner(start, count: bytes.count)
        do throws(JSONError) {
            try scanner.skipValue()
            try scanner.expectEnd()
            return nil
        } catch { return error }
    } ?? nil
}

private func fault(_ bytes: [UInt8]) -> JSONError.Reason? {
    if case .failure(let error)? = scanned(bytes) { error.reason } else { nil }
}

private func value(_ text: String) -> Value? {
    if case .success(let value)? = scanned(Array(text.utf8)) { value } else { nil }
}

@Suite("JSON, token by token")
struct JSONScannerTests {
    @Test(
        "Numbers keep their kind, or their text where neither Int64 nor Double keeps them",
        arguments: [
            ("0", Value.int(0)), ("-1", .int(-1)), ("9223372036854775807", .int(.max)),
            ("-9223372036854775808", .int(.min)), ("9223372036854775808", .number("9223372036854775808")),
            ("-9223372036854775809", .number("-9223372036854775809")),
            ("18446744073709551616", .number("18446744073709551616")), ("1.0", .float(1)), ("-0.0", .float(-0.0)),
            ("1e400", .number("1e400")), ("-1e400", .number("-1e400")), ("1e-400", .number("1e-400")),
            ("123456789012345", .int(123_456_789_012_345)), ("0.123456789012345", .float(0.123456789012345)),
            ("0.12345678901234567", .number("0.12345678901234567")),
            ("0.12345678901234567890", .number("0.12345678901234567890")),
            ("0.1000000000000000055511151231257827", .number("0.1000000000000000055511151231257827")),
            ("1.7976931348623157e308", .float(.greatestFiniteMagnitude)),
            ("1.7976931348623159e308", .number("1.7976931348623159e308")),
            ("5e-324", .float(.leastNonzeroMagnitude)), ("4e-324", .number("4e-324")), ("1E+2", .float(100)),
            ("1e2", .float(100)),
            ("150e-2", .float(1.5)), ("1e99999999999999999999", .number("1e99999999999999999999")),
            ("0e99999999999999999999", .float(0)), ("1e-99999999999999999999", .number("1e-99999999999999999999")),
            ("100000000000000000000", .float(1e20)),
            ("10.0e-9223372036854775808", .number("10.0e-9223372036854775808")),
            ("0.01e-9223372036854775808", .number("0.01e-9223372036854775808")),
            ("100e9223372036854775807", .number("100e9223372036854775807")),
        ])
    func numbers(text: String, expected: Value) {
        #expect(value(text) == expected)
    }

    @Test("Minus zero keeps its sign")
    func minusZero() {
        for text in ["-0", "-0.0", "-0e0"] {
            if case .float(let number)? = value(text) {
                #expect(number.sign == .minus)
            } else {
                Issue.record("\(text)")
            }
        }
    }

    @Test(
        "A text that only looks like a number is refused",
        arguments: [
            "-", "01", "-01", "1.", ".5", "1.e1", "1e", "1e+", "+1", "1e1.5", "0x1", "1_0", "NaN", "Infinity", "--1",
            "00",
        ])
    func notNumbers(text: String) {
        #expect(fault(Array(text.utf8)) != nil)
        #expect(skipped(Array(text.utf8)) != nil)
    }

    @Test(
        "Escapes stand for what RFC 8259 says",
        arguments: [
            (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u0041\u00e9\u20AC""#, "Aé€"),
            (#""\ud83d\ude00""#, "😀"), (#""\uDBFF\uDFFF""#, "\u{10FFFF}"), (#""\u0000""#, "\0"),
            (#""\uFFFF""#, "\u{FFFF}"),
            (#""plain text of more than eight bytes \n and more""#, "plain text of more than eight bytes \n and more"),
            (#""😀\\""#, "😀\\"), ("\"\u{7F}\"", "\u{7F}"), ("\"\"", ""),
        ])
    func escapes(text: String, expected: String) {
        guard case .string(let found)? = value(text) else {
            Issue.record("no string: \(text)")
            return
        }
        #expect(Array(found.utf8) == Array(expected.utf8))
    }

    @Test(
        "Escapes that RFC 8259 does not know are refused, and so is half a surrogate pair",
        arguments: [
            #""\a""#, #""\u12G4""#, #""\u""#, #""\ud83d""#, #""\ud83d\n""#, #""\ud83dx""#, #""\ud83d\u0041""#,
            #""\ude00""#,
            #""\ud83d\ud83d""#, #""\U0041""#, #""\'""#, "\"\\\"", "\"\\",
        ])
    func notEscapes(text: String) {
        #expect(fault(Array(text.utf8)) != nil)
        #expect(skipped(Array(text.utf8)) != nil)
    }

    @Test("Control characters must be escaped, wherever in a word they stand")
    func controlCharacters() {
        for byte in UInt8(0)..<0x20 {
            for position in 0..<18 {
                var text = Array(repeating: UInt8(ascii: "x"), count: 18)
                text[position] = byte
                #expect(fault([0x22] + text + [0x22]) == .controlCharacter)
            }
        }
    }

    @Test(
        "Invalid UTF-8 of every class is refused",
        arguments: [
            [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
            [0xE1, 0x80],
            [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xEF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
            [0xF1, 0x80, 0x80], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80],
            [0xFE], [0xFF],
            [0xE2, 0x28, 0xA1], [0xF0, 0x28, 0x8C, 0xBC], [0xF0, 0x90, 0x28, 0xBC], [0xF0, 0x90, 0x8C, 0x28],
        ] as [[UInt8]])
    func invalidUTF8(bytes: [UInt8]) {
        for before in [0, 1, 6, 7, 8, 9] {
            let text = [0x22] + Array(repeating: UInt8(ascii: "a"), count: before) + bytes + [0x22]
            #expect(fault(text) == .invalidUTF8)
            #expect(skipped(text)?.reason == .invalidUTF8)
            #expect(fault(Array("{".utf8) + text + Array(":1}".utf8)) == .invalidUTF8)
        }
    }

    @Test("Every scalar value at the edges of UTF-8 is taken")
    func validUTF8() {
        for scalar in [
            0x80, 0x7FF, 0x800, 0xFFF, 0x1000, 0xCFFF, 0xD7FF, 0xE000, 0xFFFD, 0xFFFF, 0x10000, 0x3FFFF, 0x40000,
            0xFFFFF, 0x100000, 0x10FFFF,
        ] {
            let text = Unicode.Scalar(UInt32(scalar)).map { String(Character($0)) } ?? ""
            #expect(value("\"\(text)\"") == .string(text))
        }
    }

    @Test("A text cut off at any byte is refused, and nothing is read past its end")
    func truncation() {
        let text = Array(
            #" {"a\u00e9\ud83d\ude00é😀": [1, -2.5e+10, true, false, null, "x\n", {}, [], {"b": {"c": []}}], "d": "" } "#
                .utf8)
        #expect(fault(text) == nil)
        for count in 0..<(text.count - 2) {
            #expect(fault(Array(text[..<count])) != nil)
            #expect(skipped(Array(text[..<count])) != nil)
        }
    }

    @Test("Any byte in place of any other is read or refused, and nothing is read past the end")
    func replacedBytes() {
        let text = Array(#"{"a\u00e9é":[-1.5e2,tr,"\ud83d\ude00"],"b":null}"#.replacing("tr", with: "true").utf8)
        var refused = 0
        for position in text.indices {
            for byte in stride(from: UInt8(0), through: 255, by: 3) {
                var changed = text
                changed[position] = byte
                let isRefused = fault(changed) != nil
                if isRefused { refused += 1 }
                // Skipping checks all but that keys are distinct.
                #expect((skipped(changed) == nil) == !isRefused || fault(changed) == .duplicateKey)
            }
        }
        #expect(refused > 0)
    }

    @Test("Nesting 128 deep is read and 512 deep passed over, 10,000 deep is refused", arguments: ["[", "{\"a\":"])
    func nesting(open: String) {
        let close = open == "[" ? "]" : "}"
        func text(_ depth: Int) -> [UInt8] {
            Array((String(repeating: open, count: depth) + "1" + String(repeating: close, count: depth)).utf8)
        }
        // The number inside is a level of its own.
        #expect(fault(text(127)) == nil)
        #expect(fault(text(128)) == .nestedTooDeep)
        #expect(skipped(text(512)) == nil)
        #expect(fault(text(10_000)) == .nestedTooDeep)
        #expect(skipped(text(10_000))?.reason == .nestedTooDeep)
    }

    @Test("Each of 512 levels is passed over only where it ends as it began, as a list or as an object")
    func mixedNesting() {
        func half(_ text: String) -> String { String(repeating: text, count: 256) }
        let list = (open: half("["), close: half("]"))
        let object = (open: half(#"{"a":"#), close: half("}"))
        for (outer, inner) in [(list, object), (object, list)] {
            let open = outer.open + inner.open
            #expect(skipped(Array((open + "1" + inner.close + outer.close).utf8)) == nil)
            #expect(skipped(Array((open + "1" + outer.close + inner.close).utf8))?.reason == .unexpectedByte)
        }
    }

    @Test("A key that comes twice is refused where both are wanted")
    func duplicateKeys() {
        #expect(fault(Array(#"{"a":1,"a":2}"#.utf8)) == .duplicateKey)
        #expect(fault(Array(#"{"a":1,"\u0061":2}"#.utf8)) == .duplicateKey)
    }

    @Test(
        "Text behind a value is refused, and so are words that JSON does not know",
        arguments: [
            "1 2", "{} {}", "", " ", "[1,]", "{\"a\":1,}", "[,1]", "{,}", "{1:2}", "{\"a\" 1}", "[1 2]", "tru", "nul",
            "True",
            "'a'", "[1]]", "//", "\u{FEFF}1", "{\"a\":}", "[", "}",
        ])
    func notJSON(text: String) {
        #expect(fault(Array(text.utf8)) != nil)
        #expect(skipped(Array(text.utf8)) != nil)
    }

    @Test("Random values are read as JSONSerialization reads them")
    func besideFoundation() throws {
        for seed in UInt64(0)..<300 {
            var random = SeededNumbers(seed: seed)
            let text = randomJSON(depth: 4, &random)
            let theirs = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
            let mine = try #require(value(text), "seed \(seed)")
            #expect(agrees(mine, theirs), "seed \(seed): \(text)")
            #expect(skipped(Array(text.utf8)) == nil, "seed \(seed)")
            #expect(value(String(decoding: mine.json, as: UTF8.self)) == mine, "seed \(seed)")
        }
    }

    private func randomJSON(depth: Int, _ random: inout SeededNumbers) -> String {
        let space = ["", " ", "\n\t", "\r"].randomElement(using: &random) ?? ""
        switch Int.random(in: depth > 0 ? 0..<7 : 2..<7, using: &random) {
        case 0:
            let members = (0..<Int.random(in: 0...4, using: &random)).map { index in
                "\(space)\"k\\u0061\(index)é\"\(space):" + randomJSON(depth: depth - 1, &random)
            }
            return "{" + members.joined(separator: ",") + space + "}"
        case 1:
            let elements = (0..<Int.random(in: 0...4, using: &random)).map { _ in
                randomJSON(depth: depth - 1, &random)
            }
            return "[" + space + elements.joined(separator: ",") + "]" + space
        case 2: return ["true", "false", "null"].randomElement(using: &random) ?? "null"
        case 3: return String(Int64.random(in: -1_000_000_000_000...1_000_000_000_000, using: &random))
        case 4: return (Double.random(in: -1e6...1e6, using: &random) + 0.5).description
        default:
            let pieces = [
                "a", "é", "😀", "\\n", "\\u20ac", "\\ud83d\\ude00", "long enough for a word", "\\\\", "\\\"", "/",
            ]
            let text = (0..<Int.random(in: 0...6, using: &random)).map { _ in
                pieces.randomElement(using: &random) ?? ""
            }
            return "\"" + text.joined() + "\""
        }
    }

    private func agrees(_ mine: Value, _ theirs: Any) -> Bool {
        switch mine {
        case .null: return theirs is NSNull
        case .boolean(let value): return theirs as? Bool == value
        case .int(let value): return (theirs as? NSNumber)?.int64Value == value
        case .float(let value):
            // Foundation is not exact in the last digit everywhere.
            return (theirs as? NSNumber).map { abs($0.doubleValue - value) <= abs(value) * 1e-14 } ?? false
        case .number: return theirs is NSNumber
        case .string(let value): return theirs as? String == value
        case .list(let values):
            guard let others = theirs as? [Any], others.count == values.count else { return false }
            return zip(values, others).allSatisfy { agrees($0, $1) }
        case .object(let members):
            guard let others = theirs as? [String: Any], others.count == members.count else { return false }
            return members.allSatisfy { name, value in others[name].map { agrees(value, $0) } ?? false }
        }
    }
}
