import Foundation
import LarderTestSupport
import Testing

@Suite("The article on testing")
struct TestingGuideTests {
    @Test("Each test in the article is in the file beside this one, which compiles")
    func compiled() throws {
        func text(_ path: String) throws -> String {
            try String(contentsOf: packageRoot.appending(path: path), encoding: .utf8)
        }
        let lines = try text("Tests/LarderTestingTests/TestingGuideExample.swift").split(separator: "\n")
        let compiled = lines.map { $0.trimmingCharacters(in: .whitespaces) }
        let blocks = try text("Sources/Larder/Larder.docc/Testing.md").components(separatedBy: "```swift\n").dropFirst()
            .map { $0.components(separatedBy: "```")[0] }.filter { $0.hasPrefix("@Test") }
        #expect(blocks.count == 2)
        for block in blocks {
            let wanted = block.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
            let start = try #require(compiled.firstIndex(of: wanted[0]))
            #expect(Array(compiled[start...].prefix(wanted.count)) == wanted)
        }
    }
}
