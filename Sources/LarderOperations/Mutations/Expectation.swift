package import Foundation

/// What a mutation is expected to do: as much of it as its optimistic layer needs.
package struct Expectation: Sendable, Hashable {
    package var sequence: Int64
    package var id: UUID
    package var idempotencyKey: String
    /// Without resolver and check.
    package var content: MutationContent

    package init(sequence: Int64, id: UUID, idempotencyKey: String, content: MutationContent) {
        self.sequence = sequence
        self.id = id
        self.idempotencyKey = idempotencyKey
        self.content = content
    }
}

extension Mutation {
    package var expectation: Expectation {
        Expectation(sequence: sequence, id: id, idempotencyKey: idempotencyKey, content: content)
    }
}
