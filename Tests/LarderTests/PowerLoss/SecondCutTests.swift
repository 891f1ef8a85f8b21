import Foundation
import LarderPowerLoss
import LarderTestSupport
import Testing

@Suite(
    "A program is killed, or the power cut, and the power is cut while the next one goes on",
    .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized, .timeLimit(.minutes(10)))
struct SecondCutTests {
    enum Load: String, Sendable, CaseIterable {
        case power, transfers

        /// What a cut that comes after another must leave.
        func problems(_ remains: Remains) async throws -> [String] {
            switch self {
            case .power: return try await PowerLossProof.recipes(remains)
            case .transfers:
                try TransferPowerLossTests.relocate(remains)
                return await TransferAftermath(remains).problems()
            }
        }
    }

    private static let cuts = [
        PowerCut(order: .separate, contents: .lost, names: .lost),
        PowerCut(order: .journalled, contents: .lost, names: .lost),
        PowerCut(order: .journalled, contents: .torn, names: .torn, seed: RecordedLoad.seed),
    ]

    /// Has a program go on in a folder, and cuts the power everywhere in that.
    ///
    /// - Parameter first: What is to be known of the first program, whose marks are beside the folder.
    private func goOn(
        _ load: Load, in root: URL, beside folder: URL, _ place: String,
        _ first: (Recording) throws -> (recording: Recording, marks: [String], begin: Int)
    ) async throws -> Int {
        let second = try await PowerRecorder.record(root, beside: folder, load: "recover-\(load)", seed: 1, lives: 1)
        let (recording, marks, begin) = try first(second)
        var proof = PowerLossProof(recording, seed: RecordedLoad.seed)
        proof.earlierMarks = marks
        proof.beginning = begin
        proof.sparsity = .max
        proof.cuts = Self.cuts
        proof.inspect = { try await load.problems($0) }
        #expect(try proof.differences(from: root) == [])
        let result = try await proof.run(in: folder)
        for problem in result.problems {
            Issue.record("\(load), \(place), then \(problem); load seed \(RecordedLoad.seed)")
        }
        return result.variants
    }

    /// Has the program go on that was killed after a change.
    private func kill(_ load: Load, _ change: String) async throws -> Int {
        try await PowerRecorder.withRoot { root, folder in
            let first = try await PowerRecorder.record(
                root, beside: folder, load: "\(load)", seed: RecordedLoad.seed, lives: 2, fatal: change)
            // Into the same recording: the machine went on.
            return try await goOn(load, in: root, beside: folder, "killed after \(change)") { both in
                (both, [], first.entries.count)
            }
        }
    }

    @Test("After a kill at any change, and a cut at any place after that", arguments: Load.allCases)
    func killed(load: Load) async throws {
        let count = try await PowerRecorder.withRoot { root, folder in
            try await PowerRecorder.record(
                root, beside: folder, load: "\(load)", seed: RecordedLoad.seed, lives: 2
            ).entries.count
        }
        var random = SeededNumbers(seed: RecordedLoad.seed, "kills")
        var variants = 0
        for _ in 0..<RecordedLoad.secondCuts {
            // Whatever is there has been made durable by its owner only after the first changes.
            variants += try await kill(load, ":\(Int.random(in: 60..<count - 10, using: &random))")
        }
        #expect(variants > RecordedLoad.secondCuts)
    }

    @Test(
        "A file that a killed program has put in its place is done when its name is durable, and not before",
        arguments: 1...4)
    func movedFile(number: Int) async throws {
        _ = try await kill(.transfers, "/files/:\(number)")
    }

    @Test("After a cut at any place, and another while the store is opened and goes on", arguments: Load.allCases)
    func cut(load: Load) async throws {
        try await PowerRecorder.withRoot { root, folder in
            let recording = try await PowerRecorder.record(
                root, beside: folder, load: "\(load)", seed: RecordedLoad.seed, lives: 2)
            let proof = PowerLossProof(recording, seed: RecordedLoad.seed)
            var random = SeededNumbers(seed: RecordedLoad.seed, "cuts")
            var variants = 0
            for number in 0..<RecordedLoad.secondCuts {
                let place = try #require(proof.turningPoints.dropFirst(40).randomElement(using: &random))
                let cut = try #require(Self.cuts.randomElement(using: &random))
                let beside = folder.appending(path: "second \(number)")
                let root = beside.appending(path: "root")
                try FileManager.default.createDirectory(at: root, withIntermediateDirectories: true)
                let remains = try proof.write(cut, at: place, to: root)
                try Data(remains.marks.map { $0 + "\n" }.joined().utf8).write(to: beside.appending(path: "marks"))
                if load == .transfers {
                    try TransferPowerLossTests.relocate(remains)
                    try FileManager.default.copyItem(
                        at: folder.appending(path: "sources"), to: beside.appending(path: "sources"))
                }
                let existing = try RecordedEntry.existing(in: root, as: root.path)
                variants += try await goOn(load, in: root, beside: beside, "entry \(place), \(cut)") { second in
                    (second.beginning(with: existing), remains.marks, existing.count + 1)
                }
                try FileManager.default.removeItem(at: beside)
            }
            #expect(variants > RecordedLoad.secondCuts)
        }
    }
}
