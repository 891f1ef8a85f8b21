import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite(
    "The process is killed on a mutation's way", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct KilledRunnerTests {
    /// More of them by the environment, for a long night.
    private static let rounds = ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap(Int.init) ?? 28

    private static let schema = """
        type Recipe { id: ID! stars: Int! }
        type Query { recipe(id: ID!): Recipe }
        type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
        """

    @Test(
        "The app is killed after sending and before recording: what was accepted takes effect once, or says why not",
        arguments: [true, false])
    func killed(tellsRepeats: Bool) async throws {
        var random = SeededNumbers(seed: TestSeed.of("killed runner", tellsRepeats ? 1 : 0))
        var kills = 0
        for round in 0..<Self.rounds {
            let seed = random.next() >> 1
            try await withTemporaryFolder { (folder) throws in
                let (store, ledger) = (folder.appending(path: "store"), folder.appending(path: "ledger"))
                var said: [String] = []
                var next = SeededNumbers(seed: seed)
                // Two or three lives, each killed at another step, and a last one that comes to its end.
                for life in 0..<4 {
                    let steps = MutationRunner.KillPoint.allCases
                    let step = steps[(round + Int(next.next() % 5)) % steps.count].rawValue
                    let file = folder.appending(path: "said \(life)")
                    // Every third at whatever moment it is.
                    let isSudden = life < 3 && next.next() % 3 == 0
                    let lastWords = life == 3 || isSudden ? [] : [step, "\(1 + next.next() % 3)"]
                    let child = try ChildProgram.start(
                        store,
                        [
                            "mutate", ledger.path, tellsRepeats ? "telling" : "plain", "\(next.next() >> 1)",
                            life == 0 ? "5" : life == 1 ? "1" : "0",
                        ] + lastWords, output: file)
                    if isSudden {
                        try await Task.sleep(for: .milliseconds(Int(next.next() % 60)))
                        kill(child.processIdentifier, SIGKILL)
                    }
                    await child.ended()
                    if child.terminationReason == .uncaughtSignal {
                        #expect(child.terminationStatus == SIGKILL, "seed \(seed)")
                        kills += 1
                    } else {
                        #expect(child.terminationStatus == 0, "seed \(seed)")
                    }
                    said += try ChildProgram.lines(of: file)
                }
                try check(store, ledger, said, tellsRepeats, seed)
            }
        }
        #expect(kills >= Self.rounds)
    }

    @Test(
        "The process is killed while its store is suspended or resumed: what was accepted takes effect once",
        arguments: [true, false])
    func killedSuspending(tellsRepeats: Bool) async throws {
        var random = SeededNumbers(seed: TestSeed.of("killed suspending", tellsRepeats ? 1 : 0))
        for _ in 0..<max(Self.rounds * 35 / 100, 1) {
            let seed = random.next() >> 1
            try await withTemporaryFolder { (folder) throws in
                let (store, ledger) = (folder.appending(path: "store"), folder.appending(path: "ledger"))
                let server = tellsRepeats ? "telling" : "plain"
                var said: [String] = []
                var next = SeededNumbers(seed: seed)
                // Three lives that are killed, and a last one that comes to its end.
                for life in 0..<4 {
                    let file = folder.appending(path: "said \(life)")
                    let child = try ChildProgram.start(
                        store,
                        [life == 3 ? "mutate" : "suspend", ledger.path, server, "\(next.next() >> 1)"]
                            + (life == 3 ? ["0"] : ["2", "\(1 + next.next() % 3)"]), output: file)
                    await child.ended()
                    let isKilled = child.terminationReason == .uncaughtSignal && child.terminationStatus == SIGKILL
                    #expect(isKilled == (life < 3), "seed \(seed), status \(child.terminationStatus)")
                    said += try ChildProgram.lines(of: file)
                }
                try check(store, ledger, said, tellsRepeats, seed)
            }
        }
    }

    @Test(
        "Of several processes on one store some are killed: a survivor sends what all of them accepted, once",
        arguments: [true, false])
    func severalProcesses(tellsRepeats: Bool) async throws {
        var random = SeededNumbers(seed: TestSeed.of("killed runners", tellsRepeats ? 1 : 0))
        for _ in 0..<max(Self.rounds * 16 / 100, 1) {
            let seed = random.next() >> 1
            try await withTemporaryFolder { (folder) throws in
                try await shareAndKill(in: folder, tellsRepeats, seed)
            }
        }
    }

    /// One of two or three processes survives.
    private func shareAndKill(in folder: URL, _ tellsRepeats: Bool, _ seed: UInt64) async throws {
        let (store, ledger) = (folder.appending(path: "store"), folder.appending(path: "ledger"))
        let end = folder.appending(path: "end")
        var next = SeededNumbers(seed: seed)
        var children: [Process] = []
        let count = 2 + Int(next.next() % 2)
        // Whoever comes first is the one that sends, as a rule.
        let survivor = Int(next.next() % UInt64(count))
        for number in 0..<count {
            let step = MutationRunner.KillPoint.allCases[Int(next.next() % 5)].rawValue
            let isSudden = number == survivor || next.next() % 3 == 0
            children.append(
                try ChildProgram.start(
                    store,
                    [
                        "share", ledger.path, tellsRepeats ? "telling" : "plain", "\(next.next() >> 1)",
                        "\(2 + next.next() % 4)", end.path,
                    ] + (isSudden ? [] : [step, "\(1 + next.next() % 5)"]),
                    output: folder.appending(path: "said \(number)")))
            try await Task.sleep(for: .milliseconds(Int(next.next() % 20)))
        }
        for (number, child) in children.enumerated() where number != survivor {
            // Those that do not come to their step are killed wherever they are.
            let triesLeft = SuspendingClock.now + .milliseconds(20 + Int(next.next() % 200))
            while child.isRunning, .now < triesLeft { try await Task.sleep(for: .milliseconds(2)) }
            kill(child.processIdentifier, SIGKILL)
        }
        for (number, child) in children.enumerated() where number != survivor {
            await child.ended()
            #expect(child.terminationReason == .uncaughtSignal, "seed \(seed), process \(number)")
        }
        try Data().write(to: end)
        await children[survivor].ended()
        #expect(children[survivor].terminationReason == .exit, "seed \(seed)")
        #expect(children[survivor].terminationStatus == 0, "seed \(seed)")
        let said = try (0..<count).flatMap { try ChildProgram.lines(of: folder.appending(path: "said \($0)")) }
        try check(store, ledger, said, tellsRepeats, seed)
    }

    @Test("An answer that was stored before the process was killed is not stored again over newer data")
    func storedOnce() async throws {
        try await withTemporaryFolder { (folder) throws in
            let (store, ledger, file) = (
                folder.appending(path: "store"), folder.appending(path: "ledger"), folder.appending(path: "said")
            )
            // Until the server is reached at once.
            let child = try ChildProgram.start(
                store, ["mutate", ledger.path, "telling", "3", "1", "stored", "1"], output: file)
            await child.ended()
            #expect(child.terminationReason == .uncaughtSignal)
            let words = try #require(try ChildProgram.lines(of: file).first).split(separator: " ").map(String.init)
            let fragment = GraphQLFragment("fragment F on Recipe { stars }")
            let open = try Store.open(at: store, schema: try Schema(parsing: Self.schema))
            let app = try open.partition(server: ScriptedServer.away)
            let receipt = app.mutation(try #require(MutationID(words[1])))
            #expect(try receipt.status()?.state == .acknowledged)
            #expect(try app.read("Recipe:\(words[2])", fragment)["stars"]?.int == 5)
            try await app.write("Recipe:\(words[2])", fragment, ["stars": 1])
            try await MutationRunner(app).drain()
            #expect(try receipt.status()?.state == .applied)
            #expect(try app.read("Recipe:\(words[2])", fragment)["stars"]?.int == 1)
            try open.close()
        }
    }

    /// The server has seen each lane's mutations in the order of the queue.
    private func expectOrder(of recipes: [String], _ app: Partition, _ said: [String], _ seed: UInt64) throws {
        let accepted = said.filter { $0.hasPrefix("accepted ") }.map { $0.split(separator: " ").map(String.init) }
        for lane in ["a", "b"] {
            let sequences = try Dictionary(
                uniqueKeysWithValues: accepted.filter { $0[3] == lane }.map { words in
                    (words[2], try MutationID(words[1]).flatMap { try app.mutation($0).status()?.sequence })
                })
            let seen = recipes.compactMap { sequences[$0] ?? nil }
            #expect(seen == seen.sorted(), "lane \(lane), seed \(seed)")
        }
    }

    private func check(
        _ folder: URL, _ ledger: URL, _ said: [String], _ tellsRepeats: Bool, _ seed: UInt64
    ) throws {
        let lines = ((try? String(contentsOf: ledger, encoding: .utf8)) ?? "").split(separator: "\n")
        let effects = lines.reduce(into: [String: Int]()) { counts, line in
            counts[String(line.split(separator: " ").last ?? ""), default: 0] += 1
        }
        #expect(effects.values.allSatisfy { $0 == 1 }, "took effect twice, seed \(seed)")
        let store = try Store.open(at: folder, schema: try Schema(parsing: Self.schema))
        let app = try store.partition()
        try expectOrder(of: lines.compactMap { $0.split(separator: " ").last.map(String.init) }, app, said, seed)
        for line in said where line.hasPrefix("accepted ") {
            let words = line.split(separator: " ").map(String.init)
            let id = try #require(MutationID(words[1]))
            let status = try #require(try app.mutation(id).status(), "it is lost, seed \(seed)")
            let stored = try? app.read("Recipe:\(words[2])", GraphQLFragment("fragment F on Recipe { stars }"))
            switch status.state {
            case .applied:
                #expect(effects[words[2]] == 1, "seed \(seed)")
                #expect(stored?["stars"]?.int == 5, "seed \(seed)")
            case .deadLetter:
                #expect(!tellsRepeats, "seed \(seed)")
                #expect(status.failure?.kind == .outcomeUnknown, "seed \(seed)")
                #expect(stored == nil, "seed \(seed)")
            default: Issue.record("\(id) is \(status.state), seed \(seed)")
            }
        }
        #expect(try app.records.check().isSound, "seed \(seed)")
        try store.close()
        let database = try OperationsDatabase(folder: folder)
        #expect(try database.check().problems.isEmpty, "seed \(seed)")
        try database.close()
    }
}
