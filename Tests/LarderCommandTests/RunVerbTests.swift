import Foundation
import Larder
import LarderCommandLine
import LarderOperations
import LarderTestSupport
import RecipeServer
import Testing

@testable import LarderCommand

@Suite("send, enqueue and run", .timeLimit(.minutes(10)))
struct RunVerbTests {
    private static let rate = """
        mutation Rate($id: ID!, $stars: Int!) { rateRecipe(id: $id, stars: $stars) { __typename id rating } }
        """
    private static let read = "query Q { recipe(id: 2) { __typename id rating } }"

    /// A store of a running server's schema, into which one query was fetched.
    private func withServer(
        _ body: (_ fixture: CommandFixture, _ server: RecipeServer, _ run: [String]) async throws -> Void
    ) async throws {
        try await CommandFixture.withRecipes { fixture, server in
            let endpoint = ["--endpoint", server.url.absoluteString]
            let fetched = try await fixture.larder(
                ["fetch", "--schema", fixture.path("recipes.graphqls")] + endpoint
                    + ["--operation", fixture.write(Self.read, to: "q.graphql")])
            try #require(fetched.status == 0, "\(fetched.errors)")
            try fixture.write(Self.rate, to: "rate.graphql")
            try await body(fixture, server, ["run", "--until-idle"] + endpoint)
        }
    }

    private func rating(_ fixture: CommandFixture, of id: String = "2", _ stars: Int) throws -> [String] {
        let variables = try fixture.write(#"{"id":"\#(id)","stars":\#(stars)}"#, to: "rating-\(id)-\(stars).json")
        return ["--operation", fixture.path("rate.graphql"), "--variables", variables]
    }

    @Test("run keeps the cache within its bounds, and says where it cannot")
    func bounds() async throws {
        try await withServer { fixture, _, run in
            let query = ["query", "--operation", fixture.path("q.graphql")]
            let young = try await fixture.larder(run + ["--max-age", "3600"])
            #expect(young.status == 0, "\(young.errors)")
            #expect(try await fixture.larder(query).status == 0)
            // Nothing may go of what is in use, and that keeps the bound.
            let pin = try await fixture.larder("pin", "all", "--operation", fixture.path("q.graphql"))
            #expect(pin.status == 0, "\(pin.errors)")
            #expect(try await fixture.larder("gc", "--max-bytes", "0", "--write").status == 1)
            func bytesInUse() async throws -> Int {
                let info = try await fixture.larder("gc", "--json")
                return try #require(info.output.firstMatch(of: /"bytesInUse":([0-9]+)/).flatMap { Int($0.1) })
            }
            let inUse = try await bytesInUse()
            // What is not in use goes, and that keeps the bound, though somewhat less is aimed at.
            let more = try fixture.write(
                "query R { recipes(first: 100) { items { __typename id title } } }", to: "more.graphql")
            let fetched = try await fixture.larder(["fetch", "--operation", more] + run.suffix(2))
            #expect(fetched.status == 0, "\(fetched.errors)")
            #expect(try await bytesInUse() > inUse)
            let kept = try await fixture.larder(run + ["--max-bytes", "\(inUse)"])
            #expect(!kept.errors.contains("bounds"), "\(kept.errors)")
            #expect(try await bytesInUse() <= inUse)
            #expect(try await fixture.larder("unpin", "all").status == 0)
            let small = try await fixture.larder(run + ["--max-bytes", "1"])
            #expect(small.status == 0)
            #expect(small.errors.contains("the cache does not keep within its bounds"), "\(small.errors)")
            #expect(try await fixture.larder(query).status == 3)
            for option in ["--max-bytes", "--max-age"] {
                #expect(try await fixture.larder(run + ["\(option)=-1"]).status == 2)
            }
        }
    }

    @Test("What is queued is shown at once, sent by run in its order, and found to be applied; no schema is named")
    func drains() async throws {
        try await withServer { fixture, server, run in
            let optimistic = try fixture.write(
                #"{"rateRecipe":{"__typename":"Recipe","id":"2","rating":1.5}}"#, to: "optimistic.json")
            let first = try await fixture.larder(["enqueue", "--optimistic", optimistic] + rating(fixture, 1))
            #expect(first.status == 0, "\(first.errors)")
            let query = ["query", "--operation", fixture.path("q.graphql")]
            #expect(try await fixture.larder(query).output.contains(#""rating":1.5"#))
            let second = try await fixture.larder(["enqueue", "--lane", "main"] + rating(fixture, 4))
            let queued = try await fixture.larder("mutations", "--json")
            #expect(queued.output.contains(#""partition":"main","environment":null,"user":null"#), "\(queued.output)")
            let done = try await fixture.larder(run)
            #expect(done.status == 0, "\(done.errors)")
            let ids = [first, second].map { $0.output.trimmingCharacters(in: .newlines) }
            #expect(Set(done.output.split(separator: "\n")) == Set(ids.map { "applied \($0)" }), "\(done.output)")
            #expect(done.errors.contains("2 mutations applied, 0 set aside"))
            #expect(try await fixture.larder("mutations").output == "")
            let again = try await fixture.larder(run + ["--json"])
            #expect(again.output.contains(#""result":{"isIdle":true,"sent":0,"setAside":[]"#), "\(again.errors)")
        }
    }

    @Test("What the server refuses is set aside with status 1, by that run alone, and is replayed at once with --write")
    func setsAside() async throws {
        try await withServer { fixture, server, run in
            var ids: Set<String> = []
            for stars in 1...2 {
                let queued = try await fixture.larder(["enqueue"] + rating(fixture, of: "no-such", stars))
                #expect(queued.status == 0, "\(queued.errors)")
                ids.insert(queued.output.trimmingCharacters(in: .newlines))
            }
            let refused = try await fixture.larder(run)
            #expect(refused.status == 1, "\(refused.errors)")
            #expect(refused.output.split(separator: "\n").count { $0.hasPrefix("set aside ") } == 2)
            let asked = try await fixture.larder("mutations", "replay", "--state", "deadLetter", "--all")
            #expect(asked.status == 4 && asked.errors.contains("would change 2 mutations"), "\(asked.errors)")
            let elsewhere = try await fixture.larder(
                "mutations", "replay", "--all", "--partition", "x", "--write", "--json")
            #expect(elsewhere.status == 3 && elsewhere.errors.contains("operations.unknownPartition"))
            let replayed = try await fixture.larder("mutations", "replay", "--state", "deadLetter", "--all", "--write")
            #expect(replayed.status == 0, "\(replayed.errors)")
            #expect(replayed.output.split(separator: "\n").count { $0.hasPrefix("replayed ") } == 2)
            #expect(
                try await fixture.larder("mutations", "--state", "pending").output.split(separator: "\n").count == 2)
            let json = try await fixture.larder(run + ["--json"])
            let named = json.output.firstMatch(of: /"sent":0,"setAside":\["([^\]]*)"\]/)?.1.split(separator: "\",\"")
            #expect(Set(named?.map { String($0) } ?? []) == ids && json.status == 1, "\(json)")
            let next = try await fixture.larder(run)
            #expect(next.status == 0 && next.output == "" && next.errors.contains("0 set aside"), "\(next)")
        }
    }

    @Test("A run that cannot reach the server says what it waits for, gives up in time, and names what remains")
    func givesUp() async throws {
        try await withServer { fixture, server, run in
            let queued = try await fixture.larder(["enqueue"] + rating(fixture, 4))
            let id = queued.output.trimmingCharacters(in: .newlines)
            let nowhere = ["run", "--endpoint", "http://127.0.0.1:1/", "--until-idle", "--give-up-after", "1"]
            let outcome = try await fixture.larder(nowhere)
            #expect(outcome.status == 1)
            #expect(outcome.errors.contains("waiting: mutation \(id) is tried again after pauses: No connection"))
            #expect(outcome.errors.contains("Nothing was carried out for 1 s, and 1 mutation remains: mutation \(id)"))
            #expect(outcome.errors.contains("hint: what is queued stays queued"), "\(outcome.errors)")
            let json = try await fixture.larder(nowhere + ["--json"])
            #expect(json.status == 1 && json.errors.contains(#""code":"command.remaining""#))
            #expect(json.output.contains(#""isIdle":false"#))
            #expect(json.output.contains(#""remaining":["\#(id)"],"remainingTransfers":[]"#))
            #expect(try await fixture.larder(Array(nowhere.dropLast(3)) + ["--give-up-after", "1"]).status == 2)
            let sent = try await fixture.larder(run)
            #expect(sent.status == 0 && sent.output == "applied \(id)\n", "\(sent.errors)")
        }
    }

    @Test("A mutation whose proof of who asks was refused waits for a sign-in; any other is tried again after pauses")
    func waitsForSignIn() async throws {
        for (status, waits) in [(401, "waits for a sign-in: who?"), (429, "is tried again after pauses: who?")] {
            let server = ScriptedServer { _ in throw TransportError(.status, "who?", status: status) }
            try await withTemporaryFolder { folder in
                let store = try Store.open(
                    at: folder.appending(path: "store"), schema: try Schema(parsing: RecipeServer.schema))
                let app = try store.partition(server: server)
                let id = try await app.enqueue(GraphQLOperation(Self.rate, variables: ["id": "2", "stars": 4])).id
                var news = try RunNews(app)
                let service = Task { try await MutationRunner(app).run() }
                try await eventually { try app.mutation(id).status()?.failure != nil }
                service.cancel()
                _ = try? await service.value
                try news.tell(app)
                #expect(news.waits() == ["waiting: mutation \(id) \(waits)"])
                // Once, however often it is looked at.
                #expect(news.waits() == [])
                // Why an earlier run could not carry it out is no news of the next one.
                var next = try RunNews(app)
                try next.tell(app)
                #expect(next.waits() == [] && !next.isEmpty)
                let message = next.remaining(givingUpAfter: nil).message
                #expect(message.hasSuffix("mutation \(id); the last failure is: who?"), "\(message)")
                try store.close()
            }
        }
    }

    @Test("A run that is interrupted before it is idle says so by its status")
    func interrupted() async throws {
        try await withServer { fixture, server, _ in
            _ = try await fixture.larder(["enqueue"] + rating(fixture, 4))
            let running = try LarderProcess.start([
                "run", "--endpoint", "http://127.0.0.1:1/", "--until-idle", "--store", fixture.store,
            ])
            let deadline = SuspendingClock.now + .seconds(60)
            while !running.errors.contains("waiting:"), .now < deadline { try await Task.sleep(for: .milliseconds(10)) }
            running.interrupt()
            let outcome = try await running.finish()
            #expect(outcome.status == 1 && outcome.errors.contains("The run was interrupted, and 1 mutation remains"))
        }
    }

    @Test("A mutation is sent past the queue and its answer stored; one that cannot be sent leaves nothing")
    func sends() async throws {
        try await withServer { fixture, server, run in
            let endpoint = Array(run.suffix(2))
            let sent = try await fixture.larder(["send"] + endpoint + rating(fixture, 5))
            #expect(sent.status == 0, "\(sent.errors)")
            #expect(sent.output.hasPrefix(#"{"data":{"rateRecipe":{"#))
            let written = /larder: \d+ records? created, \d+ changed, 0 removed; the store has \d+ bytes/
            #expect(sent.errors.contains(written), "\(sent.errors)")
            let failed = try await fixture.larder(
                ["send", "--endpoint", "http://127.0.0.1:1/"] + rating(fixture, 5))
            #expect(failed.status == 1)
            #expect(failed.errors.contains("hint: "))
            #expect(try await fixture.larder("mutations").output == "")
        }
    }

    @Test(
        "run carries out transfers where a storage is named, and the mutations that wait for them",
        .enabled(if: StorageServer.isAvailable, "\(StorageServer.requirement)"))
    func transfers() async throws {
        try await StorageServer.run { storage in
            try await TransferFixture.run { fixture in
                let server = try await RecipeServer.start()
                let place = ObjectLocation(bucket: storage.bucket, key: "a", region: StorageServer.region)
                let id = try await fixture.upload(to: place)
                let idle = [
                    "run", "--until-idle", "--endpoint", server.url.absoluteString, "--store", fixture.store,
                ]
                let without = try await LarderProcess.run(idle)
                #expect(without.status == 0, "\(without.errors)")
                #expect(without.errors.contains("1 transfer stays queued, and cannot be carried out here"))
                #expect(try await fixture.state(of: id) == .pending)
                let outcome = try await LarderProcess.run(
                    idle + [
                        "--object-region", StorageServer.region, "--object-endpoint", storage.url.absoluteString,
                        "--path-style",
                    ],
                    environment: [
                        "AWS_ACCESS_KEY_ID": storage.accessKeyID, "AWS_SECRET_ACCESS_KEY": storage.secretAccessKey,
                    ])
                try await server.stop()
                #expect(outcome.status == 0, "\(outcome.errors)")
                #expect(outcome.output == "done upload \(id.text)\n")
                #expect(outcome.errors.contains("; 1 transfer done, 0 failed\n"), "\(outcome.errors)")
                #expect(try await fixture.state(of: id) == .done)
            }
        }
    }

    @Test("LARDER_ENV and --env name the environment that a verb works with, and an unknown one is a miss")
    func environments() async throws {
        try await withTemporaryFolder { (folder) throws in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schemaText: ["type Query { n: Int } type Mutation { count: Int }"])
            for name in ["staging", "production"] {
                let app = try await store.switch(to: .example(name)).partition
                try await app.write(GraphQLOperation("{ n }"), json: Array(#"{"n":\#(name.count)}"#.utf8))
                try await app.enqueue(GraphQLOperation("mutation \(name) { count }"))
            }
            try store.close()
            let operation = folder.appending(path: "n.graphql")
            try Data("{ n }".utf8).write(to: operation)
            func run(_ variable: String?, _ arguments: String...) async throws -> Outcome {
                try await LarderProcess.run(
                    arguments + ["--store", place.path], environment: variable.map { ["LARDER_ENV": $0] } ?? [:])
            }
            #expect(try await run(nil, "query", "--operation", operation.path).output.contains(#""n":10"#))
            #expect(try await run("staging", "query", "--operation", operation.path).output.contains(#""n":7"#))
            let chosen = try await run("staging", "query", "--operation", operation.path, "--env", "production")
            #expect(chosen.output.contains(#""n":10"#))
            let unknown = try await run("x", "query", "--operation", operation.path, "--json")
            #expect(unknown.status == 3 && unknown.errors.contains("operations.unknownEnvironment"))
            let all = try await run(nil, "mutations").output.split(separator: "\n")
            #expect(
                all.count == 2 && all[0].contains(" staging staging ") && all[1].contains(" production production "))
            let some = try await run("production", "mutations").output.split(separator: "\n")
            #expect(some.count == 1 && some[0].contains(" production "))
        }
    }

    @Test("A run says in which other partitions mutations wait, and of none where all were set aside")
    func othersWait() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            let store = try Store.open(at: place, schemaText: ["type Query { n: Int } type Mutation { count: Int }"])
            var names: [String] = []
            for name in ["waiting", "failed", "current"] {
                let app = try await store.switch(to: .example(name)).partition
                names.append(try #require(try store.current()).name)
                let id = try await app.enqueue(GraphQLOperation("mutation { count }")).id
                if name == "failed" { try await OperationsDatabase.using(place) { try await $0.setAside(id.uuid) } }
            }
            try store.close()
            let outcome = try await LarderProcess.run([
                "run", "--until-idle", "--give-up-after", "0.1", "--endpoint", "http://127.0.0.1:1/", "--store",
                place.path,
            ])
            #expect(outcome.status == 1, "\(outcome.errors)")
            let text = "in partition \(names[0]), which is not the current one, wait 1 mutation\n"
            #expect(outcome.errors.contains(text), "\(outcome.errors)")
            for name in names[1...] { #expect(!outcome.errors.contains("in partition \(name)"), "\(outcome.errors)") }
        }
    }

    @Test("Where another process carries the work out, run stands by and says so")
    func standsBy() async throws {
        try await withServer { fixture, _, _ in
            _ = try await fixture.larder(["enqueue"] + rating(fixture, 4))
            let arguments = ["run", "--endpoint", "http://127.0.0.1:1/", "--store", fixture.store]
            let working = try LarderProcess.start(arguments)
            let deadline = SuspendingClock.now + .seconds(60)
            while !working.errors.contains("waiting: "), .now < deadline {
                try await Task.sleep(for: .milliseconds(10))
            }
            let other = try await LarderProcess.run(arguments + ["--until-idle", "--give-up-after", "2"])
            working.interrupt()
            let outcome = try await working.finish()
            #expect(outcome.status == 0 && !outcome.errors.contains("standing by"), "\(outcome.errors)")
            let said = "another process carries out what waits here; standing by"
            #expect(other.status == 1 && other.errors.contains(said), "\(other.errors)")
        }
    }

    @Test("A mutation whose answer is lost is set aside, and sent again where the server tells a repeat by a header")
    func lostAnswer() async throws {
        try await withServer { fixture, _, _ in
            let silent = try SilentListener()
            let run = [
                "run", "--until-idle", "--timeout", "0.3", "--endpoint", "http://127.0.0.1:\(silent.port)/",
            ]
            _ = try await fixture.larder(["enqueue"] + rating(fixture, 4))
            let once = try await fixture.larder(run)
            #expect(once.status == 1 && once.output.hasPrefix("set aside "), "\(once.errors)")
            _ = try await fixture.larder(["enqueue"] + rating(fixture, 4))
            let repeated = try await fixture.larder(
                run + ["--give-up-after", "2", "--idempotency-header", "Idempotency-Key"])
            #expect(repeated.status == 1 && repeated.errors.contains("1 mutation remains"), "\(repeated.errors)")
        }
    }

    @Test("Bytes of a file that arrive are progress of a run, and a look at which none have arrived is not")
    func arrivingBytes() async throws {
        try await TransferFixture.run { fixture in
            let id = try await fixture.upload()
            try await fixture.withPartition { app in
                var news = try RunNews(app)
                var progress = news.lastProgress
                try news.tell(app)
                #expect(news.lastProgress == progress)
                let attempt = try await fixture.begin(id, arrived: 100_000)
                try news.tell(app)
                #expect(news.lastProgress > progress)
                progress = news.lastProgress
                try news.tell(app)
                #expect(news.lastProgress == progress)
                try await fixture.withTable { table in
                    try await table.note(attempt, [.parts([.init(number: 2, size: 75_000, etag: "\"2\"", crc32c: 2)])])
                }
                try news.tell(app)
                #expect(news.lastProgress > progress)
            }
        }
    }

    @Test("Of what remains ten are named, and how many more there are", arguments: [10, 11])
    func remaining(count: Int) async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(
                at: folder.appending(path: "store"), schema: try Schema(parsing: RecipeServer.schema))
            let app = try store.partition()
            var ids: [MutationID] = []
            for stars in 1...count {
                let rate = GraphQLOperation(Self.rate, variables: ["id": "2", "stars": .int(Int64(stars))])
                ids.append(try await app.enqueue(rate).id)
            }
            var news = try RunNews(app)
            try news.tell(app)
            let names = ids.prefix(10).map { "mutation \($0)" }.joined(separator: ", ")
            let end = count == 10 ? "10 mutations remain: \(names)" : "11 mutations remain: \(names) and 1 more"
            #expect(news.remaining(givingUpAfter: nil).message == "The run was interrupted, and \(end)")
            try store.close()
        }
    }

    @Test("A run's JSON counts applied mutations and finished transfers apart from failed ones")
    func counts() async throws {
        try await TransferFixture.run { fixture in
            let uploads = try await [fixture.upload(), fixture.upload(), fixture.upload()]
            try await fixture.withPartition { app in
                var ids: [UUID] = []
                for number in 0..<5 {
                    let options = MutationOptions(lane: MutationLane("\(number)"))
                    let add = GraphQLOperation("mutation { add(title: \"a\") { id } }")
                    ids.append(try await app.enqueue(add, options: options).id.uuid)
                }
                var news = try RunNews(app)
                try await OperationsDatabase.using(URL(filePath: fixture.store)) { database in
                    for id in ids[..<2] { try await database.setAside(id) }
                    for id in ids[2...] { try await database.settle(id) }
                }
                try await fixture.fail(fixture.begin(uploads[0]))
                for id in uploads[1...] {
                    let attempt = try await fixture.begin(id)
                    try await fixture.withTable { try await $0.finish(attempt, etag: "\"e\"", now: Date()) }
                }
                try news.tell(app)
                let json = String(decoding: news.json.bytes, as: UTF8.self)
                #expect(json.contains(#""sent":3,"setAside":["\#(ids[0].text)","\#(ids[1].text)"]"#), "\(json)")
                #expect(json.contains(#""transferred":2,"failedTransfers":1,"#), "\(json)")
            }
        }
    }

    @Test("A run counts the end of a mutation, and of a transfer, as progress")
    func endings() async throws {
        try await TransferFixture.run { fixture in
            let upload = try await fixture.upload()
            try await fixture.withPartition { app in
                let mutation = try await app.enqueue(GraphQLOperation("mutation { add(title: \"a\") { id } }")).id
                var news = try RunNews(app)
                try news.tell(app)
                var progress = news.lastProgress
                try await OperationsDatabase.using(URL(filePath: fixture.store)) {
                    try await $0.setAside(mutation.uuid)
                }
                try news.tell(app)
                #expect(news.lastProgress > progress)
                progress = news.lastProgress
                try await fixture.fail(fixture.begin(upload))
                try news.tell(app)
                #expect(news.lastProgress > progress)
            }
        }
    }

    @Test("An interrupted run waits for the mutation in flight, and tells how it ended")
    func inFlight() async throws {
        try await withServer { fixture, server, _ in
            let queued = try await fixture.larder(["enqueue"] + rating(fixture, 4))
            let id = queued.output.trimmingCharacters(in: .newlines)
            server.latency = .milliseconds(500)
            let running = try LarderProcess.start([
                "run", "--endpoint", server.url.absoluteString, "--store", fixture.store,
            ])
            let deadline = SuspendingClock.now + .seconds(60)
            while server.mutationCount == 0, .now < deadline { try await Task.sleep(for: .milliseconds(10)) }
            running.interrupt()
            let outcome = try await running.finish()
            #expect(outcome.status == 0 && outcome.output == "applied \(id)\n", "\(outcome.errors)")
        }
    }

    @Test(
        "--idempotency-header names the header of a mutation's key, by which a server detects a repeat",
        arguments: [("Idempotency-Key", true), ("X-Key", false)])
    func idempotencyHeader(name: String, isKnown: Bool) async throws {
        try await withServer { fixture, server, run in
            let queued = try await fixture.larder(["enqueue"] + rating(fixture, 4))
            let id = queued.output.trimmingCharacters(in: .newlines)
            // The answer comes after the timeout, so that the runner never gets it.
            server.latency = .seconds(1)
            let running = try LarderProcess.start(
                run + ["--timeout", "0.5", "--idempotency-header", name, "--store", fixture.store])
            let deadline = SuspendingClock.now + .seconds(60)
            while !running.errors.contains("waiting:"), .now < deadline { try await Task.sleep(for: .milliseconds(10)) }
            server.latency = .zero
            let outcome = try await running.finish()
            #expect(outcome.status == 0 && outcome.output == "applied \(id)\n", "\(outcome.errors)")
            #expect((server.effectCount == 1) == isKnown, "\(server.effectCount)")
        }
    }
}
