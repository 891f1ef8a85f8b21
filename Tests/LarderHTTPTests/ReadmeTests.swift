import Foundation
import LarderTestSupport
import Testing

@Suite("The README")
struct ReadmeTests {
    @Test("Its example is the file beside this one, which compiles")
    func example() throws {
        let readme = try String(contentsOf: packageRoot.appending(path: "README.md"), encoding: .utf8)
        let compiled = try String(
            contentsOf: packageRoot.appending(path: "Tests/LarderHTTPTests/ReadmeExample.swift"), encoding: .utf8)
        #expect(readme.contains("```swift\n\(compiled)```"))
        #expect(compiled.split(separator: "\n").count <= 25)
    }
}
