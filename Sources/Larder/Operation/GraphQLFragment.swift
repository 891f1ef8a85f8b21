import LarderGraphQL

/// What is asked of one object: the fields of a fragment.
public struct GraphQLFragment: Sendable {
    /// A document with the fragment, and the fragments that it spreads.
    public var document: String
    /// Which fragment of the document; may be nil where it has only one.
    public var name: String?
    /// By name, without the dollar sign. A fragment declares none, so that they have no defaults.
    public var variables: [String: Value]

    /// - Parameters:
    ///   - document: GraphQL text.
    ///   - name: May be left out where the document has only one.
    ///   - variables: The values of its variables by their names, without `$`.
    public init(_ document: String, name: String? = nil, variables: [String: Value] = [:]) {
        self.document = document
        self.name = name
        self.variables = variables
    }
}

// Documents are the same if their bytes are, as `OperationCache` finds them.

extension GraphQLFragment: Hashable {
    public static func == (left: GraphQLFragment, right: GraphQLFragment) -> Bool {
        left.document.hasSameBytes(as: right.document) && left.name == right.name && left.variables == right.variables
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combineBytes(of: document)
        hasher.combine(variables)
    }
}
