import Foundation
import LarderPowerLoss
import Testing

@Suite(
    "The power is cut when the queue's log is copied to its file",
    .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized, .timeLimit(.minutes(10)))
struct LongLogPowerLossTests {
    private func record(in folder: URL, failing: String? = nil) async throws -> Recording {
        let folder = folder.appending(path: failing == nil ? "plain" : "failing")
        let root = folder.appending(path: "root")
        try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
        return try await PowerRecorder.record(
            root, beside: folder, load: "longlog", seed: 1, lives: 1, failing: failing)
    }

    /// How often a file is synced before a mark.
    private func syncs(of path: String, before mark: String, in recording: Recording) -> Int {
        var byPath: [String: UInt64] = [:]
        var count = 0
        for entry in recording.entries {
            switch entry {
            case .create(let made, let inode): byPath[made] = inode
            case .rename(let from, let to), .link(let from, let to): byPath[to] = byPath[from]
            case .sync(let inode, _) where byPath[recording.root + path] == inode: count += 1
            case .mark(mark): return count
            default: break
            }
        }
        return count
    }

    @Test("Where a sync of the file fails after it was copied to in part, nothing that was accepted is lost")
    func partialCopy() async throws {
        try await PowerRecorder.withScratch { folder in
            let plain = try await record(in: folder)
            let count = syncs(of: "/store/larder.sqlite", before: "released", in: plain)
            let recording = try await record(in: folder, failing: "/larder.sqlite:\(count + 1)")
            let hasFailed = recording.entries.contains { if case .failedSync = $0 { true } else { false } }
            try #require(hasFailed, "the file is not synced so often")
            var proof = PowerLossProof(recording, seed: RecordedLoad.seed)
            proof.isOfFailedSyncs = true
            proof.cuts = PowerCut.Order.allCases.map { PowerCut(order: $0, contents: .lost, names: .lost) }
            proof.isMeant = { if case .mark = $0 { true } else { false } }
            proof.inspect = { FaultAftermath($0).problems() }
            let result = try await proof.run(in: folder)
            for problem in result.problems { Issue.record("\(problem)") }
            #expect(result.variants > 2)
        }
    }
}
