import Foundation
import LarderTestSupport
import RecipeServer
import Testing

/// With it a machine sleeps for an hour between any two looks at the clock.
private let sleepingClock = PreloadedLibrary.compiled(from: "Tools/lib/sleeping_clock.c")

@Suite(
    "A machine that sleeps", .timeLimit(.minutes(10)),
    .enabled(if: BuiltProgram.exists("larder-crash") && sleepingClock != nil, "needs Linux, clang and larder-crash"))
struct SleepTests {
    @Test("A fetch, a mutation and a run end as if the machine had not slept meanwhile")
    func usesUpNoDeadline() async throws {
        try await CommandFixture.withRecipes { fixture, server in
            let asleep = ["LD_PRELOAD": try #require(sleepingClock).path]
            func larder(_ arguments: [String]) async throws -> Outcome {
                try await LarderProcess.run(arguments + ["--store", fixture.store], environment: asleep)
            }
            let slept = try await LarderProcess.run(
                program: "larder-crash", [fixture.store, "doze"], environment: asleep)
            try #require(slept.output == "slept\n", "\(slept.errors)")

            let endpoint = ["--endpoint", server.url.absoluteString]
            let read = try fixture.write("query Q { recipe(id: 2) { __typename id rating } }", to: "q.graphql")
            let schema = fixture.path("recipes.graphqls")
            let fetched = try await larder(["fetch", "--schema", schema, "--operation", read] + endpoint)
            #expect(fetched.status == 0, "\(fetched.errors)")
            let rate = try fixture.write(
                "mutation M { rateRecipe(id: 2, stars: 4) { __typename id rating } }", to: "rate.graphql")
            let queued = try await larder(["enqueue", "--operation", rate])
            #expect(queued.status == 0, "\(queued.errors)")
            let run = try await larder(["run", "--until-idle"] + endpoint)
            #expect(run.status == 0 && run.output.hasPrefix("applied "), "\(run.errors)")
            for arguments in [["compact"], ["check"], ["gc", "--write"]] {
                let outcome = try await larder(arguments)
                #expect(outcome.status == 0, "\(arguments): \(outcome.errors)")
            }
        }
    }
}
