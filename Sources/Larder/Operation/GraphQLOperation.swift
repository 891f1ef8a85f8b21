package import LarderGraphQL

/// A question, or a change, in the words of GraphQL.
///
/// ```swift
/// let latest = GraphQLOperation("query Latest($n: Int) { movies(first: $n) { title } }", variables: ["n": 50])
/// ```
///
/// The document is compiled when it is used first, and kept compiled by the partition.
public struct GraphQLOperation: Sendable {
    /// An executable document; it may hold several operations, and fragments.
    public var document: String
    /// Which operation of the document; may be nil where it has only one.
    public var name: String?
    /// By name, without the dollar sign. Variables that are left out take their defaults.
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

extension GraphQLOperation {
    /// What kind of operation it is by a schema, found out without a store.
    ///
    /// - Throws: `.syntax`, `.operation` or `.variables` where it cannot be asked.
    package func kind(in schema: Schema) throws(LarderError) -> OperationKind {
        try OperationCache(schema.index).bound(self).layout.plan.kind
    }
}

// Documents are the same if their bytes are, as `OperationCache` finds them.

extension GraphQLOperation: Hashable {
    public static func == (left: GraphQLOperation, right: GraphQLOperation) -> Bool {
        left.document.hasSameBytes(as: right.document) && left.name == right.name && left.variables == right.variables
    }

    public func hash(into hasher: inout Hasher) {
        hasher.combineBytes(of: document)
        hasher.combine(variables)
    }
}
