import Foundation
import LarderTestSupport
import Testing

@Suite("The article on the architecture", .timeLimit(.minutes(10)))
struct ArchitectureTests {
    @Test("Each type that the article's walks name is declared in Sources")
    func types() throws {
        let sources = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
        let article = try String(
            contentsOf: sources.appending(path: "Larder/Larder.docc/Architecture.md"), encoding: .utf8)
        let rows = article.split(separator: "\n").filter { $0.firstMatch(of: /^\| [0-9]+ \|/) != nil }
        let named = Set(rows.flatMap { $0.matches(of: /`([A-Z][A-Za-z]+)`/).map { String($0.1) } })
        #expect(named.count > 40)
        var declared: Set<String> = []
        for file in try FileManager.default.subpathsOfDirectory(atPath: sources.path) where file.hasSuffix(".swift") {
            let text = try String(contentsOf: sources.appending(path: file), encoding: .utf8)
            for found in text.matches(of: /\b(?:class|struct|enum|protocol|actor) ([A-Z][A-Za-z]+)/) {
                declared.insert(String(found.1))
            }
        }
        #expect(named.subtracting(declared) == [])
    }

    @Test("The article's diagram names each target of Sources")
    func targets() throws {
        let sources = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
        let article = try String(
            contentsOf: sources.appending(path: "Larder/Larder.docc/Architecture.md"), encoding: .utf8)
        let diagram = try #require(article.split(separator: "```").dropFirst().first)
        for target in try FileManager.default.contentsOfDirectory(atPath: sources.path) where target != "CChecksums" {
            #expect(target == "CFiles" || diagram.contains(target), "\(target)")
        }
    }
}
