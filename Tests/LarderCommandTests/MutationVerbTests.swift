import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

/// The numbers, from 1, of the pages of a database that nothing is in:
/// https://www.sqlite.org/fileformat2.html#the_freelist
private func freePages(_ database: Data) -> Set<Int> {
    func number(_ offset: Int) -> Int { database[offset..<offset + 4].reduce(0) { $0 << 8 | Int($1) } }
    var (found, trunk) = (Set<Int>(), number(32))
    while trunk != 0, found.insert(trunk).inserted {
        let start = (trunk - 1) * 4_096
        for index in 0..<number(start + 4) { found.insert(number(start + 8 + index * 4)) }
        trunk = number(start)
    }
    return found
}

@Suite("The mutations that wait, from the command line", .timeLimit(.minutes(10)))
struct MutationVerbTests {
    private static let schema = """
        type Recipe { id: ID! stars: Int! }
        type Query { recipe(id: ID!): Recipe }
        type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
        """

    /// Refuses every mutation.
    private static let refusing = ScriptedServer { _ in
        #"{"data":null,"errors":[{"message":"no such\nrecipe"}]}"#
    }

    /// A store with one mutation that was set aside, and two that wait, one of them for it.
    private func withQueue(
        _ body: (_ store: String, _ dead: String, _ stalled: String, _ pending: String) async throws -> Void
    ) async throws {
        try await withTemporaryFolder { (parent) throws in
            let folder = parent.appending(path: "store")
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: Self.refusing)
            let operation = GraphQLOperation(
                "mutation Rate($recipe: ID!, $stars: Int!) { rate(recipe: $recipe, stars: $stars) { id stars } }",
                variables: ["recipe": "9", "stars": 5])
            let dead = try await app.enqueue(operation)
            try await MutationRunner(app).drain()
            let stalled = try await app.enqueue(operation, options: MutationOptions(dependencies: [dead.id]))
            let pending = try await app.enqueue(operation, options: MutationOptions(lane: "other"))
            try store.close()
            try await body(folder.path, "\(dead.id)", "\(stalled.id)", "\(pending.id)")
        }
    }

    @Test("Mutations are listed in their order, with states and failures on a line each")
    func list() async throws {
        try await withQueue { (store, dead, stalled, pending) throws in
            let all = try await LarderProcess.run(["mutations", "--store", store])
            #expect(all.status == 0)
            let lines = all.output.split(separator: "\n").map {
                $0.replacing(/\S+Z \(\d+ (s|min) ago\)/) { _ in "time" }
            }
            #expect(
                lines == [
                    "deadLetter \(dead) 1 - 1 Rate main time rejected: no such recipe",
                    "pending (stalled) \(stalled) 2 - 0 Rate main time", "pending \(pending) 3 other 0 Rate main time",
                ])
            let some = try await LarderProcess.run(
                ["mutations", "list", "--state", "pending", "--limit", "1", "--json", "--store", store])
            #expect(
                some.output.hasPrefix(
                    #"{"larder":1,"command":"mutations list","result":{"mutations":[{"id":"\#(stalled)","#))
            #expect(some.output.contains(#""hasMore":true"#))
        }
    }

    @Test("Clearing is refused while mutations are unsent, unless it is said what becomes of them")
    func clear() async throws {
        try await withQueue { (store, dead, _, pending) throws in
            let refused = try await LarderProcess.run(["clear", "--write", "--json", "--store", store])
            #expect(refused.status == 4)
            #expect(refused.errors.contains(#""code":"operations.unsentWork""#))
            #expect(refused.errors.contains("2 mutations that can be sent, 1 set aside"))
            let kept = try await LarderProcess.run(["clear", "--write", "--unsent", "keep", "--store", store])
            #expect(kept.status == 0)
            #expect(try await LarderProcess.run(["mutations", "--store", store]).output.contains(pending))
            let discarded = try await LarderProcess.run(["clear", "--write", "--unsent", "discard", "--store", store])
            #expect(discarded.status == 0)
            #expect(try await LarderProcess.run(["mutations", "--store", store]).output.isEmpty)
            #expect(
                try await LarderProcess.run(["mutations", "show", dead, "--store", store]).output.contains("discarded"))
            #expect(
                try await LarderProcess.run(["clear", "--write", "--unsent", "perhaps", "--store", store]).status == 2)
        }
    }

    @Test("Of one that took effect in part it is shown what failed")
    func partial() async throws {
        try await withTemporaryFolder { (parent) throws in
            let folder = parent.appending(path: "store")
            let schema = Self.schema.replacing("stars: Int!): Recipe!", with: "stars: Int!): Recipe")
            let store = try Store.open(at: folder, schema: try Schema(parsing: schema))
            let app = try store.partition(server: Self.partial)
            let receipt = try await app.enqueue(
                GraphQLOperation(
                    """
                    mutation { a: rate(recipe: 1, stars: 5) { id } b: rate(recipe: 2, stars: 5) { id } }
                    """))
            try await MutationRunner(app).drain()
            try store.close()
            let shown = try await LarderProcess.run(["mutations", "show", "\(receipt.id)", "--store", folder.path])
            #expect(shown.status == 0)
            #expect(shown.output.contains("no such recipe"))
            let json = try await LarderProcess.run(
                ["mutations", "show", "\(receipt.id)", "--json", "--store", folder.path])
            #expect(json.output.contains(#""errors":[{"message":"no such recipe","path":["b"]}]"#))
        }
    }

    /// Carries out the first field of a mutation alone.
    private static let partial = ScriptedServer { _ in
        """
        {"data":{"a":{"__typename":"Recipe","id":"1"},"b":null},
         "errors":[{"message":"no such recipe","path":["b"]}]}
        """
    }

    @Test("A mutation is shown whole, edited, replayed and discarded, and each change wants --write")
    func work() async throws {
        try await withQueue { (store, dead, stalled, _) throws in
            let shown = try await LarderProcess.run(["mutations", "show", dead, "--json", "--store", store])
            #expect(shown.status == 0)
            #expect(shown.output.contains(#""variables":{"recipe":"9","stars":5}"#))
            #expect(shown.output.contains(#""document":"mutation Rate("#))
            #expect(shown.output.contains(#""failure":{"kind":"rejected","code":null,"message":"no such\nrecipe""#))
            let variables = URL(filePath: store).appending(path: "variables.json")
            try Data(#"{"recipe":"1","stars":4}"#.utf8).write(to: variables)
            for verb in [["edit", dead, "--variables", variables.path], ["replay", dead], ["discard", dead]] {
                let refused = try await LarderProcess.run(["mutations"] + verb + ["--store", store])
                #expect(refused.status == 4)
            }
            let edited = try await LarderProcess.run(
                ["mutations", "edit", dead, "--variables", variables.path, "--write", "--store", store])
            #expect(edited.status == 0)
            #expect(
                try await LarderProcess.run(["mutations", "show", dead, "--store", store])
                    .output.contains(#"variables {"recipe":"1","stars":4}"#))
            #expect(
                try await LarderProcess.run(["mutations", "replay", dead, "--write", "--store", store]).status == 0)
            let again = try await LarderProcess.run([
                "mutations", "discard", dead, "--write", "--json", "--store", store,
            ])
            #expect(again.status == 4)
            #expect(again.errors.contains(#""command":"mutations discard","error":{"code":"operations.wrongState""#))
            #expect(
                try await LarderProcess.run(["mutations", "--state", "pending", "--store", store])
                    .output.contains("pending \(stalled) 2"))
        }
    }

    @Test("Variables that are no object are refused, and the mutation keeps its own", arguments: ["[]", "7", "{"])
    func unusable(text: String) async throws {
        try await withQueue { (store, dead, _, _) throws in
            let variables = URL(filePath: store).appending(path: "variables.json")
            try Data(text.utf8).write(to: variables)
            let edited = try await LarderProcess.run(
                ["mutations", "edit", dead, "--variables", variables.path, "--write", "--store", store])
            #expect(edited.status == 2, "\(edited.errors)")
            let shown = try await LarderProcess.run(["mutations", "show", dead, "--json", "--store", store])
            #expect(shown.output.contains(#""variables":{"recipe":"9","stars":5}"#))
        }
    }

    @Test("A discarded mutation is known as such, and takes its dependents along")
    func discard() async throws {
        try await withQueue { (store, dead, stalled, _) throws in
            let discarded = try await LarderProcess.run(
                ["mutations", "discard", dead, "--write", "--json", "--store", store])
            #expect(discarded.output.contains(#""setAside":["\#(stalled)"]"#))
            let shown = try await LarderProcess.run(["mutations", "show", dead, "--store", store])
            #expect(shown.output.hasPrefix("discarded \(dead) 1 "))
            #expect(
                try await LarderProcess.run(["mutations", "--state", "deadLetter", "--store", store])
                    .output.contains(/deadLetter \S+ 2 - 0 Rate main \S+Z \(\d+ (s|min) ago\) dependencyDiscarded/))
        }
    }

    @Test("What depends on a discarded mutation may be released from waiting for it")
    func release() async throws {
        try await withQueue { (store, dead, stalled, _) throws in
            let discarded = try await LarderProcess.run(
                ["mutations", "discard", dead, "--dependents", "release", "--write", "--json", "--store", store])
            #expect(discarded.output.contains(#""setAside":[]"#), "\(discarded.errors)")
            let shown = try await LarderProcess.run(["mutations", "show", stalled, "--json", "--store", store])
            #expect(shown.output.contains(#""state":"pending","isStalled":false"#), "\(shown.output)")
            #expect(shown.output.contains(#""dependencies":[]"#), "\(shown.output)")
        }
    }

    @Test("A missing mutation, a bad id, no store and a damaged file each have their exit status")
    func failures() async throws {
        try await withQueue { (store, _, _, _) throws in
            let id = UUID().uuidString
            #expect(try await LarderProcess.run(["mutations", "show", id, "--store", store]).status == 3)
            #expect(try await LarderProcess.run(["mutations", "replay", id, "--write", "--store", store]).status == 3)
            #expect(try await LarderProcess.run(["mutations", "show", "x", "--store", store]).status == 2)
            #expect(try await LarderProcess.run(["mutations", "--state", "x", "--store", store]).status == 2)
            #expect(try await LarderProcess.run(["mutations", "--store", store + "/none"]).status == 1)
            let file = URL(filePath: store).appending(path: "larder.sqlite")
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
            try Data(repeating: 7, count: 8192).write(to: file)
            #expect(try await LarderProcess.run(["mutations", "--store", store]).status == 4)
        }
    }

    @Test("check looks into larder.sqlite as well, counts what is there, and ends with 5 where it is damaged")
    func check() async throws {
        try await withQueue { (store, _, _, _) throws in
            let sound = try await LarderProcess.run(["check", "--json", "--store", store])
            #expect(sound.status == 0, "\(sound.errors)")
            #expect(sound.output.contains(#""mutations":3,"outcomes":0,"watchers":0,"exposed":[]}"#))
            let file = URL(filePath: store).appending(path: "larder.sqlite")
            // Closing has put all that the log held into the file.
            for suffix in ["-wal", "-shm"] { try? FileManager.default.removeItem(atPath: file.path + suffix) }
            #expect(try await LarderProcess.run(["mutations", "--store", store]).output.contains("deadLetter"))
            // A page that somebody uses, and that nobody reads at opening.
            var bytes = try Data(contentsOf: file)
            let free = freePages(bytes)
            let page = try #require((8..<bytes.count / 4_096).last { !free.contains($0 + 1) })
            bytes[page * 4_096 + 3] ^= 0xff
            try bytes.write(to: file)
            let json = try await LarderProcess.run(["check", "--json", "--store", store])
            #expect(json.status == 5)
            #expect(json.output == "")
            #expect(json.errors.contains(#""code":"command.findings""#))
            #expect(json.errors.contains(#""findings":["larder.sqlite: integrity: "#))
            #expect(!json.errors.contains("clear it"))
            let text = try await LarderProcess.run(["check", "--store", store])
            #expect(text.status == 5)
            #expect(text.errors.hasPrefix("larder: larder.sqlite: integrity: "))
            #expect(text.errors.contains("restore a backup"))
            // What is no database at all is not known to be damaged: it may be somebody else's file.
            try Data(repeating: 7, count: 8_192).write(to: file)
            let foreign = try await LarderProcess.run(["check", "--store", store])
            #expect(foreign.status == 4)
            #expect(foreign.errors.contains("\nlarder: larder.sqlite is no SQLite database"))
        }
    }

    @Test("Changes are listed with their objects, after a number, and as they come")
    func changes() async throws {
        try await withQueue { (store, _, _, _) throws in
            let open = try Store.open(at: URL(filePath: store), schema: try Schema(parsing: Self.schema))
            let app = try open.partition()
            let stars = GraphQLFragment("fragment F on Recipe { stars }")
            for number in 1...3 { try await app.write("Recipe:\(number)", stars, ["stars": 1]) }
            try await app.remove("Recipe:3", as: .evicted)
            let inbox = try await app.watch(named: "inbox", GraphQLOperation("{ recipe(id: 1) { stars } }"))
            var states = inbox.makeAsyncIterator()
            _ = try await states.next()
            try open.close()
            let all = try await LarderProcess.run(["changes", "--store", store])
            #expect(all.status == 0)
            #expect(all.output.hasPrefix("1 Recipe:1\n2 Recipe:2\n3 #"))
            let some = try await LarderProcess.run(
                ["changes", "--since", "1", "--count", "1", "--json", "--store", store])
            #expect(
                some.output.contains(
                    #""changes":[{"number":2,"keys":["Recipe:2"],"isEverything":false}],"hasMore":true"#))
            let followed = try await LarderProcess.run(["changes", "--follow", "--count", "2", "--store", store])
            #expect(followed.output == "1 Recipe:1\n2 Recipe:2\n")
            let watchers = try await LarderProcess.run(["watchers", "--store", store])
            #expect(watchers.output == "inbox main - - { recipe(id: 1) { stars } }\n")
        }
    }

    @Test("A mutation is shown with the time at which it expires, in JSON too, and without that where it does not")
    func expiry() async throws {
        try await withTemporaryFolder { parent in
            let folder = parent.appending(path: "store")
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try store.partition(server: Self.refusing)
            let operation = GraphQLOperation("mutation { rate(recipe: 1, stars: 5) { id } }")
            let time = Date(timeIntervalSince1970: 4_000_000_000)
            let bounded = try await app.enqueue(operation, options: MutationOptions(expires: time)).id
            let endless = try await app.enqueue(operation).id
            try store.close()
            for (id, isBounded) in [(bounded, true), (endless, false)] {
                let shown = try await LarderProcess.run(["mutations", "show", "\(id)", "--store", folder.path])
                #expect(shown.output.contains("\nexpires 2096-10-02T07:06:40Z (in ") == isBounded, "\(shown)")
                let json = try await LarderProcess.run(["mutations", "show", "\(id)", "--json", "--store", folder.path])
                let member = isBounded ? #""expires":"2096-10-02T07:06:40Z""# : #""expires":null"#
                #expect(json.output.contains(member), "\(json)")
            }
        }
    }

    @Test("A mutation is shown in JSON with what it waits for, and with the answer that it expects")
    func waiting() async throws {
        try await TransferFixture.run { fixture in
            let upload = try await fixture.upload()
            let (first, second) = try await fixture.withPartition { app in
                let first = try await app.enqueue(GraphQLOperation("mutation { add(title: \"a\") { id } }")).id
                let second = try await app.enqueue(
                    GraphQLOperation("mutation Add($file: S3ObjectInput) { add(title: \"b\", file: $file) { id } }"),
                    options: MutationOptions(
                        dependencies: [first], files: [MutationFile(app.transfers[TransferID(upload)], in: "file")],
                        optimisticResponse: ["add": ["__typename": "Photo", "id": "1"]])
                ).id
                return (first, second)
            }
            let shown = try await fixture.larder("mutations", "show", "\(second)", "--json").output
            #expect(shown.contains(#""dependencies":["\#(first)"]"#), "\(shown)")
            #expect(shown.contains(#""transfers":["\#(upload.text)"]"#), "\(shown)")
            #expect(shown.contains(#""optimisticResponse":{"add":{"#), "\(shown)")
        }
    }

    @Test("A mutation that took effect is shown in JSON as applied, with what was kept of its answer")
    func applied() async throws {
        try await withQueue { (store, _, _, pending) throws in
            let id = try #require(UUID(uuidString: pending))
            try await OperationsDatabase.using(URL(filePath: store)) {
                try await $0.settle(id, result: Array(#"{"n":1}"#.utf8))
            }
            let shown = try await LarderProcess.run(["mutations", "show", pending, "--json", "--store", store]).output
            #expect(shown.contains(#"{"id":"\#(pending)","sequence":3,"state":"applied","#), "\(shown)")
            #expect(shown.contains(#","result":{"n":1},"#), "\(shown)")
        }
    }

    @Test("A mutation that was set aside is shown in words with the reason")
    func shownFailure() async throws {
        try await withQueue { (store, dead, _, _) throws in
            let shown = try await LarderProcess.run(["mutations", "show", dead, "--store", store])
            #expect(shown.status == 0 && shown.output.hasPrefix("deadLetter \(dead) "), "\(shown)")
            #expect(shown.output.contains(" rejected: no such recipe\n"), "\(shown)")
        }
    }

    @Test("JSON says which mutation is stalled: the one that waits for a mutation that was set aside")
    func stalled() async throws {
        try await withQueue { (store, dead, stalled, pending) throws in
            let listed = try await LarderProcess.run(["mutations", "--json", "--store", store]).output
            for (number, id, state, isStalled) in [
                (1, dead, "deadLetter", false), (2, stalled, "pending", true), (3, pending, "pending", false),
            ] {
                let row = #"{"id":"\#(id)","sequence":\#(number),"state":"\#(state)","isStalled":\#(isStalled),"#
                #expect(listed.contains(row), "\(listed)")
            }
        }
    }

    @Test("With --all the JSON names each discarded mutation, and the mutations that were set aside because of it")
    func discardedInJSON() async throws {
        try await withQueue { (store, dead, stalled, _) throws in
            let done = try await LarderProcess.run(
                ["mutations", "discard", "--all", "--write", "--json", "--store", store])
            let changed = #""changed":[{"id":"\#(dead)","setAside":["\#(stalled)"]}],"refused":[]"#
            #expect(done.output.contains(changed), "\(done)")
        }
    }

    @Test("A mutation is shown in JSON with its idempotency key, and a settled one with the time when it settled")
    func shownKey() async throws {
        try await TransferFixture.run { fixture in
            let draft = MutationDraft(
                partition: "main", idempotencyKey: "the program's own",
                content: MutationContent(document: "mutation { add(title: 1) { id } }"), created: Date())
            let id = draft.id.text
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.mutations.enqueue(draft)
            }
            let queued = try await fixture.larder("mutations", "show", id, "--json").output
            #expect(queued.contains(#""idempotencyKey":"the program's own","#), "\(queued)")
            let time = Date(timeIntervalSince1970: 1_800_000_000)
            try await OperationsDatabase.using(URL(filePath: fixture.store)) {
                try await $0.settle(draft.id, now: time)
            }
            let settled = try await fixture.larder("mutations", "show", id, "--json").output
            #expect(settled.contains(#""state":"applied","settled":"2027-01-15T08:00:00Z","#), "\(settled)")
        }
    }

    @Test("On a terminal the state of a mutation that was set aside has a colour")
    func coloured() async throws {
        try await withQueue { (store, _, _, _) throws in
            let terminal = try Terminal(["mutations", "--store", store])
            #expect(await terminal.finish() == 0)
            #expect(terminal.shown.hasPrefix("\u{1B}[31mdeadLetter\u{1B}[0m"), "\(terminal.shown)")
        }
    }

    @Test("A mutation is shown with how long ago it was queued")
    func shownCreation() async throws {
        try await withQueue { (store, _, _, pending) throws in
            let shown = try await LarderProcess.run(["mutations", "show", pending, "--store", store])
            #expect(shown.output.contains(/\ncreated \S+Z \(\d+ (s|min) ago\)\n/), "\(shown)")
        }
    }

    @Test("A mutation that has ended is shown with how long ago that was")
    func shownEnd() async throws {
        try await withQueue { (store, dead, _, _) throws in
            let done = try await LarderProcess.run(["mutations", "discard", dead, "--write", "--store", store])
            #expect(done.status == 0, "\(done.errors)")
            let shown = try await LarderProcess.run(["mutations", "show", dead, "--store", store])
            #expect(shown.output.contains(/^discarded \S+ 1 \S+Z \(\d+ (s|min) ago\)/), "\(shown)")
        }
    }

    @Test("JSON counts the attempts of each mutation")
    func attempts() async throws {
        try await withQueue { (store, dead, stalled, pending) throws in
            let listed = try await LarderProcess.run(["mutations", "--json", "--store", store]).output
            let counts = listed.matches(of: /"id":"([^"]+)",[^{}]*?"attempts":(\d+),/).map { "\($0.1) \($0.2)" }
            #expect(counts == ["\(dead) 1", "\(stalled) 0", "\(pending) 0"], "\(listed)")
        }
    }

    @Test("A discarded mutation is shown in JSON with the reason for which it had been set aside")
    func discardedReason() async throws {
        try await withQueue { (store, dead, _, _) throws in
            let discarded = try await LarderProcess.run(["mutations", "discard", dead, "--write", "--store", store])
            #expect(discarded.status == 0, "\(discarded.errors)")
            let shown = try await LarderProcess.run(["mutations", "show", dead, "--json", "--store", store]).output
            #expect(shown.contains(#""state":"discarded","#), "\(shown)")
            #expect(shown.contains(#","failure":{"kind":"rejected","#), "\(shown)")
        }
    }

    @Test("JSON gives the code and the time of a mutation's failure")
    func failureInJSON() async throws {
        try await withQueue { (store, _, _, pending) throws in
            let id = try #require(UUID(uuidString: pending))
            let time = Date(timeIntervalSince1970: 1_800_000_000)
            for (isSetAside, code) in [(false, "BUSY"), (true, "TOO_LATE")] {
                try await OperationsDatabase.using(URL(filePath: store)) { database in
                    let failure = MutationFailure(.rejected, code: code, message: "no", time: time)
                    if isSetAside {
                        try await database.mutations.setAside(id, expecting: .pending, failure, now: time)
                    } else {
                        let attempt = try await database.mutations.begin(id, owner: "test", now: time).attempt
                        try await database.mutations.retryLater(attempt, at: time, failure, now: time)
                    }
                }
                let listed = try await LarderProcess.run(["mutations", "--json", "--store", store]).output
                let failure = #""failure":{"kind":"rejected","code":"\#(code)","message":"no","#
                #expect(listed.contains(failure + #""time":"2027-01-15T08:00:00Z"}"#), "\(listed)")
            }
        }
    }

    @Test("A mutation that has ended is shown in JSON with its partition, its environment and its user")
    func endedOwner() async throws {
        try await withTemporaryFolder { (parent) throws in
            let folder = parent.appending(path: "store")
            let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
            let app = try await store.switch(to: .example("staging"), user: .user("ada")).partition
            let id = try await app.enqueue(GraphQLOperation("mutation { rate(recipe: 1, stars: 5) { id } }")).id
            let name = try #require(try store.current()).name
            try store.close()
            try await OperationsDatabase.using(folder) { try await $0.settle(id.uuid) }
            let shown = try await LarderProcess.run(["mutations", "show", "\(id)", "--json", "--store", folder.path])
            let owner = #""partition":"\#(name)","environment":"staging","user":"ada""#
            #expect(shown.output.contains(#""state":"applied""#) && shown.output.contains(owner), "\(shown)")
        }
    }

    @Test("JSON says when a mutation was queued, and names no operation where its document names none")
    func queuedTime() async throws {
        try await TransferFixture.run { fixture in
            let draft = MutationDraft(
                partition: "main", content: MutationContent(document: "mutation { add(title: 1) { id } }"),
                created: Date(timeIntervalSince1970: 1_800_000_000))
            try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                _ = try await database.mutations.enqueue(draft)
            }
            for verb in [["mutations"], ["mutations", "show", draft.id.text]] {
                let told = try await LarderProcess.run(verb + ["--json", "--store", fixture.store]).output
                #expect(told.contains(#","operation":null,"created":"2027-01-15T08:00:00Z","#), "\(told)")
            }
        }
    }
}
