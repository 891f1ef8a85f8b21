import Foundation
import LarderTestSupport
import Testing

@testable import LarderRecords

@Suite("The tags that are stored", .timeLimit(.minutes(10)))
struct StoredTagTests {
    @Test("The article on the format lists the numbers of the tags as the code has them")
    func documented() throws {
        let file = packageRoot.appending(path: "Sources/Larder/Larder.docc/RecordFormat.md").resolvingSymlinksInPath()
        let text = try String(contentsOf: file, encoding: .utf8)
        let tables = text.components(separatedBy: "| tag | | content |")
        try #require(tables.count == 2)
        let rows = tables[1].split(separator: "\n").dropFirst().prefix { $0.hasPrefix("|") }
        let names = rows.map { $0.split(separator: "|").prefix(2).map { $0.trimmingCharacters(in: .whitespaces) } }
        let expected: [([ValueTag], String)] = [
            ([.null, .no, .yes], "null, false, true"), ([.smallInt], "small integer"),
            ([.int, .float], "integer, float"),
            ([.number, .string, .json], "number as text, string, JSON of a custom scalar"), ([.list], "list"),
            ([.reference, .part], "reference to an entity, part"), ([.wideReference, .widePart], "the same"),
            ([.farString, .farJSON], "string, JSON of a custom scalar, in the text heap"),
        ]
        #expect(names == expected.map { [$0.map { "\($0.rawValue)" }.joined(separator: ", "), $1] })
    }

    @Test("A stored record begins with the number of its format, which is 1")
    func format() async throws {
        try await withSampleCache("type Query { a: Int }") { sample in
            try await sample.write("{ a }", data: #"{"a":1}"#)
            let formats = try sample.cache.generations.withSnapshot { (generation, transaction) throws -> [UInt8] in
                var cursor = try transaction.cursor(in: generation.tables.records)
                var formats: [UInt8] = []
                var entry = try cursor.first()
                while let found = entry {
                    formats.append(found.value.withUnsafeBytes { $0[0] })
                    entry = try cursor.next()
                }
                return formats
            }
            #expect(formats == [1])
        }
    }
}
