/// What is asked of one object: the fields of a fragment.
public struct GraphQLFragment: Sendable {
    /// A document with the fragment, and the fragments that it spreads.
    public var document: String
    /// Which fragment of the document; may be nil where it has only one.
    public var name: String?
    /// By name, without the dollar sign. Variables that are left out take their defaults.
    public var variables: [String: Value]

    /// - Parameter name: May be left out where the document has only one.
    public init(_ document: String, name: String? = nil, variables: [String: Value] = [:]) {
        self.document = document
        self.name = name
        self.variables = variables
    }
}
