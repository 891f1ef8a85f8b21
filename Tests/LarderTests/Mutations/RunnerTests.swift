import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Synchronization
import Testing

private let rateDocument =
    "mutation Rate($recipe: ID!, $stars: Int!) { rate(input: {recipe: $recipe, stars: $stars}) { id title rating } }"

private func rate(_ recipe: String, _ stars: Int) -> GraphQLOperation {
    GraphQLOperation(rateDocument, variables: ["recipe": .string(recipe), "stars": .int(Int64(stars))])
}

func quickRunner(_ app: Partition, _ change: (inout MutationRunner.Options) -> Void = { _ in }) -> MutationRunner {
    var options = MutationRunner.Options()
    options.backoff = Backoff(first: .milliseconds(1), cap: .milliseconds(5))
    change(&options)
    return MutationRunner(app, options: options)
}

@Suite("Queued mutations are sent", .timeLimit(.minutes(10)))
struct RunnerTests {
    @Test("A runner keeps the outcomes of the last 10,000 mutations")
    func keptOutcomes() async throws {
        try await withTemporaryFolder { folder in
            let store = try Store.open(at: folder, schema: try Schema(parsing: fixtureSchema))
            let app = try store.partition(server: ScriptedServer.rating())
            try await app.pin(named: "list", recipeList)
            try OtherProgram(folder).run(
                """
                WITH RECURSIVE numbers (number) AS (
                    SELECT 1000 UNION ALL SELECT number + 1 FROM numbers WHERE number < 12000)
                INSERT INTO outcome (id, partition, sequence, kind, settled)
                SELECT randomblob(16), p.id, number, 0, 0 FROM numbers JOIN partition p ON p.name = 'main'
                """)
            try await quickRunner(app).drain()
            try store.close()
            let kept = try await OperationsDatabase.using(folder) { try $0.check().outcomes }
            #expect(kept == 10_000)
        }
    }

    @Test("Of the operations of a queued document the runner sends the one that is named")
    func namedOperation() async throws {
        let server = ScriptedServer.rating()
        let other = #"mutation Other { rate(input: {recipe: "9", stars: 1}) { id } }"#
        let operation = GraphQLOperation(
            "\(other) \(rateDocument)", name: "Rate", variables: ["recipe": "1", "stars": 5])
        #expect(try await settled(operation, by: server).state == .applied)
        #expect(server.effects == ["1 5"])
        #expect(server.requests.map(\.operationName) == ["Rate"])
    }

    @Test("A queued mutation is sent in its turn, and its answer is in the cache")
    func sent() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { (app) throws in
            var receipts: [MutationReceipt] = []
            for stars in 1...3 { receipts.append(try await app.enqueue(rate("1", stars), options: .init())) }
            #expect(try app.hasUnsentMutations())
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 1", "1 2", "1 3"])
            #expect(try app.read("Recipe:1", GraphQLFragment("fragment F on Recipe { rating }"))["rating"]?.double == 3)
            #expect(try !app.hasUnsentMutations())
            let receipt = receipts[2]
            _ = try await receipt.outcome(within: .seconds(300))
            let status = try #require(try receipt.status())
            #expect(status.state == .applied)
            #expect(status.storedResult.map { String(decoding: $0, as: UTF8.self) }?.contains("\"rating\":3") == true)
        }
    }

    @Test("Where the server does not recognize repeats, an answer is stored before the next of its lane is begun")
    func storedBeforeNext() async throws {
        let steps = Mutex<[MutationRunner.KillPoint]>([])
        try await withStoreFixture(ScriptedServer.rating(tellsRepeats: false)) { app in
            for stars in 1...2 { try await app.enqueue(rate("1", stars), options: .init()) }
            try await quickRunner(app) { options in
                options.reached = { step in
                    // A lane that does not wait goes on meanwhile.
                    if step == .stored { Thread.sleep(forTimeInterval: 0.05) }
                    steps.withLock { $0.append(step) }
                }
            }.drain()
            let each: [MutationRunner.KillPoint] = [.begun, .received, .acknowledged, .stored, .settled]
            #expect(steps.withLock(\.self) == each + each)
        }
    }

    @Test("A runner sends a lane's next mutation while it stores an answer, where the server recognizes repeats")
    func sentWhileStoring() async throws {
        let isNextSent = Flag()
        let wasSent = Mutex<[Bool]>([])
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            if number == 1 { isNextSent.set() }
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            for stars in 1...2 { try await app.enqueue(rate("1", stars), options: .init()) }
            try await quickRunner(app) { options in
                options.reached = { step in
                    guard step == .stored else { return }
                    // Holds storing up until the next mutation is sent, or some seconds are over.
                    for _ in 0..<2_500 where !isNextSent.isSet { Thread.sleep(forTimeInterval: 0.002) }
                    wasSent.withLock { $0.append(isNextSent.isSet) }
                }
            }.drain()
            #expect(wasSent.withLock(\.self) == [true, true])
        }
    }

    @Test("An answer waits twenty milliseconds for the next answer of its lane, while that mutation is under way")
    func waitsForNext() async throws {
        let noted = Mutex<[SuspendingClock.Instant]>([])
        let stored = Mutex<[SuspendingClock.Instant]>([])
        let server = ScriptedServer(ScriptedServer.key) { number, request in
            // Answers each mutation once the one before it is stored, or some seconds are over.
            for _ in 0..<2_500 where stored.withLock({ $0.count }) < number {
                try? await Task.sleep(for: .milliseconds(2))
            }
            return ScriptedServer.done(request)
        }
        try await withStoreFixture(server) { app in
            for stars in 1...6 { try await app.enqueue(rate("1", stars), options: .init()) }
            try await quickRunner(app) { options in
                options.reached = { step in
                    if step == .acknowledged { noted.withLock { $0.append(.now) } }
                    if step == .stored { stored.withLock { $0.append(.now) } }
                }
            }.drain()
            // The last waits for no other.
            let (begins, ends) = (noted.withLock(\.self), stored.withLock(\.self))
            let waits = zip(begins, ends).dropLast().map { $0.duration(to: $1) }
            #expect(waits.count == 5)
            #expect(waits.allSatisfy { $0 >= .milliseconds(20) })
        }
    }

    @Test("A server that tells repeats by a variable is told each mutation's key, and its answer is in the cache")
    func keyVariable() async throws {
        let server = ScriptedServer.rating(by: .variable(name: "key")) {
            $0 == 1 ? (TransportError(.timedOut, "late"), true) : nil
        }
        try await withStoreFixture(server) { (app) throws in
            let document = rateDocument.replacing("$stars: Int!", with: "$stars: Int!, $key: ID")
                .replacing("stars: $stars", with: "stars: $stars, key: $key")
            var receipts: [MutationReceipt] = []
            for stars in 1...3 {
                receipts.append(
                    try await app.enqueue(
                        GraphQLOperation(
                            document, variables: ["recipe": "1", "stars": .int(Int64(stars))])))
            }
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 1", "1 2", "1 3"])
            let keys = server.requests.compactMap { request in
                (try? JSONSerialization.jsonObject(with: Data(request.variables)) as? [String: Any])?["key"] as? String
            }
            #expect(keys == [0, 1, 1, 2].map { receipts[$0].id.description })
            #expect(try app.read("Recipe:1", GraphQLFragment("fragment F on Recipe { rating }"))["rating"]?.double == 3)
        }
    }

    @Test("A mutation that could not be sent is sent again, with the same key, and takes effect once")
    func sentAgain() async throws {
        let server = ScriptedServer.rating { number in
            switch number {
            case 0: (.away, false)
            case 1: (TransportError(.timedOut, "late"), true)
            case 2: (TransportError(.status, "busy", status: 503), false)
            case 3: (TransportError(.interrupted, "cut"), true)
            default: nil
            }
        }
        try await withStoreFixture(server) { (app) throws in
            try await app.enqueue(rate("1", 5), options: .init())
            try await app.enqueue(rate("1", 4), options: .init())
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 5", "1 4"])
            let keys = server.requests.map { $0.headers.first { $0.name == "Idempotency-Key" }?.value }
            #expect(Set(keys).count == 2)
            #expect(keys.count == 6)
        }
    }

    @Test("An attempt may take as long as the runner's options say")
    func attemptTimeout() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { app in
            try await app.enqueue(rate("1", 5), options: .init())
            let began = SuspendingClock.now
            try await quickRunner(app) { $0.timeout = .seconds(20) }.drain()
            let deadline = try #require(server.deadlines.first)
            #expect(deadline >= began + .seconds(20))
            #expect(deadline <= .now + .seconds(20))
        }
    }

    @Test("A mutation whose answer was lost is set aside where the server cannot tell a repeat, and others go on")
    func outcomeUnknown() async throws {
        let server = ScriptedServer.rating(tellsRepeats: false) {
            $0 == 0 ? (TransportError(.timedOut, "late"), true) : nil
        }
        try await withStoreFixture(server) { (app) throws in
            let lost = try await app.enqueue(rate("1", 5), options: .init())
            let next = try await app.enqueue(rate("1", 4), options: .init())
            try await quickRunner(app).drain()
            #expect(try lost.status()?.state == .deadLetter)
            #expect(try lost.status()?.failure?.kind == .outcomeUnknown)
            #expect(try next.status()?.state == .applied)
            #expect(server.effects == ["1 5", "1 4"])
        }
    }

    @Test("A check tells what became of one whose answer was lost", arguments: [true, false])
    func checked(tookEffect: Bool) async throws {
        let server = ScriptedServer.rating(tellsRepeats: false) {
            $0 == 0 ? (TransportError(.timedOut, "late"), tookEffect) : nil
        }
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(rate("1", 5), options: .init(check: "rated"))
            try await quickRunner(app) { options in
                options.checks["rated"] = { question in
                    #expect(question.id == receipt.id)
                    return tookEffect
                        ? .tookEffect(
                            response: try Value(
                                json: Array(
                                    """
                                    {"rate":{"__typename":"Recipe","id":"1","title":"Soup","rating":5}}
                                    """.utf8)))
                        : .hadNoEffect
                }
            }.drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(server.effects == ["1 5"])
            #expect(server.requests.count == (tookEffect ? 1 : 2))
            #expect(try app.read("Recipe:1", GraphQLFragment("fragment F on Recipe { rating }"))["rating"]?.double == 5)
        }
    }

    @Test("A rejected mutation is set aside with the server's words, and blocks no other")
    func rejected() async throws {
        let server = ScriptedServer.rating(errors: {
            $0 == 0 ? #"{"data":null,"errors":[{"message":"no such recipe","extensions":{"code":"BAD"}}]}"# : nil
        })
        try await withStoreFixture(server) { (app) throws in
            let bad = try await app.enqueue(rate("9", 1), options: .init())
            let dependent = try await app.enqueue(rate("9", 2), options: .init(dependencies: [bad.id]))
            let good = try await app.enqueue(rate("1", 3), options: .init())
            try await quickRunner(app).drain()
            let status = try #require(try bad.status())
            #expect(status.state == .deadLetter)
            #expect(status.failure?.kind == .rejected)
            #expect(status.failure?.code == nil && status.failure?.serverCode == "BAD")
            #expect(status.failure?.message == "no such recipe")
            #expect(try good.status()?.state == .applied)
            #expect(try dependent.status()?.state == .pending)
            #expect(try dependent.status()?.isStalled == true)
            try await app.editMutation(bad.id, variables: ["recipe": "1", "stars": 4])
            try await app.replayMutation(bad.id)
            try await quickRunner(app).drain()
            #expect(try bad.status()?.state == .applied)
            #expect(try dependent.status()?.state == .applied)
            #expect(server.effects == ["1 3", "1 4", "9 2"])
        }
    }

    @Test("The token expires: nothing is dropped, nothing is tried over and over, and signing in goes on")
    func notSignedIn() async throws {
        let isSignedIn = Mutex(false)
        let server = ScriptedServer.rating { _ in
            isSignedIn.withLock { $0 } ? nil : (TransportError(.status, "who?", status: 401), false)
        }
        try await withStoreFixture(server) { (app) throws in
            let receipt = try await app.enqueue(rate("1", 5), options: .init())
            let runner = quickRunner(app)
            let running = Task { try await runner.run() }
            try await eventually { runner.state == .waitingForSignIn }
            #expect(server.requests.count == 1)
            // The runner waits as soon as the refusal is known, and then notes it.
            try await eventually { try receipt.status()?.state == .pending }
            isSignedIn.withLock { $0 = true }
            runner.resume()
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            running.cancel()
            try await running.value
            #expect(runner.state == .stopped)
        }
    }

    @Test("A conflict is resolved as its handler says, and one that ends without an answer does not stop the queue")
    func conflicts() async throws {
        let conflict = #"{"data":null,"errors":[{"message":"changed","errorType":"ConflictUnhandled"}]}"#
        let server = ScriptedServer.rating(errors: { [0, 1, 3, 4].contains($0) ? conflict : nil })
        try await withStoreFixture(server) { (app) throws in
            let kept = try await app.enqueue(rate("1", 1), options: .init(resolver: "keep"))
            let changed = try await app.enqueue(rate("1", 2), options: .init(resolver: "change"))
            let silent = try await app.enqueue(rate("1", 3), options: .init(resolver: "silent"))
            let last = try await app.enqueue(rate("1", 4), options: .init())
            let begun = SuspendingClock.now
            try await quickRunner(app) { options in
                options.questionTimeout = .milliseconds(50)
                options.maximumFaults = 2
                options.resolvers = [
                    "keep": { _ in .keepServers },
                    "change": { _ in .retry(variables: ["recipe": "1", "stars": 9]) },
                    "silent": { _ in
                        try await Task.sleep(for: .seconds(3600))
                        return .setAside
                    },
                ]
            }.drain()
            try requireNear(begun + .milliseconds(50))
            #expect(try kept.status()?.state == .discarded)
            #expect(try changed.status()?.state == .applied)
            #expect(try silent.status()?.state == .deadLetter)
            #expect(try silent.status()?.failure?.kind == .conflict)
            #expect(try last.status()?.state == .applied)
            #expect(server.effects == ["1 9", "1 4"])
        }
    }

    @Test("That the server has no time for a field is not the mutation's fault, however often it says so")
    func throttledField() async throws {
        let throttled = #"""
            {"data":null,"errors":[{"message":"slow down","errorType":"ThrottlingException","path":["rate"]}]}
            """#
        let server = ScriptedServer.rating(errors: { $0 < 4 ? throttled : nil })
        #expect(try await settled(by: server) { $0.maximumFaults = 2 }.state == .applied)
        #expect(server.requests.count == 5)
    }

    @Test("A sign-up is not queued because the network is away: its completion runs, with an error now")
    func immediate() async throws {
        let server = ScriptedServer.rating { _ in (.away, false) }
        try await withStoreFixture(server) { (app) throws in
            await #expect(throws: LarderError.self) {
                try await app.send(rate("1", 1), within: .seconds(1))
            }
            #expect(try app.mutations().isEmpty)
        }
    }

    @Test("Of two runners one works and the other stands by")
    func standby() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { (app) throws in
            let first = quickRunner(app)
            let running = Task { try await first.run() }
            try await eventually { first.state == .running }
            let second = quickRunner(app)
            let waiting = Task { try await second.run() }
            try await eventually { second.state == .standingBy }
            running.cancel()
            try await running.value
            try await eventually { second.state == .running }
            let receipt = try await app.enqueue(rate("1", 2), options: .init())
            #expect(try await receipt.outcome(within: .seconds(300)).isApplied)
            waiting.cancel()
            try await waiting.value
        }
    }

    @Test("Queued mutations, set-aside ones and outcomes are there after a restart")
    func restart() async throws {
        try await withTemporaryFolder { (folder) throws in
            let schema = try Schema(parsing: fixtureSchema)
            let store = try Store.open(at: folder, schema: schema)
            let id = try await store.partition().enqueue(rate("1", 5), options: .init()).id
            try store.close()
            let server = ScriptedServer.rating()
            let again = try Store.open(at: folder, schema: schema)
            let app = try again.partition(server: server)
            #expect(try app.mutation(id).status()?.state == .pending)
            try await quickRunner(app).drain()
            #expect(server.effects == ["1 5"])
            try again.close()
            let last = try Store.open(at: folder, schema: schema)
            #expect(try last.partition().mutation(id).status()?.state == .applied)
            try last.close()
        }
    }

    @Test("The status says how often a mutation was sent, and where it stands in the order")
    func counted() async throws {
        let server = ScriptedServer.rating { _ in (TransportError(.status, "down", status: 500), false) }
        try await withStoreFixture(server) { (app) throws in
            let first = try await app.enqueue(rate("1", 5), options: .init(lane: "a"))
            let second = try await app.enqueue(rate("1", 4), options: .init(lane: "b"))
            let places = [try first.status()?.sequence ?? -1, try second.status()?.sequence ?? -1]
            #expect(places[0] < places[1] && places[0] > 0)
            #expect(try app.mutations().map(\.sequence) == places)
            #expect(try first.status()?.attempts == 0)
            try await quickRunner(app) { $0.maximumFaults = 3 }.drain()
            let status = try #require(try first.status())
            #expect(status.state == .deadLetter && status.attempts == 3 && status.sequence == places[0])
        }
    }

    @Test("An error about a queued mutation names it")
    func named() async throws {
        try await withStoreFixture { app in
            let receipt = try await app.enqueue(rate("1", 5), options: .init())
            let refusals = [
                await larderError { try await app.enqueue(rate("1", 4), options: .init(id: receipt.id)) },
                await larderError { try await app.replayMutation(receipt.id) },
            ]
            #expect(refusals.map(\.?.code) == [.operationsDuplicate, .operationsWrongState])
            #expect(refusals.map(\.?.mutation) == [receipt.id, receipt.id])
        }
    }

    @Test("A mutation whose row cannot be read is set aside, the log says so, and the others are sent")
    func damagedRow() async throws {
        let log = RecordedLog(from: .error)
        var options = Store.Options()
        options.logger = log.logger
        try await withOpenStore(ScriptedServer.rating(), options: options) { folder, _, app in
            let damaged = try await app.enqueue(giveStars("1", 5))
            let other = try await app.enqueue(giveStars("2", 3))
            try OtherProgram(folder).damageFirstMutation()
            try await quickRunner(app).drain()
            #expect(try damaged.status()?.failure?.kind == .damaged)
            #expect(try other.status()?.state == .applied)
            #expect(log.texts.withLock { $0 } == ["a damaged row of larder.sqlite was set aside"])
            #expect(log.details.withLock { $0.first }?.hasPrefix("mutation where sequence = 1: ") == true)
        }
    }

    @Test("A runner sets aside a mutation that needs an unknown resolver or check, and sends the others")
    func unknownFunctions() async throws {
        let conflict = #"{"data":null,"errors":[{"message":"changed","errorType":"ConflictUnhandled"}]}"#
        let server = ScriptedServer.rating(
            tellsRepeats: false, trouble: { $0 == 1 ? (TransportError(.timedOut, "late"), true) : nil },
            errors: { $0 == 0 ? conflict : nil })
        try await withStoreFixture(server) { (app) throws in
            let resolved = try await app.enqueue(rate("1", 1), options: .init(resolver: "unheard"))
            let checked = try await app.enqueue(rate("1", 2), options: .init(check: "unheard"))
            let last = try await app.enqueue(rate("1", 3), options: .init())
            try await quickRunner(app).drain()
            #expect(try resolved.status()?.state == .deadLetter)
            #expect(try resolved.status()?.failure?.kind == .conflict)
            #expect(try checked.status()?.state == .deadLetter)
            #expect(try checked.status()?.failure?.kind == .outcomeUnknown)
            #expect(try last.status()?.state == .applied)
            #expect(server.effects == ["1 2", "1 3"])
        }
    }

    @Test("Each mutation is sent with the headers that the runner's options have")
    func headers() async throws {
        let server = ScriptedServer.rating()
        try await withStoreFixture(server) { (app) throws in
            for stars in 1...2 { try await app.enqueue(rate("1", stars), options: .init()) }
            try await quickRunner(app) { $0.headers = [.init(name: "x-tenant", value: "7")] }.drain()
            let tenants = server.requests.map { $0.headers.first { $0.name == "x-tenant" }?.value }
            #expect(tenants == ["7", "7"])
        }
    }
}
