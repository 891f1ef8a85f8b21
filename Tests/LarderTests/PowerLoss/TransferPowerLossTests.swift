import Foundation
import GRDBSQLite
import LarderPowerLoss
import Testing

@Suite(
    "The power is cut while files are on their way",
    .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized)
struct TransferPowerLossTests {
    private static func number(_ name: String) -> Int? {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) }
    }

    /// As for mutations: another load, more lives, and more cuts at each place.
    private static let seed = number("LARDER_POWER_SEED").map { UInt64($0) } ?? .random(in: 1 ... 1 << 40)
    private static let lives = number("LARDER_POWER_LIVES") ?? 2
    private static let cuts = number("LARDER_POWER_CUTS") ?? 1
    private static let sparsity = number("LARDER_POWER_SPARSITY") ?? 24

    private func withProof(
        lives: Int = Self.lives, _ body: (PowerLossProof, _ root: URL, _ scratch: URL) async throws -> Void
    ) async throws {
        try await PowerRecorder.withScratch { folder in
            let root = folder.appending(path: "root")
            try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
            let recording = try await PowerRecorder.record(
                root, beside: folder, load: "transfers", seed: Self.seed, lives: lives)
            var proof = PowerLossProof(recording, seed: Self.seed)
            proof.tornCuts = Self.cuts
            proof.sparsity = Self.sparsity
            proof.inspect = { remains in
                try Self.relocate(remains)
                return await TransferAftermath(remains).problems()
            }
            try await body(proof, root, folder)
        }
    }

    /// After a real cut files are where they were, with the numbers that they had. What the store notes of both is made
    /// to fit those of the copy.
    private static func relocate(_ remains: Remains) throws {
        let store = remains.root.appending(path: "store")
        guard FileManager.default.fileExists(atPath: store.appending(path: "larder.sqlite").path) else { return }
        var (device, numbers) = (0 as UInt64, "")
        for (number, path) in remains.paths where path.hasPrefix("/files/") || path.hasPrefix("/store/transfers/") {
            var status = stat()
            guard stat(remains.root.path + path, &status) == 0 else { throw CocoaError(.fileReadUnknown) }
            device = UInt64(status.st_dev)
            numbers += " WHEN \(number) THEN \(status.st_ino)"
        }
        do {
            let database = try OtherProgram(store)
            let root = remains.recordedRoot
            try database.run("""
                UPDATE transfer SET path = '\(remains.root.path)' || substr(path, \(root.utf8.count + 1))
                WHERE substr(path, 1, \(root.utf8.count)) = '\(root)'
                """)
            guard !numbers.isEmpty else { return }
            // Those that are lost have numbers that nothing bears.
            try database.run("""
                UPDATE transfer SET device = \(device), inode = CASE inode\(numbers) ELSE -inode END
                WHERE kind = 1 AND inode IS NOT NULL
                """)
        } catch let refusal as OtherProgram.Refusal where refusal.code == SQLITE_ERROR {
            // It has no tables yet.
        }
    }

    @Test("Wherever the power is cut, accepted transfers are there and end whole, and nothing is sent twice or left")
    func everywhere() async throws {
        try await withProof { (proof, root, scratch) throws in
            let missed = try proof.differences(from: root)
            #expect(missed == [], "the recorder missed \(missed), seed \(Self.seed)")
            let result = try await proof.run(in: scratch)
            for problem in result.problems { Issue.record("\(problem); load seed \(Self.seed)") }
            #expect(result.mapped.allSatisfy(PowerLossProof.meansNothing), "\(result.mapped), seed \(Self.seed)")
            #expect(result.variants > 100, "seed \(Self.seed)")
            if Self.number("LARDER_POWER_CUTS") != nil {
                print("\(result.entries) entries, \(result.places) places, \(result.variants) cuts, seed \(Self.seed)")
            }
        }
    }

    @Test("What was lost of a partial file is received again, and nothing wrong is put in its place")
    func partialFiles() async throws {
        try await withProof(lives: 2) { (proof, _, scratch) throws in
            var proof = proof
            proof.cuts = (1...4).map { PowerCut(order: .journalled, contents: .torn, names: .kept, seed: $0) }
                + [PowerCut(order: .journalled, contents: .lost, names: .kept)]
            proof.isMeant = { entry in
                switch entry {
                case .rename(_, let path), .link(_, let path): path.contains("/files/")
                case .mark(let mark): mark.hasPrefix("done") || mark.hasPrefix("part")
                default: false
                }
            }
            let result = try await proof.run(in: scratch)
            #expect(result.problems == [], "load seed \(Self.seed)")
            #expect(result.variants > 10)
        }
    }

    @Test(
        "Where a sync is lost on its way to the disk, the loss of transfers is noticed",
        arguments: ["/larder.sqlite-wal", ".part", "/files"])
    func lies(file: String) async throws {
        try await withProof(lives: 2) { (proof, _, scratch) throws in
            var proof = proof
            proof.isUnsynced = { $0.hasSuffix(file) }
            proof.patience = 1
            proof.isMeant = { if case .mark = $0 { true } else { false } }
            let result = try await proof.run(in: scratch)
            #expect(!result.problems.isEmpty, "nobody noticed, seed \(Self.seed)")
        }
    }
}
