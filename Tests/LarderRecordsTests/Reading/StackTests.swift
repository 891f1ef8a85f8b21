import LarderGraphQL
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("Recursion and the size of the stack", .timeLimit(.minutes(10)))
struct StackTests {
    private static func nested(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    private func check(_ what: String, _ body: @escaping () throws -> Void) throws {
        let use = try stackUse(of: body)
        #expect(use < smallestStack - (48 << 10), "\(what)")
    }

    private static let json = [
        nested("[", JSONScanner.maximumDepth) + nested("]", JSONScanner.maximumDepth),
        nested("{\"a\":", JSONScanner.maximumDepth - 1) + "{}" + nested("}", JSONScanner.maximumDepth - 1),
    ]

    @Test("The deepest JSON is read, written, compared and searched on the smallest stack", arguments: 0..<2)
    func json(_ index: Int) throws {
        let text = Array(Self.json[index].utf8)
        try check("value \(index)") { _ = try Value(json: text) }
        let value = try Value(json: text)
        let other = try Value(json: text)
        try check("write \(index)") { _ = value.json }
        try check("compare \(index)") { _ = value == other }
        try check("hash \(index)") { _ = Set([value]) }
        try check("fault \(index)") { _ = value.fault }
        try check("response \(index)") { _ = try Response(json: text) }
        let (response, otherResponse) = (try Response(json: text), try Response(json: text))
        try check("response json \(index)") { _ = response.json }
        try check("response compare \(index)") { _ = response == otherResponse }
        try check("response hash \(index)") { _ = Set([response]) }
        try check("skip \(index)") {
            text.withUnsafeBufferPointer { text in
                guard let start = text.baseAddress else { return }
                var scanner = JSONScanner(start, count: text.count)
                try? scanner.skipValue()
            }
        }
    }

    /// A document that nests as deep as a plan may, by fragments, and data for it.
    private static func deep(_ field: String, _ open: String, _ close: String, level: Int) -> (String, String) {
        let levels = (Plan.greatestDepth - 2) / level
        let chunk = 40
        var fragments: [String] = []
        var rest = levels
        while rest > 0 {
            let count = min(chunk, rest)
            rest -= count
            let inner = rest > 0 ? "...F\(fragments.count + 1)" : "x"
            fragments.append(
                "fragment F\(fragments.count) on N { x "
                    + nested("\(field) { x ", count) + inner + nested(" }", count) + " }")
        }
        let object = #""__typename":"A","x":1,"# + "\"\(field)\":" + open + "{"
        let data =
            "{\"n\":{" + nested(object, levels) + #""__typename":"A","x":1"#
            + nested("}" + close, levels) + "}}"
        return ("{ n { ...F0 } } " + fragments.joined(separator: " "), data)
    }

    private static let schema = """
        type Query { n: N } interface N { x: Int n: N l: [[N]] } type A implements N { x: Int n: N l: [[N]] }
        """

    @Test(
        "The deepest answers are parsed, assembled, stored and read on the smallest stack",
        arguments: [
            ("n", "", "", 1), ("l", "[[", "]]", 3),
        ])
    func answers(_ field: String, _ open: String, _ close: String, _ level: Int) async throws {
        let (document, data) = Self.deep(field, open, close, level: level)
        try await withSampleCache(Self.schema) { sample in
            let schema = sample.schema
            try check("compile \(field)") {
                _ = try CompiledOperation(operation: nil, in: Document(parsing: document), schema).bound()
            }
            let operation = try sample.operation(document)
            let text = Array(data.utf8)
            try check("parse \(field)") { _ = try ParsedResponse.parse(data: text, along: operation.layout) }
            let parsed = try ParsedResponse.parse(data: text, along: operation.layout)
            try check("assemble \(field)") { _ = try parsed.assembled() }
            _ = try await sample.cache.write(parsed, of: operation)
            let cache = sample.cache
            try check("read \(field)") { _ = try cache.read(operation) }
            let response = try cache.read(operation).response
            #expect(response.isComplete)
            try check("json \(field)") { _ = response.json }
            let other = try cache.read(operation).response
            try check("compare \(field)") { _ = response == other }
            try check("hash \(field)") { _ = Set([response]) }
        }
    }
}
