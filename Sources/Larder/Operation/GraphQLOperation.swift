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
    /// By name, without the dollar sign. Those that are left out take their defaults.
    public var variables: [String: Value]

    /// - Parameter name: May be left out where the document has only one.
    public init(_ document: String, name: String? = nil, variables: [String: Value] = [:]) {
        self.document = document
        self.name = name
        self.variables = variables
    }
}

/// An operation whose answers are of a type of the program's own.
///
/// ```swift
/// struct LatestMovies: TypedOperation {
///     struct Data: Decodable, Sendable { var movies: [Movie] }
///     var limit: Int
///     var operation: GraphQLOperation { GraphQLOperation(Self.document, variables: ["n": .int(Int64(limit))]) }
/// }
/// ```
public protocol TypedOperation: Sendable {
    /// The root of the data, by the operation's response keys.
    associatedtype Data: Decodable & Sendable

    /// The operation with its variables.
    var operation: GraphQLOperation { get }
}

/// What is asked of one object: the fields of a fragment.
public struct GraphQLFragment: Sendable {
    /// A document with the fragment, and those that it spreads.
    public var document: String
    /// Which fragment of the document; may be nil where it has only one.
    public var name: String?
    /// By name, without the dollar sign. Those that are left out take their defaults.
    public var variables: [String: Value]

    /// - Parameter name: May be left out where the document has only one.
    public init(_ document: String, name: String? = nil, variables: [String: Value] = [:]) {
        self.document = document
        self.name = name
        self.variables = variables
    }
}
