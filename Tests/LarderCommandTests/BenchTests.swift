import Foundation
import LarderTestSupport
import Testing

@Suite("larder-bench", .timeLimit(.minutes(10)))
struct BenchTests {
    /// What a run printed, as far as it is of the promised shape; what may be absent is optional.
    private struct Report: Decodable {
        struct Row: Decodable {
            var name, what, unit: String
            var value: Double
            var floorName: String?
            var floor, ratio, fastest, fastestFloor, reachRatio, reachExcess, p50, p99, maximum: Double?
            var waits: Int?
            var isReached: Bool?
        }

        var version: Int
        var input: String
        var rounds, processors: Int
        var rows: [Row]
    }

    /// Runs the benchmark's quickest rounds, and looks at what it prints and leaves.
    private func report(_ arguments: [String]) async throws -> Report {
        try await withTemporaryFolder { folder in
            let outcome = try await LarderProcess.run(
                program: "larder-bench", ["--json", "--rounds", "1", "--folder", folder.path] + arguments)
            try #require(outcome.status == 0, "\(outcome.errors)")
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty, "its stores are removed")
            return try JSONDecoder().decode(Report.self, from: Data(outcome.output.utf8))
        }
    }

    private func expectComparison(_ row: Report.Row, _ location: SourceLocation = #_sourceLocation) throws {
        let floor = try #require(row.floor, "\(row.name)", sourceLocation: location)
        let ratio = try #require(row.ratio, "\(row.name)", sourceLocation: location)
        #expect(row.unit == "seconds", "\(row.name)", sourceLocation: location)
        #expect(row.value > 0 && floor > 0, "\(row.name)", sourceLocation: location)
        #expect(abs(ratio - row.value / floor) <= ratio * 1e-9, "\(row.name)", sourceLocation: location)
        #expect(row.floorName?.isEmpty == false && !row.what.isEmpty, "\(row.name)", sourceLocation: location)
        #expect(row.fastest != nil && row.fastestFloor != nil, "\(row.name)", sourceLocation: location)
        if let limit = row.reachRatio {
            #expect(row.isReached == (row.value <= floor * limit), "\(row.name)", sourceLocation: location)
        }
    }

    @Test(
        "A real response is parsed and compared with its floor",
        .enabled(if: SharedData.isPresent, "\(SharedData.requirement)"))
    func parsesRealData() async throws {
        let data = SharedData.folder.appending(path: "github").path
        let name = "IssuesAndCommentsForRepository"
        let report = try await report([
            "--schema", "\(data)/schema.graphqls", "--operation", "\(data)/\(name).graphql", "--response",
            "\(data)/\(name).json", "--rows", "parse",
        ])
        #expect(report.version == 1)
        #expect(report.input == "\(data)/\(name).json, \(try SharedData.bytes("github/\(name).json").count) bytes")
        #expect(report.rounds == 1 && report.processors > 0)
        #expect(report.rows.map(\.name) == ["parse"])
        for row in report.rows { try expectComparison(row) }
    }

    @Test("Rows come in their own order whatever they are asked in, each with the floor of the same run")
    func rows() async throws {
        try await CommandFixture.withFiles { fixture in
            let options = [
                "--schema", fixture.path("schema.graphqls"), "--operation", fixture.path("operations.graphql"),
                "--name",
                "List", "--variables", fixture.path("two.json"), "--response", fixture.path("list.json"),
            ]
            let report = try await report(options + ["--rows", "recommit", "commit", "parse"])
            #expect(report.rows.map(\.name) == ["parse", "commit", "recommit"])
            for row in report.rows { try expectComparison(row) }
        }
    }

    @Test(
        "The rows of a sign-in, of a session and of subscriptions come with their floors",
        arguments: ["sign-in", "shared-refresh", "request-session", "event", "resubscribe"])
    func sessions(row: String) async throws {
        let report = try await report(["--rows", row])
        #expect(report.rows.first?.name == row)
        for row in report.rows { try expectComparison(row) }
    }

    @Test("An earlier run is shown beside this one, and a file that is none is refused before anything is timed")
    func compares() async throws {
        try await withTemporaryFolder { folder in
            let file = folder.appending(path: "earlier.json")
            let options = ["--rounds", "1", "--folder", folder.path, "--rows", "parse-shapes"]
            let first = try await LarderProcess.run(program: "larder-bench", ["--json"] + options)
            try #require(first.status == 0, "\(first.errors)")
            try Data(first.output.utf8).write(to: file)
            let second = try await LarderProcess.run(program: "larder-bench", ["--compare", file.path] + options)
            try #require(second.status == 0, "\(second.errors)")
            let lines = second.output.split(separator: "\n").map(String.init)
            #expect(lines.first == "beside \(file.path)")
            let names = ["keyed", "unkeyed", "deep", "strings", "floats", "cjk", "issues"].map { "parse-\($0)" }
            // Once with the earlier figures, and once as without.
            for name in names { #expect(lines.count { $0.hasPrefix("\(name) ") } == 2, "\(name)") }
            #expect(lines.first { $0.hasPrefix("parse-deep ") }?.contains(" - ") == true, "it has no waits")
            try Data("{}".utf8).write(to: file)
            let third = try await LarderProcess.run(program: "larder-bench", ["--compare", file.path] + options)
            #expect(third.status == 1)
            #expect(third.output == "")
            #expect(third.errors.contains("cannot be compared with"), "\(third.errors)")
        }
    }

    @Test("Each wait that people have is told with its middle, its 99th of 100, and the longest")
    func waits() async throws {
        let report = try await report(["--largest", "2000", "--rows", "upkeep-waits"])
        #expect(
            report.rows.map(\.name) == [
                "check-wait", "check-memory", "compact-wait", "compact-memory", "backup-wait", "backup-memory",
            ])
        for row in report.rows where row.name.hasSuffix("-wait") {
            let (half, most) = (try #require(row.p50), try #require(row.maximum))
            #expect(row.value == row.p99 && half <= row.value && row.value <= most, "\(row.name)")
            #expect((row.waits ?? 0) > 0, "\(row.name)")
        }
    }

    @Test(
        "Arguments that make no sense are refused",
        arguments: [
            "--rows nonsense", "--rounds 0", "--largest 0", "--schema only.graphqls", "--json --compare x",
            "--wat",
        ])
    func refuses(_ arguments: String) async throws {
        let outcome = try await LarderProcess.run(
            program: "larder-bench", arguments.split(separator: " ").map(String.init))
        #expect(outcome.status == 64)
        #expect(outcome.output == "")
        #expect(outcome.errors.hasPrefix("Error: "), "\(outcome.errors)")
    }
}
