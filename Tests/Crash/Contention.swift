import Foundation
import Larder
import LarderOperations
import LarderTestSupport

/// Switches between two environments, refreshes credentials in each, takes the lock of migrations and queues, beside
/// other processes that do the same. What another process's switch makes of that is no failure; a wait past its
/// deadline is.
struct Contention {
    let folder: URL
    /// Has a ledger of tokens for each environment.
    let ledgers: URL

    /// No wait here may be longer, with what a busy machine adds.
    private static let deadline = Duration.seconds(10)
    private static let patience = Duration.seconds(30)

    func run(rounds: Int, seed: UInt64) async throws {
        var random = SeededNumbers(seed: seed)
        var options = Store.Options()
        options.logger.logLevel = .critical
        options.lockTimeout = Self.deadline
        options.identityProvider = { [ledgers] identity in
            LedgerProvider(
                ledger: TokenLedger(ledgers.appending(path: identity.environment ?? "")), now: { Date() },
                // A second more than what counts as too short to be used.
                lifetime: Session.Options().margin / .seconds(1) + 1)
        }
        let store = try Store.open(at: folder, schema: try Schema(parsing: Mutations.schema), options: options)
        for round in 0..<rounds {
            let work = ["switch", "switch", "refresh", "refresh", "refresh", "migrate", "queue"][Int(random.next() % 7)]
            let name = Switching.environments[Int(random.next() % 2)]
            let begun = SuspendingClock.now
            do {
                try await carryOut(work, name, store)
            } catch let error as LarderError where error.code == .parked {
                // Another process has switched meanwhile.
            }
            guard SuspendingClock.now - begun < Self.patience else {
                say("round \(round): \(work) took \(SuspendingClock.now - begun)")
                exit(1)
            }
            say("\(work)")
        }
        try store.close()
    }

    private func carryOut(_ work: String, _ name: String, _ store: Store) async throws {
        switch work {
        case "switch": _ = try await store.switch(to: try Switching.environment(name))
        case "refresh":
            let credentials = try await store.partition().session.credentials(within: Self.deadline)
            guard credentials.userPool?.refreshToken != nil else { exit(1) }
        case "migrate":
            let lock = try MigrationLock.take(in: folder, for: "contending", within: Self.deadline)
            defer { lock.release() }
            let database = try OperationsDatabase(folder: folder)
            _ = try database.check()
            try database.close()
        default:
            try await store.partition().enqueue(
                GraphQLOperation(
                    "mutation Rate($recipe: ID!) { rate(recipe: $recipe, stars: 5) { id stars } }",
                    variables: ["recipe": "1"]))
        }
    }
}
