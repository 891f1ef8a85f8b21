import Foundation
import LarderTestSupport
import Testing

@Suite("The error codes")
struct ErrorCodesTests {
    @Test("The article has every code that is declared, and no other")
    func article() throws {
        let sources = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
        var declared: [String] = []
        for file in try swiftFiles(in: sources) {
            declared += codes(in: try String(contentsOf: file, encoding: .utf8), declaredAs: #"(rawValue: ""#)
        }
        let article = try String(
            contentsOf: sources.appending(path: "Larder/Larder.docc/Errors.md"), encoding: .utf8)
        let documented = codes(in: article, declaredAs: "\n| `")
        #expect(declared.count >= 32)
        #expect(Set(declared).count == declared.count)
        #expect(documented.sorted() == declared.sorted())
    }

    /// The public codes that follow a text: those of this package's layers that a program sees.
    private func codes(in text: String, declaredAs start: String) -> [String] {
        text.components(separatedBy: start).dropFirst().compactMap { rest in
            let code = String(rest.prefix { $0.isASCII && $0.isLetter || $0 == "." })
            let layers = [
                "larder.", "cognito.", "identity.", "keys.", "object.", "operations.", "records.", "transfer.",
                "transport.",
            ]
            return layers.contains(where: code.hasPrefix) ? code : nil
        }
    }

    private func swiftFiles(in folder: URL) throws -> [URL] {
        try FileManager.default.subpathsOfDirectory(atPath: folder.path)
            .filter { $0.hasSuffix(".swift") }
            .map { folder.appending(path: $0) }
    }
}
