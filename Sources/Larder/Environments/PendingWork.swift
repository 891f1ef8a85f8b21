import LarderOperations

/// What becomes of the mutations and transfers of a partition that is left.
///
/// Mutations in flight may have taken effect, and answered ones have: both stay where they are, with all that wait for
/// them, whatever is said here.
public enum PendingWork: String, Sendable, Hashable, CaseIterable {
    /// They stay, and go on when the partition is the current one again.
    case park
    /// The pending ones that are provably unsent go along. A mutation stays where an earlier attempt may have had an
    /// effect, where it was set aside, and where it waits for one that stays, or comes after one in its lane that is in
    /// flight or pending and stays. A transfer goes along if it was never begun.
    case carry
    /// They are given up: pending mutations, mutations that were set aside, and all transfers that have not ended. What
    /// became of them can be asked for there.
    case discard
}

extension LarderOperations.PendingWork {
    init(_ work: Larder.PendingWork) {
        self =
            switch work {
            case .park: .park
            case .carry: .carry
            case .discard: .discard
            }
    }
}
