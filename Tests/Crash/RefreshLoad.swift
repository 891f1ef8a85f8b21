import Foundation
import Larder
import LarderOperations
import LarderTestSupport

/// Asks for credentials once at each hour of a clock that others set, beside others that do the same. Each hour's are
/// good for half of it.
struct RefreshLoad {
    let folder: URL
    let ledger: TokenLedger
    /// Has the hour.
    let clock: URL
    /// Whether the identity provider says that it was asked, and then nothing any more.
    let isHanging: Bool

    func run(rounds: Int) async throws {
        let database = try OperationsDatabase(folder: folder)
        var options = Session.Options()
        options.now = { [clock] in Self.start.addingTimeInterval(TimeInterval(Self.hour(clock)) * 3600) }
        options.logger.logLevel = .critical
        let session = Session(
            database: database, partition: "main", identity: "identity", keys: FileKeyProvider(besides: folder),
            provider: LedgerProvider(ledger: ledger, now: options.now, isHanging: isHanging),
            locksFolder: folder.appending(path: "locks"), options: options)
        for round in 1...rounds {
            while Self.hour(clock) < round { try await Task.sleep(for: .milliseconds(1)) }
            let given = try await session.credentials(within: .seconds(300))
            say("\(round) \(given.userPool?.refreshToken ?? "")")
        }
        try database.close()
    }

    static let start = Date(timeIntervalSince1970: 1_800_000_000)

    static func hour(_ clock: URL) -> Int {
        (try? String(contentsOf: clock, encoding: .utf8)).flatMap { Int($0) } ?? 0
    }
}

/// Gives tokens as the ledger says, after a while.
struct LedgerProvider: IdentityProvider {
    let ledger: TokenLedger
    let now: @Sendable () -> Date
    var isHanging = false
    /// How long what it gives is good, in seconds.
    var lifetime: TimeInterval = 1800

    func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials {
        if isHanging {
            say("asked")
            while true { sleep(3600) }
        }
        try? await Task.sleep(for: .milliseconds(Int.random(in: 0...10)))
        let next: String?
        do { next = try ledger.refresh(credentials.userPool?.refreshToken ?? "") } catch {
            throw IdentityError(.unusable, "the ledger cannot be used", cause: error)
        }
        guard let next else { throw IdentityError(.userPoolRefused, "the refresh token was used before") }
        return Credentials(
            userPool: .init(
                idToken: "id", accessToken: "access", refreshToken: next, expires: now().addingTimeInterval(lifetime)))
    }

    func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {}
}
