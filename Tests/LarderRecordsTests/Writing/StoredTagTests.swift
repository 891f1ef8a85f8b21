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
}
