import ArgumentParser
import Foundation
import LarderCommandLine
import LarderTestSupport
import Testing

@testable import LarderCommand
@testable import LarderMigrateCommand

@Suite("Hints")
struct HintTests {
    /// The codes of the articles, of an import, and of the tools themselves.
    private static func codes() throws -> Set<String> {
        func text(_ path: String) throws -> String {
            try String(contentsOf: packageRoot.appending(path: path), encoding: .utf8)
        }
        let article = try text("Sources/Larder/Larder.docc/Errors.md")
        var codes = Set(article.matches(of: /\n\| `([a-zA-Z]+\.[a-zA-Z]+)`/).map { String($0.1) })
        #expect(codes.count > 140)
        for (folder, pattern) in [
            ("Sources/LarderImport", /"(import\.[a-zA-Z]+)"/), ("Tools", /"(command\.[a-zA-Z]+)"/),
        ] {
            let root = packageRoot.appending(path: folder).resolvingSymlinksInPath()
            for path in try FileManager.default.subpathsOfDirectory(atPath: root.path) where path.hasSuffix(".swift") {
                let source = try String(contentsOf: root.appending(path: path), encoding: .utf8)
                codes.formUnion(source.matches(of: pattern).map { String($0.1) })
            }
        }
        return codes
    }

    private static func verbs(of command: any ParsableCommand.Type) -> [String] {
        command.configuration.subcommands.flatMap { verb -> [String] in
            let name = verb._commandName
            return [name] + verbs(of: verb).map { "\(name) \($0)" }
        }
    }

    @Test("Every code that a tool can print has a hint of one line, which names verbs that there are")
    func hints() throws {
        let verbs = ["larder": Self.verbs(of: LarderTool.self), "larder-migrate": Self.verbs(of: MigrateTool.self)]
        for code in try Self.codes() {
            for (tool, verb) in [("larder", "query"), ("larder", "mutations replay"), ("larder-migrate", "env use")] {
                guard let hint = Failure.hint(of: code, tool: tool, verb: verb) else {
                    Issue.record("\(code) has no hint")
                    continue
                }
                #expect(hint.count > 20 && hint.count < 160 && !hint.contains("\n"), "\(code): \(hint)")
                for match in hint.matches(of: /'(larder(?:-migrate)?) ([a-z-]+)/) {
                    let known = verbs[String(match.1)] ?? []
                    #expect(match.2.hasPrefix("-") || known.contains(String(match.2)), "\(code): \(hint)")
                }
            }
        }
    }

    @Test("A hint says what mends the failure of its code")
    func mending() {
        let hints = [
            ("keys.locked", "unlock the key store"), ("records.protected", "unlock the device"),
            ("operations.newerFormat", "install that version"), ("records.futureFormat", "install that version"),
            ("records.olderFormat", "'up' does it"), ("records.full", "free space on the disk"),
            ("operations.unsentWork", "'larder run' carries it out"), ("command.unknownObject", "'larder ls'"),
            ("command.unknownMutation", "'larder mutations'"), ("command.unknownTransfer", "'larder transfers'"),
            ("command.unknownPin", "'larder info'"), ("command.noStore", "LARDER_STORE"),
            ("command.notConfirmed", "--write"), ("command.mayBeCopy", "--device-tokens"),
            ("operations.unknownWatcher", "'larder watchers'"), ("larder.noTransport", "--endpoint"),
        ]
        for (code, words) in hints {
            let hint = Failure.hint(of: code, tool: "larder", verb: "run")
            #expect(hint?.contains(words) == true, "\(code): \(hint ?? "")")
        }
    }

    @Test("Where all of several rows are tried, those that could not be changed are told with a hint")
    func refusedRows() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.fail(fixture.begin(id))
            try FileManager.default.removeItem(at: fixture.source)
            let text = try await fixture.larder("transfers", "retry", "--all", "--write")
            #expect(text.status == 1 && text.errors.contains(id.text))
            #expect(text.errors.contains("hint: 'larder transfers show ID' names the file"), "\(text.errors)")
            let json = try await fixture.larder("transfers", "retry", "--all", "--write", "--json")
            #expect(json.output.contains(#""hint":"'larder transfers show ID' names the file"#), "\(json.output)")
        }
    }

    @Test("The options by which less is an answer are named where query or fetch has missed, and after no other verb")
    func missing() {
        for verb in ["query", "fetch", "get", "ls", "check", "watch"] {
            let hint = Failure.hint(of: "larder.miss", tool: "larder", verb: verb)
            #expect(hint?.contains("--partial") == ["query", "fetch"].contains(verb), "\(verb): \(hint ?? "")")
        }
    }
}
