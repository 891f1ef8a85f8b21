import Foundation
import Larder
import LarderTestSupport
import Synchronization

/// Signs users in, each in one step from whatever partition is the current one, queues work, and says what is done,
/// until it is killed.
enum SigningIn {
    /// - Parameter step: After which it kills itself, when it was made so many times.
    static func run(in folder: URL, seed: UInt64, until step: EnvironmentSwitch.KillPoint?, times: Int) async throws {
        var random = SeededNumbers(seed: seed)
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
        let store = try Store.open(at: folder, schema: try Schema(parsing: Mutations.schema), options: options)
        var app = try store.partition(of: try Switching.environment("a"))
        var number = Int(seed % 1_000) * 1_000
        while true {
            for _ in 0..<(random.next() % 3) {
                let receipt = try await app.enqueue(
                    GraphQLOperation(
                        "mutation Rate($recipe: ID!) { rate(recipe: $recipe, stars: 5) { id stars } }",
                        variables: ["recipe": .string("\(random.next() % 100)")]))
                say("queued \(receipt.id)")
            }
            number += 1
            let user = "user\(random.next() % 3)"
            say("signing \(user) \(number)")
            app = try await store.signIn(
                Credentials(
                    userPool: .init(idToken: "id", accessToken: "access", refreshToken: "\(number)", expires: nil)),
                as: user, pending: random.next() % 2 == 0 ? .park : .carry, deadline: .now + .seconds(300)
            ).partition
            say("signed \(user) \(number)")
        }
    }
}
