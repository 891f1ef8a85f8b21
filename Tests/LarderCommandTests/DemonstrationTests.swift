import Foundation
import LarderTestSupport
import Testing

@Suite("larder-demo", .timeLimit(.minutes(10)))
struct DemonstrationTests {
    @Test("Every claim is checked and holds, and the store that was named stays and is sound")
    func holds() async throws {
        try await withTemporaryFolder { folder in
            let store = folder.appending(path: "store").path
            let outcome = try await LarderProcess.run(
                program: "larder-demo", ["--check", "--store", store],
                environment: ["LARDER_TEST_PYTHON": ServerProcess.python ?? ""])
            #expect(outcome.status == 0, "\(outcome.errors)")
            #expect(outcome.errors == "")
            let told = try #require(
                outcome.output.wholeMatch(of: /All [1-9][0-9]* claims were checked, and hold\.(.*)\n/), "\(outcome)")
            #expect(told.1.isEmpty == ForeignServer.isAvailable, "\(told.1)")
            let check = try await LarderProcess.run(["check", "--store", store, "--json"])
            #expect(check.status == 0, "\(check.errors)")
        }
    }

    @Test("A folder that is not empty is left as it is, and told")
    func refusesFolder() async throws {
        try await CommandFixture.withFiles { fixture in
            let before = try fixture.snapshot()
            let path = fixture.folder.path
            let outcome = try await LarderProcess.run(program: "larder-demo", ["--check", "--store", path])
            #expect(outcome.status == 2)
            #expect(outcome.errors == "larder-demo: \(path) is not empty; --store takes a new or empty folder\n")
            #expect(try fixture.snapshot() == before)
        }
    }

    @Test(
        "Arguments that make no sense are refused, with the list of arguments that do",
        arguments: ["--wat", "--port x", "--latency"])
    func refuses(_ arguments: String) async throws {
        let outcome = try await LarderProcess.run(
            program: "larder-demo", arguments.split(separator: " ").map(String.init))
        #expect(outcome.status == 2)
        #expect(outcome.output == "")
        #expect(outcome.errors.hasPrefix("larder-demo: ") && outcome.errors.contains("usage: "))
    }
}
