package import Foundation

/// A step of a mutation, to be made together with others in one transaction.
package enum Transition: Sendable {
    /// Pending to in flight: it is about to be sent, telling the server the key so. It must be runnable. Where an
    /// earlier attempt is in doubt that the server would not know this one for a repeat of, nothing must be sent, and
    /// the mutation's `telling` is nil.
    case begin(UUID, owner: String, telling: KeyDelivery = .none)
    /// In flight to pending: the attempt is known to have had no effect, or the server tells a repeat. Not tried again
    /// before `at`, unless the clock is set back meanwhile; at once if nil. `leaving` says what is in doubt then; where
    /// nil, the failure's class does.
    case retryLater(Attempt, at: Date?, MutationFailure, revision: Revision? = nil, leaving: RemainingDoubt? = nil)
    /// In flight to acknowledged: the server has carried it out, and this is its answer.
    case answer(Attempt, [UInt8], temporaryIDs: [TemporaryID: String] = [:])
    /// Acknowledged to settled: the cache has the answer. `result` is kept with the outcome.
    case settle(UUID, result: [UInt8]? = nil)
    /// From the state expected to dead letter.
    case setAside(UUID, expecting: MutationState, MutationFailure)
    /// In flight with a dead owner to in flight with another; the attempt stays the same.
    case adopt(Attempt, from: String, to: String)
}

/// What is changed of a mutation before it is sent again.
package struct Revision: Sendable, Hashable {
    /// New variables, a JSON object.
    package var variables: [UInt8]?
    /// A new key, where the server would take the new variables for a repeat of the old.
    package var idempotencyKey: String?
    package var optimisticResponse: [UInt8]?

    package init(variables: [UInt8]? = nil, idempotencyKey: String? = nil, optimisticResponse: [UInt8]? = nil) {
        self.variables = variables
        self.idempotencyKey = idempotencyKey
        self.optimisticResponse = optimisticResponse
    }
}
