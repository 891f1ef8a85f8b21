public import LarderGraphQL
import LarderRecords

/// One operation on its way to a server.
public struct GraphQLRequest: Sendable, Hashable {
    /// What the operation does.
    public enum OperationKind: String, Sendable, Hashable, Codable {
        /// As GraphQL names it.
        case query, mutation, subscription
    }

    /// A header of HTTP, or of a transport's equivalent.
    public struct Header: Sendable, Hashable {
        /// In any case; names that differ in case alone are one.
        public var name: String
        /// As it is to be sent.
        public var value: String

        /// A header of this name and value.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// What the operation does, by which a transport chooses how to send it.
    public var kind: OperationKind
    /// The operation's name, which the document contains; nil for an anonymous one.
    public var operationName: String?
    /// The executable document, with the fragments it uses.
    public var document: String
    /// SHA-256 of `document` in UTF-8, as 64 lowercase hexadecimal digits: the key of a persisted query.
    public var documentHash: String
    /// The variables as one JSON object in UTF-8, keys in ascending order; `{}` where there are none.
    public var variables: [UInt8]
    /// The variables by their names. Reading them takes time in proportion to their size.
    public var variableValues: [String: Value] {
        if case .object(let values)? = try? Value(json: variables) { values } else { [:] }
    }
    /// Headers of this request only, after the transport's own.
    public var headers: [Header]

    /// A request that says all of it; ``Partition`` makes them.
    public init(
        kind: OperationKind, operationName: String?, document: String, documentHash: String,
        variables: [UInt8], headers: [Header] = []
    ) {
        self.kind = kind
        self.operationName = operationName
        self.document = document
        self.documentHash = documentHash
        self.variables = variables
        self.headers = headers
    }
}
