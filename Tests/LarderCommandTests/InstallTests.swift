import Foundation
import LarderCommandLine
import LarderTestSupport
import Testing

@Suite("What Tools/install makes beside the programs", .timeLimit(.minutes(10)))
struct InstallTests {
    @Test(
        "The manual page names each verb with its options, and is of one line for each request",
        .enabled(if: succeeds("python3", "--version"), "needs Python"), arguments: ["larder", "larder-migrate"])
    func manualPage(tool: String) async throws {
        let script = packageRoot.appending(path: "Tools/lib/manual_page.py").path
        let page = try await LarderProcess.run(
            shell: "'\(LarderProcess.executable(tool).path)' --experimental-dump-help | python3 '\(script)'", [])
        #expect(page.status == 0, "\(page.errors)")
        let lines = page.output.split(separator: "\n")
        #expect(lines.first == ".TH \(tool.uppercased()) 1 \"\" Larder")
        let verbs =
            tool == "larder" ? [".SS info", ".SS mutations replay", ".SS run"] : [".SS backup prune", ".SS up"]
        for verb in verbs { #expect(lines.contains { $0 == verb }, "\(verb)") }
        let requests = Set(lines.filter { $0.hasPrefix(".") }.map { $0.prefix(3) })
        #expect(requests.isSubset(of: [".TH", ".SH", ".SS", ".TP", ".PP", ".nf", ".fi", ".B "]), "\(requests)")
    }

    @Test("There are completions for the shells, and a version", arguments: ["larder", "larder-migrate"])
    func completions(tool: String) async throws {
        for shell in ["bash", "zsh", "fish"] {
            let script = try await LarderProcess.run(program: tool, ["--generate-completion-script", shell])
            #expect(script.status == 0 && script.output.contains(tool), "\(shell): \(script.errors)")
        }
        #expect(try await LarderProcess.run(program: tool, ["--version"]).status == 0)
    }

    @Test("Each tool prints its version, and nothing else", arguments: ["larder", "larder-migrate"])
    func version(tool: String) async throws {
        let told = try await LarderProcess.run(program: tool, ["--version"])
        #expect(told.status == 0 && told.output == "\(Program.version)\n" && told.errors == "", "\(told)")
    }
}
