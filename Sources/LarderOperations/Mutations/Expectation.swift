package import Foundation

/// What a mutation is expected to do: as much of it as its optimistic layer needs.
package struct Expectation: Sendable, Hashable {
    package var sequence: Int64
    package var id: UUID
    package var idempotencyKey: String
    /// What it can have to do with, as it was queued; nil where that is not known.
    package var touched: [UInt8]?
    /// Without resolver and check. Nil where it is yet to be read, which it can be as long as the mutation is there.
    package var content: MutationContent?

    package init(
        sequence: Int64, id: UUID, idempotencyKey: String, touched: [UInt8]?, content: MutationContent?
    ) {
        self.sequence = sequence
        self.id = id
        self.idempotencyKey = idempotencyKey
        self.touched = touched
        self.content = content
    }
}

extension Mutation {
    package var expectation: Expectation {
        Expectation(sequence: sequence, id: id, idempotencyKey: idempotencyKey, touched: touched, content: content)
    }
}
