import ArgumentParser
import Foundation

@main
struct LarderBench: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "larder-bench",
        abstract: "Times Larder against floors measured in the same run.",
        discussion: "Rows: \(Bench.Row.allCases.map(\.rawValue).joined(separator: ", ")).",
        subcommands: [
            Measure.self, ServeObjects.self, CarryTransfers.self, RepeatTransfers.self, CopyCache.self, AnswerOnce.self,
            SuspendCache.self,
        ],
        defaultSubcommand: Measure.self)
}

struct Measure: AsyncParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Times rows; what is done unless said.")

    @Option(help: "A schema in the schema definition language.") var schema: String?
    @Option(help: "A document with the operation.") var operation: String?
    @Option(help: "The operation's variables, a JSON object in a file.") var variables: String?
    @Option(help: "A recorded response to the operation.") var response: String?
    @Option(help: "Which operation of the document.") var name: String?
    @Option(parsing: .upToNextOption, help: "Which rows; all of them unless said.") var rows: [Bench.Row] = []
    @Option(help: "How often each contender is timed.") var rounds = 21
    @Option(help: "Where the stores are made, in a folder that is removed afterwards.")
    var folder = FileManager.default.temporaryDirectory.path
    @Option(help: "Records of the largest store.") var largest = 1_000_000
    @Flag(help: "Prints JSON instead of a table.") var json = false
    @Option(help: "The JSON of an earlier run, whose figures are shown beside those of this one.") var compare: String?

    func validate() throws {
        let given = [schema, operation, response].compactMap { $0 }.count
        guard given == 0 || given == 3 else {
            throw ValidationError("--schema, --operation and --response belong together.")
        }
        guard compare == nil || !json else { throw ValidationError("--compare prints a table; leave out --json.") }
        guard rounds > 0, largest > 0 else { throw ValidationError("--rounds and --largest must be positive.") }
    }

    func run() async throws {
        // Before all that takes long.
        let comparison = try compare.map(Comparison.init(path:))
        let input = try input()
        let work = "\(folder)/larder-bench-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: work) }
        let bench = Bench(input: input, rounds: rounds, folder: work, largest: largest)
        var report = Report(input: "\(input.source), \(input.body.count) bytes", rounds: rounds)
        for row in Bench.Row.allCases where rows.isEmpty || rows.contains(row) {
            FileHandle.standardError.write(Data("larder-bench: \(row.rawValue)\n".utf8))
            report.rows += try await bench.run(row)
        }
        if let comparison { print("\(comparison.table(of: report))\n") }
        print(json ? try report.json() : "\(report.input); medians of \(rounds) rounds\n\n\(report.table)")
    }

    private func input() throws -> BenchInput {
        if let schema, let operation, let response {
            return try BenchInput(
                source: response, schema: BenchInput.text(schema), document: BenchInput.text(operation), name: name,
                variables: variables.map(BenchInput.bytes), body: BenchInput.bytes(response))
        }
        if let recorded = try BenchInput.recorded() { return recorded }
        FileHandle.standardError.write(Data("larder-bench: no recorded response here; one is generated\n".utf8))
        return try .generated()
    }
}

extension Bench.Row: ExpressibleByArgument {}
