/// What a mutation that has not been answered does to the answers of a cache, and to nothing that is stored.
package struct OptimisticLayer: Sendable {
    /// The mutation's. As soon as a snapshot knows of it, the layer is not seen in that snapshot.
    package let key: AppliedKey
    /// A response as the server may give it, stored as that would be.
    package var response: Answer?
    /// Cache keys of objects that are no more; those that are not in the cache are passed over.
    package var removals: [String]
    /// What becomes of lists, after all else.
    package var edits: [ListEdit]

    package struct Answer: Sendable {
        package let operation: BoundOperation
        package let parsed: ParsedResponse
        package let root: RecordCache.Root

        package init(_ parsed: ParsedResponse, of operation: BoundOperation, to root: RecordCache.Root = .query) {
            self.operation = operation
            self.parsed = parsed
            self.root = root
        }
    }

    package init(
        key: AppliedKey, response: Answer? = nil, removals: [String] = [], edits: [ListEdit] = []
    ) {
        self.key = key
        self.response = response
        self.removals = removals
        self.edits = edits
    }
}

extension OptimisticLayer {
    /// Whether it is the same layer, with the same response in memory.
    func isSame(as other: OptimisticLayer) -> Bool {
        key == other.key && response?.parsed === other.response?.parsed
            && response?.operation === other.response?.operation && response?.root == other.response?.root
            && removals == other.removals && edits == other.edits
    }
}

/// Why a layer is left out.
package struct LayerFailure: Sendable {
    package let key: AppliedKey
    package let error: RecordError
}
