import Foundation
import LarderPowerLoss
import Testing

@Suite(
    "The power is cut", .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized)
struct PowerLossTests {
    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    /// For another load; more lives, and more cuts at each place, for a long night.
    private static let seed = number("LARDER_POWER_SEED").map { UInt64($0) } ?? .random(in: 1 ... 1 << 40)
    private static let lives = number("LARDER_POWER_LIVES") ?? 3
    private static let cuts = number("LARDER_POWER_CUTS") ?? 1
    private static let sparsity = number("LARDER_POWER_SPARSITY") ?? 24

    private func withProof(
        lives: Int = Self.lives, _ body: (PowerLossProof, _ root: URL, _ scratch: URL) async throws -> Void
    ) async throws {
        try await PowerRecorder.withScratch { folder in
            let root = folder.appending(path: "root")
            try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
            let recording = try await PowerRecorder.record(root, beside: folder, seed: Self.seed, lives: lives)
            var proof = PowerLossProof(recording, seed: Self.seed)
            proof.tornCuts = Self.cuts
            proof.sparsity = Self.sparsity
            try await body(proof, root, folder)
        }
    }

    @Test("Wherever the power is cut, the store opens, and what was acknowledged is there and takes effect once")
    func everywhere() async throws {
        try await withProof { (proof, root, scratch) throws in
            #expect(try proof.differences(from: root) == [], "the recorder missed something, seed \(Self.seed)")
            let result = try await proof.run(in: scratch)
            for problem in result.problems { Issue.record("\(problem); load seed \(Self.seed)") }
            #expect(result.mapped.allSatisfy(PowerLossProof.meansNothing), "\(result.mapped), seed \(Self.seed)")
            #expect(result.variants > 100, "seed \(Self.seed)")
            if Self.number("LARDER_POWER_CUTS") != nil {
                print("\(result.entries) entries, \(result.places) places, \(result.variants) cuts, seed \(Self.seed)")
            }
        }
    }

    @Test("A mutation that a new store has accepted is not lost with the names of the folders above it")
    func newFolders() async throws {
        try await withProof(lives: 1) { (proof, _, scratch) throws in
            var proof = proof
            proof.cuts = [PowerCut(order: .separate, contents: .lost, names: .lost)]
            proof.isMeant = { if case .mark = $0 { true } else { false } }
            let result = try await proof.run(in: scratch)
            #expect(result.problems == [], "load seed \(Self.seed)")
            #expect(result.variants > 10)
        }
    }

    @Test("A generation of the cache has its name never before its file, and never longer")
    func generationNames() async throws {
        try await withProof(lives: 2) { (proof, _, scratch) throws in
            var proof = proof
            proof.cuts = (1...12).map { PowerCut(order: .separate, contents: .kept, names: .torn, seed: $0) }
            proof.isMeant = { entry in
                switch entry {
                case .rename(_, let path), .remove(let path): path.contains("/records/")
                default: false
                }
            }
            let result = try await proof.run(in: scratch)
            #expect(result.problems == [], "load seed \(Self.seed)")
            #expect(result.variants > 10)
        }
    }

    @Test(
        "Where a sync is lost on its way to the disk, the power's loss is noticed",
        arguments: ["/larder.sqlite-wal", "/data.mdb", "/store"])
    func lies(file: String) async throws {
        try await withProof(lives: 2) { (proof, _, scratch) throws in
            var proof = proof
            proof.isUnsynced = { $0.hasSuffix(file) }
            proof.patience = 1
            let result = try await proof.run(in: scratch)
            #expect(!result.problems.isEmpty, "nobody noticed, seed \(Self.seed)")
        }
    }
}
