public import Foundation
public import Larder
import Synchronization

/// An identity provider in memory, for the tests of programs. It rotates refresh tokens, refuses used ones, and counts.
public final class InMemoryIdentityProvider: IdentityProvider {
    /// How it answers.
    public enum Behaviour: Sendable, Hashable {
        /// At once.
        case ready
        /// That the server cannot be reached.
        case unreachable
        /// That it is to be left alone for a while.
        case throttled
        /// After some time, unless it is cancelled.
        case slow(Duration)
        /// Never, even if it is cancelled, until it behaves otherwise.
        case hanging
        /// That the user pool refuses.
        case refusingUserPool
        /// That the identity pool refuses.
        case refusingFederated
    }

    private struct State {
        var behaviour = Behaviour.ready
        var lifetime: Duration
        /// The refresh tokens that work, with the user of each.
        var live: [String: String] = [:]
        var used: Set<String> = []
        var attempts = 0
        var refreshes = 0
        var refusals = 0
        var signOuts = 0
        var guests = 0
        var issued = 0
    }

    private let state: Mutex<State>
    private let now: @Sendable () -> Date
    private let hasCloud: Bool

    /// - Parameters:
    ///   - lifetime: How long what it issues is good.
    ///   - hasCloud: Whether it gives cloud credentials as well.
    ///   - now: The time of day.
    public init(
        lifetime: Duration = .seconds(3600), hasCloud: Bool = true, now: @escaping @Sendable () -> Date = { Date() }
    ) {
        state = Mutex(State(lifetime: lifetime))
        self.hasCloud = hasCloud
        self.now = now
    }

    /// How it answers from now on.
    public var behaviour: Behaviour {
        get { state.withLock { $0.behaviour } }
        set { state.withLock { $0.behaviour = newValue } }
    }

    /// How long what it issues from now on is good.
    public var lifetime: Duration {
        get { state.withLock { $0.lifetime } }
        set { state.withLock { $0.lifetime = newValue } }
    }

    /// How often a refresh was asked for, whatever came of it.
    package var attempts: Int { state.withLock { $0.attempts } }
    /// How often credentials were refreshed.
    public var refreshes: Int { state.withLock { $0.refreshes } }
    /// How often a refresh token was refused: used before, revoked, or never issued.
    package var refusals: Int { state.withLock { $0.refusals } }
    /// How often a user signed out.
    public var signOuts: Int { state.withLock { $0.signOuts } }

    /// What a user who signs in gets.
    public func signIn(_ user: String) -> Credentials { state.withLock { issue(to: user, &$0) } }

    /// Gets all parts anew, whichever is asked for.
    ///
    /// - Throws: As it behaves; `.userPoolRefused` for a refresh token that does not work.
    public func refresh(
        _ part: Credentials.Part, of credentials: Credentials, within time: Duration
    ) async throws(IdentityError) -> Credentials {
        state.withLock { $0.attempts += 1 }
        try await behave()
        let issued = state.withLock { state -> Credentials? in
            guard let tokens = credentials.userPool else {
                state.refreshes += 1
                state.issued += 1
                return Credentials(cloud: cloud(of: credentials.cloud?.identityID ?? "guest", state))
            }
            guard let token = tokens.refreshToken, let user = state.live.removeValue(forKey: token) else {
                state.refusals += 1
                return nil
            }
            state.refreshes += 1
            state.used.insert(token)
            return issue(to: user, &state)
        }
        guard let issued else {
            throw IdentityError(.userPoolRefused, "The refresh token was used before, or was revoked; sign in again")
        }
        return issued
    }

    /// Revokes the refresh token.
    ///
    /// - Throws: As it behaves.
    public func signOut(_ credentials: Credentials, within time: Duration) async throws(IdentityError) {
        try await behave()
        state.withLock { state in
            state.signOuts += 1
            if let token = credentials.userPool?.refreshToken { state.live[token] = nil }
        }
    }

    /// - Throws: As it behaves.
    public func guestCredentials(within time: Duration) async throws(IdentityError) -> Credentials? {
        try await behave()
        guard hasCloud else { return nil }
        return state.withLock { state in
            state.guests += 1
            state.issued += 1
            return Credentials(cloud: cloud(of: "guest-\(state.guests)", state))
        }
    }

    private func issue(to user: String, _ state: inout State) -> Credentials {
        state.issued += 1
        let refreshToken = "refresh-\(user)-\(state.issued)"
        state.live[refreshToken] = user
        let expires = now() + state.lifetime / .seconds(1)
        return Credentials(
            userPool: .init(
                idToken: "id-\(user)-\(state.issued)", accessToken: "access-\(user)-\(state.issued)",
                refreshToken: refreshToken, expires: expires),
            cloud: hasCloud ? cloud(of: "identity-\(user)", state) : nil)
    }

    private func cloud(of identity: String, _ state: State) -> Credentials.CloudCredentials {
        Credentials.CloudCredentials(
            identityID: identity, accessKeyID: "AK\(state.issued)",
            secretAccessKey: "secret-\(identity)-\(state.issued)",
            sessionToken: "session-\(identity)-\(state.issued)", expires: now() + state.lifetime / .seconds(1))
    }

    private func behave() async throws(IdentityError) {
        switch behaviour {
        case .ready: return
        case .unreachable: throw IdentityError(.unreachable, "The identity provider is away; try again later")
        case .throttled:
            throw IdentityError(.throttled, "The identity provider is asked too often", retryAfter: .seconds(30))
        case .refusingUserPool: throw IdentityError(.userPoolRefused, "The user pool refuses; sign in again")
        case .refusingFederated: throw IdentityError(.federatedRefused, "The identity pool refuses; sign in again")
        case .slow(let time):
            guard (try? await Task.sleep(for: time)) != nil else {
                throw IdentityError(.cancelled, "The task was cancelled")
            }
        case .hanging:
            while behaviour == .hanging {
                // In a task of its own, which is not cancelled with this one.
                await Task.detached { try? await Task.sleep(for: .milliseconds(5)) }.value
            }
        }
    }
}
