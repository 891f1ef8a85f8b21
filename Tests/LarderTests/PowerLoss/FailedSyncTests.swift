import Foundation
import LarderPowerLoss
import Testing

@Suite(
    "A sync fails once, and the power is cut later",
    .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized, .timeLimit(.minutes(10)))
struct FailedSyncTests {
    /// Cuts the power everywhere after a sync that failed.
    ///
    /// - Parameters:
    ///   - file: Whose sync fails, by the end of its path.
    ///   - mark: The beginning of a mark that the load must have made.
    private func fail(
        _ file: String, _ number: Int, _ answer: FaultLoad.Answer, marking mark: String = "",
        cuts: [PowerCut] = [
            PowerCut(order: .separate, contents: .lost, names: .lost),
            PowerCut(order: .separate, contents: .kept, names: .kept),
            PowerCut(order: .journalled, contents: .torn, names: .kept, seed: RecordedLoad.seed),
        ]
    ) async throws {
        try await PowerRecorder.withRoot { root, folder in
            var recording = try await PowerRecorder.record(
                root, beside: folder, load: "faults", seed: answer.rawValue, lives: 4, failing: "\(file):\(number)")
            if answer == .dies {
                // Into the same recording: the machine went on.
                recording = try await PowerRecorder.record(
                    root, beside: folder, load: "faults", seed: FaultLoad.Answer.reopens.rawValue, lives: 2)
            }
            let hasFailed = recording.entries.contains { if case .failedSync = $0 { true } else { false } }
            try #require(hasFailed, "the load does not sync \(file) so often")
            let told = recording.entries.compactMap { if case .mark(let mark) = $0 { mark } else { nil } }
            #expect(told.filter { $0.contains("unsupported") } == [], "a disk that fails was told as a bad one")
            #expect(told.contains { $0.hasPrefix(mark) }, "\(told)")
            var proof = PowerLossProof(recording, seed: RecordedLoad.seed)
            proof.isOfFailedSyncs = true
            proof.sparsity = .max
            proof.cuts = cuts
            proof.inspect = { FaultAftermath($0).problems() }
            #expect(try proof.differences(from: root) == [])
            let result = try await proof.run(in: folder)
            for problem in result.problems { Issue.record("\(problem); load seed \(RecordedLoad.seed)") }
            #expect(result.variants > 20)
            if ProcessInfo.processInfo.environment["LARDER_POWER_CUTS"] != nil {
                print("\(file):\(number) \(answer): \(result.places) places, \(result.variants) cuts")
            }
        }
    }

    @Test(
        "After a failed sync of the queue's log what is accepted is kept, and what was told of the failed one is so",
        arguments: [(4, .reopens), (5, .dies), (6, .goesOn)] as [(Int, FaultLoad.Answer)])
    func log(number: Int, answer: FaultLoad.Answer) async throws {
        try await fail("/larder.sqlite-wal", number, answer, marking: "unknown ")
    }

    @Test(
        "After a failed sync of the cache's file its tree is whole whatever a cut leaves, and a clean close is kept",
        arguments: [(4, .goesOn), (2, .reopens)] as [(Int, FaultLoad.Answer)])
    func cache(number: Int, answer: FaultLoad.Answer) async throws {
        try await fail("/1/data.mdb", number, answer)
    }

    @Test(
        "After a failed sync of the queue's file or of a folder nothing is lost",
        arguments: ["/larder.sqlite", "/main"])
    func others(file: String) async throws {
        try await fail(file, 1, .reopens)
    }
}
