/// What becomes of the mutations and transfers of a partition that is left.
///
/// What is in flight may have taken effect, and what was answered has: both stay where they are, with all that wait for
/// them, whatever is said here. A transfer that was begun stays too, unless it is given up, with all that wait for it.
package enum PendingWork: String, Sendable, Hashable, CaseIterable {
    /// They stay, and go on when the partition is the current one again.
    case park
    /// The pending ones that are provably unsent go along. See `ProvablyUnsent`.
    case carry
    /// They are given up, dead letters too.
    case discard
}
