import Foundation
import LarderTestSupport
import Testing

/// What the child does while nothing can be written, and what it must say: what came of it, what is stored then, and
/// what is stored after the same was done with room.
private let works: [(work: String, says: [String])] = [
    ("open", ["refused records.full", "reads 1", "sound", "holds 1"]),
    ("write", ["refused records.full", "reads 1", "sound", "reads 2", "sound", "holds 1"]),
    ("update", ["refused records.full", "reads 1", "sound", "reads 2", "sound", "holds 1"]),
    ("remove", ["refused records.full", "reads 1", "sound", "reads no books", "sound", "holds 1"]),
    ("compact", ["refused records.full", "reads 1", "sound", "reads 1", "sound", "holds 2"]),
    ("clear", ["refused records.full", "reads 1", "sound", "reads nothing", "sound", "holds 2"]),
    ("reopen", ["done", "reads 1", "sound", "holds 1"]),
    // LMDB maps the table of its readers before it has disk for it: a full disk would be a signal.
    ("reopenWithoutTable", ["refused records.full", "reads 1", "sound", "holds 1"]),
    ("look", ["reads 1"]),
]

@Suite("A full disk", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"), .timeLimit(.minutes(10)))
struct FullDiskTests {
    @Test(
        "Where files may grow no further, work is refused whole, answers stay, and with room all goes on",
        arguments: works)
    func limit(_ work: String, _ says: [String]) async throws {
        try await withTemporaryFolder { folder in
            let said = try await ChildProgram.run(folder.appending(path: "store"), "full", work, "limit", "8192")
            #expect(said == says)
        }
    }

    @Test(
        "On a volume without a free byte, work is refused whole, answers stay, and with room all goes on",
        .enabled(if: canMount, "may not mount a tmpfs"), arguments: works)
    func volume(_ work: String, _ says: [String]) async throws {
        try await withSmallVolume(16 << 20) { folder in
            let said = try await ChildProgram.run(folder.appending(path: "store"), "full", work, "volume", "0")
            #expect(said == says)
        }
    }

    @Test(
        "A disk that fills in the middle of the work leaves all of it or nothing",
        .enabled(if: canMount, "may not mount a tmpfs"),
        arguments: ["write", "remove", "compact", "clear", "open"], [20_000, 50_000, 100_000, 300_000])
    func midway(_ work: String, _ left: Int) async throws {
        try await withSmallVolume(16 << 20) { folder in
            try await expectAllOrNothing(work, in: folder, "volume", left)
        }
    }

    @Test(
        "A limit on file sizes that is met in the middle of the work leaves all of it or nothing",
        arguments: ["write", "compact"], [20_000, 50_000, 100_000])
    func limitMidway(_ work: String, _ left: Int) async throws {
        try await withTemporaryFolder { folder in try await expectAllOrNothing(work, in: folder, "limit", left) }
    }

    private func expectAllOrNothing(_ work: String, in folder: URL, _ kind: String, _ left: Int) async throws {
        let said = try await ChildProgram.run(folder.appending(path: "store"), "full", work, kind, "\(left)")
        let isRefused = said.first == "refused records.full"
        #expect(isRefused || said.first == "done", "\(said)")
        let after = ["write": "reads 2", "remove": "reads no books", "compact": "reads 1", "clear": "reads nothing"]
        #expect(said.dropFirst().first == (isRefused ? "reads 1" : after[work, default: "reads 1"]))
        #expect(!said.contains { $0.hasPrefix("unsound") || $0.contains("half") })
        #expect(said.last?.contains("draft") == false)
    }
}
