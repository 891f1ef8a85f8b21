import Foundation
import LarderOperations
import LarderTestSupport
import Testing

/// From which step on nothing can be written.
private let steps = ["begin", "answer", "apply", "settle"]

@Suite(
    "A full disk on a mutation's way", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct FullQueueTests {
    /// SQLite does not say of a limit on files, or of a quota, that there is no room.
    private static let rooms = [(room: "volume", left: "0", of: "full"), ("limit", "8192", "storage")]

    @Test(
        "A mutation that cannot be stored is refused; an accepted one is sent when there is room",
        .enabled(if: canMount, "may not mount a tmpfs"), arguments: rooms)
    func enqueue(_ room: (room: String, left: String, of: String)) async throws {
        let said = try await run("enqueue", room.room, room.left, "telling")
        #expect(
            said == [
                "refused operations.\(room.of)", "queued 2", "r0 applied 1 5", "r1 applied 1 5", "late applied 1 5",
                "order true", "sound",
            ])
    }

    @Test(
        "A runner ends with a typed error, and the next, with room, ends the work: nothing lost, nothing twice",
        .enabled(if: canMount, "may not mount a tmpfs"), arguments: steps, rooms)
    func telling(_ step: String, _ room: (room: String, left: String, of: String)) async throws {
        let said = try await run(step, room.room, room.left, "telling")
        let refusals = ["refused operations.\(room.of)", "refused records.full"]
        // The next is begun while the first is stored.
        #expect(step == "apply" ? said.first.map(refusals.contains) == true : said.first == refusals[0])
        #expect(said.count > 1 && refusals.contains(said[1]))
        #expect(said.dropFirst(2) == ["r0 applied 1 5", "r1 applied 1 5", "order true", "sound"])
    }

    @Test(
        "Where the server cannot tell a repeat, one whose answer could not be noted is set aside, and no other",
        .enabled(if: canMount, "may not mount a tmpfs"), arguments: steps)
    func plain(_ step: String) async throws {
        let said = try await run(step, "volume", "0", "plain")
        let isLost = step == "answer"
        #expect(said.first == "refused operations.full" || step == "apply" && said.first == "refused records.full")
        #expect(
            Array(said.dropFirst(2)) == [
                isLost ? "r0 deadLetter outcomeUnknown 1 -" : "r0 applied 1 5", "r1 applied 1 5", "order true", "sound",
            ])
    }

    @Test(
        "A disk that fills in the middle of the work loses nothing and repeats nothing",
        .enabled(if: canMount, "may not mount a tmpfs"),
        arguments: [0, 30_000, 150_000, 400_000, 900_000, 1_500_000, 2_500_000, 4_000_000], ["telling", "plain"])
    func midway(_ left: Int, _ kind: String) async throws {
        let said = try await run("drain", "volume", "\(left)", kind)
        try #require(said.count == 24)
        #expect(said[0] == "done" || said[0].hasSuffix(".full"), "\(said[0])")
        for (number, line) in said[2..<22].enumerated() {
            let isApplied = line == "r\(number) applied 1 5"
            #expect(isApplied || kind == "plain" && line == "r\(number) deadLetter outcomeUnknown 1 -", "\(line)")
        }
        #expect(said[22...] == ["order true", "sound"])
    }

    /// What the child says, whose database is checked afterwards.
    private func run(_ step: String, _ room: String, _ left: String, _ kind: String) async throws -> [String] {
        var said: [String] = []
        try await withSmallVolume(16 << 20) { folder in
            let store = folder.appending(path: "store")
            said = try await ChildProgram.run(store, "fullqueue", step, room, left, kind)
            let database = try OperationsDatabase(folder: store)
            #expect(try database.check().problems.isEmpty)
            try database.close()
        }
        return said
    }
}
