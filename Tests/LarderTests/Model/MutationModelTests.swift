import Foundation
import LarderTestSupport
import Testing

@Suite("The whole way of mutations beside a model of plain values", .timeLimit(.minutes(10)))
struct MutationModelTests {
    /// More of them by the environment, for a long night. Each run then says when it begins and ends, so that one which
    /// hangs is known.
    private static let asked = number("LARDER_MODEL_SEEDS")
    private static let seeds = asked ?? 12
    private static let groups = 4

    private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap(Int.init) }

    @Test(
        "Random mutations, answers, faults, restarts and clocks that jump leave what plain values say",
        arguments: 0..<groups)
    func random(group: Int) async throws {
        for index in stride(from: group, to: Self.seeds, by: Self.groups) {
            try await run(TestSeed.of("mutations", index))
        }
    }

    private func say(_ line: String) { FileHandle.standardError.write(Data("\(line)\n".utf8)) }

    private func run(_ seed: UInt64) async throws {
        if Self.asked != nil { say("seed \(seed) begins") }
        defer { if Self.asked != nil { say("seed \(seed) ends") } }
        try await withTemporaryFolder { folder in
            let run = try ModelRun(folder, seed: seed)
            do {
                var steps: [String] = []
                for step in 0..<60 {
                    steps.append(try await run.step())
                    try await run.settle("seed \(seed), step \(step):\n\(steps.joined(separator: "\n"))")
                }
                #expect(try run.difference() == nil, "seed \(seed)")
                try await run.finish()
            } catch {
                Issue.record("seed \(seed)")
                run.runner?.1.cancel()
                run.gate.close()
                _ = try? await run.runner?.1.value
                try? run.store.close()
                throw error
            }
        }
    }
}
