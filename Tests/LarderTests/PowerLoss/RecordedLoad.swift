import Foundation
import LarderPowerLoss
import LarderTestSupport
import Testing

/// A load that is recorded, and whose power is cut then. The environment names another one; more lives, and more cuts
/// at each place, for a long night.
struct RecordedLoad {
    static let seed = TestSeed.of("power")
    private static let lives = number("LARDER_POWER_LIVES")
    private static let cuts = number("LARDER_POWER_CUTS")
    private static let sparsity = number("LARDER_POWER_SPARSITY") ?? 32

    /// How many cuts there are at a place that are neither all nor nothing.
    static let moreCuts = cuts ?? 1

    /// The syncs that are to fail, as the recorder's LARDER_FAILING_SYNC; nil where the environment does not say.
    static let failingSyncs = ProcessInfo.processInfo.environment["LARDER_POWER_FAILING"]
        .map { $0.split(separator: ",").map(String.init) }

    /// How many second cuts there are of each kind.
    static let secondCuts = number("LARDER_POWER_SECOND_CUTS") ?? 2

    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    /// What the child is to do, by its word for that.
    let word: String
    /// How often it is started, where the environment does not say.
    let lives: Int
    /// Called with each proof before it is used.
    var prepare: (inout PowerLossProof) -> Void = { _ in }

    /// - Parameter lives: As many as the load has where it is left out.
    func withProof(
        lives: Int? = nil, _ body: (PowerLossProof, _ root: URL, _ scratch: URL) async throws -> Void
    ) async throws {
        try await PowerRecorder.withRoot { root, folder in
            let recording = try await PowerRecorder.record(
                root, beside: folder, load: word, seed: Self.seed, lives: lives ?? Self.lives ?? self.lives)
            var proof = PowerLossProof(recording, seed: Self.seed)
            proof.tornCuts = Self.cuts ?? 1
            proof.sparsity = Self.sparsity
            prepare(&proof)
            try await body(proof, root, folder)
        }
    }

    /// Cuts the power at every place, in every way that there is.
    func cutEverywhere() async throws {
        try await withProof { (proof, root, scratch) throws in
            let missed = try proof.differences(from: root)
            #expect(missed == [], "the recorder missed \(missed), seed \(Self.seed)")
            let result = try await proof.run(in: scratch)
            for problem in result.problems { Issue.record("\(problem); load seed \(Self.seed)") }
            #expect(result.mapped.allSatisfy(PowerLossProof.meansNothing), "\(result.mapped), seed \(Self.seed)")
            #expect(result.variants > 100, "seed \(Self.seed)")
            if Self.cuts != nil {
                print("\(result.entries) entries, \(result.places) places, \(result.variants) cuts, seed \(Self.seed)")
            }
        }
    }

    /// Cuts the power as `prepare` says. Expects that there are more than so many cuts, and that none loses anything.
    func cut(
        moreThan count: Int = 10, lives: Int? = nil, sourceLocation: SourceLocation = #_sourceLocation,
        _ prepare: (inout PowerLossProof) -> Void
    ) async throws {
        try await withProof(lives: lives) { (proof, _, scratch) throws in
            var proof = proof
            prepare(&proof)
            let result = try await proof.run(in: scratch)
            #expect(result.problems == [], "load seed \(Self.seed)", sourceLocation: sourceLocation)
            #expect(result.variants > count, sourceLocation: sourceLocation)
        }
    }

    /// Looks whether anybody notices where the syncs of a file do nothing.
    ///
    /// - Parameter isMeant: At which places the power is cut; nil for all.
    func lie(about file: String, at isMeant: (@Sendable (RecordedEntry) -> Bool)? = nil) async throws {
        try await withProof(lives: 2) { (proof, _, scratch) throws in
            var proof = proof
            proof.isUnsynced = { $0.hasSuffix(file) }
            proof.patience = 1
            proof.isMeant = isMeant
            let result = try await proof.run(in: scratch)
            #expect(!result.problems.isEmpty, "nobody noticed, seed \(Self.seed)")
        }
    }
}
