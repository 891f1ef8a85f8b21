/// Where a mutation is on its way. A settled one has no row any more, and an `Outcome` instead.
///
/// Statements compare the numbers, so that their order counts too: what is below `acknowledged` has no answer.
package enum MutationState: Int, StoredCase {
    /// Not sent, or known to have had no effect.
    case pending = 0
    /// Sent, or about to be, by its owner.
    case inFlight = 1
    /// The server has answered; the answer is yet to be written to the cache.
    case acknowledged = 2
    /// Set aside, with the reason. Nothing but a person or the program takes it from there.
    case deadLetter = 3

    package static let subject = "A mutation's state"
}

extension MutationState: CustomStringConvertible {
    /// The name by which tools know it.
    package var description: String {
        switch self {
        case .pending: "pending"
        case .inFlight: "inFlight"
        case .acknowledged: "acknowledged"
        case .deadLetter: "deadLetter"
        }
    }
}
