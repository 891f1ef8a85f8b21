import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite(
    "The process is killed while it switches", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"),
    .timeLimit(.minutes(10)))
struct KilledSwitchTests {
    /// More of them by the environment, for a long night.
    private static let rounds = ProcessInfo.processInfo.environment["LARDER_KILL_ROUNDS"].flatMap(Int.init) ?? 40

    private static let schema = """
        type Recipe { id: ID! stars: Int! note: String }
        type Query { recipe(id: ID!): Recipe }
        type Mutation { rate(recipe: ID!, stars: Int!): Recipe! }
        """

    @Test("After kill -9 at any moment one partition is the current one, whole, and nothing is lost or doubled")
    func killed() async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            var random = SeededNumbers(seed: TestSeed.of("killed switch"))
            var life = Life()
            for round in 1...Self.rounds {
                // The number that it signs in with grows from life to life.
                let seed = (random.next() >> 20) * 1_000 + UInt64(round)
                let output = folder.appending(path: "said")
                let child = try ChildProgram.start(place, "switch", "\(seed)", output: output)
                // Every fourth at whatever moment it is; the others once they have done something.
                let deadline = SuspendingClock.now + .seconds(20)
                while round % 4 != 0, .now < deadline, try Data(contentsOf: output).isEmpty {
                    try await Task.sleep(for: .milliseconds(2))
                }
                try await Task.sleep(for: .milliseconds(Int(random.next() % 120)))
                kill(child.processIdentifier, SIGKILL)
                await child.ended()
                #expect(child.terminationReason == .uncaughtSignal, "it ended by itself, round \(round), seed \(seed)")
                try await look(output, place, &life, "round \(round), seed \(seed)")
            }
            #expect(life.switches >= Self.rounds / 2 && !life.queued.isEmpty)
            #expect(!life.signed.isEmpty)
        }
    }

    @Test(
        "After kill -9 at any step of a switch one partition is the current one, whole, and nothing is lost or doubled",
        arguments: EnvironmentSwitch.KillPoint.allCases)
    func killed(step: EnvironmentSwitch.KillPoint) async throws {
        try await withTemporaryFolder { folder in
            let place = folder.appending(path: "store")
            var life = Life()
            for times in 1...6 {
                let seed = (TestSeed.of("\(step)", times) >> 10) * 1_000 + UInt64(times)
                let output = folder.appending(path: "said")
                let child = try ChildProgram.start(
                    place, "switch", "\(seed)", step.rawValue, "\(times)", output: output)
                await child.ended()
                #expect(child.terminationReason == .uncaughtSignal, "it ended by itself, seed \(seed)")
                try await look(output, place, &life, "\(step) for the time \(times), seed \(seed)")
            }
            #expect(life.switches > 0)
        }
    }

    /// What the processes have said that they did.
    private struct Life {
        var queued: Set<String> = []
        var signed: [String: Int] = [:]
        var switches = 0
    }

    private func look(_ output: URL, _ place: URL, _ life: inout Life, _ comment: Comment) async throws {
        var wasSwitched = false
        for line in try ChildProgram.lines(of: output) {
            let words = line.split(separator: " ").map(String.init)
            switch words.first {
            case "at":
                wasSwitched = true
                life.switches += 1
            case "queued": life.queued.insert(words[1])
            case "signed": life.signed[words[1]] = Int(words[2])
            default: Issue.record("it said \(line)")
            }
        }
        try await check(place, life.queued, life.signed, wasSwitched: wasSwitched, comment)
    }

    private func check(
        _ place: URL, _ queued: Set<String>, _ signed: [String: Int], wasSwitched: Bool, _ comment: Comment
    ) async throws {
        guard wasSwitched || !queued.isEmpty else { return }
        let store = try Store.open(at: place, schema: try Schema(parsing: Self.schema))
        let database = try store.operationsDatabase()
        #expect(try database.check().problems == [], comment)
        let current = try store.current()
        #expect(current != nil, comment)
        let pending = try store.partition().mutations()
        #expect(pending.allSatisfy { $0.state == .pending }, comment)
        let there = try database.mutations.list().map { "\(MutationID($0.id))" }
        #expect(Set(there).count == there.count, comment)
        #expect(queued.subtracting(there).isEmpty, comment)
        for (name, number) in signed {
            let app = try await store.switch(to: backend(name)).partition
            let reading = try await app.session.storedCredentials(within: .seconds(300))
            guard case .present(let credentials) = reading else {
                Issue.record("the credentials of \(name) are \(reading): \(comment)")
                continue
            }
            #expect(Int(credentials.userPool?.refreshToken ?? "") ?? 0 >= number, comment)
            #expect(try app.session.state == .signedIn, comment)
            #expect(try app.records.check().isSound, comment)
        }
        try store.close()
    }
}
