import Foundation
import Larder
import LarderTestSupport

/// Signs users in, each in one step from whatever partition is the current one, queues work, and says what is done,
/// until it is killed.
enum SigningIn {
    /// - Parameter step: After which it kills itself, when it was made so many times.
    static func run(in folder: URL, seed: UInt64, until step: EnvironmentSwitch.KillPoint?, times: Int) async throws {
        var random = SeededNumbers(seed: seed)
        let store = try Switching.openStore(in: folder, until: step, times: times)
        var app = try store.partition(of: try Switching.environment("a"))
        var number = Int(seed % 1_000) * 1_000
        while true {
            for _ in 0..<(random.next() % 3) {
                try await Switching.queue(in: app, &random)
            }
            number += 1
            let user = "user\(random.next() % 3)"
            say("signing \(user) \(number)")
            app = try await store.signIn(
                Credentials(
                    userPool: .init(idToken: "id", accessToken: "access", refreshToken: "\(number)", expires: nil)),
                as: user, pending: random.next() % 2 == 0 ? .park : .carry, within: .seconds(300)
            ).partition
            say("signed \(user) \(number)")
        }
    }
}
