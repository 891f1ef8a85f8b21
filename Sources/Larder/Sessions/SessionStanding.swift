public import Foundation
import LarderOperations

/// The state of a session, since when, and why.
public struct SessionStanding: Sendable, Hashable {
    /// Whether a user is signed in.
    public var state: SessionState
    /// Since when; nil where nothing ever happened.
    public var since: Date?
    /// Why, for people; nothing secret.
    public var reason: String?
}

extension SessionStanding {
    init(_ stored: StoredSession?) {
        // A state of a newer version of the library is none that can be relied on.
        state = stored.flatMap { SessionState(rawValue: $0.state) } ?? .unknown
        since = stored?.changed
        reason = stored?.reason
    }

    /// How an event changes what is stored. A user or guest who is accepted begins a session, also where another was
    /// before.
    static func change(by event: SessionEvent, reason: String? = nil, now: Date) -> SessionChange {
        { stored in
            let old = SessionStanding(stored)
            let isBeginning = event == .signedIn || event == .becameGuest
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
