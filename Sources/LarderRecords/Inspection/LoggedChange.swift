/// A change as the log has it.
package struct LoggedChange: Sendable, Hashable {
    package let number: UInt64
    /// The objects that were changed, by their cache keys, in ascending order of bytes; an object without identity
    /// counts as the one that holds it, and one that is there no more is `#` and its number.
    package let keys: [String]
    /// Whether anything may have changed: there were too many to be kept, or the log has lost what came before.
    package let isEverything: Bool
}

/// What the log of changes tells of the time after a position.
package struct LoggedChanges: Sendable, Hashable {
    /// Of the snapshot: what comes later is asked for from here.
    package let position: ChangePosition
    /// The oldest first.
    package let changes: [LoggedChange]
}
