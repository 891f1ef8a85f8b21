import Foundation
import LarderTestSupport
import Testing

/// A child process works on the stores, so that a trap is a failed test and names its case.
///
/// A run takes some cases, by a seed that a failure prints. `LARDER_ALL_ROWS=1` takes all of them, which takes minutes.
@Suite(
    "Hostile values in rows", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct HostileRowTests {
    @Test(
        "Whatever stands in whatever column, nothing traps, checking names what reading refuses, and the rest goes on")
    func anywhere() async throws {
        let seed = TestSeed.of("rows")
        let isWhole = ProcessInfo.processInfo.environment["LARDER_ALL_ROWS"] == "1"
        try await withTemporaryFolder { folder in
            let said = folder.appending(path: "said")
            let place = folder.appending(path: "stores")
            let child = try ChildProgram.start(
                place, ["rows", "\(seed)"] + (isWhole ? [] : ["120"]), output: said)
            await child.ended()
            let lines = try ChildProgram.lines(of: said)
            let last = lines.last { $0.hasPrefix("case ") } ?? "before the first"
            #expect(child.terminationReason == .exit && child.terminationStatus == 0, "seed \(seed), \(last)")
            #expect(lines.last?.hasPrefix("tried ") == true, "seed \(seed), \(last)")
            for (index, line) in lines.enumerated() where line.hasPrefix("bad: ") {
                let row = lines[..<index].last { $0.hasPrefix("case ") } ?? ""
                Issue.record("\(row): \(line), seed \(seed)")
            }
        }
    }
}
