import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("Environments, credentials and sessions, from the command line", .timeLimit(.minutes(10)))
struct EnvironmentVerbTests {
    static let schema = "type Query { number: Int } type Mutation { count: Int }"
    private static let secret = "a-refresh-token-that-nobody-may-see"

    /// A store with two environments: a user who is signed in has left the first, with a mutation; the second is the
    /// current one.
    func withStore(
        _ body: (_ folder: URL, _ parked: String, _ current: String) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            var options = Store.Options()
            options.keys = InMemoryKeyProvider()
            let store = try Store.open(at: place, schema: try Schema(parsing: Self.schema), options: options)
            let app = try store.partition(of: .example("staging"), user: .user("ada"))
            try await app.write(GraphQLOperation("{ number }"), json: Array(#"{"number":1}"#.utf8))
            try await app.enqueue(GraphQLOperation("mutation { count }"))
            try await app.session.signIn(
                Credentials(
                    userPool: .init(
                        idToken: Self.secret, accessToken: Self.secret, refreshToken: Self.secret, expires: nil)),
                within: .seconds(300))
            let parked = try #require(try store.current()).name
            let other = try await store.switch(to: .example("production")).partition
            try await other.write(GraphQLOperation("{ number }"), json: Array(#"{"number":2}"#.utf8))
            let current = try #require(try store.current()).name
            try store.close()
            try await body(place, parked, current)
        }
    }

    @Test("The partitions are listed with their owners and mutations, the current one marked")
    func listed() async throws {
        try await withStore { (store, parked, current) throws in
            let text = try await LarderProcess.run(["env", "--store", store.path])
            #expect(
                text.output.split(separator: "\n") == [
                    "- \(parked) staging user ada 1 mutation", "* \(current) production guest 0 mutations",
                ])
            let json = try await LarderProcess.run(["env", "--json", "--store", store.path])
            #expect(json.status == 0)
            #expect(json.output.contains(#""partition":"\#(current)","environment":"production","user":null"#))
            #expect(json.output.contains(#""partition":"\#(parked)","environment":"staging","user":"ada""#))
            let definition = #"{"api":{"url":"https://staging.example/graphql"}}"#
            #expect(json.output.contains(#""name":"staging","definition":\#(definition)"#))
        }
    }

    @Test("A query in a partition that has no cache yet is a miss, and not taken for a missing store")
    func noCache() async throws {
        try await withStore { (place, _, _) throws in
            let folder = place.deletingLastPathComponent()
            let schema = folder.appending(path: "schema.graphqls")
            let operation = folder.appending(path: "number.graphql")
            try Data(Self.schema.utf8).write(to: schema)
            try Data("{ number }".utf8).write(to: operation)
            let asked = ["--schema", schema.path, "--operation", operation.path, "--store", place.path, "--json"]
            let outcome = try await LarderProcess.run(["query", "--partition", "main"] + asked)
            #expect(outcome.status == 3, "\(outcome.errors)")
            #expect(outcome.errors.contains(#""code":"larder.miss""#) && outcome.errors.contains(#""missing":[[]]"#))
            let nowhere = asked.map { $0 == place.path ? folder.path + "/none" : $0 }
            #expect(try await LarderProcess.run(["query"] + nowhere).status == 1)
        }
    }

    @Test("A verb looks into the current partition, or into the one that is named")
    func partitions() async throws {
        try await withStore { (store, parked, current) throws in
            let schema = store.deletingLastPathComponent().appending(path: "schema.graphqls")
            let operation = store.deletingLastPathComponent().appending(path: "number.graphql")
            try Data(Self.schema.utf8).write(to: schema)
            try Data("{ number }".utf8).write(to: operation)
            let query = ["query", "--schema", schema.path, "--operation", operation.path, "--store", store.path]
            #expect(try await LarderProcess.run(query).output == #"{"data":{"number":2}}"# + "\n")
            let other = try await LarderProcess.run(query + ["--partition", parked])
            #expect(other.output == #"{"data":{"number":1}}"# + "\n", "\(other.errors)")
            // A variable may name it as well; the option counts for more.
            func asked(_ variable: String, _ options: String...) async throws -> String {
                try await LarderProcess.run(query + options, environment: ["LARDER_PARTITION": variable]).output
            }
            #expect(try await asked(parked) == other.output)
            #expect(try await asked(parked, "--partition", current) == #"{"data":{"number":2}}"# + "\n")
            #expect(try await asked("") == #"{"data":{"number":2}}"# + "\n")
            // That of a partition counts for more than that of an environment.
            let both = ["LARDER_PARTITION": parked, "LARDER_ENV": "production"]
            #expect(try await LarderProcess.run(query, environment: both).output == other.output)
            let info = try await LarderProcess.run(["info", "--json", "--partition", parked, "--store", store.path])
            #expect(info.output.contains(#""partition":"\#(parked)""#))
            let outside = try await LarderProcess.run(["info", "--partition", "../x", "--store", store.path])
            #expect(outside.status == 2)
            let unknown = try await LarderProcess.run(["info", "--partition", "0", "--store", store.path])
            #expect(unknown.status == 3)
        }
    }

    @Test("Where no environment is chosen, or nothing used one yet, a verb asks for a partition, and says so")
    func noneChosen() async throws {
        try await withStore { (place, parked, _) throws in
            let migrate = { (arguments: [String]) async throws in
                let all = ["env"] + arguments + ["--store", place.path]
                #expect(try await LarderProcess.run(program: "larder-migrate", all).status == 0)
            }
            try await migrate(["none"])
            let none = try await LarderProcess.run(["ls", "--json", "--store", place.path])
            #expect(none.status == 3 && none.errors.contains(#""code":"larder.noEnvironment""#), "\(none.errors)")
            #expect(none.errors.contains("name a partition by --partition"), "\(none.errors)")
            #expect(try await LarderProcess.run(["ls", "--partition", parked, "--store", place.path]).status == 0)
            #expect(try await !LarderProcess.run(["env", "--store", place.path]).output.contains("*"))
            try await migrate(["add", "new", "--url", "https://new.example/"])
            let new = try await LarderProcess.run(["ls", "--env", "new", "--json", "--store", place.path])
            #expect(new.status == 3 && new.errors.contains(#""code":"operations.unknownPartition""#), "\(new.errors)")
        }
    }

    @Test("A verb that asks a server needs the current partition, and sends nothing from another")
    func asksForCurrent() async throws {
        try await withStore { (place, parked, current) throws in
            let folder = place.deletingLastPathComponent()
            func file(_ name: String, _ text: String) throws -> String {
                let file = folder.appending(path: name)
                try Data(text.utf8).write(to: file)
                return file.path
            }
            let asking = [
                "--endpoint", "http://127.0.0.1:1/", "--schema", try file("schema.graphqls", Self.schema), "--store",
                place.path, "--json",
            ]
            let fetch = ["fetch", "--policy", "networkOnly", "--operation", try file("number.graphql", "{ number }")]
            let send = ["send", "--operation", try file("count.graphql", "mutation { count }")]
            for verb in [fetch, send, ["run", "--until-idle"]] {
                for option in [["--partition", parked], ["--env", "staging"]] {
                    let refused = try await LarderProcess.run(verb + asking + option)
                    #expect(refused.status == 1 && refused.output == "", "\(verb[0]): \(refused.output)")
                    #expect(refused.errors.contains(#""code":"larder.parked""#), "\(verb[0]): \(refused.errors)")
                }
            }
            let asked = try await LarderProcess.run(fetch + asking + ["--partition", current])
            #expect(asked.errors.contains(#""code":"transport.unreachable""#), "\(asked.errors)")
        }
    }

    @Test("Of one partition or environment alone rows are listed, with its own limit, and changed with --all")
    func rowsOfOne() async throws {
        try await withStore { (place, parked, current) throws in
            let store = try Store.open(at: place, schema: try Schema(parsing: Self.schema))
            let app = try store.partition()
            for _ in 0..<2 { try await app.enqueue(GraphQLOperation("mutation { count }")) }
            try store.close()
            func larder(_ arguments: String...) async throws -> Outcome {
                try await LarderProcess.run(arguments + ["--store", place.path])
            }
            for option in [["--env", "production"], ["--partition", current]] {
                let arguments = ["mutations", "list", "--limit", "1", "--json", "--store", place.path]
                let listed = try await LarderProcess.run(arguments + option)
                #expect(listed.output.contains(#""sequence":2,"#) && listed.output.contains(#""hasMore":true"#))
            }
            for (name, count) in [(parked, "1 mutation;"), (current, "2 mutations;")] {
                let asked = try await larder(
                    "mutations", "discard", "--all", "--state", "pending", "--partition", name)
                #expect(asked.status == 4 && asked.errors.contains("would change \(count)"), "\(asked.errors)")
            }
        }
    }

    @Test("Watchers and transfers are listed of one environment alone, and mutations given up there and nowhere else")
    func othersOfOne() async throws {
        try await withStore { (place, parked, current) throws in
            let store = try Store.open(at: place, schema: try Schema(parsing: Self.schema))
            try await store.partition().enqueue(GraphQLOperation("mutation { count }"))
            try store.close()
            try await OperationsDatabase.using(place) { database in
                for name in [parked, current] {
                    _ = try await database.watchers.put("w", in: name, document: "{ number }", now: Date())
                }
                let draft = TransferDraft(
                    partition: current, kind: .download, bucket: "b", key: "k", path: "/f", created: Date())
                try await database.transfers.enqueue([draft])
                for mutation in try database.mutations.list() { try await database.setAside(mutation.id) }
            }
            func larder(_ arguments: String...) async throws -> [Substring] {
                try await LarderProcess.run(arguments + ["--store", place.path]).output.split(separator: "\n")
            }
            for (verb, count) in [("watchers", 1), ("transfers", 0)] {
                #expect(try await larder(verb, "--env", "staging").count == count)
                #expect(try await larder(verb, "--partition", parked).count == count)
                #expect(try await larder(verb, "--env", "production").count == 1)
            }
            #expect(try await larder("mutations", "discard", "--all", "--env", "production", "--write").count == 1)
            let left = try await larder("mutations")
            #expect(left.count == 1 && left[0].contains(" staging/ada "), "\(left)")
        }
    }

    @Test("Credentials and sessions are told of, and no secret is")
    func sessions() async throws {
        try await withStore { (store, parked, current) throws in
            let credentials = try await LarderProcess.run(["credentials", "--store", store.path])
            let kept = "\(parked) staging user ada userPool stored "
            #expect(credentials.output.hasPrefix(kept), "\(credentials.output)")
            let session = try await LarderProcess.run(["session", "--store", store.path])
            let lines = session.output.split(separator: "\n")
            #expect(lines.count == 2 && lines[0].hasPrefix("\(parked) staging user ada signedIn userPool 2"))
            #expect(lines.last == "\(current) production guest signedOut - -")
            for verb in ["credentials", "session", "env"] {
                let json = try await LarderProcess.run([verb, "--json", "--store", store.path])
                #expect(json.status == 0 && !json.output.contains(Self.secret) && !json.errors.contains(Self.secret))
            }
            let detail = try await LarderProcess.run(["session", "--json", "--store", store.path])
            #expect(detail.output.contains(#""state":"signedIn""#))
        }
    }

    @Test("Where larder.sqlite is gone and its log is left, no verb says that nothing waits, or that there is no user")
    func lost() async throws {
        try await withStore { (place, _, _) throws in
            let file = place.appending(path: "larder.sqlite")
            try Data("log".utf8).write(to: URL(filePath: file.path + "-wal"))
            try FileManager.default.removeItem(at: file)
            for verb in [["env"], ["mutations", "list"], ["transfers", "list"], ["watchers"], ["session"]] {
                let outcome = try await LarderProcess.run(verb + ["--store", place.path, "--json"])
                #expect(outcome.status != 0, "\(verb)")
                #expect(outcome.errors.contains(#""code":"operations.damaged""#), "\(verb) \(outcome.errors)")
            }
        }
    }

    /// What can become of `larder.sqlite`.
    enum Loss {
        case garbled, logLeft, gone

        func happen(to store: URL) throws {
            let file = store.appending(path: "larder.sqlite")
            for suffix in ["", "-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
            switch self {
            case .garbled: try Data((0..<5_000).map { UInt8(truncatingIfNeeded: $0 &* 167 ^ 0x9D) }).write(to: file)
            case .logLeft: try Data("log".utf8).write(to: URL(filePath: file.path + "-wal"))
            case .gone: break
            }
        }
    }

    @Test(
        "Where larder.sqlite cannot tell the current partition, info says so on standard error and in its result",
        arguments: [
            (Loss.garbled, "operations.foreign", 4), (.logLeft, "operations.damaged", 5),
            (.gone, "operations.missing", 0),
        ] as [(Loss, String, Int32)])
    func unread(loss: Loss, code: String, status: Int32) async throws {
        try await CommandFixture.withStore { fixture in
            let place = URL(filePath: fixture.store)
            let before = try await fixture.larder("info", "--json")
            #expect(before.output.contains(#""unread":[]"#) && before.errors == "", "\(before.errors)")
            // A second partition, of which only a database could tell whose it is.
            let caches = place.appending(path: "records")
            try FileManager.default.copyItem(at: caches.appending(path: "main"), to: caches.appending(path: "other"))
            try loss.happen(to: place)
            let text = try await fixture.larder("info")
            #expect(text.status == 0)
            #expect(
                text.errors.hasPrefix("larder: The current partition could not be read, and main stands in for it; "),
                "\(text.errors)")
            let json = try await fixture.larder("info", "--json")
            #expect(json.output.contains(#""unread":[{"file":"larder.sqlite","code":"\#(code)","#), "\(json.output)")
            #expect(json.errors.hasPrefix(#"{"larder":1,"command":"info","warning":{"code":"\#(code)","#))
            let chosen = try await fixture.larder("info", "--partition", "main")
            #expect(chosen.status == 0 && !chosen.errors.contains("stands in"), "\(chosen.errors)")
            let query = try await fixture.larder(["query"] + fixture.operation("List", variables: #"{"n":2}"#))
            // A program would be told the same where it opens the current partition.
            #expect(query.status == status, "\(query.errors)")
        }
    }

    @Test("A store without environments lists its one partition without a user, and an empty one nothing")
    func unnamed() async throws {
        try await CommandFixture.withStore { fixture in
            let none = try await LarderProcess.run(["env", "--store", fixture.store])
            #expect(none.status == 0 && none.output == "", "\(none.errors)")
        }
    }

    @Test("env counts the mutations of each partition by their states, and says which partition is the current one")
    func counted() async throws {
        try await withStore { (place, parked, current) throws in
            let store = try Store.open(at: place, schema: try Schema(parsing: Self.schema))
            let app = try store.partition()
            var ids: [UUID] = []
            for number in 0..<10 {
                let options = MutationOptions(lane: MutationLane("\(number)"))
                ids.append(try await app.enqueue(GraphQLOperation("mutation { count }"), options: options).id.uuid)
            }
            try store.close()
            try await OperationsDatabase.using(place) { database in
                try await database.setAside(ids[0])
                for id in ids[1..<6] {
                    let attempt = try await database.mutations.begin(id, owner: "test", now: Date()).attempt
                    guard ids[1..<3].contains(id) else { continue }
                    try await database.mutations.answer(attempt, Array("{}".utf8), now: Date())
                }
            }
            let json = try await LarderProcess.run(["env", "--json", "--store", place.path]).output
            let counts = #""user":null,"isCurrent":true,"pending":4,"inFlight":3,"acknowledged":2,"deadLetters":1}"#
            #expect(json.contains(#"{"partition":"\#(current)","environment":"production",\#(counts)"#), "\(json)")
            let left = #""environment":"staging","user":"ada","isCurrent":false,"pending":1,"inFlight":0,"#
            #expect(json.contains(#"{"partition":"\#(parked)",\#(left)"#), "\(json)")
            let text = try await LarderProcess.run(["env", "--store", place.path]).output
            #expect(text.contains("\(current) production guest 10 mutations\n"), "\(text)")
        }
    }

    @Test("--env means the partition of the environment that was in use last, and not the one that was made first")
    func lastUsed() async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schemaText: [Self.schema])
            for (number, user) in ["ada", "bob"].enumerated() {
                let app = try await store.switch(to: .example("staging"), user: .user(user)).partition
                try await app.write(GraphQLOperation("{ number }"), json: Array(#"{"number":\#(number)}"#.utf8))
            }
            _ = try await store.switch(to: .example("production"))
            try store.close()
            let operation = folder.appending(path: "number.graphql")
            try Data("{ number }".utf8).write(to: operation)
            let asked = try await LarderProcess.run([
                "query", "--env", "staging", "--operation", operation.path, "--store", place.path,
            ])
            #expect(asked.output == #"{"data":{"number":1}}"# + "\n", "\(asked.errors)")
        }
    }

    @Test(
        "env lists all partitions, and warns, where a variable names what the store does not know",
        arguments: ["LARDER_ENV", "LARDER_PARTITION"])
    func unknownVariable(variable: String) async throws {
        try await withStore { (store, parked, current) throws in
            let outcome = try await LarderProcess.run(
                ["env", "--store", store.path], environment: [variable: "nosuch"])
            #expect(outcome.status == 0, "\(outcome)")
            #expect(outcome.output.contains(parked) && outcome.output.contains(current), "\(outcome)")
            #expect(outcome.errors.contains("nosuch"), "\(outcome)")
        }
    }

    @Test("With --all a verb changes the transfers of the named environment or partition alone")
    func transfersOfOne() async throws {
        try await withStore { (place, parked, current) throws in
            let drafts = [parked, current].map { name in
                TransferDraft(
                    partition: name, kind: .download, bucket: "b", key: "k", path: "/\(name)", created: Date())
            }
            let users: [(String, Destination.User)] = [("staging", .user("ada")), ("production", .guest)]
            try await OperationsDatabase.using(place) { database in
                for (draft, user) in zip(drafts, users) {
                    let owner = Destination(environment: .stored(user.0), user: user.1)
                    try await database.environments.enter(owner, leaving: .park, now: Date())
                    try await database.transfers.enqueue([draft])
                }
            }
            for (verb, option) in [("pause", ["--env", "staging"]), ("cancel", ["--partition", current])] {
                let arguments = ["transfers", verb, "--all", "--write", "--store", place.path]
                let outcome = try await LarderProcess.run(arguments + option)
                #expect(outcome.status == 0, "\(outcome.errors)")
            }
            let states = try await OperationsDatabase.using(place) { database in
                try drafts.map { try database.transfers.find($0.id)?.state }
            }
            #expect(states == [.paused, .cancelled])
        }
    }

    @Test("An id finds a mutation in any partition, also where a variable names another environment or partition")
    func byID() async throws {
        try await withStore { (place, parked, current) throws in
            let listed = try await LarderProcess.run(["mutations", "--json", "--store", place.path])
            let id = try #require(listed.output.firstMatch(of: /"id":"([^"]+)"/)).1
            for variable in [["LARDER_ENV": "production"], ["LARDER_PARTITION": current]] {
                let shown = try await LarderProcess.run(
                    ["mutations", "show", String(id), "--store", place.path], environment: variable)
                #expect(shown.status == 0 && shown.output.contains("\npartition \(parked)\n"), "\(shown)")
            }
        }
    }

    @Test("The option --env overrides the variable LARDER_PARTITION")
    func optionOverVariable() async throws {
        try await withStore { (place, parked, current) throws in
            let info = try await LarderProcess.run(
                ["info", "--env", "production", "--json", "--store", place.path],
                environment: ["LARDER_PARTITION": parked])
            #expect(info.output.contains(#""partition":"\#(current)""#), "\(info)")
        }
    }

    @Test("env lists the partition of a program that names no environment, with the mutations that wait there")
    func unnamedWithQueue() async throws {
        try await TransferFixture.run { fixture in
            try await fixture.withPartition { app in
                _ = try await app.enqueue(GraphQLOperation("mutation { add(title: \"a\") { id } }"))
            }
            let listed = try await fixture.larder("env")
            #expect(listed.output.hasSuffix(" main no environment - 1 mutation\n"), "\(listed)")
        }
    }

    @Test("env says in JSON which environments are protected")
    func protected() async throws {
        try await CommandFixture.withFiles { fixture in
            for (name, more) in [("production", ["--protected"]), ("staging", [])] as [(String, [String])] {
                let add = ["env", "add", name, "--url", "https://\(name).example/", "--store", fixture.store]
                #expect(try await LarderProcess.run(program: "larder-migrate", add + more).status == 0)
            }
            let json = try await fixture.larder("env", "--json").output
            let told = json.matches(of: /"name":"([a-z]+)","definition":.+?,"isProtected":(true|false)/).map {
                "\($0.1) \($0.2)"
            }
            #expect(told == ["production true", "staging false"], "\(json)")
        }
    }

    @Test("The JSON of a watcher says how far it has come, and whose it is")
    func watcherPosition() async throws {
        try await TransferFixture.run { fixture in
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.watchers.put("w", in: "main", document: "{ photo(id: 1) { id } }", now: Date())
                try await database.watchers.note(
                    StoredWatcher.Position(epoch: 0xAB, number: 2), of: "w", in: "main", now: Date())
            }
            let json = try await fixture.larder("watchers", "--json").output
            #expect(json.contains(#""position":{"epoch":"ab","number":2},"partition":"main""#), "\(json)")
        }
    }

    @Test("With --env the mutations of all users of the environment are listed")
    func rowsOfAllUsers() async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schemaText: [Self.schema])
            for user in ["ada", "bob"] {
                let app = try await store.switch(to: .example("staging"), user: .user(user)).partition
                try await app.enqueue(GraphQLOperation("mutation { count }"))
            }
            _ = try await store.switch(to: .example("production"))
            try store.close()
            let listed = try await LarderProcess.run(["mutations", "--env", "staging", "--store", place.path])
            let lines = listed.output.split(separator: "\n")
            #expect(lines.count == 2, "\(listed)")
            for user in ["ada", "bob"] { #expect(lines.contains { $0.contains(" staging/\(user) ") }, "\(listed)") }
        }
    }

    @Test("discard --all discards the mutations that were set aside in every partition, not in the current one alone")
    func allPartitions() async throws {
        try await withStore { (place, _, _) throws in
            let store = try Store.open(at: place, schema: try Schema(parsing: Self.schema))
            try await store.partition().enqueue(GraphQLOperation("mutation { count }"))
            try store.close()
            try await OperationsDatabase.using(place) { database in
                for mutation in try database.mutations.list() { try await database.setAside(mutation.id) }
            }
            let done = try await LarderProcess.run(["mutations", "discard", "--all", "--write", "--store", place.path])
            #expect(done.status == 0 && done.output.split(separator: "\n").count == 2, "\(done)")
        }
    }

    @Test("info says in its result that the pins could not be read, also where the partition is named")
    func unreadPins() async throws {
        try await CommandFixture.withStore { fixture in
            try Loss.garbled.happen(to: URL(filePath: fixture.store))
            let info = try await fixture.larder("info", "--partition", "main", "--json")
            let unread = #""unread":[{"file":"larder.sqlite","code":"operations.foreign","#
            #expect(info.status == 0 && info.output.contains(unread), "\(info)")
        }
    }
}
