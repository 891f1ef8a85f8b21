package import Foundation

/// A mutation as it is stored.
package struct Mutation: Sendable, Hashable {
    /// Its place in the order. Never used again, by no other mutation of the database.
    package var sequence: Int64
    package var id: UUID
    package var partition: String
    package var lane: String
    package var state: MutationState
    /// Whether it waits, through however many others, for a dead letter. Others of its lane go past it.
    package var isStalled: Bool
    package var idempotencyKey: String
    package var content: MutationContent
    /// See `MutationDraft.touched`; nil where it is not known.
    package var touched: [UInt8]?
    /// What it waits for: those of its dependencies that are not settled.
    package var dependencies: [UUID]
    /// The transfers that it waits for: the ones that are not done.
    package var transfers: [UUID] = []
    /// The temporary ids that it reserved.
    package var temporaryIDs: [TemporaryID]
    package var created: Date
    package var expires: Date?
    package var notBefore: Date?
    /// How many attempts were begun.
    package var attempts: Int
    /// Who made the attempt that is under way.
    package var owner: String?
    /// How the attempt that is under way, or the last, tells the server the key; nil where it sends nothing.
    package var telling: KeyDelivery?
    /// How attempts told it that may have taken effect, and whose outcome is not known; nil where there are none. The
    /// one that is under way is not among them.
    package var doubt: KeyDelivery?
    package var answer: [UInt8]?
    /// The last one: of an attempt, or why it was set aside.
    package var failure: MutationFailure?

    /// Of a mutation that is not under way: whether it may have taken effect.
    var isInDoubt: Bool { doubt != nil || failure?.class.leavesDoubt ?? false }

    /// The attempt that was begun last.
    package var attempt: Attempt { Attempt(mutation: id, number: attempts) }
}

/// One try to send a mutation. Only the one that is under way can end it: what a server says late, or twice, is
/// refused.
package struct Attempt: Sendable, Hashable {
    package var mutation: UUID
    /// From 1.
    package var number: Int

    package init(mutation: UUID, number: Int) {
        self.mutation = mutation
        self.number = number
    }
}
