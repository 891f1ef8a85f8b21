import Foundation
import Larder
import LarderOperations
import LarderTestSupport
import Testing

@Suite("The process is killed while it switches", .enabled(if: ChildProgram.isBuilt, "\(ChildProgram.requirement)"))
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
            var random = SeededNumbers(seed: .random(in: 1 ... .max))
            var queued: Set<String> = []
            var signed: [String: Int] = [:]
            var switches = 0
            for round in 1...Self.rounds {
                // The number that it signs in with grows from life to life.
                let seed = (random.next() >> 20) * 1_000 + UInt64(round)
                let output = folder.appending(path: "said")
                let child = try ChildProgram.start(place, "switch", "\(seed)", output: output)
                try await Task.sleep(for: .milliseconds(Int(30 + random.next() % 120)))
                kill(child.processIdentifier, SIGKILL)
                await child.ended()
                #expect(child.terminationReason == .uncaughtSignal, "it ended by itself in round \(round), seed \(seed)")
                var last: String?
                for line in try ChildProgram.lines(of: output) {
                    let words = line.split(separator: " ").map(String.init)
                    switch words.first {
                    case "at":
                        last = words[1]
                        switches += 1
                    case "queued": queued.insert(words[1])
                    case "signed": signed[words[1]] = Int(words[2])
                    default: Issue.record("it said \(line)")
                    }
                }
                try await check(place, queued, signed, wasSwitched: last != nil, "round \(round), seed \(seed)")
            }
            #expect(switches > Self.rounds && queued.count > Self.rounds)
            #expect(signed.count == 2)
        }
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
            let reading = try await app.session.storedCredentials(deadline: .now + .seconds(5))
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
