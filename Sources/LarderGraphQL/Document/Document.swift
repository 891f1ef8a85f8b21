/// An executable document: operations and fragments, each kind in the order of the text.
///
/// Equality looks at what the document says and not at the locations of its parts.
package struct Document: Sendable, Hashable {
    package var operations: [OperationDefinition]
    package var fragments: [FragmentDefinition]

    package init(operations: [OperationDefinition] = [], fragments: [FragmentDefinition] = []) {
        self.operations = operations
        self.fragments = fragments
    }

    /// Parses a text, which must hold one definition at least.
    ///
    /// Nothing is looked up: that names mean something is the matter of validation. Time and memory: linear.
    package init(
        parsing text: String, sourceName: String? = nil, limits: ParserLimits = .default
    ) throws(SyntaxError) {
        var parser = try Parser(text, sourceName: sourceName, limits: limits)
        self = try parser.parseDocument()
    }
}
