import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Goes to and fro between two environments, queues in each and signs in there, and says what is done, until it is
/// killed.
enum Switching {
    static let environments = ["a", "b"]

    static func environment(_ name: String) throws -> BackendEnvironment {
        guard let url = URL(string: "https://\(name).example/graphql") else { throw CocoaError(.fileReadUnknown) }
        return BackendEnvironment(name: name, api: .init(url: url))
    }

    /// A store that kills the process after a step of a switch, when that was made so many times.
    static func openStore(in folder: URL, until step: EnvironmentSwitch.KillPoint?, times: Int) throws -> Store {
        let left = Mutex(times)
        var options = Store.Options()
        options.reachedInSwitch = { made in
            guard made == step else { return }
            let mustDie = left.withLock { left in
                left -= 1
                return left == 0
            }
            if mustDie { kill(getpid(), SIGKILL) }
        }
        return try Store.open(at: folder, schema: try Schema(parsing: Mutations.schema), options: options)
    }

    /// Queues a mutation, and says so.
    static func queue(in app: Partition, _ random: inout SeededNumbers) async throws {
        let receipt = try await app.enqueue(
            GraphQLOperation(
                "mutation Rate($recipe: ID!) { rate(recipe: $recipe, stars: 5) { id stars } }",
                variables: ["recipe": .string("\(random.next() % 100)")]))
        say("queued \(receipt.id)")
    }

    /// - Parameter step: After which it kills itself, when it was made so many times.
    static func run(in folder: URL, seed: UInt64, until step: EnvironmentSwitch.KillPoint?, times: Int) async throws {
        var random = SeededNumbers(seed: seed)
        let store = try openStore(in: folder, until: step, times: times)
        var number = 0
        while true {
            let name = environments[Int(random.next() % 2)]
            let work: PendingWork = random.next() % 2 == 0 ? .park : .carry
            let app = try await store.switch(to: try environment(name), pending: work).partition
            say("at \(name)")
            for _ in 0..<(random.next() % 4) {
                try await queue(in: app, &random)
            }
            guard random.next() % 4 == 0 else { continue }
            number = max(number + 1, Int(seed % 1_000) * 1_000)
            try await app.session.signIn(
                Credentials(
                    userPool: .init(
                        idToken: "id", accessToken: "access", refreshToken: "\(number)", expires: nil)),
                within: .seconds(300))
            say("signed \(name) \(number)")
        }
    }
}
