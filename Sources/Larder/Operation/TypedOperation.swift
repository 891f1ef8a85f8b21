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
