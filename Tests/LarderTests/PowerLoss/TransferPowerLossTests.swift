import Foundation
import GRDBSQLite
import LarderPowerLoss
import Testing

@Suite(
    "The power is cut while files are on their way",
    .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized, .timeLimit(.minutes(10)))
struct TransferPowerLossTests {
    private let load = RecordedLoad(word: "transfers", lives: 2) { proof in
        proof.inspect = { remains in
            try Self.relocate(remains)
            return await TransferAftermath(remains).problems()
        }
    }

    /// After a real cut files are where they were, with the numbers that they had. What the store notes of both is made
    /// to fit those of the copy.
    static func relocate(_ remains: Remains) throws {
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
            try database.run(
                """
                UPDATE transfer SET path = '\(remains.root.path)' || substr(path, \(root.utf8.count + 1))
                WHERE substr(path, 1, \(root.utf8.count)) = '\(root)'
                """)
            guard !numbers.isEmpty else { return }
            // Those that are lost have numbers that nothing bears.
            try database.run(
                """
                UPDATE transfer SET device = \(device), inode = CASE inode\(numbers) ELSE -inode END
                WHERE kind = 1 AND inode IS NOT NULL
                """)
        } catch let refusal as OtherProgram.Refusal where refusal.code == SQLITE_ERROR {
            // It has no tables yet.
        }
    }

    @Test("Wherever the power is cut, accepted transfers are there and end whole, and nothing is sent twice or left")
    func everywhere() async throws {
        try await load.cutEverywhere()
    }

    @Test("Lost bytes of a partial file are received again, and nothing wrong is put in their place")
    func partialFiles() async throws {
        try await load.cut(lives: 2) { proof in
            proof.cuts =
                (1...4).map { PowerCut(order: .journalled, contents: .torn, names: .kept, seed: $0) }
                + [PowerCut(order: .journalled, contents: .lost, names: .kept)]
            proof.isMeant = { entry in
                switch entry {
                case .rename(_, let path), .link(_, let path): path.contains("/files/")
                case .mark(let mark): mark.hasPrefix("done") || mark.hasPrefix("part")
                default: false
                }
            }
        }
    }

    @Test(
        "Where a sync is lost on its way to the disk, the loss of transfers is noticed",
        arguments: ["/larder.sqlite-wal", ".part", "/files"])
    func lies(file: String) async throws {
        try await load.lie(about: file) { if case .mark = $0 { true } else { false } }
    }
}
