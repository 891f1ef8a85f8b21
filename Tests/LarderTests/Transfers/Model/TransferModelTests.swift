import Foundation
import LarderTestSupport
import Testing

@Suite("Transfers beside a model of plain values", .timeLimit(.minutes(10)))
struct TransferModelTests {
    /// More of them by the environment, for a long night.
    private static let seeds = number("LARDER_MODEL_SEEDS") ?? 12

    private static func number(_ name: String) -> Int? { ProcessInfo.processInfo.environment[name].flatMap(Int.init) }

    @Test("Random transfers, faults, refusals, restarts and switches end as plain values say, with nothing left behind")
    func random() async throws {
        for index in 0..<Self.seeds {
            let seed = TestSeed.of("transfers", index)
            try await withTemporaryFolder { folder in
                let run = try TransferModelRun(folder, seed: seed)
                var steps: [String] = []
                do {
                    for _ in 0..<50 {
                        steps.append(try await run.step())
                        if let difference = try run.difference() {
                            Issue.record("seed \(seed): \(difference)\n\(steps.joined(separator: "\n"))")
                            return try run.close()
                        }
                    }
                    let difference = try await run.finish()
                    #expect(difference == nil, "seed \(seed)\n\(steps.joined(separator: "\n"))")
                } catch { Issue.record("seed \(seed): \(error)\n\(steps.joined(separator: "\n"))") }
                try run.close()
            }
        }
    }
}
