/// What a server answered to a mutation, to be stored once.
package struct MutationAnswer: Sendable {
    /// The mutation's. Where the cache knows it already, nothing is stored.
    package let key: AppliedKey
    package let parsed: ParsedResponse
    package let operation: BoundOperation
    /// What becomes of lists, after the answer is stored.
    package let edits: [ListEdit]

    package init(_ parsed: ParsedResponse, of operation: BoundOperation, key: AppliedKey, edits: [ListEdit]) {
        self.key = key
        self.parsed = parsed
        self.operation = operation
        self.edits = edits
    }
}
