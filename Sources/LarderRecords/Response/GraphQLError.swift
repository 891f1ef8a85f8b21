public import LarderGraphQL

/// One error that a server reported in a response, beside its data or instead of it.
public struct GraphQLError: Error, Sendable, Hashable {
    /// A place in the document that was sent.
    public struct Location: Sendable, Hashable {
        /// From 1.
        public var line: Int
        /// From 1, as the server counts.
        public var column: Int

        /// The place at this line and column, both from 1.
        public init(line: Int, column: Int) {
            self.line = line
            self.column = column
        }
    }

    /// For developers, in whatever language the server speaks.
    public var message: String
    /// The field that could not be answered; nil where the error concerns the whole request.
    public var path: ResponsePath?
    /// What in the document the error is about; often empty.
    public var locations: [Location]
    /// What the server adds, by its own rules; AppSync's `errorType` at the root of an error is in `errorType`.
    public var extensions: [String: Value]
    /// The kind of error: AppSync's `errorType`, at the root or in `extensions`, or `extensions.code`.
    public var errorType: String?
    /// What AppSync's resolver says of the error, at its root; nil where it says nothing.
    public var errorInfo: Value?
    /// What AppSync's resolver gives with the error, at its root: the server's item after a conflict. Nil where it
    /// gives nothing.
    public var data: Value?

    /// An error as a server would report it, for tests and transports.
    public init(
        message: String, path: ResponsePath? = nil, locations: [Location] = [], extensions: [String: Value] = [:],
        errorType: String? = nil, errorInfo: Value? = nil, data: Value? = nil
    ) {
        self.message = message
        self.path = path
        self.locations = locations
        self.extensions = extensions
        self.errorType = errorType
        self.errorInfo = errorInfo
        self.data = data
    }
}

extension GraphQLError: CustomStringConvertible {
    /// The message, the path and the kind.
    public var description: String {
        let at = path.map { " at \($0)" } ?? ""
        let kind = errorType.map { " [\($0)]" } ?? ""
        return message + at + kind
    }
}

extension GraphQLError {
    /// Reads an entry of a response's `errors` as leniently as may be: what an error says must not be lost over
    /// how it says it.
    package init(_ value: Value) {
        guard case .object(let members) = value else {
            self.init(message: "The server reported an error without a message")
            return
        }
        self.init(message: members["message"]?.text ?? "the server reported an error without a message")
        path = ResponsePath(ofError: members["path"] ?? .null)
        if case .list(let places)? = members["locations"] {
            locations = places.compactMap { place in
                guard case .object(let members) = place, case .int(let line)? = members["line"],
                    case .int(let column)? = members["column"]
                else { return nil }
                return Location(line: Int(clamping: line), column: Int(clamping: column))
            }
        }
        if case .object(let members)? = members["extensions"] { extensions = members }
        errorType = members["errorType"]?.text ?? extensions["errorType"]?.text ?? extensions["code"]?.text
        errorInfo = members["errorInfo"].flatMap { $0 == .null ? Value?.none : $0 }
        data = members["data"].flatMap { $0 == .null ? Value?.none : $0 }
    }
}

extension ResponsePath {
    /// Nil for null. A path that is not as the specification has it is a path all the same: the error is about a field.
    fileprivate init?(ofError value: Value) {
        switch value {
        case .null: return nil
        case .list(let steps):
            self.init(
                steps.map { step in
                    switch step {
                    case .string(let name): .field(name)
                    case .int(let index): .index(Int(clamping: index))
                    default: .field("\(step)")
                    }
                })
        case .string(let name): self.init([.field(name)])
        default: self.init([.field("\(value)")])
        }
    }
}

extension Value {
    fileprivate var text: String? {
        if case .string(let text) = self { text } else { nil }
    }
}
