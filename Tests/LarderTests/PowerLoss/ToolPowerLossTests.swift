import Foundation
import LarderPowerLoss
import Testing

@Suite(
    "The power is cut while tools work", .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"),
    .serialized)
struct ToolPowerLossTests {
    @Test("Keys that were made, caches that were brought back or replaced, and backups are there after any cut")
    func everywhere() async throws {
        let load = RecordedLoad(word: "tools", lives: 1) { proof in
            proof.sparsity = .max
            proof.inspect = { await ToolAftermath($0).problems() }
        }
        try await load.cutEverywhere()
    }
}
