import Foundation
import LarderGraphQL
import Testing

@Suite("Limits of the parser")
struct LimitTests {
    @Test(
        "A hundred thousand openings of one kind are refused and not recursed into",
        arguments: [
            ("", "{a"), ("", "{"), ("", "("), ("", "["), ("", "\"\"\""), ("", "{...{"), ("", "{a(b:"), ("{a(b:", "["),
            ("{a(b:", "{c:"), ("{a(b:", "{"), ("{a", "("), ("{a @b(c:", "["), ("query($a:", "["),
            ("query($a:T=", "[{a:"),
        ])
    func deepNesting(start: String, opening: String) {
        let text = start + String(repeating: opening, count: 100_000)
        #expect(syntaxFault(text) != nil)
        #expect(schemaFault("type Query { f(a: T = \(text)") != nil)
        #expect(schemaFault("type Query { f: \(text)") != nil)
        #expect(schemaFault("type Query \(text)") != nil)
    }

    @Test(
        "Selections, lists, objects and types nest up to the limit",
        arguments: [
            ("", "{a", "", "}", ""), ("", "{...", "{a}", "}", ""), ("{a(b:[", "[", "1", "]", "])}"),
            ("{a(b:[", "{c:", "1", "}", "])}"), ("query($a:[", "[", "T", "]", "]){a}"),
        ])
    func nestingLimit(start: String, open: String, middle: String, close: String, end: String) {
        // What stands around the repeated part, outside or inside of it, is the rest of the depth.
        let around = (start + middle).contains { "[{".contains($0) } ? (start.hasPrefix("{") ? 2 : 1) : 0
        func text(_ depth: Int) -> String {
            start + String(repeating: open, count: depth - around) + middle
                + String(repeating: close, count: depth - around) + end
        }
        let limits = ParserLimits(nesting: 12)
        #expect(syntaxFault(text(12), limits: limits) == nil)
        #expect(syntaxFault(text(13), limits: limits)?.contains("Nested more than 12 levels deep") == true)
    }

    @Test("A document may nest 120 levels by default, and no more")
    func standardNesting() {
        func text(_ depth: Int) -> String { Self.nested("{a", depth) + Self.nested("}", depth) }
        #expect(syntaxFault(text(120)) == nil)
        #expect(syntaxFault(text(121))?.contains("Nested more than 120 levels deep") == true)
    }

    @Test("More tokens than allowed are refused at the first that is too many")
    func tokenLimit() {
        let limits = ParserLimits(tokens: 4)
        #expect(syntaxFault("{ a b }", limits: limits) == nil)
        #expect(syntaxFault("{ a b c }", limits: limits) == "1:9: More than 4 tokens")
        #expect(syntaxFault("{ a # b c d e f\n b }", limits: limits) == nil)
    }

    @Test("A limit that no stack holds is brought down to one that any holds")
    func clampedLimit() {
        #expect(ParserLimits(nesting: 1_000_000).nesting == ParserLimits.deepest)
        #expect(ParserLimits(nesting: -1).nesting == 1)
        var limits = ParserLimits.default
        limits.nesting = .max
        #expect(limits.nesting == ParserLimits.deepest)
    }

    @Test("The deepest documents are parsed, printed, validated and freed on a stack of 512 KiB")
    func smallStack() async throws {
        let depth = ParserLimits.deepest
        let failures = await withCheckedContinuation { (continuation: CheckedContinuation<[String], Never>) in
            let thread = Thread { continuation.resume(returning: Self.failuresAtDepth(depth)) }
            thread.stackSize = 512 * 1024
            thread.start()
        }
        #expect(failures == [])
    }

    private static func failuresAtDepth(_ depth: Int) -> [String] {
        var failures: [String] = []
        do {
            let limits = ParserLimits(nesting: depth)
            let schema = try SchemaIndex(
                parsing: "scalar J input I { i: I j: J } type Query { a(i: I, j: J): Query }")
            let texts = [
                nested("{a", depth - 1) + "{__typename" + nested("}", depth),
                nested("{...", depth - 1) + "{__typename" + nested("}", depth),
                "{a(i:" + nested("{i:", depth - 2) + "{}" + nested("}", depth - 2) + "){__typename}}",
                "{a(j:" + nested("[", depth - 1) + nested("]", depth - 1) + "){__typename}}",
                "{a(i:" + nested("[", depth - 1) + nested("]", depth - 1) + "){__typename}}",
                "query($a:" + nested("[", depth) + "Int" + nested("]", depth) + "){a{__typename}}",
            ]
            for text in texts {
                let document = try Document(parsing: text, limits: limits)
                if try Document(parsing: document.printed(), limits: limits) != document { failures.append(text) }
                for error in validate(document, against: schema) where error.rule == .complexity {
                    failures.append("\(error)")
                }
            }
            let deepDefault = nested("[", depth) + nested("]", depth)
            let deep = try SchemaIndex(parsing: "scalar J type Query { a(j: J = \(deepDefault)): Int }")
            if try SchemaIndex(serialized: deep.serialized()) != deep { failures.append("serialized") }
        } catch {
            failures.append("\(error)")
        }
        return failures
    }

    private static func nested(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
}
