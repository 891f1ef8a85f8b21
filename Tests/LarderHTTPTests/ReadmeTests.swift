import Foundation
import LarderTestSupport
import RecipeServer
import Testing

@Suite("The README and Getting started", .timeLimit(.minutes(10)))
struct ReadmeTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOf: packageRoot.appending(path: path), encoding: .utf8)
    }

    @Test("The README's example is the file beside this one, which compiles")
    func example() throws {
        let compiled = try text("Tests/LarderHTTPTests/ReadmeExample.swift")
        #expect(try text("README.md").contains("```swift\n\(compiled)```"))
        #expect(compiled.split(separator: "\n").count <= 25)
    }

    @Test(
        "Each block of Swift in the guides is in the file beside this one, which compiles",
        arguments: [("GettingStarted", 8), ("WorkingOffline", 3), ("MovingFromApollo", 1)])
    func guides(name: String, least: Int) throws {
        let article = try text("Sources/Larder/Larder.docc/\(name).md")
        let compiled = try text("Tests/LarderHTTPTests/GettingStartedExample.swift")
        let blocks = article.components(separatedBy: "```swift\n").dropFirst().map { rest in
            rest.components(separatedBy: "```")[0]
        }
        #expect(blocks.count >= least)
        for block in blocks { #expect(compiled.contains(block)) }
    }

    @Test("The example of Getting started works against a server")
    func gettingStartedRuns() async throws {
        let server = try await RecipeServer.start()
        let outcome: Result<String, any Error>
        do {
            let message = try await withTemporaryFolder { folder in
                try await useRecipes(at: folder, schema: RecipeServer.schema, server: server.url)
            }
            outcome = .success(message)
        } catch { outcome = .failure(error) }
        try await server.stop()
        #expect(try outcome.get() == "Thank you.")
    }
}
