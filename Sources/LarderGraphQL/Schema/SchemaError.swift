/// Why a text, or bytes, are no schema that can be worked with.
package struct SchemaError: Error, Sendable, Hashable, CustomStringConvertible {
    package enum Code: Sendable, Hashable {
        /// The text is not in the schema definition language.
        case syntax
        /// A name stands for no type.
        case unknownType
        /// A type, field, argument or value is defined twice.
        case duplicate
        /// There is no query root, or a root is no object type.
        case root
        /// A type stands where its kind cannot, has nothing in it, or is extended as another kind.
        case invalidType
        /// A type does not have what its interface promises.
        case implementation
        /// A policy names a field or an argument that does not exist or cannot serve.
        case policy
        /// Serialized bytes are not what was written, or not by this version.
        case serializedForm
    }

    package var code: Code
    package var message: String
    /// Nil where the error has no place in a text.
    package var location: Location?
    package var sourceName: String?

    package init(_ code: Code, _ message: String, location: Location? = nil, sourceName: String? = nil) {
        self.code = code
        self.message = message
        self.location = location
        self.sourceName = sourceName
    }

    init(_ error: SyntaxError) {
        self.init(.syntax, error.message, location: error.location, sourceName: error.sourceName)
    }

    package var description: String {
        guard let location else { return message }
        return "\(sourceName ?? "schema"):\(location.line):\(location.column): \(message)"
    }
}
