import Foundation
import LarderOperations
import LarderTestSupport
import Testing

@Suite("What a tool says and leaves where it cannot do as it was told", .timeLimit(.minutes(10)))
struct RemedyTests {
    private static let verbs = [
        ["ingest", "--response", "list.json"], ["enqueue"], ["pin", "shown"],
        ["fetch", "--endpoint", "http://127.0.0.1:9"], ["send", "--endpoint", "http://127.0.0.1:9"],
        ["sync", "--endpoint", "http://127.0.0.1:9"], ["subscribe", "--endpoint", "http://127.0.0.1:9"],
        ["pages", "--endpoint", "http://127.0.0.1:9"],
    ]

    @Test(
        "A verb whose operation cannot be used makes no store", arguments: verbs,
        ["query { nothing }", "query { recipes(", "fragment F on Recipe { id }"])
    func leavesNothing(verb: [String], document: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let arguments = verb.map { $0.hasSuffix(".json") ? fixture.path($0) : $0 }
            let outcome = try await fixture.larder(
                arguments + [
                    "--schema", fixture.path("schema.graphqls"), "--operation",
                    try fixture.write(document, to: "unusable.graphql"),
                ])
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.store))
        }
    }

    @Test("A verb that takes one kind of operations makes no store for another", arguments: ["enqueue", "pin x"])
    func leavesNothing(kind: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let document = kind == "enqueue" ? "query { recipes { id } }" : "mutation { rename { id } }"
            let schema = CommandFixture.schema + " type Mutation { rename: Recipe }"
            let outcome = try await fixture.larder(
                kind.split(separator: " ").map(String.init) + [
                    "--schema", try fixture.write(schema, to: "more.graphqls"), "--operation",
                    try fixture.write(document, to: "unusable.graphql"),
                ])
            #expect(outcome.status == 2, "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.store))
        }
    }

    @Test("clear empties a cache that cannot be opened", arguments: ["foreign", "truncated", "empty"])
    func clearsDamaged(fault: String) async throws {
        try await CommandFixture.withStore { fixture in
            let file = URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb")
            let bytes = try Data(contentsOf: file)
            switch fault {
            case "foreign": try (Data("This is no cache. ".utf8) + bytes.dropFirst(18)).write(to: file)
            default: try bytes.prefix(fault == "empty" ? 0 : 8_192).write(to: file)
            }
            let clear = try await fixture.larder("clear", "--write")
            #expect(clear.status == 0, "\(clear.errors)")
            #expect(try await fixture.larder("check").status == 0)
            #expect(try await fixture.larder("get", "Recipe:1").status == 3)
            #expect(try await fixture.ingestList().status == 0)
        }
    }

    @Test("check looks at larder.sqlite where the partition has no cache, and finds its damage")
    func checksWithoutCache() async throws {
        try await CommandFixture.withStore { fixture in
            try #require(
                try await fixture.larder(["pin", "shown"] + fixture.operation("List", variables: #"{"n":2}"#)).status
                    == 0)
            try FileManager.default.removeItem(atPath: fixture.store + "/records")
            let sound = try await fixture.larder("check")
            #expect(sound.status == 0, "\(sound.errors)")
            #expect(sound.output.contains("has no cache, 0 mutations"))
            let file = URL(filePath: fixture.store + "/larder.sqlite")
            let handle = try FileHandle(forUpdating: file)
            try handle.truncate(atOffset: 3 * 4_096)
            try handle.close()
            #expect(try await fixture.larder("check").status == 5)
        }
    }

    @Test("check says in JSON that a partition has no cache, and counts outcomes and watchers apart")
    func countsWithoutCache() async throws {
        try await withTemporaryFolder { folder in
            let draft = MutationDraft(
                partition: "main", content: MutationContent(document: "mutation { note }"), created: Date())
            try await OperationsDatabase.using(folder) { database in
                for number in 0..<3 {
                    var other = draft
                    other.id = UUID()
                    let id = try await database.mutations.enqueue(other).id
                    guard number < 2 else { continue }
                    try await database.settle(id)
                }
                for name in ["a", "b", "c"] {
                    _ = try await database.watchers.put(name, in: "main", document: "{ note }", now: Date())
                }
            }
            let told = try await LarderProcess.run(["check", "--json", "--store", folder.path])
            #expect(told.output.contains(#""isSound":true,"hasCache":false,"pages":0,"#), "\(told)")
            #expect(told.output.contains(#""mutations":1,"outcomes":2,"watchers":3,"#), "\(told)")
        }
    }

    @Test("An answer that is too old is told as that, and the hint names the option that takes it")
    func tooOld() async throws {
        try await CommandFixture.withStore { fixture in
            let query = try ["query", "--max-age", "0"] + fixture.operation("List", variables: #"{"n":2}"#)
            let refused = try await fixture.larder(query)
            #expect(refused.status == 3)
            #expect(refused.errors.contains("older than it may be; ask the server, or allow what is stale\n"))
            #expect(refused.errors.contains("--stale"))
            #expect(try await fixture.larder(query + ["--stale"]).status == 0)
        }
    }

    @Test("An answer that is older than the schema lets it be is taken with --stale, and said to have expired")
    func expired() async throws {
        try await CommandFixture.withFiles { fixture in
            let field = "recipes(first: Int): [Recipe!]!"
            let schema = CommandFixture.schema.replacing(field, with: "\(field) @cacheControl(maxAge: 0)")
            try fixture.write(schema, to: "schema.graphqls")
            #expect(try await fixture.ingestList().status == 0)
            let query = try ["query", "--json"] + fixture.operation("List", variables: #"{"n":2}"#)
            let refused = try await fixture.larder(query)
            #expect(refused.status == 3 && refused.errors.contains(#""code":"larder.miss""#), "\(refused)")
            let taken = try await fixture.larder(query + ["--stale"])
            #expect(taken.status == 0 && taken.output.contains(#""isExpired":true"#), "\(taken)")
        }
    }

    /// Subscribes where no server is, until two lines are printed.
    private func subscribeInVain(_ fixture: CommandFixture, _ more: String...) async throws -> [Substring] {
        let schema = CommandFixture.schema + " type Subscription { added: Recipe }"
        let arguments = try [
            "subscribe", "--endpoint", "http://127.0.0.1:1/", "--store", fixture.store, "--schema",
            fixture.write(schema, to: "more.graphqls"), "--operation",
            fixture.write("subscription { added { id } }", to: "added.graphql"),
        ]
        let running = try LarderProcess.start(arguments + more)
        try await running.waitForLines(2)
        running.interrupt()
        return try await running.finish().output.split(separator: "\n")
    }

    @Test("subscribe says since when what is in the cache may be stale, and why it cannot subscribe")
    func subscribesInVain() async throws {
        try await CommandFixture.withFiles { fixture in
            let lines = try await subscribeInVain(fixture)
            #expect(
                lines.first?.wholeMatch(of: /connecting, stale since \S+Z \(\d+ (?:s|min) ago\)/) != nil, "\(lines)")
            let reason =
                /connecting, stale since \S+Z \(\d+ (?:s|min) ago\): No connection .+ \[transport.unreachable\]/
            #expect(lines.last?.wholeMatch(of: reason) != nil, "\(lines)")
        }
    }

    @Test("subscribe says in JSON since when the cache may be stale, and by its code why it cannot subscribe")
    func subscribesInVainInJSON() async throws {
        try await CommandFixture.withFiles { fixture in
            let last = try await subscribeInVain(fixture, "--json").last ?? ""
            let since = /"phase":"connecting","staleSince":"[^"]+Z",/
            #expect(last.contains(since), "\(last)")
            #expect(last.contains(#","code":"transport.unreachable","message":"No connection"#), "\(last)")
        }
    }

    @Test("A verb that takes one kind of operations says which, and of which the operation is")
    func namesKind() async throws {
        try await CommandFixture.withFiles { fixture in
            let outcome = try await fixture.larder(
                ["subscribe", "--endpoint", "http://127.0.0.1:9"] + fixture.operation("List"))
            #expect(outcome.status == 2, "\(outcome.errors)")
            let reason = "The verb takes a subscription, and the operation is a query"
            #expect(outcome.errors.contains(reason), "\(outcome.errors)")
        }
    }

    @Test("Of what is missing twenty paths are named, and how many more there are", arguments: [20, 21])
    func namesMissing(count: Int) async throws {
        try await CommandFixture.withStore { fixture in
            let fields = (1...count).map { "a\($0): recipes(first: \($0 + 100)) { id }" }.joined(separator: " ")
            let outcome = try await fixture.larder(
                "query", "--schema", fixture.path("schema.graphqls"), "--operation",
                fixture.write("query Q { \(fields) }", to: "many.graphql"))
            #expect(outcome.status == 3, "\(outcome.errors)")
            let end = count == 20 ? ", a20\n" : ", a20 and 1 more\n"
            #expect(outcome.errors.contains(end), "\(outcome.errors)")
        }
    }

    @Test("A hint after wrong arguments names the verb's help, and the tool's where they name no verb")
    func hintOfVerb() async throws {
        try await CommandFixture.withFiles { fixture in
            let verb = try await fixture.larder("ingest", "--write")
            #expect(verb.status == 2)
            #expect(verb.errors.contains("hint: 'larder ingest --help' describes the arguments"))
            let nested = try await fixture.larder("mutations", "discard")
            #expect(nested.errors.contains("hint: 'larder mutations discard --help' describes the arguments"))
            for program in ["larder", "larder-migrate"] {
                let none = try await LarderProcess.run(program: program, ["--nonsense"])
                #expect(none.errors.hasSuffix("hint: '\(program) --help' describes the arguments\n"), "\(none.errors)")
            }
        }
    }

    @Test("subscribe, sync and run refuse what they would not use", arguments: ["subscribe", "sync", "run"])
    func refusesUnused(verb: String) async throws {
        try await CommandFixture.withFiles { fixture in
            let operation = try verb == "run" ? [] : fixture.operation("List")
            let outcome = try await fixture.larder(
                [verb, "--endpoint", "http://127.0.0.1:9", "--error-policy", "ignore"] + operation)
            #expect(outcome.status == 2)
            #expect(outcome.errors.contains("--error-policy"))
        }
    }

    @Test("A verb that is given no schema for a store that holds none asks for one, and makes no store")
    func asksForSchema() async throws {
        try await CommandFixture.withFiles { fixture in
            let outcome = try await fixture.larder(
                "ingest", "--operation", fixture.path("operations.graphql"), "--name", "List", "--response",
                fixture.path("list.json"))
            #expect(outcome.status == 2 && outcome.errors.contains("--schema"), "\(outcome.errors)")
            #expect(!FileManager.default.fileExists(atPath: fixture.store))
        }
    }

    @Test("check names what is damaged in larder.sqlite also where the cache is damaged")
    func checksBoth() async throws {
        try await CommandFixture.withStore { fixture in
            let pinned = try await fixture.larder(["pin", "shown"] + fixture.operation("List", variables: #"{"n":2}"#))
            try #require(pinned.status == 0, "\(pinned.errors)")
            try Data("This is no cache.".utf8).write(
                to: URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb"))
            let handle = try FileHandle(forUpdating: URL(filePath: fixture.store + "/larder.sqlite"))
            try handle.truncate(atOffset: 3 * 4_096)
            try handle.close()
            let told = try await fixture.larder("check", "--json").errors
            // A warning that the current partition could not be read may come before the error.
            let line = told.split(separator: "\n").last.map { Data($0.utf8) } ?? Data()
            let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
            let error = try #require(object?["error"] as? [String: Any], "\(told)")
            let findings = try #require(error["findings"] as? [String], "\(told)")
            #expect(findings.count > 1 && findings.last?.contains("larder.sqlite") == true, "\(told)")
        }
    }
}
