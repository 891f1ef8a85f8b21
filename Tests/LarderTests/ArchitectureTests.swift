import Foundation
import Larder
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

    @Test("A store has the locks that the article names, which programs of all versions are to share")
    func locks() async throws {
        let article = try String(
            contentsOf: packageRoot.appending(path: "Sources/Larder/Larder.docc/Architecture.md"), encoding: .utf8)
        let named = article.matches(of: /\n  locks\/(\S+)/).map { String($0.1).replacing("<partition>", with: "main") }
        try await withTemporaryFolder { folder in
            let provider = InMemoryIdentityProvider(lifetime: .seconds(20))
            var options = Store.Options()
            options.keys = InMemoryKeyProvider()
            options.identityProvider = { _ in provider }
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema), options: options)
            let app = try store.partition(server: ScriptedServer { _ in "{}" })
            try await app.session.signIn(provider.signIn("ada"), within: soon)
            _ = try await app.session.userPoolTokens(within: soon)
            _ = try await app.session.cloudCredentials(within: soon)
            try await MutationRunner(app).drain()
            try await TransferRunner(app, storage: MemoryStorage()).drain()
            try store.close()
            let made = try FileManager.default.contentsOfDirectory(atPath: folder.appending(path: "locks").path)
            #expect(made.sorted() == named.sorted())
        }
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
