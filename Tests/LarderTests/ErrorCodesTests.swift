import Foundation
import Larder
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

    @Test("Each code of a layer is a constant of LarderError, with the layer's name before its own")
    func constants() throws {
        let sources = packageRoot.appending(path: "Sources").resolvingSymlinksInPath()
        let list = try String(contentsOf: packageRoot.appending(path: "Tests/PublicAPI/Larder.txt"), encoding: .utf8)
        let constants = Set(
            list.split(separator: "\n").compactMap { line in
                line.hasPrefix("LarderError.Code.") ? line.dropFirst(17).prefix { $0 != ":" } : nil
            })
        var missing: [String] = []
        for file in try swiftFiles(in: sources) {
            let text = try String(contentsOf: file, encoding: .utf8)
            for code in codes(in: text, declaredAs: #"(rawValue: ""#) {
                let parts = code.split(separator: ".")
                // The layers' own; what begins otherwise is declared as a constant of LarderError, or CognitoError.
                guard parts.count == 2, !["larder", "transfer", "cognito"].contains(parts[0]) else { continue }
                let name = parts[0] + parts[1].prefix(1).uppercased() + parts[1].dropFirst()
                if !constants.contains(Substring(name)) { missing.append(code) }
            }
        }
        #expect(missing == [])
    }

    @Test("Every error that a program meets has a text for its user")
    func localized() {
        let errors: [any LocalizedError] = [
            LarderError(.operationsUnsentWork, "x"), TransportError(.unreachable, "x"), ObjectError(.accessDenied, "x"),
            KeyError(.locked, "x"), IdentityError(.throttled, "x"),
        ]
        for error in errors {
            #expect(error.errorDescription?.isEmpty == false && error.errorDescription != "x", "\(error)")
            #expect(error.failureReason == "x")
        }
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
