import Foundation
import LarderPowerLoss
import Testing

@Suite(
    "The power is cut while tools work", .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"),
    .serialized, .timeLimit(.minutes(10)))
struct ToolPowerLossTests {
    @Test("Keys that were made, caches that were brought back or replaced, and backups are there after any cut")
    func everywhere() async throws {
        let load = RecordedLoad(word: "tools", lives: 1) { proof in
            proof.sparsity = .max
            proof.inspect = { await ToolAftermath($0).problems() }
        }
        try await load.cutEverywhere()
    }

    @Test("Switches, sign-ins, queued mutations, restorations, repairs and forgetting survive any cut")
    func wholeStore() async throws {
        let load = RecordedLoad(word: "store", lives: 1) { proof in
            proof.sparsity = .max
            proof.cuts =
                PowerCut.Order.allCases.map { PowerCut(order: $0, contents: .lost, names: .lost) }
                + (0..<RecordedLoad.moreCuts).map {
                    PowerCut(order: .journalled, contents: .torn, names: .torn, seed: RecordedLoad.seed + UInt64($0))
                }
            proof.inspect = { await StoreAftermath($0).problems() }
        }
        try await load.cutEverywhere()
    }

    @Test(
        "Where a sync fails in that, what was promised is so after any cut of what the next program does",
        arguments: RecordedLoad.failingSyncs ?? ["/larder.sqlite-wal:2", "/larder.sqlite-wal:14", "/store:3"])
    func failingStore(sync: String) async throws {
        try await PowerRecorder.withRoot { root, folder in
            let first = try await PowerRecorder.record(
                root, beside: folder, load: "failing-store", seed: 1, lives: 1, failing: sync)
            let hasFailed = first.entries.contains { if case .failedSync = $0 { true } else { false } }
            try #require(hasFailed, "there are not so many syncs")
            let recording = try await PowerRecorder.record(
                root, beside: folder, load: "recover-store", seed: 1, lives: 1)
            var proof = PowerLossProof(recording, seed: RecordedLoad.seed)
            proof.isOfFailedSyncs = true
            proof.sparsity = .max
            proof.cuts = PowerCut.Order.allCases.map { PowerCut(order: $0, contents: .lost, names: .lost) }
            proof.inspect = { await StoreAftermath($0).problems() }
            let result = try await proof.run(in: folder)
            for problem in result.problems { Issue.record("\(sync), \(problem); seed \(RecordedLoad.seed)") }
        }
    }
}
