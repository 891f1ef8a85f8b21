import ArgumentParser
import Foundation
import Larder
import LarderCommandLine
import LarderOperations
import LarderTestSupport
import Testing

@testable import LarderCommand
@testable import LarderMigrateCommand

@Suite("Rules that every verb follows", .timeLimit(.minutes(10)))
struct VerbRuleTests {
    /// What a verb does without `--write`.
    private enum Rule {
        /// It never writes.
        case reads
        /// It adds, or removes what its arguments name.
        case writes
        /// It tells what it would do with `--write`.
        case tells
        /// It is refused.
        case refused
    }

    private struct Row {
        var rule: Rule
        var arguments: [String] = []
    }

    private static let id = "00000000-0000-4000-8000-000000000000"
    private static let endpoint = ["--endpoint", "http://127.0.0.1:1/"]
    private static let query = ["--operation", "query.graphql"]
    private static let mutation = ["--operation", "mutation.graphql"]

    /// Each verb of larder with arguments that it takes.
    private static let verbs: [String: Row] = [
        "info": Row(rule: .reads), "ls": Row(rule: .reads), "get": Row(rule: .reads, arguments: ["Recipe:1"]),
        "query": Row(rule: .reads, arguments: query), "check": Row(rule: .reads), "watchers": Row(rule: .reads),
        "watch": Row(rule: .reads, arguments: ["Recipe:1", "--count", "1"]), "changes": Row(rule: .reads),
        "env": Row(rule: .reads), "credentials list": Row(rule: .reads), "session": Row(rule: .reads),
        "credentials rotate": Row(rule: .writes), "credentials empty-quarantine": Row(rule: .refused),
        "sign-in": Row(rule: .writes), "sign-up": Row(rule: .writes), "sign-out": Row(rule: .writes),
        "mutations list": Row(rule: .reads), "mutations show": Row(rule: .reads, arguments: [id]),
        "mutations edit": Row(rule: .refused, arguments: [id, "--variables", "variables.json"]),
        "mutations replay": Row(rule: .refused, arguments: ["--all"]),
        "mutations discard": Row(rule: .refused, arguments: ["--all"]),
        "transfers list": Row(rule: .reads), "transfers show": Row(rule: .reads, arguments: [id]),
        "transfers watch": Row(rule: .reads), "transfers pause": Row(rule: .refused, arguments: ["--all"]),
        "transfers resume": Row(rule: .refused, arguments: ["--all"]),
        "transfers cancel": Row(rule: .refused, arguments: ["--all"]),
        "transfers retry": Row(rule: .refused, arguments: ["--all"]), "transfers gc": Row(rule: .tells),
        "ingest": Row(rule: .writes, arguments: query + ["--response", "list.json"]),
        "fetch": Row(rule: .writes, arguments: query + endpoint),
        "send": Row(rule: .writes, arguments: mutation + endpoint),
        "enqueue": Row(rule: .writes, arguments: mutation), "run": Row(rule: .writes, arguments: endpoint),
        "subscribe": Row(rule: .writes, arguments: query + endpoint),
        "sync": Row(rule: .writes, arguments: query + endpoint),
        "pages": Row(rule: .writes, arguments: query + endpoint),
        "pin": Row(rule: .writes, arguments: ["shown"] + query), "unpin": Row(rule: .writes, arguments: ["shown"]),
        "rm": Row(rule: .writes, arguments: ["Recipe:1"]), "gc": Row(rule: .tells), "compact": Row(rule: .writes),
        "clear": Row(rule: .refused),
    ]

    /// Verbs that take `--write` for some of their arguments alone.
    private static let sometimes = ["rm"]

    private static func leaves(_ command: any ParsableCommand.Type) -> [(name: String, type: any ParsableCommand.Type)]
    {
        command.configuration.subcommands.flatMap { verb -> [(name: String, type: any ParsableCommand.Type)] in
            guard !verb.configuration.subcommands.isEmpty else { return [(verb._commandName, verb)] }
            return leaves(verb).map { ("\(verb._commandName) \($0.name)", $0.type) }
        }
    }

    private static func takes(_ option: String, _ verb: any ParsableCommand.Type) -> Bool {
        verb.helpMessage(columns: 200).contains("\(option) ") || verb.helpMessage(columns: 200).contains("\(option)\n")
    }

    private func withStore(_ body: (CommandFixture, (String, [String]) -> [String]) async throws -> Void) async throws {
        try await CommandFixture.withFiles { fixture in
            let schema = CommandFixture.schema + " type Mutation { rename: Recipe }"
            _ = try await fixture.larder(
                ["ingest", "--schema", fixture.write(schema, to: "schema.graphqls"), "--operation"]
                    + [fixture.path("operations.graphql"), "--name", "List", "--variables", fixture.path("two.json")]
                    + ["--response", fixture.path("list.json")])
            try fixture.write("{ recipes(first: 2) { id title } }", to: "query.graphql")
            try fixture.write("mutation Rename { rename { id } }", to: "mutation.graphql")
            try fixture.write("{}", to: "variables.json")
            let queued = try await fixture.larder("enqueue", "--operation", fixture.path("mutation.graphql"))
            try #require(queued.status == 0, "\(queued.errors)")
            try await body(fixture) { verb, more in
                let paths = more.map { $0.hasSuffix(".graphql") || $0.hasSuffix(".json") ? fixture.path($0) : $0 }
                return verb.split(separator: " ").map(String.init) + paths
            }
        }
    }

    /// The store's files, but for locks, and for SQLite's empty log and its index, which the first reader makes. A
    /// folder's time is that of its newest file, which may be a lock.
    private func content(_ fixture: CommandFixture) throws -> [String: String] {
        let log = "larder.sqlite-wal"
        return try fixture.snapshot().filter { name, content in
            if name.hasSuffix("/\(log)") {
                return try Data(contentsOf: URL(filePath: fixture.store).appending(path: log)) != Data()
            }
            return !name.hasSuffix("/larder.sqlite-shm") && content != "lock" && !content.hasSuffix(" 0")
        }
    }

    @Test("An empty database, as a first write leaves that finds no room, is none to those who read")
    func emptyDatabase() async throws {
        try await CommandFixture.withStore { fixture in
            try fixture.write("{ recipes(first: 2) { id title } }", to: "query.graphql")
            let file = URL(filePath: fixture.store).appending(path: "larder.sqlite")
            let mode: [FileAttributeKey: Any] = [.posixPermissions: 0o600]
            #expect(!FileManager.default.fileExists(atPath: file.path))
            for (name, row) in Self.verbs.sorted(by: { $0.key < $1.key }) where row.rule == .reads || row.rule == .tells
            {
                let paths = row.arguments.map { $0.hasSuffix(".graphql") ? fixture.path($0) : $0 }
                let command = name.split(separator: " ").map(String.init) + paths
                let without = try await fixture.larder(command)
                #expect(FileManager.default.createFile(atPath: file.path, contents: nil, attributes: mode))
                let with = try await fixture.larder(command)
                #expect(with.status == without.status && with.errors == without.errors, "\(name): \(with.errors)")
                try FileManager.default.removeItem(at: file)
            }
            #expect(FileManager.default.createFile(atPath: file.path, contents: nil, attributes: mode))
            let pinned = try await fixture.larder(
                "pin", "shown", "--operation", fixture.path("operations.graphql"), "--name", "List")
            #expect(pinned.status == 0, "\(pinned.errors)")
        }
    }

    @Test(
        "Without --write, a verb that takes it tells what it would do or is refused, and a verb that reads writes not")
    func writes() async throws {
        let leaves = Self.leaves(LarderTool.self)
        #expect(Set(leaves.map(\.name)) == Set(Self.verbs.keys))
        try await withStore { fixture, command in
            for (name, type) in leaves {
                guard let row = Self.verbs[name] else { continue }
                let isAsked = row.rule == .tells || row.rule == .refused
                #expect(Self.takes("--write", type) == (isAsked || Self.sometimes.contains(name)), "\(name)")
                guard row.rule != .writes else { continue }
                let before = try content(fixture)
                let outcome = try await fixture.larder(command(name, row.arguments) + ["--json"])
                #expect(try content(fixture) == before, "\(name)")
                switch row.rule {
                case .refused: #expect(outcome.status == 4, "\(name): \(outcome.errors)")
                case .tells:
                    #expect(outcome.status == 0 && outcome.output.contains(#""isWritten":false"#), "\(name)")
                case .reads, .writes: #expect(outcome.status != 2, "\(name): \(outcome.errors)")
                }
            }
            let type = try await fixture.larder("rm", "--type", "Recipe")
            #expect(type.status == 4)
        }
    }

    @Test("What an option or a variable names must be known: no verb makes a partition by its name")
    func unknown() async throws {
        try await withStore { fixture, command in
            for (name, type) in Self.leaves(LarderTool.self) {
                guard let row = Self.verbs[name] else { continue }
                let write = row.rule == .refused || row.rule == .tells ? ["--write"] : []
                let arguments = command(name, row.arguments + write) + ["--json", "--store", fixture.store]
                let before = try content(fixture)
                func expect(
                    _ code: String, _ options: [String] = [], _ variables: [String: String] = [:]
                ) async throws {
                    let outcome = try await LarderProcess.run(arguments + options, environment: variables)
                    if name == "env" {
                        #expect(outcome.status == 0 && outcome.errors.contains(#""warning":{"code":"\#(code)""#))
                    } else {
                        #expect(outcome.status == 3, "\(name) \(options)")
                        #expect(outcome.errors.contains(#""error":{"code":"\#(code)""#), "\(name): \(outcome.errors)")
                    }
                }
                try await expect("operations.unknownEnvironment", [], ["LARDER_ENV": "nosuch"])
                try await expect("operations.unknownPartition", [], ["LARDER_PARTITION": "nosuch"])
                // A row that is named by its id is meant in whatever partition it is.
                if Self.takes("--partition <name>", type), name != "mutations edit" {
                    try await expect("operations.unknownPartition", ["--partition", "nosuch"])
                    try await expect("operations.unknownEnvironment", ["--env", "nosuch"])
                }
                #expect(try content(fixture) == before, "\(name)")
            }
        }
    }

    @Test("The verbs of larder-migrate wait five seconds for others, unless they are told otherwise, and a day at most")
    func lockTime() throws {
        func time(_ arguments: String...) throws -> Duration { try LockOptions.parse(arguments).duration() }
        #expect(try time() == .seconds(5))
        #expect(try time("--timeout", "0") == .zero && time("--timeout", "86400") == .seconds(86_400))
        for seconds in ["86401", "-1", "nan"] {
            #expect(throws: Failure.self) { try time("--timeout=\(seconds)") }
        }
    }

    @Test("JSON calls each verb by the words that are typed, such as env add")
    func names() throws {
        for tool in [LarderTool.self, MigrateTool.self] as [any ParsableCommand.Type] {
            for (name, type) in Self.leaves(tool) {
                let verb = try #require(type as? any Verb.Type, "\(name)")
                // That one is meant where no verb of it is typed.
                #expect(verb.name == (name == "backup create" ? "backup" : name))
            }
        }
    }

    @Test("The verbs of larder-migrate that take --write tell what they would do without it, and are these alone")
    func migrate() {
        let asking = Self.leaves(MigrateTool.self).filter { Self.takes("--write", $0.type) }.map(\.name)
        #expect(Set(asking) == ["repair", "import", "backup prune"])
    }

    @Test("sync takes a server's deltas for half an hour, unless --delta-lifetime says otherwise")
    func deltaLifetime() throws {
        let arguments = ["--operation", "sync.graphql", "--endpoint", "http://host/"]
        #expect(try Sync.parse(arguments).deltaLifetime == 1_800)
        #expect(try Sync.parse(arguments + ["--delta-lifetime", "7"]).deltaLifetime == 7)
    }

    @Test("The help of run says that it waits for progress for 60 seconds by default")
    func patience() {
        #expect(Run.helpMessage(columns: 200).contains("nothing was carried out for so long. Default: 60."))
    }

    @Test("JSON tells of a step that transforms a cache which cache that is, and from which format")
    func transformingStep() {
        let step = MigrationPlan.Step.transformCache(partition: "main", from: 3)
        let json = String(decoding: step.json.bytes, as: UTF8.self)
        #expect(json == #"{"step":"transformCache","partition":"main","from":3}"#)
    }

    @Test(
        "A variable for the partition or environment that is set and empty says nothing",
        arguments: ["LARDER_PARTITION", "LARDER_ENV"])
    func emptyVariable(name: String) async throws {
        try await CommandFixture.withStore { fixture in
            let plain = try await fixture.larder("ls")
            let empty = try await LarderProcess.run(["ls", "--store", fixture.store], environment: [name: ""])
            #expect(empty.status == 0, "\(empty.errors)")
            #expect(empty.output == plain.output && !plain.output.isEmpty)
        }
    }
}
