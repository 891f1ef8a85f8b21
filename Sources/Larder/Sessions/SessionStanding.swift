public import Foundation
import LarderOperations

/// The state of a session, since when, and why.
public struct SessionStanding: Sendable, Hashable {
    /// Whether a user is signed in.
    public var state: SessionState
    /// How the user signed in; nil where no credentials are stored. A guest whom the identity pool has refused is
    /// `.federated`.
    public var kind: SignInKind?
    /// Since when; nil where nothing ever happened.
    public var since: Date?
    /// Why, for people; nothing secret.
    public var reason: String?
}

/// What the credentials of a session come from.
public enum SignInKind: String, Sendable, Hashable, CaseIterable {
    /// A user pool, and perhaps an identity pool for its tokens.
    case userPool
    /// An identity pool alone, which trusts another provider's tokens.
    case federated
    /// An identity pool that lets guests in.
    case guest
}

extension SessionStanding {
    /// - Parameter stored: Nil where nothing ever happened: no user is signed in.
    init(_ stored: StoredSession?) {
        // A state of a newer version of the library is none that can be relied on.
        state = stored.map { SessionState(rawValue: $0.state) ?? .unknown } ?? .signedOut
        if let kinds = stored?.kinds, !kinds.isEmpty {
            kind =
                kinds.contains(Credentials.Part.userPool.rawValue) ? .userPool : state == .guest ? .guest : .federated
        }
        since = stored?.changed
        reason = stored?.reason
    }

    /// How an event changes what is stored. A user or guest who is accepted begins a session, also where another was
    /// before.
    static func change(by event: SessionEvent, reason: String? = nil, now: Date) -> SessionChange {
        { stored in
            let old = SessionStanding(stored)
            // Signing out where nothing ever happened is noted as well.
            let isBeginning = event == .signedIn || event == .becameGuest || stored == nil && event == .signedOut
            guard let new = old.state.after(event), new != old.state || isBeginning else { return nil }
            return StoredSession(state: new.rawValue, reason: reason, changed: now)
        }
    }
}

extension SessionStanding: CustomStringConvertible {
    /// The state, since when, and why.
    public var description: String {
        var text = state.rawValue
        if let since { text += " since \(since.ISO8601Format())" }
        if let reason { text += " (\(reason))" }
        return text
    }
}
