import Foundation
import LarderTestSupport
import Testing

@Suite(
    "Lists whose loading is killed", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct KilledPagesTests {
    @Test(
        "A program that is killed again and again goes on after the last page that it has, and asks for no page twice",
        arguments: [1, 2, 3])
    func killed(afterSteps steps: Int) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let said = folder.appending(path: "said")
            var asked: [String] = []
            var last = ""
            var runs = 0
            while !last.hasPrefix("done"), runs < 40 {
                // Every other program lives for longer: one that dies at its first request would never come further.
                let child = try ChildProgram.start(place, "pages", "\(steps + runs % 2)", output: said)
                await child.ended()
                let lines = try ChildProgram.lines(of: said)
                asked += lines.filter { $0.hasPrefix("asked") }
                last = lines.last ?? ""
                runs += 1
            }
            #expect(runs > 2)
            #expect(last == "done " + (0..<80).map { "\($0)" }.joined(separator: " "))
            // Twice only where the answer had not come.
            var counts: [String: Int] = [:]
            for request in asked { counts[request, default: 0] += 1 }
            #expect(counts.count == 8)
            #expect(counts.values.allSatisfy { $0 <= 2 })
            #expect(counts["asked 0"] == (steps == 1 ? 2 : 1))
        }
    }
}
