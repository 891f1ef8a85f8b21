import Foundation
import LarderPowerLoss
import Testing

@Suite(
    "The power is cut", .enabled(if: PowerRecorder.isUsable, "\(PowerRecorder.requirement)"), .serialized,
    .timeLimit(.minutes(10)))
struct PowerLossTests {
    private let load = RecordedLoad(word: "power", lives: 3)

    @Test("Wherever the power is cut, the store opens, and what was acknowledged is there and takes effect once")
    func everywhere() async throws {
        try await load.cutEverywhere()
    }

    @Test("A mutation that a new store has accepted is not lost with the names of the folders above it")
    func newFolders() async throws {
        try await load.cut(lives: 1) { proof in
            proof.cuts = [PowerCut(order: .separate, contents: .lost, names: .lost)]
            proof.isMeant = { if case .mark = $0 { true } else { false } }
        }
    }

    @Test("A new store of answers alone, whose schema is kept first, is not lost with the folders above it")
    func newStoreOfRecords() async throws {
        try await RecordedLoad(word: "records", lives: 1).cut(moreThan: 1) { proof in
            proof.cuts = [PowerCut(order: .separate, contents: .lost, names: .lost)]
            proof.isMeant = { if case .mark = $0 { true } else { false } }
            proof.inspect = { try RecordsLoad.problems($0) }
        }
    }

    @Test("A generation of the cache has its name never before its file, and never longer")
    func generationNames() async throws {
        try await load.cut(lives: 2) { proof in
            proof.cuts = (1...12).map { PowerCut(order: .separate, contents: .kept, names: .torn, seed: $0) }
            proof.isMeant = { entry in
                switch entry {
                case .rename(_, let path), .remove(let path): path.contains("/records/")
                default: false
                }
            }
        }
    }

    @Test(
        "Where a sync is lost on its way to the disk, the power's loss is noticed",
        arguments: ["/larder.sqlite-wal", "/data.mdb", "/store"])
    func lies(file: String) async throws {
        try await load.lie(about: file)
    }
}
