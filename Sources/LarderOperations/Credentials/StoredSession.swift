package import Foundation

/// Whether a user is signed in to a partition, as the layer above names it.
package struct StoredSession: Sendable, Hashable {
    package var state: String
    /// Why it came to that, for people; nothing secret.
    package var reason: String?
    package var changed: Date
    /// The kinds of credentials that are stored, where it was read.
    package var kinds: Set<String> = []

    package init(state: String, reason: String? = nil, changed: Date) {
        self.state = state
        self.reason = reason
        self.changed = Date(milliseconds: changed.milliseconds)
    }
}

/// What a session becomes, given what it is; nil leaves it as it is. May be called more than once.
package typealias SessionChange = @Sendable (StoredSession?) -> StoredSession?
