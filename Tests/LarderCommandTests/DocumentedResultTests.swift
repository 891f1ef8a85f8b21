import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

extension DocumentedResults {
    /// Runs a verb, and compares what it prints with a row of the article.
    fileprivate mutating func run(
        _ row: String, _ arguments: [String], status: Int32 = 0, on store: String
    ) async throws {
        let outcome = try await LarderProcess.run(arguments + ["--json", "--store", store])
        #expect(outcome.status == status, "\(arguments): \(outcome.errors)")
        try compare(row, outcome.output)
    }
}

@Suite("The article on the command line about --json and exit statuses", .timeLimit(.minutes(10)))
struct DocumentedResultTests {
    @Test("The verbs on the cache print what is documented, and all of it")
    func cache() async throws {
        try await CommandFixture.withStore { fixture in
            var documented = try DocumentedResults()
            func print(_ row: String, _ arguments: [String]) async throws {
                try await documented.run(row, arguments, on: fixture.store)
            }
            let one = try fixture.operation("One", variables: #"{"id":"1"}"#)
            try await print("`pin`", ["pin", "one"] + one)
            _ = try await LarderProcess.run(shell: "chmod go=rX '\(fixture.store)'", [])
            try await print("`info`", ["info", "--types", "--ages"])
            // Of a database only a log is left.
            let lost = fixture.path("lost")
            try FileManager.default.copyItem(atPath: fixture.store, toPath: lost)
            try FileManager.default.removeItem(atPath: "\(lost)/larder.sqlite")
            try fixture.write("log", to: "lost/larder.sqlite-wal")
            try await documented.run("`info`", ["info", "--types", "--ages"], on: lost)
            try await print("`unpin`", ["unpin", "one"])
            try await print("`gc`", ["gc", "--schema", fixture.path("schema.graphqls")])
            _ = try await LarderProcess.run(shell: "chmod go=rX '\(fixture.store)'", [])
            try await print("`ls`", ["ls"])
            try await print("`get`", ["get", "Recipe:1"])
            try await print("`query`", ["query"] + one)
            try await print("`watch`, of an operation or fragment", ["watch", "--count", "1"] + one)
            try await print("`watch`, of a key", ["watch", "Recipe:1", "--count", "1"])
            try await print("`check`", ["check"])
            try await print("`changes`", ["changes"])
            try await print("`fetch`", ["fetch", "--endpoint", "http://127.0.0.1:1/"] + one)
            try await print(
                "`ingest`",
                ["ingest", "--response", fixture.path("list.json")]
                    + fixture.operation("List", variables: #"{"n":2}"#))
            for verb in [["rm", "Recipe:2"], ["compact"], ["clear", "--write"]] {
                try await print("`rm`, `compact`, `clear`", verb)
            }
            documented.finish()
            #expect(documented.problems == [])
        }
    }

    @Test("The verbs on mutations and watchers answer as documented")
    func mutations() async throws {
        try await TransferFixture.run { fixture in
            var documented = try DocumentedResults()
            func print(_ row: String, _ arguments: [String]) async throws {
                try await documented.run(row, arguments, on: fixture.store)
            }
            let upload = try await fixture.upload()
            let mutation = try await fixture.withPartition { app in
                try await app.enqueue(
                    GraphQLOperation("mutation Add($file: S3ObjectInput) { add(title: \"a\", file: $file) { id } }"),
                    options: MutationOptions(files: [MutationFile(app.transfers[TransferID(upload)], in: "file")])
                ).id
            }
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.watchers.put("w", in: "main", document: "{ photo(id: 1) { id } }", now: Date())
                try await database.watchers.note(
                    StoredWatcher.Position(epoch: 0xAB, number: 2), of: "w", in: "main", now: Date())
            }
            #expect(try await fixture.larder("watchers").output == "w main ab 2 { photo(id: 1) { id } }\n")
            try await print("`watchers`", ["watchers"])
            try await fixture.fail(fixture.begin(upload))
            let id = "\(mutation)"
            let variables = fixture.folder.appending(path: "variables.json")
            try Data("{}".utf8).write(to: variables)
            try await print("`mutations list`", ["mutations", "list"])
            try await print("`mutations show`", ["mutations", "show", id])
            let changed = "`mutations edit`, `replay`, `discard`"
            try await print(changed, ["mutations", "edit", id, "--variables", variables.path, "--write"])
            // It waits for an upload that has failed.
            let many = "`mutations replay`, `discard`, with `--all`"
            try await documented.run(many, ["mutations", "replay", "--all", "--write"], status: 1, on: fixture.store)
            try await print(changed, ["mutations", "discard", id, "--write"])
            try await print("`mutations show`, of a settled one", ["mutations", "show", id])
            let add = fixture.folder.appending(path: "add.graphql")
            try Data("mutation { add(title: \"a\") { id } }".utf8).write(to: add)
            try await print("`enqueue`", ["enqueue", "--operation", add.path])
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                let queued = try #require(try database.mutations.list().first).id
                try await database.setAside(queued)
            }
            try await print(many, ["mutations", "discard", "--all", "--write"])
            try await print("`run`", ["run", "--until-idle", "--endpoint", "http://127.0.0.1:1/"])
            documented.finish()
            #expect(documented.problems == [])
        }
    }

    @Test("The verbs on transfers answer as documented")
    func transfers() async throws {
        try await TransferFixture.run { fixture in
            var documented = try DocumentedResults()
            func print(_ row: String, _ arguments: [String]) async throws {
                try await documented.run(row, arguments, on: fixture.store)
            }
            let (failed, waiting) = (try await fixture.upload(), try await fixture.upload())
            try await fixture.fail(fixture.begin(failed, upload: "a-name"))
            try fixture.partialFile(of: UUID())
            try await print("`transfers list`", ["transfers", "list"])
            try await print("`transfers watch`", ["transfers", "watch", failed.text])
            try await print("`transfers show`", ["transfers", "show", failed.text])
            try await print("`transfers gc`", ["transfers", "gc"])
            // Its upload cannot be aborted without a storage.
            try await print("`transfers gc`", ["transfers", "gc", "--write"])
            let changed = "`transfers pause`, `resume`, `cancel`, `retry`"
            for verb in ["pause", "resume", "cancel"] {
                try await print(changed, ["transfers", verb, waiting.text, "--write"])
            }
            let many = "`transfers pause`, `resume`, `cancel`, `retry`, with `--all`"
            _ = try await fixture.upload()
            try await print(many, ["transfers", "pause", "--all", "--write"])
            let done = ["transfers", "resume", "--all", "--state", "failed", "--write"]
            try await documented.run(many, done, status: 1, on: fixture.store)
            documented.finish()
            #expect(documented.problems == [])
        }
    }

    @Test("The verbs on environments, sessions and quarantined credentials answer as documented")
    func credentials() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schema: try Schema(parsing: CommandFixture.schema))
            let app = try store.partition(of: .example("staging"), user: .user("ada"))
            let tokens = Credentials.UserPoolTokens(
                idToken: "a", accessToken: "b", refreshToken: "c", expires: nil)
            try await app.session.signIn(Credentials(userPool: tokens), within: .seconds(300))
            let name = try #require(try store.current()).name
            try store.close()
            var documented = try DocumentedResults()
            func print(_ row: String, _ verb: String...) async throws {
                try await documented.run(row, verb, on: place.path)
            }
            try await print("`env`", "env")
            try await print("`session`", "session")
            try await print("`credentials list`", "credentials")
            try await OperationsDatabase.using(place) { database in
                let rows = try database.credentials.snapshot(of: name).credentials
                let identity = try #require(rows.first).identity
                let moved = try await database.credentials.quarantine(
                    rows.map { .init($0, reason: "damaged") }, in: name, of: identity, now: Date(),
                    session: { _ in nil })
                #expect(moved.count == 1)
            }
            try await print("`credentials list`", "credentials", "list")
            try await print("`credentials rotate`", "credentials", "rotate")
            try await print("`credentials empty-quarantine`", "credentials", "empty-quarantine", "--write")
            documented.finish()
            #expect(documented.problems == [])
        }
    }

    @Test("Each exit status that is documented is given, for what is said of it")
    func statuses() async throws {
        try await CommandFixture.withStore { fixture in
            let file = packageRoot.appending(path: "Sources/Larder/Larder.docc/CommandLine.md")
            let documented = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").compactMap { line in
                line.firstMatch(of: /^\| (\d) \|/).flatMap { Int32($0.1) }
            }
            #expect(documented == [0, 1, 2, 3, 4, 5])
            #expect(try await fixture.larder("ls").status == 0)
            let nowhere = try await LarderProcess.run(["ls", "--json", "--store", fixture.path("none")])
            try expectFailure(nowhere, 1, "command.noStore")
            func expect(_ status: Int32, _ code: String, with members: [String] = [], _ arguments: String...)
                async throws
            {
                let outcome = try await LarderProcess.run(arguments + ["--json", "--store", fixture.store])
                try expectFailure(outcome, status, code, with: members)
            }
            try await expect(2, "command.usage", "ls", "--limit", "many")
            try await expect(3, "command.unknownObject", with: ["key", "presence"], "get", "Recipe:9")
            try await expect(3, "command.unknownMutation", "mutations", "show", "\(UUID())")
            try await expect(3, "command.unknownTransfer", "transfers", "show", "\(UUID())")
            let missing = ["query"] + (try fixture.operation("One", variables: #"{"id":"9"}"#))
            let query = try await LarderProcess.run(missing + ["--json", "--store", fixture.store])
            try expectFailure(query, 3, "larder.miss", with: ["missing"])
            try await expect(4, "command.notConfirmed", "clear")
            try Data(repeating: 1, count: 50_000).write(
                to: URL(filePath: fixture.store).appending(path: "records/main/1/data.mdb"))
            #expect(try await fixture.larder("check").status == 5)
        }
    }

    /// Requires that a failure is what is documented of failures: nothing on standard output, and one object.
    private func expectFailure(
        _ outcome: Outcome, _ status: Int32, _ code: String, with members: [String] = []
    ) throws {
        #expect(outcome.status == status && outcome.output == "", "\(outcome.errors)")
        let line = outcome.errors.split(separator: "\n").last.map { Data($0.utf8) } ?? Data()
        let object = try JSONSerialization.jsonObject(with: line) as? [String: Any]
        let error = try #require(object?["error"] as? [String: Any], "\(outcome.errors)")
        #expect(error["code"] as? String == code)
        #expect(error["exit"] as? Int == Int(status))
        #expect(Set(error.keys) == Set(["code", "message", "hint", "exit"] + members))
    }
}
