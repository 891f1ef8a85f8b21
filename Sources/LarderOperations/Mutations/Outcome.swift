package import Foundation

/// How a mutation ended that has no row any more.
package struct Outcome: Sendable, Hashable {
    package enum Kind: Int, StoredCase {
        /// The server carried it out, and the cache has the answer.
        case applied = 0
        /// It was given up.
        case discarded = 1

        package static let subject = "An outcome's kind"
    }

    /// So many are kept of a partition, by the numbers of the mutations: outcomes that are further from the highest are
    /// forgotten.
    package static let kept = 10_000

    package var mutation: UUID
    package var partition: String
    package var sequence: Int64
    package var kind: Kind
    package var settled: Date
    /// What the caller that settled it wanted to be kept.
    package var result: [UInt8]?
    /// What the server said had failed of one that took effect in part, as a JSON list.
    package var errors: [UInt8]?
    /// Why it had been set aside, where it was discarded; without details.
    package var failure: MutationFailure?
}

/// What is known of a mutation by its id.
package enum Standing: Sendable, Hashable {
    case present(Mutation)
    case settled(Outcome)
    /// Never queued here, or settled so long ago that its outcome was pruned.
    case unknown
}
